"""`underhost topics`: the topics of the pipeline as they are now, and what each is for.

In: where the topics live. Out: a table or JSON of partitions, records and ends; with a NAME its key, record and
configuration; with `-o asyncapi` the interface itself, for which nothing need run.
Exit 0; 2 for an unknown name; 3 when the topics cannot be reached.
"""

import asyncio
from typing import Any

import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import show_tables, versioned
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.schemas.topics import BY_NAME, PREFIX, TOPICS, Topic
from underhost.streams.admin import TopicDescription, describe_topics

HEADER = ("NAME", "CLEANUP", "PARTITIONS", "RECORDS", "PRODUCER", "CONSUMERS")


def handle(name: str | None, output: str, where: Topics) -> None:
    """List the topics as they are now, or describe one."""
    wanted = TOPICS if name is None else (_find(name),)
    found = list(zip(wanted, asyncio.run(describe_topics(settings_of(where).kafka, wanted)), strict=True))
    if output == "table" and name is None:
        show_tables([Table(HEADER, [_row(topic, now) for topic, now in found])])
        return
    if output == "name":
        text = "".join(f"{topic.name}\n" for topic in wanted)
    elif output == "table":
        text = "".join(f"{label + ':':<14}{value}\n" for label, value in _lines(*found[0]))
    elif name is None:
        text = versioned("Topics", {"topics": [_fields(topic, now) for topic, now in found]}, output)
    else:
        text = versioned("Topic", _fields(*found[0]), output)
    typer.echo(text, nl=False)


def _find(name: str) -> Topic:
    topic = BY_NAME.get(name) or BY_NAME.get(PREFIX + name)
    if topic is None:
        known = [topic.short for topic in TOPICS]
        raise InputError(f"no topic {name}; there are: {', '.join(known)}{did_you_mean(name, known)}")
    return topic


def _row(topic: Topic, now: TopicDescription) -> tuple[str, ...]:
    count = str(now.partitions) if now.partitions else "missing"
    return topic.name, topic.cleanup, count, str(now.records), topic.producer, ", ".join(topic.consumers)


def _fields(topic: Topic, now: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "doc": topic.doc,
        "cleanup": topic.cleanup,
        "key": topic.key,
        "record": topic.record.__name__ if topic.record else None,
        "eventType": topic.event_type,
        "producer": topic.producer,
        "consumers": list(topic.consumers),
        "config": topic.config,
        "partitions": now.partitions,
        "ends": list(now.ends),
        "records": now.records,
    }


def _lines(topic: Topic, now: TopicDescription) -> list[tuple[str, str]]:
    return [
        ("Name", topic.name),
        ("Holds", topic.doc),
        ("Key", topic.key),
        ("Record", topic.record.__name__ if topic.record else "raw bytes"),
        ("Event type", topic.event_type),
        ("Producer", topic.producer),
        ("Consumers", ", ".join(topic.consumers)),
        ("Config", ", ".join(f"{key}={value}" for key, value in topic.config.items())),
        ("Partitions", str(now.partitions) if now.partitions else "missing"),
        ("Records", str(now.records)),
        ("Ends", ", ".join(map(str, now.ends)) or "-"),
    ]
