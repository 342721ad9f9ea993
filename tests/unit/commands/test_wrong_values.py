"""A value that an option cannot have is refused in one line that names the option: it is not taken for an answer."""

from pathlib import Path

import pytest
from support.command_line import run

ROOT = Path(__file__).parents[3]
SITE = ["-f", str(ROOT / "docs/examples/cluster.yaml")]
KEY = "not the key of a label: [PREFIX/]NAME is expected"
LONG = "a" * 64

WRONG = [
    pytest.param(["check", "--host-key", "bad!key", *SITE], f"--host-key bad!key: {KEY}", id="a host key"),
    pytest.param(
        ["explain", "--host-key", "a/b", "--host-key", "a/b/c", *SITE], f"--host-key a/b/c: {KEY}", id="the second"
    ),
    pytest.param(["check", "--host-label", "A.io/k", *SITE], f"--host-label A.io/k: {KEY}", id="a host label"),
    pytest.param(["check", "-l", "a/b/c=d", *SITE], f"--selector a/b/c=d: a/b/c: {KEY}", id="a selector's key"),
    pytest.param(
        ["check", "-l", "x,app=-v-", *SITE], "--selector x,app=-v-: '-v-' is not the value of a label", id="its value"
    ),
    pytest.param(
        ["check", "-l", f"app in (b,{LONG})", *SITE],
        f"--selector app in (b,{LONG}): '{LONG}' is not the value of a label",
        id="a value of a list",
    ),
    pytest.param(
        ["replay", "--at", "5x"],
        "--at '5x': a time is expected, 2026-11-21T03:00:00Z or 10m for ten minutes ago",
        id="a time",
    ),
    pytest.param(
        ["topics", "--bootstrap-servers", "kafka-1:9092:1"],
        "configuration: kafka.bootstrapServers: 'kafka-1:9092:1' is not HOST:PORT",
        id="a broker with two ports",
    ),
    pytest.param(
        ["violations", "--bootstrap-servers", "kafka-1:9092,kafka-2:99999"],
        "configuration: kafka.bootstrapServers: 'kafka-2:99999' is not HOST:PORT",
        id="a port that there is not",
    ),
]


@pytest.mark.parametrize(("words", "line"), WRONG)
def test_a_value_that_cannot_be_is_refused_with_its_option(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"error: {line}\n")


EMPTY = [
    (["run", *SITE], "--bootstrap-servers"),
    (["run", *SITE], "--vsphere-url"),
    (["run", *SITE], "--agents"),
    (["violations"], "--site"),
    (["replay", "--at", "1m"], "--site"),
    (["check", *SITE], "--context"),
    (["check", *SITE], "--host-key"),
    (["explain", *SITE], "--scheduler-name"),
    (["explain", *SITE], "--namespace"),
    (["repair", *SITE], "--for"),
    (["topics", "--acls"], "--principal"),
]


@pytest.mark.parametrize(("words", "option"), EMPTY, ids=lambda given: given if isinstance(given, str) else given[0])
def test_an_option_that_is_given_nothing_is_not_taken_for_one_left_out(
    words: list[str], option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a script has it whose variable is not set: a worker on the embedded log, say, in the place of one on Kafka."""
    assert run(monkeypatch, *words, option, "") == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"error: {option}: a value is expected, and it is empty\n")


@pytest.mark.parametrize("selector", ["app=db", "a.io/b!=", "app in (db, web),!x", "x notin ()", f"a={'v' * 63}"])
def test_a_selector_that_kubectl_takes_is_taken(
    selector: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "check", "-l", selector, *SITE) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "servers", ["kafka-1", "kafka-1:9092,", "kafka-1:9092, kafka-2:9092", "[::1]:9092", "10.0.0.1:9092", "::1"]
)
def test_brokers_are_named_as_kafka_has_them(
    servers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "config", "print", "--bootstrap-servers", servers) == 0
    assert f"bootstrapServers: {servers}" in capsys.readouterr().out.replace("'", "")
