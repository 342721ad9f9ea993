"""What a plan has to come to: judged by the API server's own log, not by what the worker says.

In: the audit log, the story, where VMs have been. Out: lines, one for each thing that is wrong. What the topics say is
read in `topics.py`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support.processes.kwok import HOST_LABEL
from trust.sieve.stories import Story

AGENT = "underhost"
LABEL_PATHS = re.compile(r"/api/v1/nodes/([^/?]+)")
POD_PATHS = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/?]+)(/binding|/eviction)?")
LEASES = "/apis/coordination.k8s.io/"


class Written(NamedTuple):
    """A write of the product that the API server has carried out."""

    verb: str
    path: str
    body: Any


def written(log: Path, offset: int, scope: str) -> list[Written]:
    """What the product has written in this plan since the log had `offset` bytes, as the API server has received it."""
    found = []
    with log.open("rb") as file:
        file.seek(offset)
        for line in file:
            if scope.encode() not in line or not line.endswith(b"\n"):
                continue
            event = json.loads(line)
            path = event["requestURI"].partition("?")[0]
            done = event["stage"] == "ResponseComplete" and event["responseStatus"]["code"] < 300
            if done and event.get("userAgent", "").startswith(AGENT) and not path.startswith(LEASES):
                at = event["requestReceivedTimestamp"]
                found.append((at, Written(event["verb"], path, event.get("requestObject"))))
    # The log has them in the order of their ends: a write can be read by another worker before it is in the log.
    return [write for _, write in sorted(found, key=lambda one: one[0])]


def forbidden(writes: Iterable[Written], scope: str, story: Story, visited: Mapping[str, Iterable[str]]) -> list[str]:
    """The writes that no order of events excuses.

    `visited` are the hosts that the VMs of each node have been on. Every write must name the uid that it is for: the
    API server then refuses those to what is gone.
    """
    wrong: list[str] = []
    labelled: set[str] = set()
    evicted: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    for write in writes:
        body = write.body if isinstance(write.body, dict) else {}
        pod, node = POD_PATHS.fullmatch(write.path), LABEL_PATHS.fullmatch(write.path)
        if write.verb.startswith("delete"):
            wrong.append(f"{write.verb} {write.path}")
        elif pod is not None and pod[3] == "/eviction":
            uid = (body.get("deleteOptions") or {}).get("preconditions", {}).get("uid")
            evicted[f"{pod[2]} {uid}"] += 1
            wrong += [] if uid else [f"the eviction of {pod[2]} names no uid"]
        elif pod is not None and pod[3] == "/binding":
            uid = body.get("metadata", {}).get("uid")
            bound[f"{pod[2]} {uid}"] += 1
            wrong += [] if uid else [f"the binding of {pod[2]} names no uid"]
        elif node is not None:
            wrong += _of_a_node(node[1].removeprefix(f"{scope}-"), write.body, visited, labelled)
    for what, counts in (("evicted", evicted), ("bound", bound)):
        wrong += [f"{name} was {what} {count} times" for name, count in counts.items() if count > 1]
    for what, counts, right in (("evictions", evicted, story.evictions), ("bindings", bound, story.bindings)):
        if (count := sum(counts.values())) not in right:
            wrong.append(f"{count} {what} instead of {' or '.join(map(str, right))}: {sorted(counts)}")
    return wrong


def _of_a_node(node: str, body: Any, visited: Mapping[str, Iterable[str]], labelled: set[str]) -> list[str]:
    """What is wrong with a patch: of taints (a list of operations), or of labels (an object), of which uids were."""
    if isinstance(body, list):
        uid = next((one["value"] for one in body if (one["op"], one["path"]) == ("test", "/metadata/uid")), None)
        if uid is None:
            return [f"the taints of {node} are changed whatever its uid"]
        return [] if uid in labelled else [f"the taint of {node} has gone before its labels were there"]
    metadata = (body or {}).get("metadata", {})
    labelled.add(metadata.get("uid"))
    wrong = [] if metadata.get("uid") else [f"the labels of {node} are changed whatever its uid"]
    host = metadata.get("labels", {}).get(HOST_LABEL)
    if host is not None and host not in visited.get(node, ()):
        wrong.append(f"{node} is labelled {host}, where its VM has never been")
    return wrong
