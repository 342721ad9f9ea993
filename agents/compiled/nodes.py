"""The nodes of a snapshot as arrays: what the rules read of them.

In: `Node` objects. Out: `Nodes`, sorted by name, so that the first of equal totals is the smallest name. Topology keys
are left to `domains.py`, what runs on the nodes to `model.py` and `state.py`.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from underhost.agents.compiled.domains import BoolArray, IndexArray
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.requests import BASE_RESOURCES, PODS, allocatable
from underhost.schemas.kubernetes import Node

IntArray = npt.NDArray[np.int64]
_LATEST = ":latest"


class NodeParts:
    """Raw parts of nodes parsed so far, by their bytes."""

    def __init__(self) -> None:
        self.labels: dict[bytes, dict[str, str]] = {}
        self.amounts: dict[bytes, dict[str, int]] = {}
        self.taints: dict[bytes, tuple[terms.Taint, ...]] = {}
        self.images: dict[bytes, list[tuple[str, int]]] = {}

    def __len__(self) -> int:
        return len(self.labels) + len(self.amounts) + len(self.taints) + len(self.images)


class Nodes:
    """N nodes.

    Attributes:
        names: sorted bytewise. index: position by name. labels: one mapping per node (shared between equal ones).
        taints: the distinct lists of taints. taint_list: intp[N], which of them a node has.
        unschedulable: bool[N].
        resources: row of each resource name; the first three are cpu (thousandths), memory and ephemeral storage.
        allocatable: int64[R, N]. pods_allowed: int64[N].
        images: image name to (size in bytes, intp nodes that have it, ascending).
    """

    def __init__(self, nodes: Mapping[str, Node], parts: NodeParts | None = None) -> None:
        self._parts = parts or NodeParts()
        ordered = [nodes[name] for name in sorted(nodes)]
        self.names = [node.metadata.name for node in ordered]
        self.index = {name: at for at, name in enumerate(self.names)}
        self.unschedulable: BoolArray = np.array([node.spec.unschedulable for node in ordered], bool)
        self.resources = {name: row for row, name in enumerate(BASE_RESOURCES)}
        self._parse(ordered)
        self.images: Mapping[str, tuple[int, IndexArray]] = self.images_of(nodes)

    def __len__(self) -> int:
        return len(self.names)

    def row(self, resource: str) -> int:
        """The row of a resource; -1 where no node has it."""
        return self.resources.get(resource, -1)

    def _parse(self, ordered: list[Node]) -> None:
        labels, amounts, known = self._parts.labels, self._parts.amounts, self._parts.taints
        lists: dict[bytes, int] = {}
        self.labels: list[dict[str, str]] = []
        self.taints: list[tuple[terms.Taint, ...]] = []
        own_amounts, own_list = [], []
        for node in ordered:
            try:
                raw = bytes(node.metadata.labels)
                if raw not in labels:
                    labels[raw] = terms.labels(raw)
                self.labels.append(labels[raw])
                raw = bytes(node.status.allocatable)
                if raw not in amounts:
                    amounts[raw] = allocatable(raw)
                own_amounts.append(amounts[raw])
                raw = bytes(node.spec.taints)
                if raw not in lists:
                    if raw not in known:
                        known[raw] = terms.taints(raw)
                    lists[raw] = len(self.taints)
                    self.taints.append(known[raw])
                own_list.append(lists[raw])
            except Fault as fault:
                raise fault.within(f"Node {node.metadata.name}") from None
        self.taint_list: IndexArray = np.array(own_list, np.intp)
        for one in {id(one): one for one in own_amounts}.values():
            for name in sorted(one):
                if name != PODS:
                    self.resources.setdefault(name, len(self.resources))
        self.allocatable: IntArray = np.zeros((len(self.resources), len(ordered)), np.int64)
        self.pods_allowed: IntArray = np.zeros(len(ordered), np.int64)
        for at, one in enumerate(own_amounts):
            for name, amount in one.items():
                if name == PODS:
                    self.pods_allowed[at] = amount
                else:
                    self.allocatable[self.resources[name], at] = amount

    def images_of(self, nodes: Mapping[str, Node]) -> Mapping[str, tuple[int, IndexArray]]:
        """An image of several sizes has that of the first node that lists it.

        First by name, which is the order of the API server's list: upstream takes the order in which its cache heard of
        the nodes, and the order of a file must not matter.
        """
        parsed = self._parts.images
        sizes: dict[str, int] = {}
        holders: dict[str, set[int]] = {}
        for name, node in sorted(nodes.items()):
            raw = bytes(node.status.images)
            if raw not in parsed:
                try:
                    parsed[raw] = [(n, image.size_bytes) for image in terms.images(raw) for n in image.names or ()]
                except Fault as fault:
                    raise fault.within(f"Node {name}") from None
            at = self.index[node.metadata.name]
            for image_name, size in parsed[raw]:
                sizes.setdefault(image_name, size)
                holders.setdefault(image_name, set()).add(at)
        return {name: (sizes[name], np.array(sorted(at), np.intp)) for name, at in holders.items()}


def normalised_image(name: str) -> str:
    """The image's name with its tag, `:latest` where it has none."""
    return name + _LATEST if name.rfind(":") <= name.rfind("/") else name
