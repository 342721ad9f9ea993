"""A site of nodes two by two on ESXi hosts, and the extender that answers for it, with nothing real around."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
from support.build import NodeBuilder, PodBuilder, a_node

from underhost.agents.extender.answers import Extender, key_of
from underhost.agents.pipeline.dispatch.in_flight import BindingsInFlight
from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.site.objects import SiteState
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import extender as wire
from underhost.schemas import topics
from underhost.schemas.keys import LISTED, Key
from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Action, Listed, NodeHost, Outcome, Placement
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

SITE = "default"


class FakeSite:
    """The pipeline as the extender sees it.

    `unsure_of` is why it says nothing, `defect` what it raises whatever is asked, `performed` what it was told to do.
    """

    def __init__(self, hosts: Mapping[str, str]) -> None:
        """`hosts`: node to ESXi host ("" unknown)."""
        self.rows = SiteState(SITE, topics.SOURCE_TOPICS)
        self.unsure_of: str | None = None
        self.defect: Exception | None = None
        self.performed: list[tuple[Action, str | None]] = []
        self.result = ("applied", "bound")
        self.node_hosts: dict[str, NodeHost] = {}
        self.on_their_way = BindingsInFlight()
        self._version = 1000
        for node, host in hosts.items():
            self.put_node(a_node(node))
            self.move(node, host)

    def put_node(self, node: NodeBuilder) -> None:
        """A node comes or changes."""
        self.rows.put(topics.NODES, Key(SITE, "node", "", node.name), node.build())

    def drop_node(self, name: str) -> None:
        """A node goes."""
        self.rows.put(topics.NODES, Key(SITE, "node", "", name), None)

    def move(self, node: str, host: str) -> None:
        """The node's VM runs on this host from now on."""
        if host:
            self.rows.put(topics.HOSTS, Key(SITE, "host", "", host), Host(id=host, name=f"esx-{host}"))
        row = NodeHost(node=node, vm=f"vm-{node}", host=host, host_name=host and f"esx-{host}", joined_by="name")
        self.node_hosts = {**self.node_hosts, node: row}

    def put(self, pod: PodBuilder, **metadata: Any) -> Pod:
        """The API server shows the pod, in a newer version."""
        self._version += 1
        built = version_of(pod.build(), self._version, **metadata)
        self.rows.put(topics.PODS, Key(SITE, "pod", pod.namespace, pod.name), built)
        return built

    def drop(self, pod: PodBuilder) -> None:
        """The pod is gone."""
        self.rows.put(topics.PODS, Key(SITE, "pod", pod.namespace, pod.name), None)

    def list_anew(self) -> None:
        """The watcher has listed again."""
        self.rows.put(topics.PODS, Key(SITE, LISTED, "", "kubernetes"), Listed(self._version, 0))

    def unsure(self, site: str) -> str | None:
        """See `follower.Ground`."""
        if self.defect is not None:
            raise self.defect
        return self.unsure_of

    def state(self, site: str) -> SiteState:
        """See `follower.Ground`."""
        return self.rows

    def located(self, site: str) -> Snapshot:
        """See `follower.Ground`."""
        hosts = self.rows.rows(topics.HOSTS)
        return Snapshot(site=site, hosts=hosts, node_hosts=self.node_hosts, offsets={"pods": 7})

    def placing(self, site: str) -> Mapping[str, Placement]:
        """See `answers.Answering`."""
        return self.on_their_way.shown(self.rows.rows(topics.PODS))

    def decide(self, pod: PodBuilder, node: str | None) -> None:
        """The evaluator has decided a pod of the binder's."""
        uid = pod.build().metadata.uid
        row = Placement(f"{pod.namespace}/{pod.name}", uid, node, 0, 0, {}, {})
        self.on_their_way.decide([row], self.rows.rows(topics.PODS))

    def answer(self, pod: PodBuilder, result: str) -> None:
        """The binder has answered."""
        target = f"pod/{pod.namespace}/{pod.name}"
        self.on_their_way.observe(Outcome("o", "bind", target, result, ""))

    async def perform(self, action: Action, refused: str | None) -> Outcome | None:
        """See `answers.Answering`."""
        self.performed.append((action, refused))
        result, reason = ("refused", refused) if refused is not None else self.result
        return Outcome(action.id, action.kind, action.target, result, reason)


