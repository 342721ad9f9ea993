"""One Kafka user for each role, with the least rights: each works, and whatever else it tries the broker refuses.

The rights are those that `underhost topics --acls` prints. SCRAM over TLS, Kafka's StandardAuthorizer.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support.attempts import held, let_do
from support.build import a_node, a_pod, a_workload, term
from support.fakes.pipeline import FakeCluster, FakeEvaluator
from support.processes.authority import Authority
from support.processes.helm import CHART
from support.processes.kafka import KafkaProcess, Secured
from support.processes.kwok import HOST_LABEL
from support.rights import Answer, Grant, answers, grant, grants, upper
from support.workers.pipeline import Running
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.rights import USERS, rights_of
from underhost.agents.pipeline.roles import ALL, app_id, changelog_topics, consumes, written_topics
from underhost.agents.sinks.ports import HeldReport, Writers
from underhost.agents.worker import run_worker
from underhost.schemas.errors import BackendError
from underhost.schemas.records import Placement
from underhost.schemas.topics import (
    DEAD_LETTERS,
    DRS_RULES,
    HOSTS,
    NODES,
    OUTCOMES,
    PLACEMENTS,
    PODS,
    TOPICS,
    VIOLATIONS,
    VMS,
    WORKLOADS,
    Topic,
)
from underhost.schemas.vsphere import Cluster, Host, Vm
from underhost.streams.admin import ensure_topics
from underhost.streams.derived import outgoing
from underhost.streams.ports import LiveVm, Outgoing, PodState, Record
from underhost.streams.publish import KafkaPublisher
from underhost.streams.reader import KafkaReader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings, WebSettings
from underhost.streams.settings.sinks import EvictionSettings, MoveSettings, SinkSettings

pytestmark = pytest.mark.real
PASSWORD = "correct-horse-7"
SITE = "prod"
NOBODY = "nobody"
SPLIT = [
    f"{','.join(worker['agents'])},web" for worker in yaml.safe_load((CHART / "values-split.yaml").open())["workers"]
]
"""The roles of each worker of the chart's own split; `web` answers its probes."""
APART = "apart"
"""The site of those workers."""
PARTITIONS = 2
"""Of every topic: there are more than a hundred, tables' changelogs among them."""
SECONDS = 240
"""How long something is waited for, on a machine that is busy."""


class Site(NamedTuple):
    """A broker that asks who somebody is, and what a configuration needs for it."""

    broker: KafkaProcess
    folder: Path

    @property
    def inner(self) -> KafkaSettings:
        """As the broker itself, who may do everything."""
        return KafkaSettings(bootstrap_servers=self.broker.inner, partitions=PARTITIONS)

    def kafka(self, role: str) -> KafkaSettings:
        """As the user of a role."""
        sasl = {"mechanism": "SCRAM-SHA-512", "username": user_of(role), "passwordFile": str(self.folder / "password")}
        tls = {"caFile": str(self.folder / "ca.pem")}
        given = {"bootstrapServers": self.broker.address, "partitions": PARTITIONS, "tls": tls, "sasl": sasl}
        return KafkaSettings.model_validate(given)

    def settings(self, role: str) -> Settings:
        """Of a worker of this role, as its user."""
        return Settings(
            site=APART if "," in role else SITE,
            kafka=self.kafka(role),
            vsphere=VSphereSettings(simulated="of the test"),
            sinks=SinkSettings(
                labels=True,
                pod_labels=True,
                bindings=True,
                drs_rules=role not in ("mover", "evictor"),
                moves=True,
                evictions=True,
                events=True,
                reports=True,
            ),
            moves=MoveSettings(wait=0),
            evictions=EvictionSettings(wait=0),
            web=WebSettings(listen="127.0.0.1:0"),
        )


def user_of(roles: str) -> str:
    return f"underhost-{roles.replace(',', '_')}"


def printed(site: str = SITE, roles: str | None = None) -> list[Grant]:
    """What the command prints, for every user or for a worker of these roles."""
    one = [] if roles is None else ["--agents", roles, "--principal", f"User:{user_of(roles)}"]
    done = CliRunner().invoke(build(), ["topics", "--acls", "--site", site, *one])
    assert done.exception is None
    return grants(done.output)


