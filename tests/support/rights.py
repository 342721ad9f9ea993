"""Rights at a real Kafka broker: given as `underhost topics --acls` prints them, and what its authorizer answered."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest, CreateAclsRequestStruct

TOOL = "kafka-acls.sh"
KINDS = {"topic": 2, "group": 3}
OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "DescribeConfigs": 10}
LITERAL, ALLOW = 3, 3
_ANSWER = re.compile(
    r"Principal = User:(?P<user>\S+) is (?P<answer>Allowed|Denied) operation = (?P<operation>\w+) "
    r".*on resource = (?P<kind>\w+):LITERAL:(?P<name>\S+) for request = (?P<request>\w+)"
)


class Grant(NamedTuple):
    """A principal may do one thing with one topic or group. `operation` is in Kafka's words: `DescribeConfigs`."""

    principal: str
    operation: str
    kind: str
    name: str


def grants(lines: str) -> list[Grant]:
    """What the lines for kafka-acls allow; any other flag, or another tool, is an error."""
    found = []
    for line in lines.splitlines():
        if line.startswith("#"):
            continue
        words = shlex.split(line)
        assert words[:6] == [TOOL, "--bootstrap-server", "$BOOTSTRAP", "--command-config", "$ADMIN", "--add"], line
        flags: dict[str, list[str]] = {}
        for flag, value in zip(words[6::2], words[7::2], strict=True):
            flags.setdefault(flag, []).append(value)
        [principal], operations = flags.pop("--allow-principal"), flags.pop("--operation")
        for flag, names in flags.items():
            kind = flag.removeprefix("--")
            assert kind in KINDS, line
            found += [Grant(principal, operation, kind, name) for operation in operations for name in names]
    return found


class _CreateAcls(CreateAclsRequest):
    """All rights in one request: each request is a write to the broker's disk, and there are a thousand rights."""

    def __init__(self, wanted: Iterable[Grant]) -> None:
        self._wanted = list(wanted)

    def build(self, request_struct_class: type[CreateAclsRequestStruct]) -> CreateAclsRequestStruct:
        """See `Request`."""
        return request_struct_class(
            [
                (KINDS[kind], name, LITERAL, principal, "*", OPERATIONS[operation], ALLOW)
                for principal, operation, kind, name in self._wanted
            ]
        )


async def grant(address: str, wanted: Iterable[Grant]) -> None:
    """Give these rights, as somebody who may."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        response = await admin._send_request(_CreateAcls(wanted))
        assert [message for code, message in response.creation_responses if code != 0] == []
    finally:
        await admin.close()


class Answer(NamedTuple):
    """What the authorizer has answered: `operation` is in its own words, `DESCRIBE_CONFIGS`."""

    user: str
    allowed: bool
    operation: str
    kind: str
    name: str
    request: str


def answers(audit: Path) -> set[Answer]:
    """Each different answer that is in the log."""
    found = filter(None, map(_ANSWER.search, audit.read_text().splitlines()))
    return {
        Answer(
            one["user"], one["answer"] == "Allowed", one["operation"], one["kind"].lower(), one["name"], one["request"]
        )
        for one in found
    }


def upper() -> dict[str, str]:
    """The authorizer's word of each operation: `DESCRIBE_CONFIGS` of `DescribeConfigs`."""
    return {name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper() for name in OPERATIONS}
