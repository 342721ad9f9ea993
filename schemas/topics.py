"""The one table of topics: name, clean-up, key, record, who writes and who reads. A topic is spelled nowhere else."""

from dataclasses import dataclass, field

from msgspec import Struct

from underhost.schemas import kubernetes as k8s
from underhost.schemas import records, vsphere

PREFIX = "underhost."
PARTITIONS = 8
DAY_MS = 86_400_000
KUBERNETES, VSPHERE = "kubernetes", "vsphere"
"""The sources: the two sides of a site. The role of a worker that watches one has its name."""


@dataclass(frozen=True, eq=False)  # each is made once, below; compared with each record
class Topic:
    """A Kafka topic.

    Attributes:
        short: the name without the prefix, also the event type (`underhost.NAME.v1`).
        cleanup: compact or delete.
        key: what the key names, for the docs.
        record: the struct of a value; None where values are raw bytes.
        source: the source whose `listed` marker the topic carries: KUBERNETES, VSPHERE or None.
        kinds: kinds of the keys, by the record each holds, where a topic has keys of objects.
        writers: the roles of workers that write it, and `resume`, the person who lets writes go on: the only users who
            may, where Kafka asks who somebody is.
    """

    short: str
    cleanup: str
    key: str
    record: type[Struct] | None
    producer: str
    consumers: tuple[str, ...]
    doc: str
    source: str | None = None
    kinds: dict[str, type[Struct]] = field(default_factory=dict)
    writers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The full name: `underhost.NAME`."""
        return PREFIX + self.short

    @property
    def event_type(self) -> str:
        """The CloudEvents type."""
        return f"{PREFIX}{self.short}.v1"

    @property
    def config(self) -> dict[str, str]:
        """Kafka's topic configuration. Compaction waits a day, so that the last day can be replayed."""
        if self.cleanup == "compact":
            return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(DAY_MS)}
        return {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}


def _state(short: str, source: str, doc: str, **kinds: type[Struct]) -> Topic:
    by_kind = {kind.replace("_", "-"): record for kind, record in kinds.items()}
    record = next(iter(by_kind.values()))
    return Topic(short, "compact", "object", record, source, ("tables",), doc, source, by_kind, writers=(source,))


NODES = _state("nodes", KUBERNETES, "Nodes.", node=k8s.Node)
PODS = _state("pods", KUBERNETES, "Pods.", pod=k8s.Pod)
NAMESPACES = _state("namespaces", KUBERNETES, "Namespaces: their labels.", namespace=k8s.Namespace)
SERVICES = _state("services", KUBERNETES, "Services: their selectors.", service=k8s.Service)
WORKLOADS = _state(
    "workloads",
    KUBERNETES,
    "Owners of pods: replicas and selector.",
    replicaset=k8s.Workload,
    statefulset=k8s.Workload,
    deployment=k8s.Workload,
    job=k8s.Workload,
    replicationcontroller=k8s.Workload,
    virtualmachineinstancereplicaset=k8s.Workload,
)
BUDGETS = _state("disruption-budgets", KUBERNETES, "PodDisruptionBudgets.", poddisruptionbudget=k8s.Budget)
VMS = _state("vms", VSPHERE, "Virtual machines and the host each runs on.", vm=vsphere.Vm)
HOSTS = _state("hosts", VSPHERE, "ESXi hosts.", host=vsphere.Host)
DRS_RULES = _state(
    "drs-rules",
    VSPHERE,
    "DRS rules as vCenter holds them, and the clusters they belong to.",
    drs_rule=vsphere.DrsRule,
    cluster=vsphere.Cluster,
)
NODE_HOSTS = Topic(
    "node-hosts",
    "compact",
    "node",
    records.NodeHost,
    "topology",
    ("labeller", "web"),
    "Which host each node runs on.",
    writers=("evaluator",),
)
PLACEMENTS = Topic(
    "placements",
    "delete",
    "pod",
    records.Placement,
    "evaluator",
    ("binder", "web"),
    "Decisions for pending pods.",
    writers=("evaluator",),
)
VIOLATIONS = Topic(
    "violations",
    "compact",
    "finding",
    records.FindingEvent,
    "evaluator",
    ("alerting", "events", "reports", "web"),
    "Findings of every severity as they open, change and resolve.",
    writers=("evaluator",),
)
ACTIONS = Topic(
    "actions",
    "delete",
    "target",
    records.Action,
    "labeller, pod-labeller, DRS translator, mover, evictor, reporter",
    ("sinks",),
    "Commands to the sinks.",
    writers=("evaluator", "labeller", "pod-labeller", "drs", "mover", "evictor", "reporter", "resume"),
)
OUTCOMES = Topic(
    "outcomes",
    "delete",
    "target",
    records.Outcome,
    "sinks",
    ("deciders", "events", "web"),
    "What the sinks did.",
    writers=(
        KUBERNETES,
        VSPHERE,
        "labeller",
        "pod-labeller",
        "binder",
        "drs",
        "mover",
        "evictor",
        "events",
        "reporter",
    ),
)
DEAD_LETTERS = Topic(
    "dead-letters",
    "delete",
    "origin's",
    None,
    "every stage",
    ("operators",),
    "Records that could not be processed.",
    writers=(
        KUBERNETES,
        VSPHERE,
        "evaluator",
        "labeller",
        "pod-labeller",
        "binder",
        "drs",
        "mover",
        "evictor",
        "events",
        "reporter",
        "alerts",
    ),
)

SOURCE_TOPICS = (NODES, PODS, NAMESPACES, SERVICES, WORKLOADS, BUDGETS, VMS, HOSTS, DRS_RULES)
TOPICS = (*SOURCE_TOPICS, NODE_HOSTS, PLACEMENTS, VIOLATIONS, ACTIONS, OUTCOMES, DEAD_LETTERS)
BY_NAME = {topic.name: topic for topic in TOPICS}
KUBERNETES_TOPICS = tuple(topic for topic in SOURCE_TOPICS if topic.source == KUBERNETES)
VSPHERE_TOPICS = tuple(topic for topic in SOURCE_TOPICS if topic.source == VSPHERE)
