"""The rights of a Kafka user for each role, from the table of topics."""

import pytest

from underhost.agents.pipeline.rights import PEOPLE, USERS, Right, rights_of
from underhost.agents.pipeline.roles import ALL, changelog_topics, consumes, read_topics
from underhost.schemas.topics import BY_NAME, TOPICS

MAKE = ("Create", "DescribeConfigs", "Write")
BOTH = ("Create", "DescribeConfigs", "Read", "Write")
LOOK = ("DescribeConfigs", "Read")


def test_a_binder_reads_placements_and_says_what_became_of_them() -> None:
    changelogs = [f"underhost-binder_prod-{short}-changelog" for short in ("nodes", "hosts", "outcomes")]
    assert rights_of(["binder"], "prod") == [
        Right("topic", "underhost.nodes", LOOK),
        Right("topic", "underhost.hosts", LOOK),
        Right("topic", "underhost.placements", LOOK),
        Right("topic", "underhost.outcomes", BOTH),
        Right("topic", "underhost.dead-letters", MAKE),
        *(Right("topic", name, BOTH) for name in changelogs),
        Right("group", "underhost-binder_prod", ("Read",)),
    ]


def test_a_page_can_write_nothing_and_joins_no_group() -> None:
    rights = rights_of(["web"], "prod")
    assert {right.operations for right in rights} == {LOOK}
    assert [right.name for right in rights] == [topic.name for topic in TOPICS if topic.short != "dead-letters"]


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param(
            "resume",
            [Right("topic", "underhost.actions", ("Write",)), Right("topic", "underhost.outcomes", ("Read",))],
            id="who lets writes go on",
        ),
        pytest.param("look", [Right("topic", topic.name, ("Read",)) for topic in TOPICS], id="who may look"),
    ],
)
def test_people_have_the_rights_of_their_commands(user: str, expected: list[Right]) -> None:
    assert rights_of([user], "prod") == expected


def test_a_worker_of_several_roles_has_the_rights_of_all_of_them_in_one_group() -> None:
    together = rights_of(["labeller", "binder"], "prod")
    apart = {
        right.name: set(right.operations) for role in ("labeller", "binder") for right in rights_of([role], "prod")
    }
    ours = {right.name: set(right.operations) for right in together if right.name in BY_NAME}
    assert ours.keys() == apart.keys() & BY_NAME.keys()
    assert together[-1] == Right("group", "underhost-binder_labeller_prod", ("Read",))


def test_only_the_evaluator_decides_and_only_sources_say_what_there_is() -> None:
    writers = {topic.short: topic.writers for topic in TOPICS}
    assert {short: writers[short] for short in ("placements", "violations", "node-hosts")} == dict.fromkeys(
        ("placements", "violations", "node-hosts"), ("evaluator",)
    )
    assert all(topic.writers == (topic.source,) for topic in TOPICS if topic.source is not None)


def test_every_topic_has_a_writer_and_a_reader_that_is_a_role() -> None:
    assert all(set(topic.writers) <= {*ALL, *PEOPLE} and topic.writers for topic in TOPICS)
    read = {topic.short for role in ALL for topic in read_topics([role])}
    assert read == {topic.short for topic in TOPICS} - {"dead-letters"}


@pytest.mark.parametrize("user", USERS)
def test_no_right_is_of_the_cluster_or_of_more_than_one_thing(user: str) -> None:
    known = {*BY_NAME, *(topic.name for topic in changelog_topics([user], "prod"))} if user in ALL else {*BY_NAME}
    rights = rights_of([user], "prod")
    assert {right.name for right in rights if right.kind == "topic"} <= known
    assert {right.kind for right in rights} == ({"topic", "group"} if consumes({user} - {*PEOPLE}) else {"topic"})
    assert {name for right in rights for name in right.operations} <= {"Create", "DescribeConfigs", "Read", "Write"}
