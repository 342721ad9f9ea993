"""Who must not be lost together: quorums, their members, and how many of them one place may hold.

In: nodes, pods and workloads of a snapshot, at once or as they change. Out: each `Quorum` with its members, and the
places whose failure would leave too few. Nobody else decides this: checks, lint, what-if, repair, DRS rules ask here.

A quorum is
- etcd: the nodes with an etcd static pod (mirror pod of kube-system, `component: etcd`) or with the role
  `node-role.kubernetes.io/etcd`, and every node that carries the annotation `underhost.io/quorum` (an etcd of its own
  nodes). Source: etcd's raft, which needs n/2+1 of n members.
- the control plane: the nodes with the role `control-plane` or `master`, or with a kube-apiserver static pod. Where
  etcd is on other nodes altogether, one API server is enough. Where both are the same nodes, etcd's is the only quorum.
- the pods of a workload with the annotation: "true" (a majority of its replicas stays) or the number that must stay.
  The Deployment's word counts before its ReplicaSet's, and the workload's before that of its pods. "false" says no.

Placement alone is judged: a member that is not there yet, or not ready, counts as one that is elsewhere. It comes back.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from underhost.agents.site import terms
from underhost.agents.site.changes import owners_of
from underhost.agents.site.fault import faults_of
from underhost.agents.site.owners import FINISHED, Application, application_under, controller_of
from underhost.agents.site.places import SamePlace
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Metadata, Node, Pod, Workload

RULE = "Quorum"
ETCD, CONTROL_PLANE = Application("Node", "", "etcd"), Application("Node", "", "the control plane")
MAJORITY, NEVER, UNREADABLE = 0, -1, -2
"""What an annotation asks for that is not a number of members: the last two ask for nothing."""
_ROLE = "node-role.kubernetes.io/"
_ROLES = {f"{_ROLE}etcd": ETCD, f"{_ROLE}control-plane": CONTROL_PLANE, f"{_ROLE}master": CONTROL_PLANE}
_STATIC, _COMPONENTS = "kube-system", {"etcd": ETCD, "kube-apiserver": CONTROL_PLANE}
_NODE = "Node"  # the kind that owns mirror pods
_MOST_DIGITS = 6


class Member(NamedTuple):
    """A member on its node; `pod` is `namespace/name`, "" where the node itself is the member."""

    pod: str
    node: str


class Quorum(NamedTuple):
    """Members of which some must stay.

    Attributes:
        id: the workload, `ETCD` or `CONTROL_PLANE`. members: those that are on a node, sorted.
        size: how many there should be, never fewer than there are. stay: how many must stay.
    """

    id: Application
    members: tuple[Member, ...]
    size: int
    stay: int

    @property
    def spare(self) -> int:
        """How many may be lost at once, and so how many one place may hold; below 1 no placement is right."""
        return self.size - self.stay

    @property
    def name(self) -> str:
        """As people say it."""
        if self.id in (ETCD, CONTROL_PLANE):
            return self.id.name
        return f"{self.id.kind} {self.id.namespace}/{self.id.name}"

    def broken(self, where: Callable[[str], SamePlace]) -> dict[SamePlace, list[Member]]:
        """The places that hold more members than may be lost, by `where` each node is; none where that is below 1."""
        if self.spare < 1 or len(self.members) <= self.spare:
            return {}
        held: defaultdict[SamePlace, list[Member]] = defaultdict(list)
        for member in self.members:
            held[where(member.node)].append(member)
        return {place: members for place, members in sorted(held.items()) if len(members) > self.spare}


def asked_by(metadata: Metadata) -> int:
    """What an object's annotation asks for: a number of members that must stay, MAJORITY, NEVER or UNREADABLE."""
    text = metadata.annotations.quorum if metadata.annotations is not None else None
    if text is None or text == "false":
        return NEVER
    if text == "true":
        return MAJORITY
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and int(text) > 0 else UNREADABLE


def quorums(snapshot: Snapshot) -> list[Quorum]:
    """Every quorum of a snapshot, sorted. Raises BadObjectError for labels that the API server would not let in."""
    found = Quorums()
    found.use(snapshot)
    return list(found.all(snapshot))


class _Says(NamedTuple):
    """What a node says of itself."""

    roles: frozenset[Application]
    asked: int


