"""Three workers over one real Kafka and one real API server, a load of changes, and a fault: then Jepsen's checks.

In: a fault, a number of changes, a seed. Out: what is wrong afterwards, a line each. Every worker has an API user of
its own, so that the audit log tells whose write each is, and its journal tells what it was told is in the topics.
"""

import asyncio
import json
import random
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from aiokafka.admin import AIOKafkaAdminClient
from support.processes.crowd import inventory
from support.processes.kube import ADMINS, Kube, start_kube
from support.processes.kwok import kwok_node, kwok_pod, uuid_of
from support.processes.ports import free_ports
from support.processes.programs import TESTS, program
from trust.jepsen.api import Api
from trust.jepsen.audit import AuditLog
from trust.jepsen.checks import (
    MARKER,
    Sent,
    by_former_owners,
    differences,
    diverging,
    lost,
    not_committed,
    out_of_order,
    repeated,
    replayed,
)
from trust.jepsen.worker import read

from underhost.agents.pipeline.roles import ALL, app_id, changelog_topics
from underhost.schemas.kubernetes import Pod, decode
from underhost.schemas.topics import NODES, PODS, SOURCE_TOPICS, TOPICS, VIOLATIONS, Topic
from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.ports import Record
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.watching.records import fingerprint

SITE, NAMESPACE, PARTITIONS = "prod-a", "default", 4
HOSTS, NODE_COUNT, APPS, REPLICAS = 5, 10, 20, 3
AT_ONCE = 8
SETTLE = 180.0
"""Seconds within which everything must be as it should be after the last change, on a busy machine."""
REPLAYED = (*SOURCE_TOPICS, VIOLATIONS)
"""Topics whose tables hold what they hold and nothing else: rows of others go with their pods."""
LEASES = {"pods/binding": f"underhost-{SITE}-binder"}
COMPARED = tuple(kind for kind in KINDS if kind.topic in (NODES, PODS))


class NeverCame(Exception):
    """A worker has ended, or does not do what it must: the round is lost."""


class Member:
    """One of the workers. `name` is its API user, too."""

    def __init__(self, name: str, folder: Path, config: dict[str, Any]) -> None:
        self.name, self.web = name, free_ports(1)[0]
        self.journal, self._log, self._config = (
            folder / f"{name}.journal",
            folder / f"{name}.log",
            folder / f"{name}.json",
        )
        self._config.write_text(json.dumps({**config, "web": {"listen": f"127.0.0.1:{self.web}"}}))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again."""
        with self._log.open("ab") as out:
            command = program("trust.jepsen.worker", str(self._config), str(self.journal))
            self._process = subprocess.Popen(command, stdout=out, stderr=out, cwd=TESTS)

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def tail(self) -> str:
        """The end of what it said."""
        return self._log.read_text()[-1500:] if self._log.exists() else ""


class Transport(Protocol):
    """The brokers of a rig: what a fault strikes, beside the workers."""

    replicas: int
    bootstrap: str

    def bootstrap_of(self, worker: int) -> str:
        """The bootstrap servers of one worker."""

    async def __aenter__(self) -> "Transport":
        """Start."""

    async def __aexit__(self, *error: object) -> None:
        """End everything."""


@dataclass
class Rig:
    """What a fault may strike. `dice` is made of the round's seed."""

    transport: Transport
    members: list[Member]
    api: Api
    seed: int
    earlier: list[Record] = field(default_factory=list)
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    async def owner(self) -> Member | None:
        """The worker that says it owns the site."""
        for member in self.members:
            if await self.api.answers(f"http://127.0.0.1:{member.web}/extender/readyz"):
                return member
        return None


Fault = Callable[[Rig], Awaitable[None]]


