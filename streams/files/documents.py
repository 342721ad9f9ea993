"""JSON documents in, their objects one by one out: lists of every kind, and refusals of what is no list or object.

A list is cut into its objects in one pass, and each is decoded with only the parts that the rules read; a long list
comes in pieces (`pieces.py`). Pods take the quick way (`pods.py`); other objects, and pods that do not fit there, the
general one (`collect.py`). An object that does not fit there either is decoded once more without its nulls, so that the
fault names it and the others are read.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import BadObjectError, type_of
from underhost.schemas.manifests import NULL
from underhost.streams.files.collect import Collected, Item, without_nulls
from underhost.streams.files.faults import fault_of
from underhost.streams.files.go_names import api_object
from underhost.streams.files.kinds import GROUPS, is_read
from underhost.streams.files.pieces import LongList, list_in
from underhost.streams.files.places import kind_addressed
from underhost.streams.files.pods import ListedPods
from underhost.streams.files.split import head, is_dense, items_of

TABLE = "is a Table, what the API server answers for printing, without the objects: use `kubectl get … -o json`"
GO_NAMES = (
    "is in the old form of `kubectl cluster-info dump` (Items, Go field names) and does not say of what it is a list: "
    "use `kubectl get nodes,pods,… -A -o json`"
)
STATUS = "Status"
_REFUSED = {"Table": TABLE, STATUS: "is a Status, what the API server answers instead of objects"}
INVENTORY, FOREIGN, UNKNOWN = "Inventory", "", "?"
HELD = 64 << 20
"""Bytes of a text up to which what was read of it holds the whole: copies of its parts would take as much."""
_LOOKED_AT = 1000
"""Items of a list without a kind: where none of so many says its kind, it is no list of objects."""
MOST_OF_AN_OBJECT, MOST_PARTS = 16 << 20, 250_000
"""Bytes and commas of one object: an API server takes 3 MiB, and what is read of millions of parts takes far more."""
_SURELY_SMALL = 500_000
Text = bytes | memoryview | Raw


class _ObjectOrList(Item, rename="camel", gc=False):
    """An object, or a list of objects."""

    items: list[Raw] | UnsetType | None = UNSET
    go_items: Raw | UnsetType = msgspec.field(default=UNSET, name="Items")
    message: Raw = NULL


class _RawList(Struct, rename="camel"):
    """A list in which something has a wrong shape, or of which nothing is to be held."""

    kind: str = ""
    api_version: str = ""
    items: Raw | UnsetType = UNSET


class _Link(Struct, rename="camel"):
    self_link: str = ""


class _Linked(_Link, rename="camel"):
    metadata: _Link | None = None


class _OnlyKind(Struct):
    kind: str = ""


class _OnlyMetadata(Struct):
    metadata: k8s.Metadata | None = None


_document = msgspec.json.Decoder(_ObjectOrList)
_raw_list = msgspec.json.Decoder(_RawList)
_item = msgspec.json.Decoder(Item)
_kind = msgspec.json.Decoder(_OnlyKind)
_linked = msgspec.json.Decoder(_Linked)
_kept = msgspec.json.Decoder(_OnlyMetadata)


class FilePlace(NamedTuple):
    """Where a document stands. `told`: the kind of objects that a bundle keeps there, "" if it tells none.

    `lenient`: it was found in a folder or an archive, where much is no Kubernetes object; else a person named it.
    `before`: how many items of its list have been read.
    """

    file: str
    told: str = ""
    lenient: bool = False
    before: int = 0


def read_document(data: Text, place: FilePlace, into: Collected) -> str:
    """Read one JSON document; returns its kind. Faults are added to those of `into`.

    An Inventory, and a document that is no Kubernetes object (kind FOREIGN), are left to the caller. Raises
    msgspec.DecodeError where the text is not one JSON document, and RecursionError.
    """
    own = len(memoryview(data)) > HELD
    with _paused_gc():
        dense = _list_of(Raw(bytes(data))) if is_dense(data) else None
        if dense is not None:
            return _read_items(*dense, place, into, own)
        try:
            document = _document.decode(data)
        except msgspec.ValidationError as error:
            return _read_loosely(data, place, into, error)
        kind, metadata = document.kind, document.metadata
        if document.items is not UNSET and _may_list(kind):
            return _read_items(document.items or (), kind, document.api_version, place, into, own)
        if not kind and document.go_items is not UNSET:
            return _read_go_list(document.go_items, data, place, into)
        if kind in _REFUSED:
            return _refuse(document, place, into)
        if kind == INVENTORY or (not kind and metadata is None):
            return kind
        if _is_huge(data):
            into.faults.add(_huge(data, "", place.file))
            return kind or UNKNOWN
        told = place.told if not kind and metadata is not None and metadata.name and metadata.uid else ""
        if not kind and not told and place.lenient:
            return FOREIGN  # a patch, or an object whose place tells nothing
        _read(document, data, place.file, into, (told, ""), "")
        return kind or UNKNOWN


def _refuse(document: _ObjectOrList, place: FilePlace, into: Collected) -> str:
    """What stands for objects and holds none, which must not pass for an empty cluster."""
    what = _REFUSED[document.kind]
    if document.kind == STATUS:
        said = msgspec.json.decode(document.message)
        what = f"{what}: {said[:200]!r}" if isinstance(said, str) and said else what
    if place.lenient and document.kind == STATUS:
        into.left_out.append(f"{place.file}: {what}")
    else:
        into.faults.add(BadObjectError(what, file=place.file))
    return document.kind


def _read_go_list(items: Raw, data: Text, place: FilePlace, into: Collected) -> str:
    """A list with the field names of Go. Its own address tells what is in it, else the place of its file."""
    begin = memoryview(items)[0]
    if begin not in b"[n":
        return FOREIGN
    raws = items_of(items) if begin == ord("[") else iter(())
    address = _address(data)
    kind = kind_addressed(address) or ("" if address else place.told)
    if kind:
        as_api = (raw if _is_huge(raw) else api_object(raw) for raw in raws)
        return _read_items(as_api, f"{kind}List", "", place, into, own=False)
    count = sum(1 for _ in raws)
    if address:
        into.ignored[address.rpartition("/")[2]] += count
    elif count and place.lenient:
        into.left_out.append(f"{place.file}: {GO_NAMES}")
    elif count:
        into.faults.add(BadObjectError(GO_NAMES, file=place.file))
    return "List"


def _address(data: Text) -> str:
    try:
        link = _linked.decode(data)
    except msgspec.ValidationError:
        return ""
    return link.self_link or (link.metadata.self_link if link.metadata else "")


def _read_items(raws: Iterable[Raw], kind: str, api_version: str, place: FilePlace, into: Collected, own: bool) -> str:
    """Read the items of a list; of one without a kind only where an item, or the place, tells of which kind it is.

    `own`: what is kept of them is not to hold the text of the whole list in memory.
    """
    implied = _implied(kind, api_version)
    if not kind:
        implied = (place.told, "")
        some = list(islice(raws := iter(raws), _LOOKED_AT))
        if some and not any(map(_has_kind, some)) and not (place.told and all(map(_is_kept, some))):
            return FOREIGN
        raws = chain(some, raws)
    within = _within_bounds(raws, place.file, into, place.before)
    left = ListedPods(place.file, implied, into, own).of_items(within)
    _read_left(left, place._replace(before=0), into, implied, own)
    return kind or "List"


def long_list(file: BinaryIO, size: int) -> LongList | None:
    """The list in a file of so many bytes, where it can be read piece by piece."""
    listed = list_in(file, size)
    return listed if listed is not None and _is_list(listed.kind) else None


def read_long_list(listed: LongList, place: FilePlace, into: Collected, *, compact: bool) -> int | None:
    """Read a list piece by piece; returns how many items that could be done with, None for all of them.

    Faults are added to those of `into`. `compact` takes the blanks out of the parts that stay raw JSON.
    """
    implied = _implied(listed.kind, listed.api_version)
    pods = ListedPods(place.file, implied, into, own=True)

    def take(array: bytes) -> bool:
        try:
            if not array.isascii():
                array.decode()  # else only what is read of it would be looked at
            array = msgspec.json.format(array, indent=-1) if compact else array
            if len(array) < _SURELY_SMALL:
                left = pods.of_array(array)
            else:
                raws = msgspec.json.decode(array, type=list[Raw])
                left = pods.of_items(_within_bounds(raws, place.file, into, pods.read))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return False
        _read_left(left, place, into, implied, own=True)
        return True

    with _paused_gc():
        return None if listed.hand_on(take) else pods.read


def _read_left(
    left: Iterator[tuple[int, Raw]], place: FilePlace, into: Collected, implied: tuple[str, str], own: bool
) -> None:
    """Read the items that are left when the ordinary pods are: other objects, and what has a fault."""
    try:
        for index, raw in left:
            if into.faults.enough:
                break
            _read_one(raw.copy() if own else raw, place, into, implied, f"items[{index}]")
    except RecursionError:  # what can be decoded as a part of the list may be too deep to be looked at again
        into.faults.add(BadObjectError("nested too deeply", file=place.file))


def _read_one(raw: Raw, place: FilePlace, into: Collected, implied: tuple[str, str], at: str) -> None:
    try:
        item = _item.decode(raw)
    except msgspec.ValidationError:
        _read_again(raw, place.file, into, implied, at)
        return
    if _is_list(item.kind):
        read_document(raw, place, into)
    else:
        _read(item, raw, place.file, into, implied, at)


def _within_bounds(raws: Iterable[Raw], file: str, into: Collected, first: int) -> Iterator[tuple[int, Raw]]:
    """The items, each with its position from `first` on; one that is huge is a fault."""
    for index, raw in enumerate(raws, first):
        if len(raw) >= _SURELY_SMALL and _is_huge(raw):
            into.faults.add(_huge(raw, f"items[{index}]", file))
        else:
            yield index, raw


def _is_huge(data: Text) -> bool:
    """Whether this one object is more than any API server takes, unless it is a list of objects."""
    size = memoryview(data).nbytes
    if size < _SURELY_SMALL or (size <= MOST_OF_AN_OBJECT and bytes(data).count(b",") <= MOST_PARTS):
        return False
    try:
        return not _is_list(_kind.decode(data).kind)
    except msgspec.ValidationError:
        return True


def _huge(data: Text, at: str, file: str) -> BadObjectError:
    try:
        metadata = _kept.decode(data).metadata
    except msgspec.ValidationError:
        metadata = None
    name = f"{metadata.namespace}/{metadata.name}" if metadata else ""
    most = f"{MOST_OF_AN_OBJECT >> 20} MiB or {MOST_PARTS:,} parts"
    return BadObjectError(
        f"has more than {most}: no API server takes such an object", object_=f"{at} {name}".strip(), file=file
    )


def _has_kind(raw: Raw) -> bool:
    try:
        return bool(_kind.decode(raw).kind)
    except msgspec.ValidationError:
        return False


def _is_kept(raw: Raw) -> bool:
    """Whether it is an object of a cluster, though it may lack its kind."""
    try:
        metadata = _kept.decode(raw).metadata
    except msgspec.ValidationError:
        return False
    return metadata is not None and bool(metadata.name and metadata.uid)


def _read(item: Item, data: Text, file: str, into: Collected, implied: tuple[str, str], at: str) -> None:
    try:
        into.add(item, file, implied, at)
    except BadObjectError:
        _read_again(Raw(bytes(data)), file, into, implied, at)


def _read_loosely(data: Text, place: FilePlace, into: Collected, error: msgspec.ValidationError) -> str:
    """A document in which something has a wrong shape: read its items one by one."""
    text = Raw(bytes(data))
    listed = _list_of(text)
    if listed is not None:
        return _read_items(*listed, place, into, own=False)
    if _is_huge(text):
        into.faults.add(_huge(text, "", place.file))
        return UNKNOWN
    try:
        kind = _kind.decode(text).kind
    except msgspec.ValidationError:
        kind = UNKNOWN
    if place.lenient and kind in (FOREIGN, UNKNOWN):
        return FOREIGN
    if kind == UNKNOWN or _is_list(kind):
        into.faults.add(fault_of(error, file=place.file, data=text))
    else:
        _read_again(text, place.file, into, ("", ""), "")
    return kind or UNKNOWN


def _list_of(text: Raw) -> tuple[Iterable[Raw], str, str] | None:
    """The items, kind and apiVersion of a list, None where the text is none."""
    if head(text)[:1] == b"[":
        return items_of(text), "", ""
    try:
        listed = _raw_list.decode(text)
    except msgspec.ValidationError:
        return None
    if isinstance(listed.items, UnsetType) or head(listed.items)[:1] != b"[" or not _may_list(listed.kind):
        return None
    return items_of(listed.items), listed.kind, listed.api_version


def _read_again(raw: Raw, file: str, into: Collected, implied: tuple[str, str], at: str) -> None:
    """Read one object without its nulls, which mean absent to the API; add its fault with the object's name."""
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        into.faults.add(BadObjectError(f"expected an object, got {type_of(value)}", object_=at, file=file))
        return
    kind, api_version = value.get("kind") or implied[0], value.get("apiVersion") or implied[1]
    if isinstance(kind, str) and isinstance(api_version, str) and kind:
        if _is_list(kind) and isinstance(value.get("items"), list):
            read_document(raw, FilePlace(file), into)
            return
        if not is_read(kind, api_version):
            into.ignored[kind] += 1
            return
    try:
        item = _item.decode(data := msgspec.json.encode(without_nulls(value)))
    except msgspec.ValidationError as error:
        into.faults.add(fault_of(error, object_=_label(value, kind, at), file=file, data=data))
        return
    try:
        into.add(item, file, implied, at)
    except BadObjectError as fault:
        into.faults.add(fault)


def _label(value: dict[str, Any], kind: object, place: str) -> str:
    """`Kind/namespace/name`, as far as the object has them."""
    metadata = value.get("metadata")
    names = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    parts = [part[:253] for part in (kind, *names) if isinstance(part, str) and part]
    return "/".join(parts) if len(parts) > 1 else " ".join([*parts, place]).strip()


def _is_list(kind: str) -> bool:
    return kind.endswith("List") and (kind == "List" or kind[:-4] in GROUPS)


def _may_list(kind: str) -> bool:
    return not kind or _is_list(kind)


def _implied(kind: str, api_version: str) -> tuple[str, str]:
    """Kind and apiVersion of items without their own: a PodList holds Pods."""
    return (kind[:-4], api_version) if _is_list(kind) and kind != "List" else ("", "")


@contextmanager
def _paused_gc() -> Iterator[None]:
    """No garbage collection while many objects are created: none is garbage, and each run would visit all of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
