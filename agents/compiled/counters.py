"""Counters: how many pods of given classes are in each domain of a topology key, kept while pods come and go.

In: a model's running pods. Out: `Counter`s, built when a rule first needs one and shared by all rules that ask for the
same (key, classes, nodes). A rule never counts pods itself.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from underhost.agents.compiled.domains import BoolArray, Domains, IndexArray, Where
from underhost.agents.compiled.nodes import IntArray

_FEW = 64  # nodes up to which looking each up is quicker than spreading the counts over all nodes


class Weights:
    """What one pod counts, by class; made by `State.weights`, so that equal ones are one object."""

    __slots__ = ("by_class",)

    def __init__(self, by_class: Mapping[int, int]) -> None:
        self.by_class = by_class


class Counter:
    """Weighted pods per domain.

    Where every node is its own domain (the hostname), only the nodes with pods are kept, in `sparse`; else `dense`.

    Attributes:
        domains: of the key. weight: what one pod counts, by class id; other classes count nothing.
        mask: bool[N] or None, the nodes whose pods count.
        dense: int64[D], or None. sparse: count by node, without zeros, or None.
    """

    __slots__ = ("dense", "domains", "mask", "sparse", "weight")

    def __init__(self, domains: Domains, weights: Weights, mask: BoolArray | None) -> None:
        self.domains, self.weight, self.mask = domains, weights.by_class, mask
        self.sparse: dict[int, int] | None = {} if domains.unique else None
        self.dense: IntArray | None = None if domains.unique else np.zeros(domains.size, np.int64)

    def add(self, cls: int, node: int, sign: int = 1) -> None:
        """Count one pod of a class on a node (or, with sign -1, count it no more)."""
        code = self.domains.code_list[node]
        if code < 0 or (self.mask is not None and not self.mask[node]):
            return
        weight = sign * self.weight[cls]
        if self.dense is not None:
            self.dense[code] += weight
        elif self.sparse is not None:
            count = self.sparse.get(code, 0) + weight
            if count:
                self.sparse[code] = count
            else:
                del self.sparse[code]

    def fill(self, nodes: IndexArray, weights: IntArray | int) -> None:
        """Count many pods at once: intp[k] nodes, and int64[k] weights or one for all."""
        if self.mask is not None:
            keep = self.mask[nodes]
            nodes = nodes[keep]
            weights = weights if isinstance(weights, int) else weights[keep]
        codes = self.domains.codes[nodes]
        if self.domains.missing:
            keep = codes >= 0
            codes = codes[keep]
            weights = weights if isinstance(weights, int) else weights[keep]
        if self.dense is not None:
            np.add.at(self.dense, codes, weights)
        elif self.sparse is not None:
            each: Iterable[int] = [weights] * len(codes) if isinstance(weights, int) else weights.tolist()
            for code, weight in zip(codes.tolist(), each, strict=True):
                self.sparse[code] = self.sparse.get(code, 0) + weight
            for code in [code for code, count in self.sparse.items() if not count]:
                del self.sparse[code]

    def copy(self) -> "Counter":
        """The same counts, to go its own way."""
        found = Counter.__new__(Counter)
        found.domains, found.weight, found.mask = self.domains, self.weight, self.mask
        found.sparse = None if self.sparse is None else dict(self.sparse)
        found.dense = None if self.dense is None else self.dense.copy()
        return found

    def values(self) -> IntArray:
        """int64[D], the count of every domain; not to be changed by the caller."""
        if self.dense is not None:
            return self.dense
        dense = np.zeros(self.domains.size, np.int64)
        if self.sparse:
            size = len(self.sparse)
            dense[np.fromiter(self.sparse, np.intp, size)] = np.fromiter(self.sparse.values(), np.int64, size)
        return dense

    def at(self, nodes: Where) -> IntArray:
        """int64[k], the count in the domain of each node; 0 where the node lacks the key."""
        counts: IntArray
        if self.sparse is not None:  # a node's domain is itself: those that lack the key hold nothing
            if isinstance(nodes, slice) or len(nodes) > _FEW:
                return self.values()[nodes]
            count_of = self.sparse.get
            counts = np.array([count_of(node, 0) for node in nodes.tolist()], np.int64)
            return counts
        codes = self.domains.codes[nodes]
        counts = self.values()[codes]
        if self.domains.missing:
            counts[codes < 0] = 0
        return counts

    def at_node(self, node: int) -> int:
        """What `at` says of one node: one number is looked up quicker than an array of one."""
        code = self.domains.code_list[node]
        if code < 0:
            return 0
        return (self.sparse or {}).get(code, 0) if self.dense is None else int(self.dense[code])

    def share(self, cls: int, nodes: Where) -> IntArray:
        """int64[k], what one pod of the class on the node itself adds to the node's count."""
        weight = self.weight.get(cls, 0)
        counted = self.domains.codes[nodes] >= 0
        if self.mask is not None:
            counted &= self.mask[nodes]
        return counted * np.int64(weight)

    def total(self) -> int:
        """The count over all domains."""
        if self.dense is not None:
            return int(self.dense.sum())
        return sum((self.sparse or {}).values())

    def any(self) -> bool:
        """Whether any domain's count is not zero."""
        return bool(self.sparse if self.dense is None else np.count_nonzero(self.dense))

    def exceeds(self, floor: int) -> bool:
        """Whether any domain's count is above `floor`, which is 0 or more."""
        if self.dense is None:
            return max((self.sparse or {}).values(), default=0) > floor
        return bool(len(self.dense)) and int(self.dense.max()) > floor
