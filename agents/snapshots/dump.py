"""A snapshot as the documents that the files' reader reads: typed lists of Kubernetes objects, and an inventory.

In: a snapshot. Out: JSON documents, one a line, each of bounded size.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import encode
from underhost.schemas.vsphere import DISCONNECTED, Cluster, DrsRule, Host, Inventory, Vm

T = TypeVar("T", Host, Vm, Cluster, DrsRule)
VERSION, TYPE = attrgetter("api_version"), attrgetter("kind", "api_version")
AT_ONCE = 2000
"""Objects in one document."""


def documents(snapshot: Snapshot) -> Iterator[bytes]:
    """The documents, each with its line end."""
    for kind, table in (
        ("Namespace", snapshot.namespaces),
        ("Node", snapshot.nodes),
        ("Pod", snapshot.pods),
        ("Service", snapshot.services),
    ):
        yield from _lists(kind, "v1", table.values())
    for (kind, api_version), workloads in groupby(sorted(snapshot.workloads.values(), key=TYPE), TYPE):
        yield from _lists(kind, api_version, workloads)
    for api_version, budgets in groupby(sorted(snapshot.budgets.values(), key=VERSION), VERSION):
        yield from _lists("PodDisruptionBudget", api_version, budgets)
    if snapshot.vsphere:
        yield msgspec.json.encode(_inventory(snapshot)) + b"\n"


def _lists(kind: str, api_version: str, objects: Iterable[Struct]) -> Iterator[bytes]:
    head = msgspec.json.encode({"kind": f"{kind}List", "apiVersion": api_version})[:-1] + b',"items":['
    left = iter(objects)
    while some := list(islice(left, AT_ONCE)):
        yield head + b",".join(encode(one) for one in some) + b"]}\n"


def _inventory(snapshot: Snapshot) -> dict[str, Any]:
    """The inventory, `host` said of every VM; a host that only its VMs know is there, and takes nothing."""
    vms = [_bare(vm) for vm in snapshot.vms.values()]
    hosts = [_bare(host) for host in snapshot.hosts.values()]
    unlisted = sorted({vm.host for vm in vms} - {"", *snapshot.hosts})
    hosts += [Host(name=ref, id=ref, state=DISCONNECTED) for ref in unlisted]
    clusters = [_with_rules(snapshot, cluster) for cluster in snapshot.clusters.values()]
    tree: dict[str, Any] = msgspec.to_builtins(Inventory(hosts=hosts, vms=vms, clusters=clusters))
    for vm in tree["vms"]:
        vm.setdefault("host", "")
    return {"kind": "Inventory", "hosts": hosts, "vms": [], **tree}


def _with_rules(snapshot: Snapshot, cluster: Cluster) -> Cluster:
    rules = [replace(rule, cluster="") for (name, _), rule in sorted(snapshot.rules.items()) if name == cluster.name]
    return replace(_bare(cluster), rules=[_bare(rule) for rule in rules])


def _bare(value: T) -> T:
    """Without what is only for the topics."""
    return replace(value, uid="", resource_version="")
