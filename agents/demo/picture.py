"""What the topics have shown of one site, kept up to date record by record, for whoever tells a person about it.

In: records of the topics, as any consumer reads them. Out: objects, outcomes, findings and the journeys of VMs. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from underhost.schemas import topics
from underhost.schemas.keys import LISTED, parse_key, site_of
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.records import FindingEvent, NodeHost, Outcome, Placement
from underhost.schemas.vsphere import DrsRule, Host, Vm
from underhost.streams.ports import Record

TOPICS = (
    topics.NODES,
    topics.PODS,
    topics.VMS,
    topics.HOSTS,
    topics.DRS_RULES,
    topics.NODE_HOSTS,
    topics.OUTCOMES,
    topics.VIOLATIONS,
    topics.PLACEMENTS,
)
"""What a picture is made from."""
OURS = "underhost"
"""The scheduler name of the pods that the pipeline places."""
DONE = ("applied", "noop")


class Journey(NamedTuple):
    """A node's VM went from one host to another; hosts by name."""

    node: str
    origin: str
    destination: str


@dataclass
class DemoState:
    """What the topics have shown so far of one site.

    Args:
        begin: milliseconds since 1970; what happened earlier (outcomes, findings) belongs to another story.

    Attributes:
        nodes, vms, hosts, node_hosts: by the name in their key. pods: by `namespace/name`. rules: by their key.
        outcomes: the last of each (kind, target). events: of findings, oldest first. journeys: oldest first.
        listed: names of the topics that are whole: their source has listed since the beginning.
        refused: why no node took a pod when it was last tried, by pod.
        round: of events and journeys, how many belong to rounds of the story that are over.
    """

    site: str
    begin: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    vms: dict[str, Vm] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    rules: dict[str, DrsRule] = field(default_factory=dict)
    node_hosts: dict[str, NodeHost] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    events: list[FindingEvent] = field(default_factory=list)
    journeys: list[Journey] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)
    refused: dict[str, Mapping[str, int]] = field(default_factory=dict)
    round: tuple[int, int] = (0, 0)

    def apply(self, record: Record) -> None:
        """Take in one record; other sites' change nothing."""
        key = (record.key or b"").decode("utf-8", "replace")
        topic = topics.BY_NAME.get(record.topic)
        if topic is None or site_of(key) != self.site:
            return
        if f"/{LISTED}/" in key:
            if record.timestamp >= self.begin:
                self.listed.add(topic.name)
        elif topic is topics.VIOLATIONS:
            if record.value is not None and record.timestamp >= self.begin:
                self.events.append(msgspec.json.decode(record.value, type=FindingEvent))
        elif topic is topics.OUTCOMES:
            if record.value is not None and record.timestamp >= self.begin:
                outcome = msgspec.json.decode(record.value, type=Outcome)
                self.outcomes[outcome.kind, outcome.target] = outcome
        elif topic is topics.PLACEMENTS:
            if record.value is not None and record.timestamp >= self.begin:
                placement = msgspec.json.decode(record.value, type=Placement)
                self.refused[placement.pod] = placement.failed
        else:
            self._apply_state(topic, key, record.value, record.timestamp >= self.begin)

    def _apply_state(self, topic: topics.Topic, key: str, value: bytes | None, recent: bool) -> None:
        _, kind, namespace, name = parse_key(key)
        tables: dict[str, tuple[dict[str, Any], type[Any]]] = {
            topics.NODES.name: (self.nodes, Node),
            topics.PODS.name: (self.pods, Pod),
            topics.VMS.name: (self.vms, Vm),
            topics.HOSTS.name: (self.hosts, Host),
            topics.NODE_HOSTS.name: (self.node_hosts, NodeHost),
            topics.DRS_RULES.name: (self.rules, DrsRule),
        }
        if topic.name not in tables or kind == "cluster":
            return
        table, type_ = tables[topic.name]
        place = f"{namespace}/{name}" if namespace else name
        before = table.pop(place, None)
        if value is None:
            return
        now: Any = msgspec.json.decode(value, type=type_)
        table[place] = now
        if type_ is NodeHost and recent and before is not None and before.host_name != now.host_name:
            self.journeys.append(Journey(now.node, before.host_name, now.host_name))

    def begin_round(self) -> None:
        """What has happened so far is of no concern to the story from now on."""
        self.round = len(self.events), len(self.journeys)

    def recent(self) -> list[FindingEvent]:
        """The events of findings in this round, oldest first."""
        return self.events[self.round[0] :]

    def recent_journeys(self) -> list[Journey]:
        """The journeys of VMs in this round, oldest first."""
        return self.journeys[self.round[1] :]

    def host_of(self, pod: str) -> str:
        """The name of the host below a pod; "" while it is not known."""
        placed = self.pods.get(pod)
        joined = self.node_hosts.get(placed.spec.node_name) if placed is not None else None
        return joined.host_name if joined is not None else ""

    def is_whole(self, *wanted: topics.Topic) -> bool:
        """Whether these topics show everything that there is."""
        return all(topic.name in self.listed for topic in wanted)

    def labelled(self, key: str) -> bool:
        """Whether every node carries this label."""
        labels = (msgspec.json.decode(node.metadata.labels, type=dict[str, str] | None) for node in self.nodes.values())
        return all(key in (held or {}) for held in labels)

    def ours(self) -> list[str]:
        """The pods that the pipeline places, sorted."""
        return sorted(name for name, pod in self.pods.items() if pod.spec.scheduler_name == OURS)

    def done(self, kind: str, target: str) -> bool:
        """Whether a sink says that this is as it should be."""
        outcome = self.outcomes.get((kind, target))
        return outcome is not None and outcome.result in DONE

    def open(self) -> list[FindingEvent]:
        """The findings that are open now, sorted by id."""
        live = {event.id: event for event in self.events}
        return [event for _, event in sorted(live.items()) if event.state != "resolved"]
