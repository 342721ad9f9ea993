"""JSON documents in, their objects one by one out: lists of every kind, and refusals of what is no list or object.

A list is cut into its objects in one pass, and each is decoded with only the parts that the rules read. Pods take the
quick way (`pods.py`); other objects, and pods that do not fit there, the general one (`collect.py`). An object that
does not fit there either is decoded once more without its nulls, so that the fault names it and the others are read.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from underhost.schemas.errors import BadObjectError
from underhost.streams.files.collect import Collected, Item
from underhost.streams.files.faults import fault_of
from underhost.streams.files.kinds import GROUPS, is_read
from underhost.streams.files.pods import read_pod

TABLE = "is a Table, what the API server answers for printing, without the objects: use `kubectl get … -o json`"
GO_NAMES = (
    "is in the old form of `kubectl cluster-info dump` (Items, Go field names), which cannot be read: "
    "use `kubectl get nodes,pods,… -A -o json`"
)
INVENTORY, FOREIGN, UNKNOWN = "Inventory", "", "?"
Text = bytes | memoryview | Raw


class _ObjectOrList(Item, rename="camel", gc=False):
    """An object, or a list of objects."""

    items: list[Raw] | UnsetType | None = UNSET
    go_items: Raw | UnsetType = msgspec.field(default=UNSET, name="Items")


class _RawList(Struct, rename="camel"):
    """A list in which something has a wrong shape."""

    kind: str = ""
    api_version: str = ""
    items: list[Raw] | None = None


_document = msgspec.json.Decoder(_ObjectOrList)
_raw_list = msgspec.json.Decoder(_RawList)
_array = msgspec.json.Decoder(list[Raw])
_item = msgspec.json.Decoder(Item)


def read_document(data: Text, file: str, into: Collected) -> tuple[str, list[BadObjectError]]:
    """Read one JSON document: its kind, and the faults of its objects in order.

    An Inventory, and a document that is no Kubernetes object (kind FOREIGN), are left to the caller. Raises
    msgspec.DecodeError where the text is not one JSON document, and RecursionError.
    """
    with _paused_gc():
        try:
            document = _document.decode(data)
        except msgspec.ValidationError as error:
            return _read_loosely(data, file, into, error)
        kind = document.kind
        if document.items is not UNSET and (_is_list(kind) or not kind):
            return kind or "List", _read_items(document, file, into)
        if kind == "Table":
            return kind, [BadObjectError(TABLE, file=file)]
        if document.go_items is not UNSET:
            return "List", [BadObjectError(GO_NAMES, file=file)]
        if kind == INVENTORY or (not kind and document.metadata is None):
            return kind, []
        return kind or UNKNOWN, _read(document, data, file, into, ("", ""), "")


def _read_items(document: _ObjectOrList, file: str, into: Collected) -> list[BadObjectError]:
    faults: list[BadObjectError] = []
    implied = _implied(document.kind, document.api_version)
    for index, raw in enumerate(document.items or ()):
        if read_pod(raw, file, implied, into):
            continue
        place = f"items[{index}]"
        try:
            item = _item.decode(raw)
        except msgspec.ValidationError:
            faults += _read_again(raw, file, into, implied, place)
            continue
        if _is_list(item.kind):
            faults += read_document(raw, file, into)[1]
        else:
            faults += _read(item, raw, file, into, implied, place)
    return faults


def _read(
    item: Item, data: Text, file: str, into: Collected, implied: tuple[str, str], place: str
) -> list[BadObjectError]:
    try:
        into.add(item, file, implied, place)
    except BadObjectError:
        return _read_again(Raw(bytes(data)), file, into, implied, place)
    return []


def _read_loosely(
    data: Text, file: str, into: Collected, error: msgspec.ValidationError
) -> tuple[str, list[BadObjectError]]:
    """A document in which something has a wrong shape: read its items one by one."""
    try:
        faults: list[BadObjectError] = []
        try:
            listed = _raw_list.decode(data)
            raws, implied = listed.items, _implied(listed.kind, listed.api_version)
        except msgspec.ValidationError:
            raws, implied = _array.decode(data), ("", "")
    except msgspec.ValidationError:
        return UNKNOWN, [fault_of(error, file=file)]
    if raws is None:
        return listed.kind, _read_again(Raw(bytes(data)), file, into, ("", ""), "")
    for index, raw in enumerate(raws):
        faults += _read_again(raw, file, into, implied, f"items[{index}]")
    return "List", faults


def _read_again(raw: Raw, file: str, into: Collected, implied: tuple[str, str], place: str) -> list[BadObjectError]:
    """Read one object without its nulls, which mean absent to the API, or return its fault with the object's name."""
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        return [BadObjectError(f"expected an object, got {type(value).__name__}", object_=place, file=file)]
    kind, api_version = value.get("kind") or implied[0], value.get("apiVersion") or implied[1]
    if isinstance(kind, str) and isinstance(api_version, str) and kind:
        if _is_list(kind) and isinstance(value.get("items"), list):
            return read_document(raw, file, into)[1]
        if not is_read(kind, api_version):
            into.ignored[kind] += 1
            return []
    try:
        item = _item.decode(msgspec.json.encode(_without_nulls(value)))
    except msgspec.ValidationError as error:
        return [fault_of(error, object_=_label(value, kind, place), file=file)]
    try:
        into.add(item, file, implied, place)
    except BadObjectError as fault:
        return [fault]
    return []


def _label(value: dict[str, Any], kind: object, place: str) -> str:
    """`Kind/namespace/name`, as far as the object has them."""
    metadata = value.get("metadata")
    names = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    parts = [part[:253] for part in (kind, *names) if isinstance(part, str) and part]
    return "/".join(parts) if len(parts) > 1 else " ".join([*parts, place]).strip()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


def _is_list(kind: str) -> bool:
    return kind.endswith("List") and (kind == "List" or kind[:-4] in GROUPS)


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
