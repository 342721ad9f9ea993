"""Claims, volumes and storage classes for the tests of the volume rules, as a dump holds them."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from underhost.agents.site.snapshot import Snapshot
from underhost.streams.files.reader import load_files

HANDLES = "csi.example.com"
Json = Mapping[str, Any]


def claim(name: str, volume: str = "", storage_class: str = "fast", **more: Any) -> Json:
    """A claim in namespace `shop`; bound where a volume is named. `more`: mode, phase, size, node (selected), spec."""
    notes = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    if "node" in more:
        notes["volume.kubernetes.io/selected-node"] = more["node"]
    spec = {
        "accessModes": [more.get("mode", "ReadWriteOnce")],
        "storageClassName": storage_class,
        "volumeName": volume,
        "resources": {"requests": {"storage": more.get("size", "1Gi")}},
        **more.get("spec", {}),
    }
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "annotations": notes, **more.get("meta", {})}
    phase = more.get("phase", "Bound" if volume else "Pending")
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def volume(name: str, nodes: list[str] | None = None, **more: Any) -> Json:
    """A volume that only the named hosts reach. `more`: labels, source, size, storage_class, owner, phase."""
    spec: dict[str, Any] = {
        "accessModes": [more.get("mode", "ReadWriteOnce")],
        "capacity": {"storage": more.get("size", "1Gi")},
        "storageClassName": more.get("storage_class", "fast"),
        **more.get("source", {"csi": {"driver": HANDLES, "volumeHandle": name}}),
    }
    if nodes is not None:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if "owner" in more:
        spec["claimRef"] = {"namespace": "shop", "name": more["owner"]}
    metadata = {"name": name, "labels": more.get("labels", {})}
    status = {"phase": more.get("phase", "Bound")}
    return {"kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status}


def storage_class(name: str, waits: bool = False, provisioner: str = HANDLES, **more: Any) -> Json:
    """A class that binds at once, or waits for the first consumer."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    fields = {"provisioner": provisioner, "volumeBindingMode": mode, **more}
    return {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}, **fields}


def csi_node(name: str, driver: str = HANDLES, count: int | None = None) -> Json:
    """What the node may attach."""
    one = {"name": driver, "nodeID": name} | ({} if count is None else {"allocatable": {"count": count}})
    return {
        "kind": "CSINode",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": name},
        "spec": {"drivers": [one]},
    }


def attachment(name: str, node: str, volume_name: str) -> Json:
    """A volume that is attached to a node, whether or not a pod there uses it."""
    spec = {"attacher": HANDLES, "nodeName": node, "source": {"persistentVolumeName": volume_name}}
    return {
        "kind": "VolumeAttachment",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": name},
        "spec": spec,
    }


def uses(*claims: str) -> list[Json]:
    """The volumes of a pod with these claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def stored(snapshot: Snapshot, *objects: Json) -> Snapshot:
    """The snapshot with these objects, read as from a dump."""
    read = load_files(["-"], stdin=io.BytesIO(json.dumps({"kind": "List", "items": objects}).encode()))
    return replace(
        snapshot,
        claims=read.claims,
        volumes=read.volumes,
        storage_classes=read.storage_classes,
        csi_nodes=read.csi_nodes,
        attachments=read.attachments,
    )
