"""What `violations`, `topics`, `dead-letters` and `config` print, over an embedded log as a pipeline leaves it."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from support.workers.embedded import a_publisher
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.commands.handlers.dead_letters import fields_of
from underhost.agents.commands.handlers.violations import changes, render_event
from underhost.schemas.keys import finding_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.records import FindingEvent
from underhost.schemas.topics import TOPICS, VIOLATIONS
from underhost.streams.admin import ensure_topics
from underhost.streams.ports import Outgoing, Record
from underhost.streams.publish import dead_letter
from underhost.streams.settings.kafka import KafkaSettings

ORIGINAL = b"\xff{"


def a_finding(id_: str, *, severity: str = "physical", state: str = "opened", pod: str = "shop/db-0") -> FindingEvent:
    return FindingEvent(
        id=id_, state=state, site="prod", severity=severity, rule="PhysicalHost", reason="one host",
        message=f"{pod} and shop/db-9 share esx-1", first_seen="2026-01-01T00:00:00Z",
        updated_at="2026-01-01T00:00:01Z", snapshot={"pods": 7}, pod=pod, node="n1", peers=["shop/db-9"],
    )  # fmt: skip


def a_record(event: FindingEvent | None, id_: str = "") -> Outgoing:
    key = finding_key("prod", event.id if event else id_)
    return Outgoing(VIOLATIONS, key, encode(event) if event else None, key)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two open findings, one that was resolved, one record that is no finding, and a dead letter."""
    path = tmp_path / "topics.db"
    origin = Record("underhost.pods", 3, 41, 0, b"prod/pod/shop/db-0", ORIGINAL, ())

    async def fill() -> None:
        await ensure_topics(KafkaSettings(embedded=path, partitions=4))
        async with a_publisher(path) as publisher:
            await publisher.publish(
                a_record(a_finding("aa", severity="drift", pod="shop/web-1\x1b[31m")),
                a_record(a_finding("bb")),
                a_record(a_finding("cc")),
                a_record(a_finding("cc", state="resolved")),
                a_record(None, "cc"),
                Outgoing(VIOLATIONS, finding_key("prod", "dd"), b"no json", "dd"),
                dead_letter(origin, "tables", "not JSON"),
            )

    asyncio.run(fill())
    return path


def run(*arguments: object) -> Result:
    """The command's result; an error of ours stays an exception."""
    return CliRunner().invoke(build(), [str(argument) for argument in arguments])


def test_violations_lists_what_is_open_gravest_first_and_harmless_to_a_terminal(log: Path) -> None:
    result = run("violations", "--embedded", log)
    since, shared = "2026-01-01T00:00:00Z", "and shop/db-9 share esx-1"
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:-1] == [
        "SEVERITY   RULE           POD               NODE   SINCE                  MESSAGE",
        f"physical   PhysicalHost   shop/db-0         n1     {since}   shop/db-0 {shared}",
        f"drift      PhysicalHost   shop/web-1?[31m   n1     {since}   shop/web-1?[31m {shared}",
    ]
    assert "is no finding" in result.stderr


def test_violations_as_json_is_versioned_and_whole(log: Path) -> None:
    result = run("violations", "--embedded", log, "-o", "json", "--severity", "physical")
    document = json.loads(result.stdout)
    assert (document["apiVersion"], document["kind"]) == ("underhost/v1", "Violations")
    advice = {
        "remedy": "Move one of the VMs to another host, by hand or (in vSphere) by `sinks.drsRules`, or evict one "
        "of the pods.",
        "runbook": "docs/runbooks/UnderhostPhysical.md",
    }
    assert document["violations"] == [{**json.loads(encode(a_finding("bb"))), **advice}]


def test_a_worker_and_the_topics_are_not_asked_at_once(log: Path) -> None:
    refused = "violations: --server shows what is open at a worker; --follow and the rest read the topics"
    assert run("violations", "--server", "http://127.0.0.1:1", "--embedded", log).exception.args[0] == refused


def test_violations_by_name_are_site_and_id(log: Path) -> None:
    assert run("violations", "--embedded", log, "-o", "name").stdout == "prod/bb\nprod/aa\n"


def test_topics_lists_every_topic_with_its_records(log: Path) -> None:
    lines = run("topics", "--embedded", log).stdout.splitlines()
    cells = {line.split()[0]: line.split()[1:4] for line in lines[1:]}
    assert list(cells) == [topic.name for topic in TOPICS]
    assert cells["underhost.violations"] == ["compact", "4", "6"]
    assert cells["underhost.dead-letters"] == ["delete", "4", "1"]


def test_topics_describes_one_by_its_short_name(log: Path) -> None:
    document = json.loads(run("topics", "violations", "--embedded", log, "-o", "json").stdout)
    assert (document["kind"], document["name"], document["record"]) == ("Topic", "underhost.violations", "FindingEvent")
    assert (document["eventType"], sum(document["ends"])) == ("underhost.violations.v1", 6)