@pytest.fixture(scope="module")
def site(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker of this module's own, on which each user has the printed rights."""
    folder = tmp_path_factory.mktemp("rights")
    certificate = Authority(folder, "ca").certificate("broker", "IP:127.0.0.1")
    (folder / "password").write_text(f"{PASSWORD}\n")
    users = tuple(user_of(roles) for roles in (*USERS, *SPLIT, NOBODY))
    broker = KafkaProcess(folder / "kafka", parts, Secured(certificate.both, "admin", PASSWORD, users, authorized=True))
    broker.start()
    together = [right for roles in SPLIT for right in printed(APART, roles)]
    asyncio.run(grant(broker.inner, [*printed(), *together]))
    yield Site(broker, folder)
    broker.kill()


class World(FakeCluster):
    """Two replicas that must be apart are on one host, a third pod waits, a fourth names a host that was its node's.

    It can tell people, evict, and be asked to move a VM, which stays where it is.
    """

    def __init__(self, site: str = SITE) -> None:
        super().__init__(site=site)
        self.told: list[str] = []
        self.sent: dict[str, str] = {}
        apart = {"app": "db"}
        for number, host in enumerate(("h1", "h1", "h3", "h4"), 1):
            self.node(f"n{number}", host)
            uuid = f"00000000-0000-0000-0000-{number:012d}"
            meta = a_node(f"n{number}").metadata(uid=f"node-n{number}", resourceVersion=self._next())
            self.put(NODES, f"{self.site}/node//n{number}", meta.spec(providerID=f"vsphere://{uuid}").build())
            vm = Vm(name=f"n{number}", id=f"vm-n{number}", uuid=uuid, host=f"moref-{host}")
            self.put(VMS, f"{self.site}/vm//vm-n{number}", vm)
            if host == "h4":
                continue  # where the next one of an evicted pod has room
            db = a_pod(f"db-{number}").on(f"n{number}").labels(apart).owned_by("ReplicaSet/db").ready()
            db = db.metadata(uid=f"pod-db-{number}", resourceVersion=self._next()).apart(term(HOST_LABEL, apart))
            self.put(PODS, f"{self.site}/pod/shop/db-{number}", db.build())
        told = a_pod("told").on("n4").labels({HOST_LABEL: "h9"})  # a host that its node has left
        told = told.metadata(uid="pod-told", resourceVersion=self._next())
        self.put(PODS, f"{self.site}/pod/shop/told", told.build())
        for host in ("h1", "h3", "h4"):
            self.put(HOSTS, f"{self.site}/host//moref-{host}", Host(name=host, id=f"moref-{host}", cluster="C0"))
        self.put(WORKLOADS, f"{self.site}/replicaset/shop/db", a_workload("ReplicaSet", "db", 3).build())
        self.put(DRS_RULES, f"{self.site}/cluster//C0", Cluster("C0", "domain-c8"))
        self.pod("waits")

    def connections(self, *names: str, gates: Any = None) -> Connections:
        """See `FakeCluster`; with somebody who tells people."""
        return replace(super().connections(), writers=Writers(self, self, self, self, self))

    async def pod_end(self, namespace: str, name: str) -> tuple[str, bool]:
        """See `ports.KubernetesWriter`."""
        return self.live(name).metadata.uid, True

    async def live_vm(self, vm: str) -> LiveVm:
        """See `ports.VmMover`."""
        _, held = self.objects["vsphere"][f"{self.site}/vm//{vm}"]
        assert isinstance(held, Vm)
        return LiveVm(held.name, self.sent.get(vm, held.host), is_on=True)

    async def relocate(self, vm: str, host: str) -> str:
        """See `ports.VmMover`."""
        self.sent[vm] = host
        return vm

    async def is_done(self, task: str) -> bool:
        """See `ports.VmMover`."""
        return True

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """See `ports.EventWriter`."""
        return name

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        """See `ports.EventWriter`."""
        self.told.append(event["reason"])

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, Any]) -> None:
        """See `ports.EventWriter`."""

    async def reports(self, label: str, value: str, annotation: str) -> dict[str, HeldReport]:
        """See `ports.ReportWriter`."""
        return {}

    async def has_report(self, namespace: str, name: str) -> bool:
        """See `ports.ReportWriter`."""
        return False

    async def apply_report(self, namespace: str, name: str, report: Mapping[str, object]) -> str:
        """See `ports.ReportWriter`."""
        return name

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """See `ports.EventWriter`."""
        pod = self.live(name)
        return PodState(pod.metadata.uid, "1", pod.spec.node_name, {}, pod.spec.scheduler_name)

    async def set_pod_condition(self, namespace: str, name: str, pod: PodState, condition: Mapping[str, str]) -> None:
        """See `ports.EventWriter`."""

    def letters(self) -> None:
        """Each source finds something that it cannot read."""
        for name, queues in self.watchers.items():
            for queue in queues:
                queue.put_nowait((DEAD_LETTERS, f"{self.site}/{name}/of/a-watcher", b"sha256:"))


