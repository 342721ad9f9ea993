"""What each worker needs of Kafka, and no more: the rights of one user for each role, from the table of topics.

In: roles, a site. Out: rights, for `underhost topics --acls`. Who writes a topic also makes it. Write or Read let
somebody describe a topic, and an idempotent producer needs no right of its own where there is a topic to write. No
right has a wildcard or a prefix, and none is of the cluster. `tests/real/kafka/test_rights.py` has a broker say which
of them are used.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from underhost.agents.pipeline import roles as role
from underhost.schemas.topics import OUTCOMES, TOPICS, Topic

RESUME, LOOK = "resume", "look"
"""Two people's users: who may say `underhost resume`, and who may look at all topics (`violations`, `replay`, …)."""
PEOPLE = (RESUME, LOOK)
USERS = (*role.ALL, *PEOPLE)
PRINCIPAL = "User:underhost-{role}"
"""The principal of a role's user. With certificates it is a distinguished name: `User:CN=underhost-{role},O=…`."""
TOPIC, GROUP = "topic", "group"
CREATE, DESCRIBE_CONFIGS, READ, WRITE = "Create", "DescribeConfigs", "Read", "Write"


class Right(NamedTuple):
    """What a user may do with one topic or group. `operations` are sorted, in Kafka's words."""

    kind: str
    name: str
    operations: tuple[str, ...]


def rights_of(roles: Collection[str], site: str) -> list[Right]:
    """The rights of a worker that has all of these roles, or of one of `PEOPLE`; topics in the table's order."""
    reads, writes = list(role.read_topics(roles)), list(role.written_topics(roles))
    if LOOK in roles:
        reads = list(TOPICS)
    if RESUME in roles:
        reads.append(OUTCOMES)
    makes = set(roles) - set(PEOPLE)
    rights = [_of_topic(topic, topic in reads, topic in writes, bool(makes)) for topic in TOPICS]
    found = [right for right in rights if right.operations]
    if role.consumes(makes):
        found += [_of_topic(topic, True, True, True) for topic in role.changelog_topics(makes, site)]
        found.append(Right(GROUP, role.app_id(makes, site), (READ,)))
    return found


def _of_topic(topic: Topic, reads: bool, writes: bool, works: bool) -> Right:
    def operations() -> Iterator[str]:
        if writes and works:
            yield CREATE
        if works and (reads or writes):
            yield DESCRIBE_CONFIGS
        if reads:
            yield READ
        if writes:
            yield WRITE

    return Right(TOPIC, topic.name, tuple(operations()))
