"""Random pods, running and pending, as an API server would have stored them.

Called by `generate.py`. Each has a share of every trap: sidecars, overhead, pod-level and extended resources, host
ports, gates, nominations, terminating and finished ones.
"""

from typing import Any

from oracle.generate_storage import CLAIMS
from oracle.generate_terms import (
    APPS,
    NAMESPACES,
    PREFERRED,
    REQUIRED,
    ZONE,
    Chance,
    Json,
    node_term,
    pod_term,
    spread_constraints,
    toleration,
)

MEBI = 1 << 20
IMAGES = {
    "registry.example/web:v1": 700 * MEBI,
    "registry.example/db:9": 350 * MEBI,
    "registry.example/tiny:1": 5 * MEBI,
    "registry.example/huge": 1800 * MEBI,
    "busybox": 40 * MEBI,
}
NODE_SELECTORS: tuple[Json, ...] = (
    {"disktype": "ssd"}, {"disktype": "hdd"}, {ZONE: "z1"}, {"kubernetes.io/arch": "amd64"}, {"disktype": ""},
    {"disktype": "ssd", ZONE: "z2"}, {"absent": "x"},
)  # fmt: skip
DISKS: tuple[Json, ...] = (
    {"gcePersistentDisk": {"pdName": "disk-1"}},
    {"gcePersistentDisk": {"pdName": "disk-1", "readOnly": True}},
    {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2016-04.test.com:storage", "lun": 0}},
)


def pod_labels(chance: Chance) -> dict[str, str]:
    """Labels that selectors may find, each sometimes missing or empty."""
    labels = {}
    if not chance.often(0.06):
        labels["app"] = chance.choice(APPS)
    if chance.often(0.5):
        labels["tier"] = chance.choice(("front", "back", ""))
    if chance.often(0.5):
        labels["version"] = chance.choice(("v1", "v2"))
    if chance.often(0.4):
        labels["pod-template-hash"] = chance.choice(("aaa", "bbb"))
    return labels


def pod(chance: Chance, metadata: Json, nodes: int, node: str | None, storage: bool) -> Json:
    """A pod on a node, or a pending one (None). `metadata` has the name; labels and the rest are added to it."""
    labels = pod_labels(chance)
    metadata |= {"namespace": chance.choice(NAMESPACES), "labels": labels}
    spec: Json = {"schedulerName": "default-scheduler", **_containers(chance, pending=node is None)}
    if node is not None:
        spec["nodeName"] = node
    _placement(chance, spec, labels, nodes)
    spec["priority"] = chance.choice((0, 0, 0, 0, 100, 1000, -10))
    spec["preemptionPolicy"] = chance.choice((*["PreemptLowerPriority"] * 5, "Never"))
    status: Json = {"phase": "Pending"}
    if node is not None:
        status["phase"] = chance.choice((*["Running"] * 8, "Pending", "Succeeded", "Failed"))
    elif chance.often(0.04):
        spec["schedulingGates"] = [{"name": f"example.com/g{i}"} for i in range(chance.randint(1, 2))]
    elif chance.often(0.06):
        status["nominatedNodeName"] = f"n{chance.randint(0, max(1, nodes - 1)):02d}"
    if chance.often(0.02 if node is None else 0.08):
        metadata |= {"deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": 30}
    if node is None and chance.often(0.01):
        spec["schedulerName"] = "other-scheduler"
    if node is None and chance.often(0.01):
        status["phase"] = "Failed"
    if "requests" in spec.get("resources", {}) and node is not None and chance.often(0.4):
        _resize(chance, status)
    _owner(chance, metadata, labels)
    _volumes(chance, metadata, spec, storage)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _resize(chance: Chance, status: Json) -> None:
    """A resize of the pod as a whole is under way."""
    status["resources"] = {"requests": {"cpu": chance.choice(("250m", "3")), "memory": "1Gi"}}
    status["allocatedResources"] = {"cpu": chance.choice(("300m", "4")), "memory": "512Mi"}
    if chance.often(0.7):
        reason = chance.choice(("Deferred", "Infeasible"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]


def _owner(chance: Chance, metadata: Json, labels: dict[str, str]) -> None:
    if chance.often(0.3) and "app" in labels:
        kind, app = chance.choice(("ReplicaSet", "ReplicaSet", "StatefulSet")), labels["app"]
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": app, "uid": f"owner-{app}", "controller": True}
        metadata["ownerReferences"] = [owner]


def _volumes(chance: Chance, metadata: Json, spec: Json, storage: bool) -> None:
    if storage and chance.often(0.3):
        names = chance.some(sorted(set(CLAIMS)), 2, 3) if chance.often(0.25) else [chance.choice(CLAIMS)]
        spec["volumes"] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": n}} for i, n in enumerate(names)]
        if chance.often(0.15):
            spec["volumes"].append({"name": "disk", **chance.choice(DISKS)})
        metadata["namespace"] = "default"
    elif chance.often(0.03):
        spec["volumes"] = [{"name": "disk", **chance.choice(DISKS)}]


def _placement(chance: Chance, spec: Json, labels: dict[str, str], nodes: int) -> None:
    """nodeSelector, affinity, spread and tolerations, each for a share of the pods."""
    if chance.often(0.13):
        spec["nodeSelector"] = chance.choice(NODE_SELECTORS)
    affinity: Json = {}
    if chance.often(0.35):
        part: Json = {}
        if chance.often(0.6):
            part[REQUIRED] = {
                "nodeSelectorTerms": [node_term(chance, nodes) for _ in range(chance.choice((1, 1, 2, 3)))]
            }
        if not part or chance.often(0.5):
            part[PREFERRED] = [
                {"weight": _weight(chance), "preference": node_term(chance, nodes, soft=True)}
                for _ in range(chance.randint(1, 3))
            ]
        affinity["nodeAffinity"] = part
    for kind, share in (("podAffinity", 0.25), ("podAntiAffinity", 0.35)):
        if chance.often(share):
            part = {}
            if chance.often(0.6):
                part[REQUIRED] = [pod_term(chance, labels) for _ in range(chance.choice((1, 1, 1, 2)))]
            if not part or chance.often(0.4):
                part[PREFERRED] = [
                    {"weight": _weight(chance), "podAffinityTerm": pod_term(chance, labels)}
                    for _ in range(chance.randint(1, 2))
                ]
            affinity[kind] = part
    if affinity:
        spec["affinity"] = affinity
    if chance.often(0.25):
        spec["topologySpreadConstraints"] = spread_constraints(chance, labels)
    if chance.often(0.4):
        spec["tolerations"] = [toleration(chance) for _ in range(chance.randint(1, 3))]


def _weight(chance: Chance) -> int:
    return chance.choice((1, 10, 50, 100))


def _containers(chance: Chance, pending: bool) -> Json:
    """Containers, init containers and sidecars, overhead, and resources of the pod as a whole."""
    ports: set[tuple[int, str]] = set()
    count = chance.choice((1, 1, 1, 2, 3))
    containers = [_container(chance, f"c{i}", pending and chance.often(0.08), ports) for i in range(count)]
    made: Json = {"containers": containers}
    if chance.often(0.2):
        inits = []
        for i in range(chance.choice((1, 1, 2, 3))):
            sidecar = chance.often(0.4)
            init = _container(chance, f"i{i}", pending and chance.often(0.3), ports if sidecar else None)
            inits.append(init | ({"restartPolicy": "Always"} if sidecar else {}))
        made["initContainers"] = inits
    if pending and chance.often(0.06):
        exits = {"exitCodes": {"operator": "In", "values": [42]}}
        action = chance.choice(("RestartAllContainers", "RestartAllContainers", "Restart"))
        rules = {"restartPolicy": "Never", "restartPolicyRules": [{"action": action, **exits}]}
        chance.choice(containers).update(rules)
    if chance.often(0.06):
        made["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    every = [*containers, *made.get("initContainers", ())]
    plain = all(set(one["resources"].get("requests", ())) <= {"cpu", "memory"} for one in every)
    if plain and chance.often(0.08):  # resources of the pod replace those of its containers
        for one in every:
            one["resources"] = {}
        if chance.often(0.5):
            containers[0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        requests = {"cpu": chance.choice(("500m", "2")), "memory": chance.choice(("256Mi", "3Gi"))}
        written = "requests" if chance.stored or chance.often(0.3) else "limits"
        made["resources"] = {written: requests}
    if not chance.stored and chance.often(0.1):
        made["hostNetwork"] = True
        for one in (port for container in every for port in container.get("ports", ())):
            del one["hostPort"]
    return made


def _container(chance: Chance, name: str, big: bool, ports: set[tuple[int, str]] | None) -> Json:
    made: Json = {"name": name, "image": chance.choice(sorted(IMAGES)), "resources": _resources(chance, big)}
    listed = []
    if ports is not None and chance.often(0.12):
        for _ in range(chance.randint(1, 2)):
            number, protocol = chance.choice((8080, 8080, 9090)), chance.choice(("TCP", "TCP", "UDP", "SCTP"))
            port: dict[str, Any] = {"containerPort": number, "hostPort": number, "protocol": protocol}
            address = chance.choice((None, None, "0.0.0.0", "127.0.0.1", "10.0.0.1"))
            if address:
                port["hostIP"] = address
            if (number, protocol) not in ports:
                ports.add((number, protocol))
                listed.append(port)
    return made | ({"ports": listed} if listed else {})


def _resources(chance: Chance, big: bool) -> Json:
    """Requests of every kind of quantity; extended resources and huge pages with the limits that they must have."""
    if chance.often(0.3):
        return {}
    requests: dict[str, str] = {}
    if chance.often(0.85):
        requests["cpu"] = chance.choice(
            ("100m", "250m", "500m", "1", "1500m", "0", "0.1", *(("6", "20") if big else ()))
        )
    if chance.often(0.8):
        memory = ("64Mi", "128Mi", "512Mi", "1Gi", "1500M", "1e8", *(("7Gi", "64Gi") if big else ()))
        requests["memory"] = chance.choice(memory)
    if chance.often(0.15):
        requests["ephemeral-storage"] = chance.choice(("1Gi", "15Gi", "60Gi"))
    limits: dict[str, str] = {}
    if chance.often(0.08):
        limits["nvidia.com/gpu"] = chance.choice(("1", "2"))
    elif chance.often(0.05):
        limits["example.com/foo"] = chance.choice(("1", "4", "0"))
    elif chance.often(0.04) and ("cpu" in requests or "memory" in requests):
        limits["hugepages-2Mi"] = "128Mi"
    if not requests and not limits:
        return {}
    if not chance.stored and chance.often(0.5):
        return {"limits": requests | limits}
    return {"requests": requests | limits} | ({"limits": limits} if limits else {})
