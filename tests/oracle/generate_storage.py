"""Claims of every fate, the volumes behind them, storage classes, attachments and attach limits.

Called by `generate.py`. No two volumes of a class have one size or are kept for one claim: upstream takes
either, as its map happens to be ordered.
"""

from collections.abc import Callable

from oracle.generate_terms import HOST, ZONE, Chance, Json

DRIVER, GCE = "csi.example.com", "pd.csi.storage.gke.io"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BOUND = ("bound-z1", "bound-node", "rwop", "gone", "deleted", "in-tree", "regional", "shared")
CLAIMS = (
    *BOUND, *BOUND, "wait", "wait-two", "small", "large", "limited", "chosen", "preset", "lost", "immediate",
    "no-class", "prebound", "absent",
)  # fmt: skip
Metadata = Callable[..., Json]


def storage(chance: Chance, metadata: Metadata, nodes: int) -> list[Json]:
    """All of them. `metadata(name, namespace)` makes an object's metadata; `nodes` is how many there are."""
    return [
        *_classes(metadata),
        *_bound(chance, metadata),
        *_waiting(chance, metadata, nodes),
        *_limits(chance, metadata, nodes),
    ]


def _classes(metadata: Metadata) -> list[Json]:
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    return [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata(name), **fields}
        for name, fields in (
            ("fast", {"provisioner": DRIVER, "volumeBindingMode": "Immediate"}),
            ("wffc", {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}),
            ("local", {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}),
            ("zoned", {"provisioner": GCE, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topology}),
        )
    ]


def _bound(chance: Chance, metadata: Metadata) -> list[Json]:
    """Bound claims with their volumes, and claims that nothing can be done about."""
    two = _on(HOST, "n00", "n01")
    made = [
        *_pair(metadata, "bound-z1", labels={ZONE: "z1"}),
        *_pair(
            metadata,
            "bound-node",
            nodeAffinity=chance.choice((two, two, _either(two, _on("rack", "rack-1")), _never())),
        ),
        *_pair(metadata, "rwop", modes=["ReadWriteOncePod"]),
        *_pair(metadata, "shared", modes=["ReadWriteMany"], nodeAffinity=_on(ZONE, "z1", "z2")),
        *_pair(metadata, "in-tree", labels={BETA_ZONE: "z2"}, gcePersistentDisk={"pdName": "disk-7"}),
        *_pair(metadata, "regional", labels={ZONE: chance.choice(("z1__z3", "z1____z2", ""))}),
        _claim(metadata, "gone", "fast", volume="pv-nowhere"),
        _claim(metadata, "lost", "fast", volume="pv-gone", phase="Lost"),
        _claim(metadata, "immediate", "fast"),
        _claim(metadata, "no-class", "none-such"),
        _claim(metadata, "prebound", "wffc", volume="pv-later", phase="Pending", annotations={}),
    ]
    deleted, behind = _pair(metadata, "deleted")
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T01:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    return [*made, deleted, behind]


def _waiting(chance: Chance, metadata: Metadata, nodes: int) -> list[Json]:
    """Claims that wait for a consumer, and volumes that would do."""
    names = [f"n{i:02d}" for i in range(nodes)]
    chosen = {"volume.kubernetes.io/selected-node": chance.choice((*names, "gone"))}
    made = [
        _claim(metadata, "wait", "wffc"),
        _claim(metadata, "wait-two", "wffc", size="3Gi"),
        _claim(metadata, "small", "local", size="1Gi"),
        _claim(
            metadata,
            "large",
            "local",
            size="5Gi",
            selector={"matchLabels": {"tier": "gold"}} if chance.often(0.3) else None,
        ),
        _claim(metadata, "limited", "zoned"),
        _claim(metadata, "chosen", "wffc", annotations=chosen),
        _claim(metadata, "preset", "local"),
    ]
    for i, size in enumerate(chance.sample(range(1, 12), chance.randint(0, 5))):
        affinity = chance.choice((_on(HOST, *chance.some(names, 1, 3)), _on(ZONE, "z1"), None))
        reference = {"claimRef": {"namespace": "default", "name": "preset"}} if not i and chance.often(0.6) else {}
        labels = {"tier": "gold"} if chance.often(0.4) else {}
        phase = chance.choice(("Available", "Available", "Available", "Released"))
        one = _volume(metadata, f"local-{i}", "local", f"{size}Gi", labels, phase)
        one["spec"] |= {"local": {"path": "/d"}} | ({"nodeAffinity": affinity} if affinity else {}) | reference
        made.append(one)
    return made


def _limits(chance: Chance, metadata: Metadata, nodes: int) -> list[Json]:
    made: list[Json] = []
    for i in range(nodes):
        name = f"n{i:02d}"
        if chance.often(0.7):
            drivers: list[Json] = []
            for driver in (DRIVER, GCE):
                one: Json = {"name": driver, "nodeID": name}
                if chance.often(0.8):
                    one["allocatable"] = {"count": chance.choice((1, 2, 3, 5))}
                if chance.often(0.8):
                    drivers.append(one)
            spec = {"drivers": drivers}
            made.append(
                {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata(name), "spec": spec}
            )
        if chance.often(0.3):
            source = {"persistentVolumeName": chance.choice(("pv-bound-z1", "pv-shared", "pv-unknown"))}
            spec = {"attacher": DRIVER, "nodeName": name, "source": source}
            meta = metadata(f"attached-{name}")
            made.append(
                {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": meta, "spec": spec}
                | {"status": {"attached": True}}
            )
    return made


def _pair(metadata: Metadata, name: str, **fields: object) -> tuple[Json, Json]:
    """A bound claim and its volume."""
    modes, labels = fields.pop("modes", ["ReadWriteOnce"]), fields.pop("labels", {})
    claim = _claim(metadata, name, "fast", volume=f"pv-{name}", modes=modes)
    volume = _volume(metadata, f"pv-{name}", "fast", "1Gi", labels, "Bound")
    source = {} if "gcePersistentDisk" in fields else {"csi": {"driver": DRIVER, "volumeHandle": f"pv-{name}"}}
    volume["spec"] |= {"accessModes": modes, "claimRef": {"namespace": "default", "name": name}} | source | fields
    return claim, volume


def _claim(metadata: Metadata, name: str, storage_class: str, **more: object) -> Json:
    volume, phase = more.get("volume"), more.get("phase")
    spec: Json = {
        "accessModes": more.get("modes", ["ReadWriteOnce"]),
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": more.get("size", "1Gi")}},
    }
    if volume:
        spec["volumeName"] = volume
    if more.get("selector"):
        spec["selector"] = more["selector"]
    meta = metadata(name, "default")
    meta["annotations"] = more.get("annotations", {"pv.kubernetes.io/bind-completed": "yes"} if volume else {})
    status = {"phase": phase or ("Bound" if volume else "Pending")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": status}


def _volume(metadata: Metadata, name: str, storage_class: str, size: str, labels: object, phase: str) -> Json:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": storage_class}
    meta = metadata(name) | {"labels": labels}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def _on(key: str, *values: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def _either(one: Json, other: Json) -> Json:
    terms = [*one["required"]["nodeSelectorTerms"], *other["required"]["nodeSelectorTerms"]]
    return {"required": {"nodeSelectorTerms": terms}}


def _never() -> Json:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "nobody", "operator": "Exists"}]}]}}
