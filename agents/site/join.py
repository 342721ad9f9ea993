"""Which VM is a Kubernetes node, and which ESXi host does it run on?

In: nodes of Kubernetes, VMs and hosts of vSphere. Out: a `NodeHost` for every node that is joined to a VM, and which
nodes claim a VM that another one is. Where a node label is to say it instead, `host_labels.py` reads that. Pure;
whether an unknown host is worth a finding is left to `agents/evaluate/nodes.py`.

A join is a claim about hardware. A uuid is the machine's own, a name is whatever somebody gave it: where there is a
uuid no name is asked, and an ambiguous identity is no join at all. A wrong host is worse than an unknown one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter

from underhost.agents.site.host_labels import by_label, hosts_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node
from underhost.schemas.records import NodeHost
from underhost.schemas.uuids import SYSTEM_UUID, uuid_digits, vm_uuids
from underhost.schemas.vsphere import Host, Vm

NAME, HOSTNAME = "name", "hostname"
ON = "on"
_Claim = tuple[Vm, str]
"""The VM that a node claims, and by what."""


def located(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its `node_hosts` and `rivals`, of its nodes, VMs and hosts: the one place where this is told.

    Where a label names the hosts, these are the snapshot's `hosts`.
    """
    if snapshot.joining.label:
        rows = by_label(snapshot.nodes, snapshot.joining.label)
        return replace(snapshot, node_hosts=rows, rivals={}, hosts=hosts_of(rows.values(), snapshot.hosts))
    claims, rivals = _settle(snapshot.nodes.values(), snapshot.vms.values(), snapshot.joining.by_name)
    return replace(snapshot, node_hosts=_rows(claims, snapshot.hosts.values()), rivals=rivals)


def join(
    nodes: Iterable[Node], vms: Iterable[Vm], hosts: Iterable[Host], *, by_name: bool = True
) -> dict[str, NodeHost]:
    """The joined nodes by name, sorted; equal for every order of the input.

    A node joins by the uuid of its `spec.providerID` (`vsphere://UUID`), without one by its `systemUUID` in both byte
    orders. By VM name, then guest hostname, it joins only where `by_name` allows it and one side has no uuid: a node
    with one is never a VM with another. Of several VMs with one identity the one that is on counts; where several are
    on, or none, it joins nothing. One VM is one node: of several that claim it by uuid the oldest, else who claims it
    by its name, then by its guest's. `host` is the host's id (its name where it has none), or "" while it is unknown.
    """
    return _rows(_settle(nodes, vms, by_name)[0], hosts)


def _settle(nodes: Iterable[Node], vms: Iterable[Vm], by_name: bool) -> tuple[dict[str, _Claim], dict[str, str]]:
    """The claims that hold by node, sorted; and for each node whose claim does not, the node that is the VM."""
    index = _Index(vms)
    claimed: dict[str, list[tuple[_Rank, _Claim]]] = defaultdict(list)
    for node in nodes:
        if (claim := index.claim(node, by_name)) is not None:
            claimed[claim[0].ref].append((_rank(node, claim[1]), claim))
    holding: dict[str, _Claim] = {}
    rivals: dict[str, str] = {}
    for claims in claimed.values():
        (first, claim), *others = sorted(claims, key=itemgetter(0))
        holding[first[-1]] = claim
        rivals.update((rank[-1], first[-1]) for rank, _ in others)
    return dict(sorted(holding.items())), dict(sorted(rivals.items()))


_Rank = tuple[int, str, bool, str]
"""Whose claim of a VM holds, the least one's: by name, since when, by system uuid, and the node."""


def _rank(node: Node, how: str) -> _Rank:
    """By uuid before by name. Who came later takes no VM away from a node, whatever it says of itself.

    `since` is RFC 3339 in UTC; a node without a time is not made yet, and so later than all.
    """
    by_name = (NAME, HOSTNAME).index(how) + 1 if how in (NAME, HOSTNAME) else 0
    return by_name, node.metadata.creation_timestamp or "~", how == SYSTEM_UUID, node.metadata.name


def _rows(claims: Mapping[str, _Claim], hosts: Iterable[Host]) -> dict[str, NodeHost]:
    host_of, rows = HostIndex(hosts), {}
    for name, (vm, how) in claims.items():
        host, host_name = host_of.resolve(vm.host)
        rows[name] = NodeHost(node=name, vm=vm.ref, host=host, host_name=host_name, joined_by=how)
    return rows


class _Index:
    """VMs by each identity. A name that several VMs share keeps them all: that is how ambiguity is seen."""

    def __init__(self, vms: Iterable[Vm]) -> None:
        self.by_uuid: dict[str, list[Vm]] = defaultdict(list)
        self.by_name: dict[str, list[Vm]] = defaultdict(list)
        self.by_hostname: dict[str, list[Vm]] = defaultdict(list)
        for vm in vms:
            if digits := uuid_digits(vm.uuid):
                self.by_uuid[digits].append(vm)
            self.by_name[vm.name].append(vm)
            if hostname := _hostname(vm.hostname):
                self.by_hostname[hostname].append(vm)

    def claim(self, node: Node, by_name: bool) -> _Claim | None:
        """The VM of the first identity that any has; None where none does, or where several VMs have it."""
        said = vm_uuids(node)
        if said is not None:
            how, uuids = said
            if found := [vm for uuid in uuids for vm in self.by_uuid.get(uuid, ())]:
                return _the_one(how, found)
        for how, named in self._named(node) if by_name else ():
            candidates = [vm for vm in named if said is None or not uuid_digits(vm.uuid)]
            if candidates:
                return _the_one(how, candidates)
        return None

    def _named(self, node: Node) -> Iterator[tuple[str, list[Vm]]]:
        yield NAME, self.by_name.get(node.metadata.name, [])
        names = {_hostname(node.metadata.name)}
        names |= {_hostname(item.address) for item in node.status.addresses or () if item.type == "Hostname"}
        yield HOSTNAME, [vm for name in sorted(names) if name for vm in self.by_hostname.get(name, [])]


def _the_one(how: str, candidates: list[Vm]) -> _Claim | None:
    """The only VM, or the only one that is on: a node runs, so that its VM does, and a copy that is off is not it."""
    found = [vm for vm in candidates if vm.power == ON] or candidates
    return (found[0], how) if len(found) == 1 else None


class HostIndex:
    """Hosts by id and by name; a VM of a hand-written inventory may use either."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.by_ref: dict[str, Host] = {}
        self.by_name: dict[str, set[str]] = defaultdict(set)
        for host in hosts:
            self.by_ref[host.ref] = host
            self.by_name[host.name].add(host.ref)

    def resolve(self, named: str) -> tuple[str, str]:
        """(ref, name) of what a VM calls its host. A host that is not listed stays what it is called.

        A name that two hosts share is unknown: "" is never a domain.
        """
        if not named:
            return "", ""
        host = self.by_ref.get(named)
        if host is None:
            refs = self.by_name.get(named, set())
            if len(refs) > 1:
                return "", ""
            host = self.by_ref[next(iter(refs))] if refs else None
        return (host.ref, host.name) if host is not None else (named, named)


def _hostname(text: str) -> str:
    return text.strip().rstrip(".").lower()