def version_of(pod: Pod, version: int | str, **metadata: Any) -> Pod:
    """The pod with this resourceVersion."""
    meta = msgspec.structs.replace(pod.metadata, resource_version=str(version), **metadata)
    return msgspec.structs.replace(pod, metadata=meta)


class Asking:
    """kube-scheduler in a test: questions about builders, answers as plain values."""

    def __init__(self, site: FakeSite, options: Options | None = None, wait: float = 60.0) -> None:
        """`wait`: how long an answer waits for pods that are being placed."""
        self.site, self.now, self.invented = site, 0.0, False
        self.pool = ThreadPoolExecutor(1)
        labels = BindingLabels(HostLabelSettings())
        self.extender = Extender(
            SITE, options or Options(), lambda: site, self.pool, lambda: self.now, wait, labels=labels
        )

    def close(self) -> None:
        """End it."""
        self.extender.follower.close()
        self.pool.shutdown()

    async def filter(self, pod: PodBuilder | Pod, *names: str) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """(nodes that are left, those that failed, those of them that no preemption helps); None of names: all."""
        args = wire.ExtenderArgs(self._shown(pod), node_names=list(names or self.site.rows.rows(topics.NODES)))
        answer = await self.extender.filter(args)
        assert answer.nodes is None and answer.error == ""
        return answer.node_names or [], answer.failed_nodes, answer.failed_and_unresolvable_nodes

    async def left(self, pod: PodBuilder | Pod, *names: str) -> list[str]:
        """The nodes that are left."""
        return (await self.filter(pod, *names))[0]

    async def scores(self, pod: PodBuilder | Pod, *names: str) -> dict[str, int]:
        """The score of each node."""
        args = wire.ExtenderArgs(self._shown(pod), node_names=list(names or self.site.rows.rows(topics.NODES)))
        return {one.host: one.score for one in await self.extender.prioritize(args)}

    def _shown(self, pod: PodBuilder | Pod) -> Pod:
        """The pod, which the API server shows before anybody asks about it, unless it is `invented`."""
        asked = built(pod)
        if not self.invented and key_of(asked) not in self.site.rows.rows(topics.PODS):
            self.site.rows.put(topics.PODS, Key(SITE, "pod", asked.metadata.namespace, asked.metadata.name), asked)
        return asked

    async def bind(self, pod: PodBuilder, node: str, uid: str = "") -> str:
        """The error."""
        uid = uid or pod.build().metadata.uid
        return (await self.extender.bind(wire.ExtenderBindingArgs(pod.name, pod.namespace, node, uid))).error

    async def preempt(self, pod: PodBuilder, victims: Mapping[str, Iterable[PodBuilder]]) -> dict[str, list[str]]:
        """The nodes where the victims are enough, with their uids."""
        given = {
            node: wire.MetaVictims([wire.MetaPod(one.build().metadata.uid) for one in pods])
            for node, pods in victims.items()
        }
        args = wire.ExtenderPreemptionArgs(built(pod), node_name_to_meta_victims=given)
        answer = await self.extender.preempt(args)
        return {node: [pod.uid for pod in one.pods or ()] for node, one in answer.node_name_to_meta_victims.items()}


Start = Callable[..., Asking]
"""Begins to ask about a site with these pods; options are `hosts`, and those of `Asking`."""


@contextmanager
def questions(hosts: Mapping[str, str]) -> Iterator[Start]:
    """Begins to ask, about nodes on these hosts where no others are given; it ends what it has begun."""
    begun: list[Asking] = []

    def start(*pods: PodBuilder, hosts: Mapping[str, str] = hosts, **options: Any) -> Asking:
        site = FakeSite(hosts)
        for pod in pods:
            site.put(pod)
        begun.append(Asking(site, **options))
        return begun[-1]

    yield start
    for one in begun:
        one.close()


def built(pod: PodBuilder | Pod) -> Pod:
    """The pod as kube-scheduler has it, in version 1000 where none is given."""
    return pod if isinstance(pod, Pod) else version_of(pod.build(), 1000)