async def play(
    folder: Path, parts: Path, transport: Callable[[Path, Path], Transport], fault: Fault, events: int, seed: int
) -> list[str]:
    """One round in an empty folder: start everything, change, strike, settle, stop, check. Nothing is left running."""
    audit = AuditLog(folder / "audit.log")
    async with AsyncExitStack() as stack:
        brokers = await stack.enter_async_context(transport(folder / "kafka", parts))
        kube = stack.enter_context(start_kube(folder / "kube", parts, *audit.flags()))
        api = await stack.enter_async_context(Api(kube))
        members = [
            Member(name, folder, _config(folder, kube, token, brokers, number))
            for number, (name, token) in enumerate(ADMINS.items())
        ]
        for member in members:
            stack.callback(member.kill)
        rig = Rig(brokers, members, api, seed)
        await _furnish(rig, folder)
        for member in members:
            member.start()
        await _until(rig, "a worker owns the site", rig.owner)
        struck_at = rig.dice.randrange(events // 4, events * 3 // 4)
        await _change(rig, events, {struck_at: fault})
        wrong = await _settled(rig, brokers.bootstrap)
        for member in members:  # one that was started again may not even hear a signal yet
            await _until(rig, f"{member.name} answers", partial(api.answers, f"http://127.0.0.1:{member.web}/healthz"))
        await _until(rig, "every topic is read and committed", partial(_is_committed, brokers.bootstrap))
        codes = [await asyncio.to_thread(member.stop) for member in members]
        wrong += [f"{member.name} ended with {code}" for member, code in zip(members, codes, strict=True) if code]
        history = await _history(brokers.bootstrap, TOPICS)
        changelogs = await _history(brokers.bootstrap, changelog_topics(ALL, SITE))
        committed = await _committed(brokers.bootstrap, app_id(ALL, SITE))
    journals = [sent for member in members for sent in read(member.journal)]
    wrong += judged(journals, history, changelogs, rig.earlier, committed)
    writes = audit.writes()
    return wrong + repeated(writes) + by_former_owners(writes, LEASES)


def judged(
    journals: Sequence[Sent],
    history: Sequence[Record],
    changelogs: Sequence[Record],
    earlier: Sequence[Record],
    committed: Mapping[str, int],
) -> list[str]:
    """What Kafka holds, against what was acknowledged, and tables against a replay.

    A worker may write a record right before it stops, which it then does not read any more: keys with records that the
    group has not committed (`committed`: offset by `topic/partition`) are not compared.
    """
    wrong = lost(journals, history) + out_of_order(journals, history) + diverging(earlier, history)
    tables, kept = replayed(history), replayed(changelogs)
    for topic in REPLAYED:
        unread = not_committed(history, topic.name, committed)
        rows = {
            key: value
            for key, value in kept[f"{app_id(ALL, SITE)}-{topic.short}-changelog"].items()
            if not key.endswith(b"/term") and key not in unread
        }
        wanted = {key: value for key, value in tables[topic.name].items() if key not in unread}
        wrong += differences(f"table of {topic.short} is not its replay", rows, wanted)
    return wrong


def _config(folder: Path, kube: Kube, token: str, brokers: Transport, number: int) -> dict[str, Any]:
    kafka = {"bootstrapServers": brokers.bootstrap_of(number), "partitions": PARTITIONS, "sessionTimeout": 6}
    return {
        "site": SITE,
        "kafka": {**kafka, "replicationFactor": brokers.replicas},
        "kubernetes": {"kubeconfig": str(kube.kubeconfig_of(token))},
        "vsphere": {"inventory": str(folder / "inventory.json")},
        "sinks": {"bindings": True},
    }


# ------------------------------------------------------------------------------------------------------------ the load
async def _furnish(rig: Rig, folder: Path) -> None:
    nodes = [
        kwok_node(f"n{number}", uuid_of(number), host=f"h{number % HOSTS}", cpu="64") for number in range(NODE_COUNT)
    ]
    (folder / "inventory.json").write_text(json.dumps(inventory(nodes)))
    for node in nodes:
        await rig.api.ask("POST", "/api/v1/nodes", node)
    await _until(rig, "the namespace is there", lambda: rig.api.exists(f"/api/v1/namespaces/{NAMESPACE}"))
    for number in range(APPS * REPLICAS):
        await rig.api.ask("POST", rig.api.pods, _pod(number))


def _pod(number: int) -> dict[str, Any]:
    """No controller is there to take the taint from a new node that it is not ready."""
    return kwok_pod(f"p{number}", "underhost", app=f"app-{number // REPLICAS}", tolerations=[{"operator": "Exists"}])


async def _change(rig: Rig, events: int, faults: dict[int, Fault]) -> None:
    """Labels change, and pods are deleted and made again, while the faults strike."""
    numbers = iter(range(events))
    locks = [asyncio.Lock() for _ in range(APPS * REPLICAS)]

    async def work() -> None:
        for event in numbers:
            if event in faults:
                rig.earlier = await _history(rig.transport.bootstrap, TOPICS)
                striking.append(asyncio.create_task(faults[event](rig)))
            pod = rig.dice.randrange(len(locks))
            async with locks[pod]:
                path = f"{rig.api.pods}/p{pod}"
                if rig.dice.random() < 0.1:
                    await rig.api.ask("DELETE", path, {"gracePeriodSeconds": 0})
                    await rig.api.ask("POST", rig.api.pods, _pod(pod))
                else:
                    await rig.api.ask("PATCH", path, {"metadata": {"labels": {"v": str(event)}}})

    striking: list[asyncio.Task[None]] = []
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())
    await asyncio.gather(*striking)


