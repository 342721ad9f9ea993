"""Which nodes hold which images.

In: the nodes, and each node before and after a change. Out: `Images`. Kept by the nodes' names, so that nothing moves
when a node comes or goes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from underhost.agents.compiled.domains import IndexArray
from underhost.agents.site import terms
from underhost.agents.site.fault import faults_of
from underhost.schemas.kubernetes import Node

_LATEST = ":latest"


class Images(Mapping[str, tuple[int, IndexArray]]):
    """Image name to (size in bytes, intp nodes that have it, ascending); `index` gives positions by name.

    An image of several sizes has that of the first node by name, which is the order of the API server's list: upstream
    takes the order in which its cache heard of the nodes, and the order of a file must not matter.
    """

    def __init__(self, nodes: Mapping[str, Node], index: Mapping[str, int]) -> None:
        """Raises BadObjectError."""
        self.index = index
        self._sizes: defaultdict[str, dict[str, int]] = defaultdict(dict)
        known: dict[bytes, dict[str, int]] = {}  # nodes of one kind often hold the same
        for name, node in sorted(nodes.items()):
            raw = bytes(node.status.images)
            if raw not in known:
                known[raw] = _images(node)
            for image, size in known[raw].items():
                self._sizes[image][name] = size

    def change(self, name: str, before: Node | None, now: Node | None) -> set[str]:
        """A node came, changed or went; the images that some node has now and none had, or the other way round.

        Raises BadObjectError.
        """
        old, new = _images(before), _images(now)
        found = set[str]()
        for image in old.keys() - new.keys():
            del self._sizes[image][name]
            if not self._sizes[image]:
                del self._sizes[image]
                found.add(image)
        for image, size in new.items():
            if image not in self._sizes:
                found.add(image)
            self._sizes[image][name] = size
        return found

    def __getitem__(self, image: str) -> tuple[int, IndexArray]:
        if image not in self._sizes:
            raise KeyError(image)
        sizes = self._sizes[image]
        return sizes[min(sizes)], np.array(sorted(map(self.index.__getitem__, sizes)), np.intp)

    def __contains__(self, image: object) -> bool:
        return image in self._sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)


def _images(node: Node | None) -> dict[str, int]:
    """Sizes by name; a node that lists an image twice has the first."""
    found: dict[str, int] = {}
    if node is None:
        return found
    with faults_of(f"Node {node.metadata.name}"):
        listed = terms.images(bytes(node.status.images))
    for image in listed:
        for name in image.names or ():
            found.setdefault(name, image.size_bytes)
    return found


def normalised_image(name: str) -> str:
    """The image's name with its tag, `:latest` where it has none."""
    return name + _LATEST if name.rfind(":") <= name.rfind("/") else name
