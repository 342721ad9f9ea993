"""How long is a check? A small one beside an import of polars; a large one with its parts; memory.

Called by `run.py`. Prints `name<TAB>value` lines. The large dump is made here, deterministic: 5,000 nodes on 512 hosts,
150,000 pods of 7,500 applications with required anti-affinity, spread and node affinity, a few of them misplaced.
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from usage import usage_of

DATA = Path(__file__).parents[1] / "data" / "kubevirt"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES, HOSTS, APPS, REPLICAS, ROUNDS = 5_000, 512, 7_500, 20, 7
UNDERHOST = str(Path(sys.executable).parent / "underhost")


def main() -> None:
    """Measure and print."""
    small = [UNDERHOST, "check", "-f", str(DATA / "dump.json"), "--inventory", str(DATA / "inventory.json")]
    polars = [sys.executable, "-c", "import polars"]
    pairs = [(usage_of(small).cpu, usage_of(polars).cpu) for _ in range(ROUNDS)][1:]
    ratios = sorted(one / other for one, other in pairs)
    print(f"7 nodes: CPU of check / of importing polars\t{ratios[len(ratios) // 2]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        dump, inventory = Path(folder, "dump.json"), Path(folder, "inventory.json")
        dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": _objects()}), encoding="utf-8")
        inventory.write_text(json.dumps(_inventory()), encoding="utf-8")
        whole = [UNDERHOST, "check", "-f", str(dump), "--inventory", str(inventory), "-o", "json"]
        wall, cpu, memory = min(usage_of(whole) for _ in range(2))
        print(f"150,000 pods: whole command, CPU s\t{cpu:.2f}")
        print(f"150,000 pods: whole command, s\t{wall:.2f}")
        print(f"150,000 pods: memory, MiB\t{memory:.0f}")
        for name, seconds in _parts(dump, inventory).items():
            print(f"150,000 pods: {name}, CPU s\t{seconds:.3f}")


def _parts(dump: Path, inventory: Path) -> dict[str, float]:
    from underhost.agents.compiled.model import compile
    from underhost.agents.evaluate.check import check
    from underhost.agents.evaluate.judge import Judge
    from underhost.agents.site.snapshot import Options
    from underhost.agents.snapshots.load import snapshot_of
    from underhost.streams.files.reader import load_files

    found: dict[str, float] = {}
    begin = time.process_time()
    objects = load_files([dump], inventory=inventory)
    found["read"], begin = time.process_time() - begin, time.process_time()
    snapshot, _ = snapshot_of(objects, manifests=False)
    model = compile(snapshot, Options())
    found["compile"], begin = time.process_time() - begin, time.process_time()
    check(snapshot, Options(), model)
    found["check, cold"], begin = time.process_time() - begin, time.process_time()
    check(snapshot, Options(), model)
    found["check, warm"], begin = time.process_time() - begin, time.process_time()
    judge = Judge(model)
    judge.refusals()
    found["sweep of all rules, cold"], begin = time.process_time() - begin, time.process_time()
    judge.refusals()
    found["sweep of all rules, warm"] = time.process_time() - begin
    return found


def _objects() -> list[dict[str, Any]]:
    rng = random.Random(5)
    names = [f"n{at:04d}" for at in range(NODES)]
    objects: list[dict[str, Any]] = [_node(name, f"z{at % 10}") for at, name in enumerate(names)]
    for app in range(APPS):
        placed = rng.sample(range(NODES), REPLICAS)
        if app % 10 == 0:
            placed[1] = placed[0]
        spec = _spec(app)
        objects += [_pod(app, at, names[node], spec) for at, node in enumerate(placed)]
    return objects


def _node(name: str, zone: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOSTNAME: name, ZONE: zone}},
        "spec": {},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def _spec(app: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": f"app-{app}"}}
    terms = [{"topologyKey": HOSTNAME, "labelSelector": selector}]
    spec: dict[str, Any] = {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}
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


def _pod(app: int, at: int, node: str, spec: dict[str, Any]) -> dict[str, Any]:
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


def _inventory() -> dict[str, Any]:
    hosts = [{"id": f"host-{at}", "name": f"esx-{at}", "cluster": f"C{at // 32}"} for at in range(HOSTS)]
    vms = [{"id": f"vm-{at}", "name": f"n{at:04d}", "host": f"host-{at * 7 % HOSTS}"} for at in range(NODES)]
    return {"kind": "Inventory", "hosts": hosts, "vms": vms}


if __name__ == "__main__":
    main()