class Quorums:
    """The members of all quorums of a site, told as they change.

    Every method that reads a node or a pod raises BadObjectError for labels that the API server would not let in.
    """

    def __init__(self) -> None:
        self._living: defaultdict[Application, dict[str, tuple[str, int]]] = defaultdict(dict)
        self._of_pod: dict[str, Application] = {}
        self._static: dict[str, tuple[Application, str]] = {}
        self._nodes: dict[str, _Says] = {}
        self._asking: defaultdict[str, set[str]] = defaultdict(set)  # by namespace, workloads with the annotation
        self._on: defaultdict[str, set[str]] = defaultdict(set)  # members of workloads by node
        self._changed: set[Application] = set()
        self._known: dict[Application, Quorum] = {}

    def use(self, snapshot: Snapshot) -> None:
        """Take in all that is there; nothing was told before."""
        for name, workload in snapshot.workloads.items():
            self._ask(name, workload)
        self._nodes = {name: says for name, node in snapshot.nodes.items() if (says := _says(node)) is not None}
        if self._nodes:
            self._touch(ETCD, CONTROL_PLANE)
        for key, pod in snapshot.annotated.items():
            self.change_pod(snapshot, key, pod)
        if self._asking:
            asked = [(key, pod) for key, pod in snapshot.pods.items() if pod.metadata.namespace in self._asking]
            for key, pod in asked:
                self.change_pod(snapshot, key, pod)

    def all(self, snapshot: Snapshot) -> Iterator[Quorum]:
        """Every quorum, sorted."""
        for at in sorted((ETCD, CONTROL_PLANE, *self._living)):
            found = self.of(snapshot, at)
            if found is not None:
                yield found

    def of(self, snapshot: Snapshot, at: Application) -> Quorum | None:
        """A quorum as it is now; None where it has no member."""
        found = self._known.get(at)
        if found is None and (found := self._made(snapshot, at)) is not None:
            self._known[at] = found
        return found

    def _made(self, snapshot: Snapshot, at: Application) -> Quorum | None:
        if at in (ETCD, CONTROL_PLANE):
            return self._of_nodes(at)
        living = self._living.get(at)
        if not living:
            return None
        workload = snapshot.workloads.get(f"{at.kind}/{at.namespace}/{at.name}")
        replicas = (workload.spec.replicas or 0) if workload is not None else 0
        size, asked = max(replicas, len(living)), max(asked for _, asked in living.values())
        members = tuple(sorted(Member(key, node) for key, (node, _) in living.items() if node))
        return Quorum(at, members, size, _stay(replicas or size, asked))

    def take_changed(self) -> set[Application]:
        """The quorums that may be others since this was asked last, or whose members may be elsewhere."""
        taken, self._changed = self._changed, set()
        return taken

    def _touch(self, *changed: Application) -> None:
        self._changed.update(changed)
        for at in changed:
            self._known.pop(at, None)

    # --------------------------------------------------------------------------------------------------------- pods
    def change_pod(self, snapshot: Snapshot, key: str, pod: Pod | None) -> None:
        """A pod came, changed or (None) went."""
        self._forget(key)
        if pod is None or pod.status.phase in FINISHED or pod.metadata.deletion_timestamp is not None:
            return
        meta = pod.metadata
        if meta.annotations is not None and meta.annotations.mirror is not None:
            self._take_static(key, pod)
        elif meta.namespace in self._asking or (meta.annotations is not None and meta.annotations.quorum is not None):
            self._take(snapshot, key, pod)

    def _forget(self, key: str) -> None:
        was = self._of_pod.pop(key, None)
        if was is not None:
            node, _ = self._living[was].pop(key)
            self._touch(was)
            self._on[node].discard(key)
            if not self._on[node]:
                del self._on[node]
            if not self._living[was]:
                del self._living[was]
        if self._static.pop(key, None) is not None:
            self._touch(ETCD, CONTROL_PLANE)

    def _take(self, snapshot: Snapshot, key: str, pod: Pod) -> None:
        """A pod that may be a member of its workload's quorum."""
        owner = controller_of(pod.metadata.owner_references)
        if owner is None or owner.kind == _NODE:
            return  # nobody says whose members would be the others
        namespace = pod.metadata.namespace
        at = application_under(snapshot, owner, namespace)
        speaking = (f"{at.kind}/{namespace}/{at.name}", f"{owner.kind}/{namespace}/{owner.name}")
        asking = self._asking.get(namespace, ())  # one that went along with another may be among them yet
        said = next((one for one in speaking if one in asking and one in snapshot.workloads), None)
        asked = asked_by(pod.metadata if said is None else snapshot.workloads[said].metadata)
        if asked >= MAJORITY:
            node = pod.spec.node_name
            self._living[at][key] = node, asked
            self._of_pod[key] = at
            self._on[node].add(key)
            self._touch(at)

    def _take_static(self, key: str, pod: Pod) -> None:
        if pod.metadata.namespace != _STATIC or not pod.spec.node_name:
            return
        with faults_of(f"Pod {key}"):
            component = terms.labels(bytes(pod.metadata.labels)).get("component", "")
        if component in _COMPONENTS:
            self._static[key] = _COMPONENTS[component], pod.spec.node_name
            self._touch(ETCD, CONTROL_PLANE)

    # ---------------------------------------------------------------------------------------------------- workloads
    def change_workload(
        self,
        snapshot: Snapshot,
        name: str,
        before: Workload | None,
        pods_in: Callable[[str], Iterable[str]],
    ) -> None:
        """A workload (`Kind/namespace/name`) came, changed or went; it was `before`.

        `pods_in` gives the pods of a namespace that have been told of; whoever else comes is told afterwards.
        """
        now = snapshot.workloads.get(name)
        either = now or before
        assert either is not None
        namespace = either.metadata.namespace
        spoke = name in self._asking.get(namespace, ())
        self._ask(name, now)
        self._touch(Application(either.kind, namespace, either.metadata.name))  # its replicas may be others
        if before is not None and now is not None and _speaks_alike(before, now):
            return
        if spoke or namespace in self._asking or any(at.namespace == namespace for at in self._living):
            for key in pods_in(namespace):
                if key in snapshot.pods:
                    self.change_pod(snapshot, key, snapshot.pods[key])

    def _ask(self, name: str, workload: Workload | None) -> None:
        notes = workload.metadata.annotations if workload is not None else None
        namespace = name.split("/", 2)[1]
        if notes is not None and notes.quorum is not None:
            self._asking[namespace].add(name)
        elif namespace in self._asking:
            self._asking[namespace].discard(name)
            if not self._asking[namespace]:
                del self._asking[namespace]

    # -------------------------------------------------------------------------------------------------------- nodes
    def change_node(self, name: str, node: Node | None) -> None:
        """A node came, changed or (None) went: its roles and where it is may be others."""
        says = None if node is None else _says(node)
        if self._nodes.get(name) != says:
            self._touch(ETCD, CONTROL_PLANE)
        if says is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = says
        self.move(name)

    def move(self, name: str) -> None:
        """A node is on another host, or it is not known any more on which."""
        for key in self._on.get(name, ()):
            self._touch(self._of_pod[key])
        if name in self._nodes or (self._static and any(node == name for _, node in self._static.values())):
            self._touch(ETCD, CONTROL_PLANE)

    def _of_nodes(self, at: Application) -> Quorum | None:
        etcd, control = self._nodes_of(ETCD), self._nodes_of(CONTROL_PLANE)
        found = etcd if at == ETCD else control
        if not found or (at == CONTROL_PLANE and etcd.keys() == control.keys()):
            return None
        members = tuple(sorted(Member(pod, node) for node, pod in found.items()))
        if at == CONTROL_PLANE and etcd and not etcd.keys() & control.keys():
            return Quorum(at, members, len(found), 1)
        asked = max((self._nodes[node].asked for node in etcd if node in self._nodes), default=MAJORITY)
        return Quorum(at, members, len(found), _stay(len(found), max(asked, MAJORITY) if at == ETCD else MAJORITY))

    def _nodes_of(self, at: Application) -> Mapping[str, str]:
        """The nodes of etcd or of the control plane, each with its static pod ("" where none is seen)."""
        found = {name: "" for name, says in self._nodes.items() if at in says.roles}
        for key, (of, node) in sorted(self._static.items(), reverse=True):
            if of == at and (node not in self._nodes or self._nodes[node].roles):
                found[node] = key
        return found


def _speaks_alike(before: Workload, now: Workload) -> bool:
    return owners_of(before) == owners_of(now) and before.metadata.annotations == now.metadata.annotations


def _says(node: Node) -> _Says | None:
    """The roles of a node and what it asks for; None where it says nothing. "false" takes it out of every quorum."""
    roles, raw = set[Application](), bytes(node.metadata.labels)
    if node.metadata.annotations is not None and node.metadata.annotations.quorum == "false":
        return _Says(frozenset(), NEVER)
    if _ROLE.encode() in raw:
        with faults_of(f"Node {node.metadata.name}"):
            roles.update(_ROLES[key] for key in terms.labels(raw) if key in _ROLES)
    asked = asked_by(node.metadata)
    if asked >= MAJORITY:
        roles.add(ETCD)
    return _Says(frozenset(roles), asked) if roles else None


def _stay(size: int, asked: int) -> int:
    """How many of so many members must stay."""
    return asked or size // 2 + 1
