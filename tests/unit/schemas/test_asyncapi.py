"""The AsyncAPI document says what is on the topics."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from underhost.agents.commands.handlers.asyncapi import asyncapi_text
from underhost.schemas.asyncapi import document
from underhost.schemas.commands import RESUME, WRITTEN
from underhost.schemas.json_schema import schemas_of
from underhost.schemas.kubernetes import Pod, decode
from underhost.schemas.records import Action, Domain, FindingEvent, Listed, NodeHost
from underhost.schemas.topics import TOPICS
from underhost.schemas.vsphere import DrsRule
from underhost.streams.cloudevents import cloud_event

ROOT = Path(__file__).parents[3]
META = json.loads((ROOT / "tests/data/asyncapi/schema-3.0.0.json").read_text())
DOCUMENT = document(version("underhost"))


def test_the_document_is_asyncapi_3() -> None:
    jsonschema.Draft7Validator(META).validate(DOCUMENT)


def test_the_page_in_docs_is_the_document_of_today() -> None:
    page = ROOT / "docs/reference/asyncapi.yaml"
    assert page.read_text() == asyncapi_text(), f"run: underhost topics -o asyncapi > {page.relative_to(ROOT)}"


@pytest.mark.parametrize("kind", [*WRITTEN, RESUME])
def test_every_kind_of_command_is_told_with_its_target_and_what_it_desires(kind: str) -> None:
    said = schemas_of([Action])["Action"]["description"]
    kinds, targets, desired = re.split(r"`target` names|`desired` by kind", said)
    assert all(re.search(rf"(?<![\w-]){kind}(?![\w-])", part) for part in (kinds, targets, desired))


def test_every_topic_is_a_channel_with_its_name_and_clean_up() -> None:
    channels = DOCUMENT["channels"]
    assert [channel["address"] for channel in channels.values()] == [topic.name for topic in TOPICS]
    config = {name: channel["bindings"]["kafka"]["topicConfiguration"] for name, channel in channels.items()}
    assert config["violations"] == {"cleanup.policy": ["compact"], "min.compaction.lag.ms": 86_400_000}
    assert config["outcomes"] == {"cleanup.policy": ["delete"], "retention.ms": 604_800_000}


def test_every_reference_leads_somewhere() -> None:
    references = set(_references(DOCUMENT))
    assert len(references) > 100
    for reference in references:
        here: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            here = here[part]


def test_no_two_records_share_a_name() -> None:
    structs = {record for topic in TOPICS for record in (*topic.kinds.values(), topic.record) if record is not None}
    assert len({struct.__name__ for struct in structs}) == len(structs)


@pytest.mark.parametrize(
    ("message", "value"),
    [
        pytest.param("nodes.listed", Listed(1, 7), id="the marker that a source has listed"),
        pytest.param("node-hosts", NodeHost("n1", "vm-1", "host-1", "esx-1", "providerID"), id="a node on its host"),
        pytest.param("drs-rules.drs-rule", DrsRule("r", "anti-affinity", ["vm-1", "vm-2"]), id="a DRS rule"),
        pytest.param(
            "pods.pod",
            decode(b'{"metadata":{"name":"a","labels":{"app":"x"}},"spec":{"containers":[{"name":"c"}]}}', Pod),
            id="a pod with its labels as they came",
        ),
        pytest.param(
            "violations",
            FindingEvent(
                "9f2c",
                "opened",
                "prod",
                "physical",
                "PhysicalHost",
                "r",
                "m",
                "t",
                "t",
                {"pods": 4},
                pod="shop/db-0",
                peers=["shop/db-1"],
                domain=Domain("host", "esx-1"),
            ),
            id="a finding",
        ),
    ],
)
def test_a_record_fits_the_schema_of_its_message(message: str, value: msgspec.Struct) -> None:
    validator(message).validate(msgspec.json.decode(msgspec.json.encode(value)))


def test_a_record_of_another_shape_does_not_fit() -> None:
    assert not validator("node-hosts").is_valid({"node": "n1", "vm": 7})


@pytest.mark.parametrize("topic", TOPICS, ids=[topic.short for topic in TOPICS])
def test_the_headers_that_are_sent_are_those_of_every_message(topic: Any) -> None:
    sent = {name: value.decode() for name, value in cloud_event(topic, "prod", "u/1", b"2026-01-02T12:00:00.005Z")}
    for reference in DOCUMENT["channels"][topic.short]["messages"].values():
        headers = DOCUMENT["components"]["messages"][reference["$ref"].rpartition("/")[2]]["headers"]
        jsonschema.Draft7Validator(headers).validate(sent)


def test_a_type_without_a_schema_is_refused() -> None:
    class Odd(msgspec.Struct):
        pattern: re.Pattern[str]

    with pytest.raises(TypeError, match="no JSON schema"):
        schemas_of([Odd])


def validator(message: str) -> jsonschema.Draft7Validator:
    payload = DOCUMENT["components"]["messages"][message]["payload"]
    return jsonschema.Draft7Validator({**payload, "components": DOCUMENT["components"]})


def _references(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if "$ref" in tree:
            yield tree["$ref"]
        for value in tree.values():
            yield from _references(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _references(value)
