"""Whatever somebody may try with Kafka's topics and groups, asked for by one request of each kind.

In: who asks, topics, groups. Out: what he was let do. Nothing comes of it: topics and settings are only tried out, what
is written is no record, and a group is told of a member that it has not.
"""

from collections.abc import Collection, Iterable
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import (
    AlterConfigsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.produce import ProduceRequest
from support.rights import ALLOW, KINDS, LITERAL, OPERATIONS, Grant

from underhost.streams.kafka.security import client_arguments
from underhost.streams.settings.kafka import KafkaSettings

REFUSED = {29, 30, 31}
"""Errors of Kafka: not authorized for the topic, the group, the cluster."""
ANY, TOPIC, MILLISECONDS = 1, 2, 20_000
TRIED = ("Create", "Delete", "Alter", "AlterConfigs", "DescribeConfigs", "Read", "Write")
"""What is tried with a topic."""
Tried = set[tuple[str, str, str]]
"""Operation, kind and name."""


async def let_do(kafka: KafkaSettings, topics: Collection[str], groups: Iterable[str]) -> Tried:
    """What this user is let do with these topics, these groups and the cluster."""
    admin = AIOKafkaAdminClient(**client_arguments(kafka))
    await admin.start()
    try:
        found = {
            (operation, "topic", name)
            for operation, request in _of_topics(topics)
            for name, code in _codes(await admin._send_request(request))
            if code not in REFUSED
        }
        for group in groups:
            beat = await admin._send_request(HeartbeatRequest(group, 1, "nobody"))
            ended = await admin._send_request(DeleteGroupsRequest([group]))
            codes = {"Read": beat.error_code, "Delete": ended.results[0][1]}
            found |= {(operation, "group", group) for operation, code in codes.items() if code not in REFUSED}
        more = CreateAclsRequest(TOPIC, "*", LITERAL, "User:underhost-web", "*", OPERATIONS["Write"], ALLOW)
        [given] = (await admin._send_request(more)).creation_responses
        return found if given[0] in REFUSED else {*found, ("Alter", "cluster", "")}
    finally:
        await admin.close()


def _of_topics(topics: Collection[str]) -> list[tuple[str, Any]]:
    """One request about all of them for each operation."""
    requests = {
        "Create": CreateTopicsRequest([(name, 1, 1, [], []) for name in topics], MILLISECONDS, True),
        "Delete": DeleteTopicsRequest(list(topics), MILLISECONDS),
        "Alter": CreatePartitionsRequest([(name, (99, None)) for name in topics], MILLISECONDS, True),
        "AlterConfigs": AlterConfigsRequest([(TOPIC, name, [("retention.ms", "1")]) for name in topics], True),
        "DescribeConfigs": DescribeConfigsRequest([(TOPIC, name, None) for name in topics]),
        "Read": FetchRequest(1, 0, 1 << 16, 0, [(name, [(0, 0, 1)]) for name in topics]),
        "Write": ProduceRequest(None, 1, MILLISECONDS, [(name, [(0, b"")]) for name in topics]),
    }
    return [(operation, requests[operation]) for operation in TRIED]


def _codes(response: Any) -> list[tuple[str, int]]:
    """The error of each topic, in an answer to any of these requests."""
    if hasattr(response, "resources"):
        return [(name, code) for code, _, _, name, *_ in response.resources]
    if hasattr(response, "topics"):  # of what is read and written
        return [(name, partitions[0][1]) for name, partitions, *_ in response.topics]
    rows = getattr(response, "topic_errors", None) or response.topic_error_codes
    return [(name, code) for name, code, *_ in rows]


async def held(address: str, principal: str) -> set[Grant]:
    """The rights of a principal that the broker holds, as somebody who may see them all."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        request = DescribeAclsRequest(ANY, None, ANY, principal, None, ANY, ANY)
        answer = await admin._send_request(request)
    finally:
        await admin.close()
    kinds, words = ({value: name for name, value in table.items()} for table in (KINDS, OPERATIONS))
    found = set()
    for kind, name, pattern, acls in answer.resources:
        for whose, host, operation, permission in acls:
            assert (pattern, host, permission) == (LITERAL, "*", ALLOW)
            found.add(Grant(whose, words[operation], kinds[kind], name))
    return found