# ------------------------------------------------------------------------------------------------------------- the end
async def _settled(rig: Rig, bootstrap: str) -> list[str]:
    """Wait until the topics hold what the API server holds, and every pod is bound; what is still wrong in the end."""
    deadline = time.monotonic() + SETTLE
    while True:
        wrong = await _unlike_server(rig.api, bootstrap)
        if not wrong or time.monotonic() > deadline:
            return wrong
        await asyncio.sleep(1.0)  # the workers announce nothing to a test, so it has to look again


async def _unlike_server(api: Api, bootstrap: str) -> list[str]:
    tables = replayed(await _history(bootstrap, [kind.topic for kind in COMPARED]))
    wrong = []
    for kind in COMPARED:
        live: dict[bytes, bytes] = {}
        for item in await api.items(kind.path):
            found: Any = kind.decode(item)
            key = kind.key(SITE, found.metadata.name, found.metadata.namespace)
            live[key.encode()] = fingerprint(found)
            if isinstance(found, Pod) and not found.spec.node_name:
                wrong.append(f"not bound: {found.metadata.name}")
        rows = {
            key: fingerprint(decode(value, kind.record))
            for key, value in tables[kind.topic.name].items()
            if MARKER not in key
        }
        wrong += differences(f"{kind.plural} are not the API server's", rows, live)
    return wrong


async def _history(bootstrap: str, topics: Sequence[Topic]) -> list[Record]:
    reader = open_reader(KafkaSettings(bootstrap_servers=bootstrap, partitions=PARTITIONS))
    try:
        return [record async for record in reader.history(topics)]
    finally:
        await reader.close()


async def _committed(bootstrap: str, group: str) -> dict[str, int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        offsets = await admin.list_consumer_group_offsets(group)
    finally:
        await admin.close()
    return {f"{where.topic}/{where.partition}": one.offset for where, one in offsets.items()}


async def _is_committed(bootstrap: str) -> bool:
    """Whether something is committed of each partition that tables are kept of: a finding may have just come."""
    names = {topic.name for topic in REPLAYED}
    written = {f"{one.topic}/{one.partition}" for one in await _history(bootstrap, TOPICS) if one.topic in names}
    return written <= (await _committed(bootstrap, app_id(ALL, SITE))).keys()


async def _until(rig: Rig, what: str, ask: Callable[[], Awaitable[Any]]) -> None:
    deadline = time.monotonic() + SETTLE
    while not await ask():
        ended = [f"{member.name}: {member.tail()}" for member in rig.members if member.ended]
        if ended or time.monotonic() > deadline:
            raise NeverCame(f"not: {what}; " + "\n".join(ended or [member.tail() for member in rig.members]))
        await asyncio.sleep(0.2)
