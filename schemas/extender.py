"""What kube-scheduler and its extender say to each other: `k8s.io/kube-scheduler/extender/v1`, in its own names.

In: request bodies as kube-scheduler sends them. Out: answers as it reads them. Go names on the wire (`NodeNames`),
Kubernetes' own inside of pods and nodes. Nodes that are sent whole stay raw: they go back as they came.
"""

from msgspec import Raw, Struct, field

from underhost.schemas.kubernetes import Pod

MOST = 10
"""The highest score (MaxExtenderPriority)."""


class _Message(Struct, frozen=True, rename="pascal"):
    """Base: Go's names, unknown fields dropped."""


class NodeList(Struct, frozen=True):
    """v1.NodeList, each node as it came."""

    items: list[Raw] | None = None


class _NodeMetadata(Struct, frozen=True):
    name: str = ""


class NamedNode(Struct, frozen=True):
    """What is read of a node that was sent whole."""

    metadata: _NodeMetadata = _NodeMetadata()


class ExtenderArgs(_Message, frozen=True):
    """Of filter and prioritize: a pod, and nodes whole or (nodeCacheCapable) by name."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class ExtenderFilterResult(_Message, frozen=True):
    """The nodes that are left, in the form in which they were sent, and why the others are not."""

    nodes: NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(_Message, frozen=True, gc=False):
    """A node's score, 0 to 10; `host` is a node here. There is one a node, so no collection shall look at them."""

    host: str
    score: int


class ExtenderBindingArgs(_Message, frozen=True):
    """A pod, and the node that the scheduler chose for it."""

    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = field(default="", name="PodUID")


class ExtenderBindingResult(_Message, frozen=True):
    """Empty where the pod is bound."""

    error: str = ""


class MetaPod(_Message, frozen=True):
    """A victim by its uid."""

    uid: str = field(name="UID")


class MetaVictims(_Message, frozen=True):
    """The victims on one node, and how many budgets they break."""

    pods: list[MetaPod] | None = None
    num_pdb_violations: int = field(default=0, name="NumPDBViolations")


class Victims(_Message, frozen=True):
    """As MetaVictims, the pods whole."""

    pods: list[Pod] | None = None
    num_pdb_violations: int = field(default=0, name="NumPDBViolations")


class ExtenderPreemptionArgs(_Message, frozen=True):
    """A pod, and by node the victims that would make room for it."""

    pod: Pod
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderPreemptionResult(_Message, frozen=True):
    """The nodes where these victims are enough."""

    node_name_to_meta_victims: dict[str, MetaVictims]
