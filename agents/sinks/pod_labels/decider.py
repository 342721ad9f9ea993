"""Host labels of running pods: which name a host that their node's VM has left since.

In: snapshots with where nodes run. Out: `pod-label` commands, for pods that carry the host label already; whoever has
none is given none. A label that somebody selects by is not written; that it stays is told once. Only pods, nodes, hosts
and selectors that have changed are looked at.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from underhost.agents.sinks.labels.carriers import LabelCarriers
from underhost.agents.sinks.labels.pace import AFTER_FAILURE, QUIET, LabelPace
from underhost.agents.sinks.labels.selected import SelectedHostLabels
from underhost.agents.sinks.labels.sink import needed_by
from underhost.agents.sinks.labels.values import LabelValues
from underhost.agents.sinks.orders import order
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.changes import changed_keys
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.commands import POD_LABEL
from underhost.schemas.records import Action, NodeHost, Outcome
from underhost.streams.settings.labels import HostLabelSettings


class _PodLook(NamedTuple):
    """What a pod should carry that it does not: as a command says it, and what it carries under our keys.

    `only_told`: nothing of it is to be written.
    """

    desired: Mapping[str, object]
    held: Mapping[str, str | None]
    reason: str
    only_told: bool


_RIGHT = _PodLook({}, {}, "", only_told=False)


class PodLabelDecider(Decider):
    """Orders the labels of each pod that carries the host label, where they are not those of its node's host."""

    kind = POD_LABEL

    def __init__(self, settings: HostLabelSettings, held_until: Callable[[str], float] = lambda target: 0.0) -> None:
        """`held_until` see `DeciderParts`, for the target of a pod."""
        self._settings, self._pace = settings, LabelPace(held_until)
        self._carriers, self._selected = LabelCarriers(settings.key), SelectedHostLabels(needed_by(settings))
        self._places: Mapping[str, NodeHost] = {}
        self._hosts: object = None
        self._told: dict[str, dict[str, str | None]] = {}  # what pods on each host should carry
        self._later: dict[str, float] = {}  # when a pod is to be looked at though nothing changed

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """One action for each pod whose labels differ from its live host; see `labels/pace.py` for when."""
        actions = []
        for pod in sorted(self._concerned(snapshot, now)):
            self._later.pop(pod, None)
            look = self._look(snapshot, pod)
            if look is None:
                self._pace.forget(pod)
            elif not look.desired:
                self._look_again(pod, self._pace.settle(pod, now))
            elif now >= (when := self._pace.opens(pod, look.desired, look.held, once=look.only_told)):
                action = order(POD_LABEL, f"pod/{pod}", look.desired, look.reason, snapshot.offsets)
                self._pace.order(pod, action, look.held, "", now, quiet=QUIET)
                self._look_again(pod, now + AFTER_FAILURE)
                actions.append(action)
            else:
                self._look_again(pod, when)
        self.due = min(self._later.values(), default=None)
        return actions

    def observe(self, outcome: Outcome, now: float) -> None:
        """Remember what became of the last command for a pod; older commands' outcomes say nothing."""
        pod = outcome.target.partition("/")[2]
        again = self._pace.observe(pod, outcome, now)
        if again is not None:
            self._later.pop(pod, None)
            self._look_again(pod, again)
            self.wait_until(again)

    def _look_again(self, pod: str, at: float | None) -> None:
        if at is not None and at < float("inf"):
            self._later[pod] = at

    def _concerned(self, snapshot: Snapshot, now: float) -> set[str]:
        """The pods that something new may be said of."""
        pods = {pod for pod, _ in self._carriers.follow(snapshot)}
        pods.update(pod for pod, at in self._later.items() if now >= at)
        nodes = set(changed_keys(self._places, snapshot.node_hosts))
        self._places = snapshot.node_hosts
        spaces = self._selected.follow(snapshot)
        if snapshot.hosts is not self._hosts:
            before, values = self._told, LabelValues(self._settings, snapshot.hosts)
            self._hosts, self._told = snapshot.hosts, {host: values.of_pods(host) for host in snapshot.hosts}
            moved = {host for host, labels in self._told.items() if before.get(host) != labels}
            nodes.update(node for node, joined in snapshot.node_hosts.items() if joined.host in moved)
        for node in nodes:
            pods.update(self._carriers.on(node))
        if spaces:
            pods.update(pod for pod in self._carriers.pods if pod.partition("/")[0] in spaces)
        return pods

    def _look(self, snapshot: Snapshot, name: str) -> _PodLook | None:
        """What is wrong with a pod; nothing in `desired` where all is well; None where it is not ours to say."""
        node, pod = self._carriers.node_of(name), snapshot.pods.get(name)
        joined = snapshot.node_hosts.get(node or "")
        if node is None or pod is None or joined is None or pod.metadata.deletion_timestamp is not None:
            return None
        namespace = pod.metadata.namespace
        wanted = self._told.get(joined.host)  # a host that vSphere has not shown us (yet) is unknown
        if wanted is None or self._settings.key not in wanted or self._selected.is_off(namespace):
            return None
        if len(wanted) == 1 and self._carriers.on(node)[name] == wanted[self._settings.key]:
            return _RIGHT  # as a binding left it: nothing else is read
        carries = readable_labels(pod.metadata.labels)
        wrong = {key: value for key, value in wanted.items() if carries.get(key) != value}
        selected = {key: who for key, who in self._selected.of(namespace).items() if key in wrong}
        labels = {key: value for key, value in wrong.items() if key not in selected}
        desired = {"uid": pod.metadata.uid, "labels": labels, "selected": selected} if wrong else {}
        reason = f"pod {name} is on node {node}, which runs on host {joined.host_name or joined.host}"
        return _PodLook(desired, {key: carries.get(key) for key in wanted}, reason, only_told=not labels)
