"""Pods of a dump, read the quick way: one pass over a pod's text, straight into the object that the rules read.

In: the items of a list, as raw JSON. Out: its ordinary pods in their table. Anything else (another kind, a fault, a
hand-written pod without a uid, one given twice) is left to `collect.py`, which reads every object and words every
fault.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr, replace

from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import BadObjectError
from underhost.streams.files.collect import NAME_MAX, Collected
from underhost.streams.files.faults import Shapes, begins, pod_shapes

_POD, _CORE = "Pod", ("", "v1")
_ALONE = 1000
"""Pods that share nothing of which the text is copied, however few others there are."""


class _ListedPod(Struct, rename="camel", gc=False):
    """A pod as a cluster lists it. One that does not fit may still be correct."""

    metadata: k8s.Metadata
    spec: k8s.PodSpec
    status: k8s.PodStatus = k8s.PodStatus()
    kind: Literal["Pod"] | None = None
    api_version: Literal["v1"] | None = None


_decode = msgspec.json.Decoder(_ListedPod).decode


def read_pods(
    items: Iterable[tuple[int, Raw]], file: str, implied: tuple[str, str], into: Collected, own: bool
) -> Iterator[tuple[int, Raw]]:
    """Read the ordinary pods among the items of a list, each with its position; the others are given back.

    `implied`: kind and apiVersion of the list. `own`: the raw parts that are kept are not to hold the text of the whole
    list in memory. Where most pods share nothing they do all the same: copies would take as much.
    """
    pods, likes, shapes, origins = into.objects.pods, into.likes, into.shapes, into.objects.origins
    are_pods, are_core, is_first = implied[0] == _POD, implied[1] in _CORE, file == into.first_file
    copied, alone = False, 0
    for index, raw in items:
        try:
            item = _decode(raw.copy() if copied else raw)
        except msgspec.ValidationError:
            yield index, raw
            continue
        meta = item.metadata
        key = f"{meta.namespace}/{meta.name}"
        if not (
            meta.uid
            and item.spec.containers
            and meta.name
            and meta.namespace
            and len(key) <= NAME_MAX
            and key.count("/") == 1
            and key not in pods
            and (are_pods or item.kind is not None)
            and (are_core or item.api_version is not None)
        ):
            yield index, raw
            continue
        owner = meta.owner_references[0].uid if meta.owner_references else ""
        like = likes.get(owner)
        try:
            pod = None if like is None else _shared(item, like, shapes, own)
            if pod is not None:
                copied = False
            else:
                alone += 1
                own = own and alone < _ALONE + index // 4
                if own and not copied:
                    item = _decode(raw.copy())
                copied = own  # as those of the next may be kept, too
                pod = k8s.Pod(item.metadata, item.spec, item.status)
                pod_shapes(pod, shapes)
                if owner:
                    likes[owner] = pod
        except BadObjectError:
            yield index, raw
            continue
        pods[key] = pod
        if not is_first:
            origins[f"{_POD}/{key}"] = file


def _shared(item: _ListedPod, like: k8s.Pod, shapes: Shapes, own: bool) -> k8s.Pod | None:
    """The pod with the parts of another pod of its owner, which saves most of its memory and of the checks.

    None where their specs differ. Raises BadObjectError.
    """
    meta, spec, status, its = item.metadata, item.spec, item.status, like.metadata
    volumes = spec.volumes
    shared = replace(like.spec, node_name=spec.node_name, volumes=volumes)
    if shared != spec:
        return None
    # Neither the metadata nor the new spec is shared with anyone yet.
    if meta.labels == its.labels:
        force_setattr(meta, "labels", its.labels)
    else:
        shapes.strings(meta.labels, "metadata.labels")
        if own:
            force_setattr(meta, "labels", meta.labels.copy())
    if volumes is not k8s.EMPTY_LIST:
        begins(volumes, "[", "spec.volumes")
        if own:
            force_setattr(shared, "volumes", volumes.copy())
    if meta.owner_references == its.owner_references:
        force_setattr(meta, "owner_references", its.owner_references)
    if status == like.status:
        status = like.status
    elif own:
        status = k8s.decode(k8s.encode(status), k8s.PodStatus)
    return k8s.Pod(meta, shared, status)
