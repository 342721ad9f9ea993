"""What `check` and `lint` write as CSV and Parquet is what they list as JSON; where they cannot, they say why."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processes.terminal import Terminal
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.agents.commands.output.files import csv, parquet
from underhost.agents.evaluate.tables import findings
from underhost.schemas.frames import FINDINGS
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import SEVERITIES

ROOT = Path(__file__).parents[4]
KUBEVIRT, EXAMPLE = ROOT / "tests/data/kubevirt", ROOT / "docs/examples"
PROGRAM = [sys.executable, "-c", "from underhost.agents.cli import program; program()"]
COMMANDS = [
    pytest.param(
        ["check", "-f", str(KUBEVIRT / "dump.json"), "--inventory", str(KUBEVIRT / "inventory.json")],
        5,
        id="check of a dump",
    ),
    pytest.param(
        ["check", "-f", str(KUBEVIRT / "dump.json"), "-n", "kube-system"], 1, id="check of a namespace without hosts"
    ),
    pytest.param(
        ["check", "-f", str(EXAMPLE / "cluster.yaml"), "--inventory", str(EXAMPLE / "inventory.yaml"), "--drift"],
        1,
        id="check of the example in the docs",
    ),
    pytest.param(["lint", "-f", str(KUBEVIRT / "dump.json")], 2, id="lint of a dump"),
]


def output(command: list[str], form: str) -> bytes:
    result = CliRunner().invoke(build(), [*command, "--fail-on", "never", "-o", form])
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the JSON report has it: the domain in one, what is empty left out."""
    key, value = row.pop("domain_key"), row.pop("domain_value")
    if key is not None:
        row["domain"] = {"key": key, "value": value}
    return {name: value for name, value in row.items() if value not in (None, [])}


ADVICE = ("remedy", "runbook")
"""What JSON has besides: it follows from severity and rule."""


def listed(command: list[str]) -> list[dict[str, Any]]:
    found = json.loads(output(command, "json"))["findings"]
    return [
        {name: value for name, value in one.items() if value not in (None, []) and name not in ADVICE} for one in found
    ]


@pytest.mark.parametrize(("command", "count"), COMMANDS)
def test_parquet_holds_what_json_lists(command: list[str], count: int) -> None:
    frame = pl.read_parquet(output(command, "parquet"))
    assert FINDINGS.checked(frame).height == count
    assert [as_json(row) for row in frame.to_dicts()] == listed(command)


@pytest.mark.parametrize(("command", "count"), COMMANDS)
def test_csv_holds_what_json_lists_with_blanks_between_peers(command: list[str], count: int) -> None:
    types = {**FINDINGS.polars_schema, "peers": pl.String}
    frame = pl.read_csv(io.BytesIO(output(command, "csv")), schema=types)
    rows = [as_json({**row, "peers": (row["peers"] or "").split()}) for row in frame.to_dicts()]
    assert (len(rows), rows) == (count, listed(command))


NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"], include_characters=[" "]), min_size=1)
ANY_FINDING = st.builds(
    Finding,
    id=NAMES,
    severity=st.sampled_from(SEVERITIES),
    rule=NAMES,
    reason=NAMES,
    message=NAMES,
    pod=st.none() | NAMES,
    peers=st.lists(st.sampled_from(["shop/a", "shop/b"])),
    domain=st.none() | st.builds(Domain, NAMES, NAMES | st.just("")),
    pods=st.none() | st.integers(0, 150_000),
)


@given(st.lists(ANY_FINDING, max_size=5))
def test_whatever_the_words_of_findings_both_files_hold_them(found: list[Finding]) -> None:
    frame = findings(found)
    assert pl.read_parquet(parquet(frame)).equals(frame)
    read = pl.read_csv(io.BytesIO(csv(frame)), schema={**FINDINGS.polars_schema, "peers": pl.String})
    plain = frame.with_columns(pl.col("peers").list.join(" "), pl.col(pl.String).str.replace("^[=+@-]", "'$0"))
    assert read.fill_null("").equals(plain.fill_null(""))


def test_csv_without_findings_is_a_header() -> None:
    assert csv(findings([])).decode() == ",".join(FINDINGS.polars_schema) + "\n"


def test_csv_runs_no_formula_and_holds_no_control_character() -> None:
    finding = Finding(
        "1", "drift", "R", "-r", "a\x1b[31m\n\u202eb", pod="=1+1", peers=["+a", "b"], domain=Domain("@", "")
    )
    (_, row) = csv(findings([finding])).decode().splitlines()
    assert row == "1,drift,R,'-r,a?[31m??b,'=1+1,,'+a b,'@,\"\",,,,"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param(
            ["--watch"],
            "error: --output parquet: with --watch one file would follow another; leave --watch out\n",
            id="again and again",
        ),
        pytest.param(
            [],
            "error: --output parquet: standard output is a terminal; write to a file: -o parquet > FILE\n",
            id="on a terminal",
        ),
    ],
)
def test_parquet_is_refused_where_it_is_no_file(options: list[str], error: str, tmp_path: Path) -> None:
    with Terminal([*PROGRAM, "check", "-f", "nowhere.json", "-o", "parquet", *options], tmp_path) as terminal:
        assert terminal.rest() == error
        assert terminal.process.returncode == 2


def test_parquet_goes_to_a_pipe() -> None:
    done = subprocess.run([*PROGRAM, "check", "-f", str(KUBEVIRT / "dump.json"), "-o", "parquet"], capture_output=True)
    assert (done.returncode, pl.read_parquet(done.stdout).schema) == (0, FINDINGS.polars_schema), done.stderr