@pytest.mark.parametrize("said", [b"many", b"9" * 5000, b""])
def test_a_dead_letter_whose_size_is_said_in_no_number_has_that_of_its_value(said: bytes) -> None:
    letter = Record("underhost.dead-letters", 0, 1, 0, b"prod/pod/shop/db-0", ORIGINAL, (("origin_bytes", said),))
    assert fields_of(letter)["bytes"] == 2


def test_dead_letters_name_origin_stage_and_error(log: Path) -> None:
    (letter,) = json.loads(run("dead-letters", "--embedded", log, "-o", "json").stdout)["deadLetters"]
    told = {name: letter[name] for name in ("origin", "key", "stage", "error", "bytes", "digest")}
    assert told == {
        "origin": "underhost.pods/3/41", "key": "prod/pod/shop/db-0", "stage": "tables", "error": "not JSON",
        "bytes": 2, "digest": f"sha256:{hashlib.sha256(ORIGINAL).hexdigest()}",
    }  # fmt: skip


def test_config_print_shows_every_setting_but_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNDERHOST_VSPHERE__PASSWORD", "hunter2")
    file = tmp_path / "config.yaml"
    file.write_text("site: prod\nvsphere: {url: 'https://vc/sdk', username: u}\n", encoding="utf-8")
    result = run("config", "print", "--config", file, "--bootstrap-servers", "kafka:9092")
    assert "hunter2" not in result.stdout
    tree = yaml.safe_load(result.stdout)
    assert list(tree)[:3] == ["apiVersion", "kind", "site"]
    assert (tree["site"], tree["kafka"]["bootstrapServers"], tree["vsphere"]["url"]) == (
        "prod",
        "kafka:9092",
        "https://vc/sdk",
    )


def test_what_config_print_prints_is_a_configuration_again(tmp_path: Path) -> None:
    first = run("config", "print", "--embedded", tmp_path / "x.db").stdout
    file = tmp_path / "config.yaml"
    file.write_text(first, encoding="utf-8")
    assert run("config", "print", "--config", file).stdout == first


def test_config_schema_is_a_json_schema_of_the_files_keys() -> None:
    schema = json.loads(run("config", "schema").stdout)
    assert {"site", "kafka", "hostLabel", "physicalHost"} <= set(schema["properties"])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        pytest.param(("violations", "-o", "xml"), "--output xml: one of table, wide, json", id="unknown format"),
        pytest.param(("violations", "--severity", "bad"), "--severity bad: one of violation", id="unknown severity"),
        pytest.param(("topics", "nodez"), "no topic nodez; there are: nodes, pods", id="unknown topic"),
        pytest.param(
            ("topics", "--embedded", "x", "--bootstrap-servers", "y:1"), "only one of them", id="two places at once"
        ),
        pytest.param(("violations", "--embedded", "nowhere.db"), "nowhere.db: no such file", id="no embedded log"),
        pytest.param(("config", "print", "--config", "nowhere.yaml"), "nowhere.yaml: No such", id="no such config"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments: tuple[str, ...], fault: str) -> None:
    result = run(*arguments)
    assert fault in str(result.exception)


class Topic:
    """A reader of one topic that goes on after what it held at first."""

    def __init__(self, held: list[Outgoing], later: list[Outgoing]) -> None:
        self._records = [
            Record(record.topic.name, 0, offset, 0, record.key.encode(), record.value, ())
            for offset, record in enumerate([*held, *later])
        ]
        self._held = len(held)

    async def state(self, topic: object, site: str) -> dict[str, bytes]:
        raise NotImplementedError

    async def history(self, topics: object) -> AsyncIterator[Record]:
        for record in self._records[: self._held]:
            yield record

    async def follow(self, topics: object, *, from_beginning: bool = False) -> AsyncIterator[Record]:
        for record in self._records if from_beginning else self._records[self._held :]:
            yield record

    async def close(self) -> None:
        """Nothing to release."""


async def test_following_begins_with_what_is_open_and_misses_and_repeats_nothing() -> None:
    held = [a_record(a_finding("aa")), a_record(a_finding("bb")), a_record(a_finding("bb", state="resolved"))]
    later = [a_record(None, "bb"), a_record(a_finding("cc")), a_record(a_finding("aa", state="resolved"))]
    seen = [(event.id, event.state) async for event in changes(Topic(held, later))]
    assert seen == [("aa", "opened"), ("cc", "opened"), ("aa", "resolved")]


def test_an_id_that_is_followed_cannot_harm_a_terminal() -> None:
    assert render_event(a_finding("a\x1b[2Ja"), "name") == "prod/a?[2Ja opened"


def test_a_followed_event_is_one_line() -> None:
    assert render_event(a_finding("aa"), "table") == (
        "2026-01-01T00:00:01Z      opened    physical      PhysicalHost       "
        "shop/db-0                                     shop/db-0 and shop/db-9 share esx-1"
    )
    assert json.loads(render_event(a_finding("aa"), "json"))["kind"] == "Violation"
