"""What the topics of a plan's worker say, read from its embedded log as another program reads it. All of it blocks.

In: the embedded log. Out: what is said that is not so, and whether something is said.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.processes.listener import Heard, Listener

from underhost.schemas.errors import Unreachable


def told(log: Path, scope: str, uids: Mapping[str, str]) -> list[str]:
    """What the topics say that is not so: open findings, and nodes and pods that are not these.

    `uids` are by the end of a record's key.
    """
    topics = Listener({"embedded": str(log)})
    wrong = [f"open finding: {found['message']}" for found in topics.open_findings().values()]
    for topic, kind in (("underhost.nodes", "node"), ("underhost.pods", "pod")):
        newest = _newest(topics.records(topic))
        held = {
            key.removeprefix(f"{scope}/"): value["metadata"]["uid"]
            for key, value in newest.items()
            if key.startswith(f"{scope}/{kind}/")
        }
        there = {key: uid for key, uid in uids.items() if key.startswith(f"{kind}/")}
        wrong += [
            f"{key} is in the topic as {held.get(key)}, in the cluster as {there.get(key)}"
            for key in sorted(held.keys() | there.keys())
            if held.get(key) != there.get(key)
        ]
    return wrong


def has_said(log: Path, topic: str, text: str) -> bool:
    """Whether a record of the topic (`underhost.outcomes`) holds this text, also where a later one has its key.

    What is said of a pod's eviction and of its labels is said under one key, in whichever order it comes.
    """
    return any(text in json.dumps(record.value) for record in _records(log, topic))


def still_says(log: Path, topic: str, text: str) -> bool:
    """Whether the newest record of any key of the topic (`underhost.nodes`) holds this text."""
    return any(text in json.dumps(value) for value in _newest(_records(log, topic)).values())


def _records(log: Path, topic: str) -> list[Heard]:
    try:
        return Listener({"embedded": str(log)}).records(topic)
    except Unreachable:
        return []  # a worker that has just begun has not made it yet


def _newest(records: Iterable[Heard]) -> dict[str, Any]:
    newest = {record.key: record.value for record in records}
    return {key: value for key, value in newest.items() if value is not None}
