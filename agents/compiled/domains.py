"""Topology domains: which value of a topology key each node has.

In: the nodes' labels and, for the host keys, the live ESXi hosts. Out: `Domains` per key, made on first use.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Where = IndexArray | slice  # some nodes: their positions, or slice(None) for all


class Domains:
    """The nodes' values of one key.

    Attributes:
        codes: intp[N], the domain of each node, -1 where the key is missing.
        size: number of codes (D); every code is in [0, size).
        missing: whether some node lacks the key. present: bool[N], the nodes that have it.
        unique: no two nodes share a domain; then the code of a node is its own index.
        values: the key's value by code ("" is a value like any other); for a host key the host's name.
        ids: the node's label, or the host's id, by code. code_of: code by this.
        code_list: `codes` as a list, for one node at a time.
    """

    __slots__ = (
        "_grouped",
        "code_list",
        "code_of",
        "codes",
        "ids",
        "key",
        "missing",
        "present",
        "size",
        "unique",
        "values",
    )

    def __init__(self, key: str, node_values: Sequence[str | None], names: Mapping[str, str] | None = None) -> None:
        different = dict.fromkeys(node_values)  # in the order of their first nodes
        without = node_values.count(None) if None in different else 0
        different.pop(None, None)
        self.key = key
        self.unique = len(different) == len(node_values) - without
        if self.unique:
            values, codes = [value or "" for value in node_values], list(range(len(node_values)))
            known = dict(zip(values, codes, strict=True))
            if without:
                known = {value: node for node, value in enumerate(node_values) if value is not None}
                codes = [-1 if value is None else node for node, value in enumerate(node_values)]
        else:
            values = [value for value in different if value is not None]
            known = dict(zip(values, range(len(values)), strict=True))
            codes = [-1 if value is None else known[value] for value in node_values]
        self.codes: IndexArray = np.array(codes, np.intp)
        self.code_list = codes
        self.code_of = known
        self.size = len(values)
        self.present: BoolArray = self.codes >= 0
        self.missing = not bool(self.present.all())
        self.ids = values
        self.values = values if names is None else [names.get(value, value) for value in values]
        self._grouped: tuple[IndexArray, IndexArray] | None = None

    def neighbours(self, nodes: IndexArray) -> tuple[IndexArray, IndexArray]:
        """Every pair (position in `nodes`, node of the same domain); nodes without the key are in no pair."""
        if self._grouped is None:
            order: IndexArray = np.argsort(self.codes, kind="stable")
            self._grouped = order, np.searchsorted(self.codes[order], np.arange(self.size + 1))
        order, starts = self._grouped
        given: IndexArray = np.flatnonzero(self.codes[nodes] >= 0)
        codes = self.codes[nodes[given]]
        sizes = starts[codes + 1] - starts[codes]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return np.repeat(given, sizes), order[np.repeat(starts[codes], sizes) + within]


class Topology:
    """Domains by topology key, made on first use.

    `hosts` gives each node's ESXi host (None: unknown), or is None where the site has no hosts: then a host key is a
    label like any other. `host_names` gives a host's name for people. `label_values` are the nodes' labels by key, as
    far as they are known: kept, they need not be read anew from some thousand nodes when one comes or goes.
    """

    def __init__(
        self,
        labels: Sequence[Mapping[str, str]],
        host_keys: Sequence[str],
        hosts: Sequence[str | None] | None,
        host_names: Mapping[str, str],
        label_values: dict[str, list[str | None]] | None,
    ) -> None:
        self._labels, self._host_keys = labels, frozenset(host_keys)
        self._by_key: dict[str, Domains] = {}
        self._by_label: dict[str, Domains] = {}
        self.label_values: dict[str, list[str | None]] = label_values or {}
        self._filled: dict[str, Domains] = {}
        self._within_host: dict[str, Domains] = {}
        self.hosts: Domains | None = None if hosts is None else Domains("host", hosts, host_names)

    @cached_property
    def each_node(self) -> Domains:
        """Every node as a domain by itself."""
        return Domains("", [str(node) for node in range(len(self._labels))])

    def forget(
        self, keys: Iterable[str], hosts: Sequence[str | None] | None, host_names: Mapping[str, str] | None
    ) -> None:
        """The labels under these keys have changed; with `hosts` not None the hosts have, too.

        Only a site that is followed changes its topology; counters over the old domains are the caller's to drop.
        """
        if hosts is not None:
            self.hosts = Domains("host", hosts, host_names)
            self._within_host.clear()
            keys = (*keys, *self._host_keys)
        for key in keys:
            self.label_values.pop(key, None)
            for known in (self._by_key, self._by_label, self._filled, self._within_host):
                known.pop(key, None)

    def is_host_key(self, key: str) -> bool:
        """Whether terms on this key are judged by the live host."""
        return self.hosts is not None and key in self._host_keys

    def of(self, key: str) -> Domains:
        """The domains that a term with this topologyKey means."""
        domains = self._by_key.get(key)
        if domains is None:
            domains = self.hosts if self.hosts is not None and key in self._host_keys else self.labels(key)
            self._by_key[key] = domains
        return domains

    def labels(self, key: str) -> Domains:
        """The nodes' labels under this key, whatever the live host is (node affinity reads these)."""
        domains = self._by_label.get(key)
        if domains is None:
            values = self.label_values.get(key)
            if values is None:
                values = self.label_values[key] = [labels.get(key) for labels in self._labels]
            domains = self._by_label[key] = Domains(key, values)
        return domains

    def filled(self, key: str) -> Domains:
        """As `labels`, but a node without the key is in the domain of the empty value."""
        domains = self._filled.get(key)
        if domains is None:
            domains = self._filled[key] = Domains(key, [labels.get(key, "") for labels in self._labels])
        return domains

    def within_host(self, key: str) -> Domains:
        """Domains of the key inside each live host: nodes of one host with one value. Only where hosts are known."""
        domains = self._within_host.get(key)
        if domains is None:
            of_key, hosts = self.of(key), self.hosts
            assert hosts is not None
            pairs = zip(hosts.code_list, of_key.code_list, strict=True)
            values = [f"{host}/{code}" if host >= 0 and code >= 0 else None for host, code in pairs]
            domains = self._within_host[key] = Domains(key, values)
        return domains
