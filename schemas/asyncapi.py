"""The AsyncAPI 3 document of the topics: what another program needs to consume them, made from the one table.

In: `topics.TOPICS` and the record structs. Out: a document as plain data. Parts of objects that travel as the API
server's own JSON (`Raw`) have no schema of their own here: any JSON.
"""

from typing import Any

from msgspec import Struct

from underhost.schemas.json_schema import REF, schemas_of
from underhost.schemas.keys import LISTED
from underhost.schemas.records import Listed
from underhost.schemas.topics import PARTITIONS, TOPICS, Topic

VERSION = "3.0.0"
KAFKA_BINDING = "0.5.0"
DESCRIPTION = (
    "The Kafka topics of Underhost. Every record of one site is in the partition murmur2(site) modulo the number of "
    "partitions, so that each topic is totally ordered for a site. Values are JSON; CloudEvents attributes are headers "
    "(binary mode). A record without a value deletes its key. Only Underhost writes to these topics."
)
_KEYS = {
    "object": "SITE/KIND/NAMESPACE/NAME; the namespace is empty for cluster-scoped and vSphere objects",
    "node": "SITE/node//NAME",
    "pod": "SITE/pod/NAMESPACE/NAME",
    "finding": "SITE/FINDING-ID",
    "target": "SITE/KIND/NAMESPACE/NAME of the object that the command is for",
    "origin's": "the key of the record that could not be processed",
}


def document(version: str) -> dict[str, Any]:
    """The whole document; `version` is Underhost's."""
    structs = [record for topic in TOPICS for record in _records(topic).values() if record is not None]
    return {
        "asyncapi": VERSION,
        "info": {
            "title": "Underhost",
            "version": version,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "kafka": {
                "host": "127.0.0.1:19092",
                "protocol": "kafka",
                "description": "Whatever `kafka.bootstrapServers` names; this is the address of the compose stack.",
            }
        },
        "channels": {topic.short: _channel(topic) for topic in TOPICS},
        "operations": {f"publish-{topic.short}": _operation(topic) for topic in TOPICS},
        "components": {
            "messages": {name: message for topic in TOPICS for name, message in _messages(topic).items()},
            "schemas": schemas_of([*structs, Listed]),
        },
    }


def _records(topic: Topic) -> dict[str, type[Struct] | None]:
    """The record of each kind of key; one kind named as the topic where keys are not told apart."""
    return dict(topic.kinds) if topic.kinds else {topic.short: topic.record}


def _channel(topic: Topic) -> dict[str, Any]:
    config: dict[str, Any] = {
        key: [value] if key == "cleanup.policy" else int(value) for key, value in topic.config.items()
    }
    return {
        "address": topic.name,
        "title": topic.short,
        "description": topic.doc,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _messages(topic)},
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": PARTITIONS,
                "topicConfiguration": config,
                "bindingVersion": KAFKA_BINDING,
            }
        },
    }


def _operation(topic: Topic) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{topic.short}"},
        "summary": f"Written by {topic.producer}; read by {', '.join(topic.consumers)}.",
        "messages": [{"$ref": f"#/channels/{topic.short}/messages/{name}"} for name in _messages(topic)],
    }


def _messages(topic: Topic) -> dict[str, Any]:
    """By message name: each kind of record, the marker of a source's first list, and what deletes a key."""
    found = {}
    for kind, record in _records(topic).items():
        name = kind if kind == topic.short else f"{topic.short}.{kind}"
        key = _KEYS[topic.key] if kind == topic.short else f"SITE/{kind}/NAMESPACE/NAME"
        payload: Any = {"$ref": REF + record.__name__} if record is not None else {}
        found[name] = _message(topic, kind, payload, key)
    if topic.source is not None:
        payload = {"$ref": REF + Listed.__name__}
        found[f"{topic.short}.{LISTED}"] = _message(topic, LISTED, payload, f"SITE/{LISTED}/{topic.source}")
    if topic.cleanup == "compact":
        found[f"{topic.short}.tombstone"] = _message(
            topic, "tombstone: the key is deleted", {"type": "null"}, "the key of what is gone"
        )
    return found


def _message(topic: Topic, title: str, payload: Any, key: str) -> dict[str, Any]:
    return {
        "title": title,
        "headers": _headers(topic),
        "payload": payload,
        "bindings": {
            "kafka": {"key": {"type": "string", "description": key}, "bindingVersion": KAFKA_BINDING},
        },
    }


def _headers(topic: Topic) -> dict[str, Any]:
    raw = topic.record is None
    origin = {f"origin_{name}": {"type": "string"} for name in ("topic", "partition", "offset")} if raw else {}
    why = {"stage": {"type": "string"}, "error": {"type": "string"}} if raw else {}
    return {
        "type": "object",
        "properties": {
            "ce_specversion": {"const": "1.0"},
            "ce_id": {"type": "string", "description": "Equal for equal input: UID/resourceVersion of a state record."},
            "ce_source": {"type": "string", "pattern": "^/sites/", "description": "/sites/SITE"},
            "ce_type": {"const": topic.event_type},
            "ce_time": {"type": "string", "format": "date-time"},
            "content-type": {"const": "application/octet-stream" if raw else "application/json"},
            **origin,
            **why,
        },
        "required": ["ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "content-type"],
    }
