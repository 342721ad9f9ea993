"""`underhost topics --acls`: lines for kafka-acls, or a document; Kafka is not asked."""

import json

import pytest
from support.rights import Grant, grants
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.pipeline.rights import USERS, rights_of
from underhost.schemas.errors import InputError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build(), ["topics", "--acls", "--site", "prod", *arguments])


def test_the_lines_give_each_user_just_its_rights() -> None:
    given = grants(run().output)
    assert len(given) == len(set(given))
    assert set(given) == {
        Grant(f"User:underhost-{user}", operation, right.kind, right.name)
        for user in USERS
        for right in rights_of([user], "prod")
        for operation in right.operations
    }


def test_a_document_says_the_same_of_one_worker() -> None:
    document = json.loads(run("--agents", "resume", "-o", "json").output)
    assert (document["kind"], document["site"]) == ("Acls", "prod")
    assert document["acls"] == [
        {
            "role": "resume", "principal": "User:underhost-resume", "resourceType": "topic", "patternType": "literal",
            "name": f"underhost.{name}", "host": "*", "operations": [operation],
        }
        for name, operation in (("actions", "Write"), ("outcomes", "Read"))
    ]  # fmt: skip


def test_a_principal_may_be_a_distinguished_name() -> None:
    lines = run("--agents", "binder,labeller", "--principal", "User:CN=underhost-{role},O=an example").output
    assert {given.principal for given in grants(lines)} == {"User:CN=underhost-labeller_binder,O=an example"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--agents", "labler"], "did you mean labeller?", id="no such role"),
        pytest.param(["--agents", ","], "--agents: no role is named", id="no role"),
        pytest.param(["pods"], "--acls is of all topics: leave TOPIC out", id="of one topic"),
        pytest.param(["--principal", "underhost"], "is not TYPE:NAME with {role} in it", id="no principal"),
        pytest.param(["--principal", "User:all"], "is not TYPE:NAME with {role} in it", id="one user for all roles"),
    ],
)
def test_what_is_mistyped_is_one_line(arguments: list[str], said: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert said in str(error)


def test_whose_rights_is_said_only_where_rights_are_asked_for() -> None:
    error = CliRunner().invoke(build(), ["topics", "--agents", "web"]).exception
    assert isinstance(error, InputError)
    assert str(error) == "--agents, --site and --principal say whose rights --acls prints"
