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
from underhost.schemas.pods.sharing import alone, let_go_of_bytes
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


_item = msgspec.json.Decoder(_ListedPod)
_items = msgspec.json.Decoder(list[_ListedPod])
_raws = msgspec.json.Decoder(list[Raw])


class ListedPods:
    """Reads the ordinary pods of one list; the other items are given back, each with its position.

    `implied`: kind and apiVersion of the list. `own`: the raw parts that are kept are not to hold the text of the whole
    list in memory. Where most pods share nothing they do all the same: copies would take as much.

    Attributes:
        read: how many items have been looked at.
    """

    def __init__(self, file: str, implied: tuple[str, str], into: Collected, own: bool) -> None:
        self._file, self._implied, self._into, self._own = file, implied, into, own
        self.read = self._alone = 0

    def of_items(self, items: Iterable[tuple[int, Raw]]) -> Iterator[tuple[int, Raw]]:
        """Read the items of a list, each with its position, as they come."""
        item = 0, Raw()

        def fitting() -> Iterator[_ListedPod | None]:
            nonlocal item
            for item in items:
                self.read += 1
                try:
                    yield _item.decode(item[1])
                except msgspec.ValidationError:
                    yield None

        return (item for _ in self._put(fitting(), self.read))

    def of_array(self, text: bytes) -> Iterator[tuple[int, Raw]]:
        """Read the next items of the list, an array of small ones. Raises msgspec.DecodeError, and then at once."""
        first = self.read
        try:
            pods = _items.decode(text)
        except msgspec.ValidationError:
            return self.of_items(enumerate(_raws.decode(text), first))
        self.read += len(pods)
        return self._of_pods(pods, text, first)

    def _of_pods(self, pods: list[_ListedPod], text: bytes, first: int) -> Iterator[tuple[int, Raw]]:
        raws: list[Raw] = []
        for at in self._put(pods, first):
            raws = raws or _raws.decode(text)
            yield at, raws[at - first]

    def _put(self, items: Iterable[_ListedPod | None], first: int) -> Iterator[int]:
        """Put the pods into their table; of those that cannot be, and of no pods, the positions are given."""
        into, is_first, own = self._into, self._file == self._into.first_file, self._own
        pods, likes, shapes, origins = into.objects.pods, into.likes, into.shapes, into.objects.origins
        are_pods, are_core = self._implied[0] == _POD, self._implied[1] in _CORE
        for at, item in enumerate(items, first):
            if item is None:
                yield at
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
                yield at
                continue
            owner = meta.owner_references[0].uid if meta.owner_references else ""
            like = likes.get(owner)
            try:
                pod = None if like is None else _shared(item, like, shapes, own)
                if pod is None:
                    pod = k8s.Pod(item.metadata, item.spec, item.status)
                    pod_shapes(pod, shapes)
                    self._alone += 1
                    own = self._own = own and self._alone < _ALONE + at // 4
                    if own:
                        let_go_of_bytes(pod)
                    if owner:
                        likes[owner] = pod
            except BadObjectError:
                yield at
                continue
            pods[key] = pod
            if not is_first:
                origins[f"{_POD}/{key}"] = self._file


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
        status = alone(status)
    return k8s.Pod(meta, shared, status)
