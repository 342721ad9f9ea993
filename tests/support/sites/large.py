"""A large site, the same at every run: 5,000 nodes on 512 hosts, 150,000 pods of 7,500 applications.

The applications have required anti-affinity, spread and node affinity, and a few of their pods are misplaced.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REPLICAS = 20
Json = dict[str, Any]


@dataclass(frozen=True)
class LargeSite:
    """A site of this size, as a dump and an inventory have it. Application, node and host are numbers."""

    nodes: int = 5_000
    apps: int = 7_500
    hosts: int = 512

    @classmethod
    def of(cls, nodes: int, apps: int) -> "LargeSite":
        """A site with hosts in proportion, 32 a cluster."""
        return cls(nodes, apps, max(1, nodes // 320) * 32)

    def write(self, folder: Path, *more: Sequence[Json]) -> tuple[Path, Path]:
        """(dump, inventory) as files of the folder; `more` are lists of further objects."""
        dump, inventory = folder / "dump.json", folder / "inventory.json"
        with dump.open("w", encoding="utf-8") as file:
            file.write('{"kind": "List", "apiVersion": "v1", "items": [')
            for at, one in enumerate(chain(self.objects(), *more)):  # one by one: a million take 5 GB
                file.write((", " if at else "") + json.dumps(one))
            file.write("]}")
        inventory.write_text(json.dumps(self.inventory()), encoding="utf-8")
        return dump, inventory

    def objects(self) -> Iterator[Json]:
        """The nodes, then the pods."""
        rng = random.Random(5)
        names = [f"n{at:04d}" for at in range(self.nodes)]
        yield from (node(name, f"z{at % 10}") for at, name in enumerate(names))
        for app in range(self.apps):
            placed = rng.sample(range(self.nodes), REPLICAS)
            if app % 10 == 0:
                placed[1] = placed[0]
            spec = spec_of(app)
            yield from (pod(app, at, names[node], spec) for at, node in enumerate(placed))

    def host_of(self, node: int) -> int:
        """The host that the node's VM is on."""
        return node * 7 % self.hosts

    def inventory(self) -> Json:
        """The hosts, and a VM for each node."""
        hosts = [{"id": f"host-{at}", "name": f"esx-{at}", "cluster": f"C{at // 32}"} for at in range(self.hosts)]
        vms = [{"id": f"vm-{at}", "name": f"n{at:04d}", "host": f"host-{self.host_of(at)}"} for at in range(self.nodes)]
        return {"kind": "Inventory", "hosts": hosts, "vms": vms}


def node(name: str, zone: str) -> Json:
    """A node with 64 CPUs and room for 110 pods."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOSTNAME: name, ZONE: zone}},
        "spec": {},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def spec_of(app: int) -> Json:
    """The rules of an application's pods."""
    selector = {"matchLabels": {"app": f"app-{app}"}}
    terms = [{"topologyKey": HOSTNAME, "labelSelector": selector}]
    spec: Json = {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}
    if app % 50 == 1:
        terms.append({"topologyKey": ZONE, "labelSelector": selector})
    elif app % 10 in (2, 3, 4):
        constraint = {
            "maxSkew": 4,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
        spec["topologySpreadConstraints"] = [constraint]
    elif app % 10 in (5, 6):
        zones = {"key": ZONE, "operator": "In", "values": [f"z{at}" for at in range(9 + app % 20 // 6)]}
        spec["affinity"]["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}}
    return spec


def pod(app: int, at: int, node: str, spec: Json) -> Json:
    """A replica of an application, on a node."""
    name = f"app-{app}-{at}"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": f"app-{app}", "uid": f"u{app}", "controller": True}
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": f"team-{app % 40}",
            "uid": f"uid-{name}",
            "labels": {"app": f"app-{app}", "statefulset.kubernetes.io/pod-name": name},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i:1", "resources": resources}], **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
