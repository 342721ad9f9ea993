"""`underhost topics --place`: which sites share a partition, and how they would lie in others; Kafka is not asked."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.schemas.errors import InputError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build(), ["topics", *arguments])


def test_each_site_is_told_its_partition_and_who_shares_it() -> None:
    assert run("--place", "prod-a, prod-b,edge-1,edge-2").output == (
        "SITE     PARTITION   TOGETHER WITH\n"
        "edge-1   5           edge-2\n"
        "edge-2   5           edge-1\n"
        "prod-a   4           -\n"
        "prod-b   0           -\n"
        "\n"
        "PARTITIONS       MOST SITES IN ONE   SITES ALONE\n"
        "8 (configured)   2                   2\n"
        "12               1                   4\n"
        "16               1                   4\n"
        "32               1                   4\n"
        "64               1                   4\n"
    )


def test_many_sites_are_shown_counts_of_at_least_two_partitions_for_each() -> None:
    document = json.loads(run("--place", ",".join(f"site-{n:03}" for n in range(1, 201)), "-o", "json").output)
    assert [(one["partitions"], one["most"], one["alone"]) for one in document["counts"]] == [
        (8, 35, 0),
        (16, 22, 0),
        (32, 13, 0),
        (64, 8, 8),
        (128, 5, 42),
        (256, 5, 91),
        (512, 4, 130),
    ]


def test_a_document_says_the_same() -> None:
    document = json.loads(run("--place", "prod-a,edge-2,edge-1", "-o", "json").output)
    assert (document["kind"], document["partitions"]) == ("Places", 8)
    assert document["sites"] == [
        {"site": "edge-1", "partition": 5, "with": ["edge-2"]},
        {"site": "edge-2", "partition": 5, "with": ["edge-1"]},
        {"site": "prod-a", "partition": 4, "with": []},
    ]
    assert document["counts"][0] == {"partitions": 8, "most": 2, "alone": 1}


def test_the_count_of_the_configuration_is_the_one_that_is_judged(tmp_path: Path) -> None:
    config = tmp_path / "underhost.yaml"
    config.write_text("apiVersion: underhost/v1\nkind: Config\nkafka: {partitions: 1}\n")
    document = json.loads(run("--place", "a,b,c", "-o", "json", "--config", str(config)).output)
    assert [(one["site"], one["partition"], one["with"]) for one in document["sites"]] == [
        ("a", 0, ["b", "c"]),
        ("b", 0, ["a", "c"]),
        ("c", 0, ["a", "b"]),
    ]
    assert [(one["partitions"], one["most"], one["alone"]) for one in document["counts"]] == [
        (1, 3, 0),
        (2, 3, 0),
        (4, 2, 1),
        (7, 1, 3),
        (8, 2, 1),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--place", " , "], "--place: no site is named", id="no site"),
        pytest.param(["--place", "prod-a,,prod-b"], "--place: a name is empty", id="an empty name"),
        pytest.param(["--place", "prod-a,prod-b,"], "--place: a name is empty", id="a comma at the end"),
        pytest.param(["--place", "b,a,b, b"], "--place: b is named more than once", id="a name again"),
        pytest.param(["--place", "prod,a b"], "--place: 'a b' is no name of a site", id="a blank in it"),
        pytest.param(["--place", "Prod"], "--place: 'Prod' is no name of a site", id="a capital"),
        pytest.param(["--place", "a" * 64], f"--place: '{'a' * 64}' is no name of a site", id="too long"),
        pytest.param(["pods", "--place", "a"], "--place is of all topics: leave TOPIC out", id="of one topic"),
        pytest.param(["--acls", "--place", "a"], "--acls and --place are two questions: ask one", id="two questions"),
        pytest.param(
            ["--site", "a", "--place", "a"],
            "--agents, --site and --principal say whose rights --acls prints",
            id="an option of the other question",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: list[str], said: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert str(error) == said