@asynccontextmanager
async def working(site: Site, role: str, world: World) -> AsyncIterator[Running]:
    """A worker of this role over the world."""
    worker = Running(FakeEvaluator())
    worker.task = asyncio.create_task(
        run_worker(
            site.settings(role),
            roles=role.split(","),
            connections=world.connections(),
            on_event=worker.saw,
            stop=worker.stop,
            web="web" in role.split(","),
        )
    )
    try:
        yield worker
    finally:
        worker.stop.set()
        await worker.task


PLACED = Placement("nowhere/at-all", "uid", "kni-worker", 0, 0, {}, {})
POISON = {topic.name: Outgoing(topic, f"{SITE}/x", b"{", "poison") for topic in TOPICS if topic is not DEAD_LETTERS}
KINDS = {"label", "pod-label", "drs-rule", "move", "evict", "event", "report"}


async def look(site: Site, topic: Topic) -> list[Record]:
    """What the topic holds, as who may look reads it."""
    return [record async for record in KafkaReader(site.kafka("look")).history([topic])]


async def seen(site: Site, topic: Topic, enough: Callable[[list[Record]], bool]) -> None:
    """Until the topic holds enough."""
    async with asyncio.timeout(SECONDS):
        while True:
            if enough(await look(site, topic)):
                return
            await asyncio.sleep(1)


async def tables_are_there(site: Site, roles: list[str]) -> None:
    """Until the worker of these roles has made the changelogs of its tables; one that only watches has none."""
    wanted = changelog_topics(roles, APART) if consumes(roles) else ()
    async with asyncio.timeout(SECONDS):
        while True:
            if len(await KafkaReader(site.inner)._partitions(wanted)) == len(wanted) * PARTITIONS:
                return
            await asyncio.sleep(1)


async def by_hand(site: Site, *records: Outgoing) -> None:
    """Published by who may do everything: the broker itself."""
    async with KafkaPublisher(site.inner, PARTITIONS) as publisher:
        await publisher.publish(*records)


def kinds_of(records: list[Record], site: str = SITE) -> set[str]:
    """The kinds of the outcomes of a site, of those that can be read."""
    ours = [record for record in records if (record.key or b"").startswith(site.encode())]
    values = [record.value for record in ours if record.value not in (None, b"{")]
    return {json.loads(value or b"")["kind"] for value in values}


def letters_by_user(records: list[Record]) -> set[str]:
    """The topics, and the sources, that dead letters are of."""
    origins = {dict(record.headers).get("origin_topic", b"") or b"" for record in records}
    watchers = {(record.key or b"").decode().split("/")[1] for record in records if b"a-watcher" in (record.key or b"")}
    return {origin.decode() for origin in origins} | watchers


async def test_every_role_works_with_its_rights_and_none_of_them_is_spare(site: Site) -> None:
    world = World()
    async with AsyncExitStack() as stack:
        for role in ALL:  # none waits for another before it starts: whoever writes a topic makes it
            await stack.enter_async_context(working(site, role, world))
        await seen(site, OUTCOMES, lambda records: kinds_of(records) >= KINDS)
        await seen(site, VIOLATIONS, bool)
        for role in ("kubernetes", "vsphere"):  # who begins later reads what the topics hold
            await stack.enter_async_context(working(site, role, world))
        world.letters()
        await by_hand(site, outgoing(PLACEMENTS, f"{SITE}/pod/nowhere/at-all", PLACED), *POISON.values())
        await seen(site, OUTCOMES, lambda records: kinds_of(records) >= {*KINDS, "bind"})
        unread = {*POISON, "kubernetes", "vsphere"}
        await seen(site, DEAD_LETTERS, lambda records: letters_by_user(records) >= unread)
        done = await asyncio.to_thread(CliRunner().invoke, build(), ["resume", SITE, *as_user(site, "resume")])
        assert (done.exception, done.output) == (None, f"Site {SITE} was not stopped.\n")
        for topic in TOPICS:
            await look(site, topic)
    said = answers(site.broker.audit)
    words = upper()
    given = {(one.principal.partition(":")[2], words[one.operation], one.kind, one.name) for one in printed()}
    used = {(one.user, one.operation, one.kind, one.name) for one in said if one.allowed}
    assert refused(said) == []
    assert sorted(given - used) == []


async def test_every_worker_of_the_charts_split_works_as_a_user_of_its_own(site: Site) -> None:
    world = World(APART)
    async with AsyncExitStack() as stack:
        for roles in SPLIT:  # one by one: each makes its tables while no other asks as much of the broker
            await stack.enter_async_context(working(site, roles, world))
            await tables_are_there(site, roles.split(","))
        await seen(site, OUTCOMES, lambda records: kinds_of(records, APART) >= {"label", "drs-rule", "event"})
        await seen(site, VIOLATIONS, lambda records: any(b"apart/" in (record.key or b"") for record in records))
    users = {user_of(roles) for roles in SPLIT}
    said = answers(site.broker.audit)
    assert {one.user for one in said if one.allowed and one.user in users} == users
    assert refused({one for one in said if one.user in users}) == []


