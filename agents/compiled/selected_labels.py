"""Which labels of pods matter: only those that some selector of the snapshot names.

In: a snapshot. Out: a pod's labels cut down to the keys that they name, as bytes. The cut may be too wide; the
classifier cuts exactly.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import msgspec
from msgspec import Raw

from underhost.agents.compiled.classes import Parser, affinity_keys, spread_keys
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.snapshot import Snapshot

T = TypeVar("T")
_EMPTY = b"{}"
_FEW = 32
"""Keys up to which labels are cut by a struct that has them as its fields."""
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+").fullmatch
"""A key as the API server lets it be; a struct's field cannot have every name."""
_decode, _encode = msgspec.json.Decoder(dict[str, str] | None).decode, msgspec.json.Encoder().encode


class SelectedLabels:
    """The keys that selectors name, and labels cut down to them."""

    def __init__(self, snapshot: Snapshot, parser: Parser) -> None:
        """`parser` keeps what it parses here, for whoever asks it next."""
        keys = set[str]()
        for affinity, _ in _parsed(snapshot.look.affinities, parser.affinity.of):
            keys |= affinity_keys(affinity)
        for constraints, _ in _parsed(snapshot.look.spreads, parser.spread.of):
            keys |= spread_keys(constraints)
        services = {bytes(service.spec.selector) for service in snapshot.services.values()}
        for labels in _parsed(services, terms.labels):
            keys.update(labels)
        selectors = {bytes(workload.spec.selector) for workload in snapshot.workloads.values()}
        for labels in _parsed(selectors, terms.labels):  # a ReplicationController's
            keys.update(labels)
        for requirements in _parsed(selectors, lambda raw: terms.label_selector(raw, "") or ()):
            keys.update(key for key, _, _ in requirements)
        self.keys = frozenset(keys)
        self._cut, self._checked = _cutter(self.keys), snapshot.checked
        self._last: tuple[object, bytes] = None, _EMPTY

    def of(self, raw: bytes | Raw) -> bytes:
        """The labels that count, in the order of their keys; labels that are wrong as they are."""
        try:
            if self._cut is None:
                return self._picked(_decode(raw) or {})
            if not self._checked:
                _decode(raw)  # for what is wrong in those that do not count
            cut = self._cut(raw)
        except (msgspec.DecodeError, RecursionError):
            return bytes(raw)
        if cut != self._last[0]:  # replicas stand beside each other
            self._last = cut, _EMPTY if cut is None else _encode(cut)
        return self._last[1]

    def _picked(self, labels: dict[str, str]) -> bytes:
        found = {key: labels[key] for key in labels if key in self.keys}
        if len(found) > 1:
            found = dict(sorted(found.items()))
        return _encode(found) if found else _EMPTY


def _parsed(raws: Iterable[bytes], parse: Callable[[bytes], T]) -> Iterable[T]:
    """Each part that can be read. One that is wrong names no key: the compiler refuses it, by its name."""
    for data in raws:
        with suppress(Fault):
            yield parse(data)


def _cutter(keys: frozenset[str]) -> Callable[[bytes | Raw], object] | None:
    """Reads labels without making anything of those that do not count; None for too many keys, or for odd ones."""
    if len(keys) > _FEW or not all(map(_PLAIN, keys)):
        return None
    named = {f"f{at}": key for at, key in enumerate(sorted(keys))}
    fields = [(name, str | msgspec.UnsetType, msgspec.UNSET) for name in named]
    return msgspec.json.Decoder(msgspec.defstruct("Cut", fields, rename=named, gc=False) | None).decode
