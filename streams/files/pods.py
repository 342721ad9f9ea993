"""Pods of a dump, read the quick way: one pass over a pod's text, straight into the object that the rules read.

In: an item of a list, as raw JSON. Out: whether it was an ordinary pod. Anything else (another kind, a fault, a
hand-written pod without a uid, one given twice) is left to `collect.py`, which reads every object and words every
fault.
"""

from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr, replace

from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import BadObjectError
from underhost.streams.files.collect import NAME_MAX, Collected
from underhost.streams.files.faults import Shapes, begins, pod_shapes

_POD, _CORE = "Pod", ("", "v1")


class _ListedPod(Struct, rename="camel", gc=False):
    """A pod as a cluster lists it. One that does not fit may still be correct."""

    metadata: k8s.Metadata
    spec: k8s.PodSpec
    status: k8s.PodStatus = k8s.PodStatus()
    kind: Literal["Pod"] | None = None
    api_version: Literal["v1"] | None = None


_decode = msgspec.json.Decoder(_ListedPod).decode


def read_pod(raw: Raw, file: str, implied: tuple[str, str], into: Collected) -> bool:
    """Read the item if it is an ordinary pod; returns whether it is. `implied`: kind and apiVersion of its list."""
    try:
        item = _decode(raw)
    except msgspec.ValidationError:
        return False
    meta, spec = item.metadata, item.spec
    if not (
        meta.uid
        and spec.containers
        and 0 < len(meta.name) <= NAME_MAX
        and 0 < len(meta.namespace) <= NAME_MAX
        and (item.kind or implied[0]) == _POD
        and (item.api_version or implied[1]) in _CORE
    ):
        return False
    key = f"{meta.namespace}/{meta.name}"
    if key in into.objects.pods or key.count("/") != 1:
        return False
    owner = meta.owner_references[0].uid if meta.owner_references else ""
    like = into.likes.get(owner)
    try:
        pod = None if like is None else _shared(item, like, into.shapes)
        if pod is None:
            pod = k8s.Pod(meta, spec, item.status)
            pod_shapes(pod, into.shapes)
            if owner:
                into.likes[owner] = pod
    except BadObjectError:
        return False
    into.objects.pods[key] = pod
    if file != into.first_file:
        into.objects.origins[f"{_POD}/{key}"] = file
    return True


def _shared(item: _ListedPod, like: k8s.Pod, shapes: Shapes) -> k8s.Pod | None:
    """The pod with the parts of another pod of its owner, which saves most of its memory and of the checks.

    None where their specs differ. Raises BadObjectError.
    """
    meta, spec, status = item.metadata, item.spec, item.status
    shared = replace(like.spec, node_name=spec.node_name, volumes=spec.volumes)
    if shared != spec:
        return None
    if meta.labels != like.metadata.labels:
        shapes.strings(meta.labels, "metadata.labels")
    if spec.volumes is not k8s.EMPTY_LIST:
        begins(spec.volumes, "[", "spec.volumes")
    if meta.owner_references == like.metadata.owner_references:
        force_setattr(meta, "owner_references", like.metadata.owner_references)  # not shared with anyone yet
    return k8s.Pod(meta, shared, like.status if status == like.status else status)