def refused(said: set[Answer]) -> list[Answer]:
    """What a worker was refused in its work; a topic that another one makes is asked for where it is not there yet."""
    awaited = {
        (user_of(roles), topic.name)
        for roles in (*ALL, *SPLIT)
        for topic in TOPICS
        if topic not in written_topics(roles.split(","))
    }
    return sorted(
        one for one in said if not one.allowed and not (one.operation == "CREATE" and (one.user, one.name) in awaited)
    )


def as_user(site: Site, role: str) -> list[str]:
    """The options of a command that is run by this user."""
    path = site.folder / f"{role}.yaml"
    path.write_text(json.dumps({"kafka": site.kafka(role).model_dump(by_alias=True, mode="json")}))
    return ["--config", str(path)]


# ------------------------------------------------------------------------------------------- what nobody has a right to
async def publishes(kafka: KafkaSettings, topic: Topic) -> bool:
    try:
        async with KafkaPublisher(kafka, PARTITIONS) as publisher, asyncio.timeout(SECONDS):
            await publisher.publish(Outgoing(topic, f"{SITE}/x", b"forged", "id"))
    except BackendError:
        return False
    return True


async def reads(kafka: KafkaSettings, topic: Topic) -> bool:
    """Whether the user is shown the topic at all, and may fetch from it."""
    try:
        reader = KafkaReader(kafka)
        partitions = await reader._partitions([topic])
        if partitions:
            [record async for record in reader.history([topic])]
    except BackendError:
        return False
    return bool(partitions)


@pytest.mark.parametrize("role", [*USERS, NOBODY])
async def test_a_user_reads_and_writes_just_what_it_has_a_right_to(site: Site, role: str) -> None:
    await ensure_topics(site.inner)
    kafka = site.kafka(role)
    rights = {right.name: right.operations for right in rights_of([role], SITE)} if role != NOBODY else {}
    before = {topic.name: len(await look(site, topic)) for topic in TOPICS}
    written = {topic.name: await publishes(kafka, topic) for topic in TOPICS}
    assert written == {topic.name: "Write" in rights.get(topic.name, ()) for topic in TOPICS}
    read = {topic.name: await reads(kafka, topic) for topic in TOPICS}
    after = {topic.name: len(await look(site, topic)) for topic in TOPICS}
    assert {name: after[name] - before[name] for name in after} == {name: int(done) for name, done in written.items()}
    may_read = {topic.name: "Read" in rights.get(topic.name, ()) for topic in TOPICS}
    assert read == may_read


CHANGELOGS = [topic for role in ALL if consumes([role]) for topic in changelog_topics([role], SITE)]
GROUPS = [app_id([role], SITE) for role in ALL if consumes([role])]


@pytest.mark.parametrize("role", [*USERS, NOBODY])
async def test_whatever_else_a_user_tries_with_any_topic_or_group_is_refused(site: Site, role: str) -> None:
    """Of every role's topics, changelogs and groups, and of the cluster: as printed, and no more."""
    await ensure_topics(site.inner, [*TOPICS, *CHANGELOGS])
    rights = rights_of([role], SITE) if role != NOBODY else []
    printed = {(operation, right.kind, right.name) for right in rights for operation in right.operations}
    assert await let_do(site.kafka(role), [topic.name for topic in (*TOPICS, *CHANGELOGS)], GROUPS) == printed


# --------------------------------------------------------------------------------------------------- the tool of Kafka
SCRIPT = """#!/bin/sh
exec java -cp '{jars}' org.apache.kafka.tools.AclCommand "$@"
"""
BY_THE_TOOL = "underhost-by-the-tool"


async def test_kafkas_own_tool_takes_the_lines_as_they_are_printed(site: Site, parts: Path, tmp_path: Path) -> None:
    (tmp_path / "kafka-acls.sh").write_text(SCRIPT.format(jars=f"{parts}/kafka/*"))
    (tmp_path / "kafka-acls.sh").chmod(0o755)
    (tmp_path / "admin.properties").write_text("security.protocol=PLAINTEXT\n")
    flags = ["--site", SITE, "--agents", "binder", "--principal", f"User:{BY_THE_TOOL}"]
    lines = CliRunner().invoke(build(), ["topics", "--acls", *flags]).output
    told = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BOOTSTRAP": site.broker.inner}
    environ = {**os.environ, **told, "ADMIN": str(tmp_path / "admin.properties")}
    done = await asyncio.to_thread(
        subprocess.run, ["sh", "-e"], input=lines, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert await held(site.broker.inner, f"User:{BY_THE_TOOL}") == set(grants(lines))
