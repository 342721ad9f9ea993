"""Faults of input objects as one line each, and the shapes of the parts that are kept raw.

A shape is the JSON type of each part (labels are an object of strings). What operators, selectors and quantities mean
is judged when the agents parse them.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import BadObjectError, worded

MOST_FAULTS, ENOUGH = 50, 10_000
LABEL_VALUE_MAX, LABEL_KEY_MAX = 63, 317

_Key = Annotated[str, Meta(max_length=LABEL_KEY_MAX)]
_Value = Annotated[str, Meta(max_length=LABEL_VALUE_MAX)]

_strings = msgspec.json.Decoder(dict[str, str] | None)
_short_strings = msgspec.json.Decoder(dict[_Key, _Value] | None)
_quantities = msgspec.json.Decoder(dict[str, str | int | float] | None)
_objects = msgspec.json.Decoder(list[dict[str, Any]] | None)


def fault_of(
    error: msgspec.ValidationError, prefix: str = "", object_: str = "", file: str = "", *, data: bytes | Raw
) -> BadObjectError:
    """A decoder's error as one line that names the field (below `prefix`) in the API's spelling; `data` was decoded."""
    message, path = worded(error, data)
    return BadObjectError(message, object_=object_, field=(prefix + path).lstrip("."), file=file)


class FaultLines:
    """The faults of an input as lines; only the first are kept, as there may be one for every few bytes.

    Attributes:
        count: how many there were.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.count = 0

    def add(self, fault: object) -> None:
        """One more fault: an error, or a line."""
        self.count += 1
        if len(self._lines) < MOST_FAULTS:
            self._lines.append(str(fault))

    @property
    def enough(self) -> bool:
        """Whether there are so many that reading a list to its end tells nothing more."""
        return self.count >= ENOUGH

    def lines(self) -> list[str]:
        """The first faults, and how many more there are."""
        more = self.count - len(self._lines)
        return [*self._lines, *([f"… and {more} more faults"] if more else [])]


class Shapes:
    """Checks raw parts, equal bytes only once. Every method raises BadObjectError with the field only."""

    def __init__(self) -> None:
        self._quantities: set[bytes] = set()
        self._objects: set[bytes] = set()

    def strings(self, raw: Raw, field: str) -> None:
        """An object of strings that are no longer than label values may be, or null."""
        if raw is k8s.EMPTY_OBJECT:
            return
        try:
            _short_strings.decode(raw)  # quicker than a look into a set: many pods' labels are unique
        except msgspec.ValidationError:
            self._word_strings(raw, field)

    def _word_strings(self, raw: Raw, field: str) -> None:
        for key, value in (_decoded(_strings, raw, field) or {}).items():
            if len(key) > LABEL_KEY_MAX:
                _too_long(f"{field}[{key[:40]}…]", "the key has", len(key), LABEL_KEY_MAX)
            if len(value) > LABEL_VALUE_MAX:
                _too_long(f"{field}[{key}]", "the value has", len(value), LABEL_VALUE_MAX)

    def quantities(self, raw: Raw, field: str) -> None:
        """An object of strings or numbers, or null."""
        if raw is not k8s.EMPTY_OBJECT:
            _once(_quantities, self._quantities, raw, field)

    def objects(self, raw: Raw, field: str) -> None:
        """A list of objects, or null."""
        if raw is not k8s.EMPTY_LIST:
            _once(_objects, self._objects, raw, field)


def _once(decoder: msgspec.json.Decoder[Any], seen: set[bytes], raw: Raw, field: str) -> None:
    data = bytes(raw)
    if data not in seen:
        _decoded(decoder, raw, field)
        seen.add(data)


def begins(raw: Raw, first: str, *field: str) -> None:
    """The cheap check of a part with few equal copies: `{` for an object, `[` for a list; null fits both.

    Raises BadObjectError with the field only, which may be given in pieces.
    """
    found = memoryview(raw)[0]
    if found != ord(first) and found != ord("n"):
        wanted = "an object" if first == "{" else "a list"
        raise BadObjectError(f"expected {wanted}, got {_KINDS.get(chr(found), 'a number')}", field="".join(field))


_KINDS = {"{": "an object", "[": "a list", '"': "a string", "t": "true", "f": "false"}


def _decoded(decoder: msgspec.json.Decoder[Any], raw: Raw, field: str) -> Any:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise fault_of(error, field, data=raw) from error


def _too_long(field: str, what: str, length: int, most: int) -> None:
    raise BadObjectError(f"{what} {length} characters, at most {most} are allowed", field=field)


def pod_shapes(pod: k8s.Pod, shapes: Shapes) -> None:
    """Check every raw part of a pod. Raises BadObjectError with the field only.

    Most pods lack most parts, and this is asked of every pod: it calls nothing for a part that is not there.
    """
    spec = pod.spec
    shapes.strings(pod.metadata.labels, "metadata.labels")
    if spec.node_selector is not k8s.EMPTY_OBJECT:
        shapes.strings(spec.node_selector, "spec.nodeSelector")
    if spec.tolerations is not k8s.EMPTY_LIST:
        shapes.objects(spec.tolerations, "spec.tolerations")
    if spec.topology_spread_constraints is not k8s.EMPTY_LIST:
        shapes.objects(spec.topology_spread_constraints, "spec.topologySpreadConstraints")
    if spec.overhead is not k8s.EMPTY_OBJECT:
        shapes.quantities(spec.overhead, "spec.overhead")
    if spec.affinity is not k8s.EMPTY_OBJECT:
        begins(spec.affinity, "{", "spec.affinity")
    if spec.resources is not k8s.EMPTY_OBJECT:
        begins(spec.resources, "{", "spec.resources")
    if spec.volumes is not k8s.EMPTY_LIST:
        begins(spec.volumes, "[", "spec.volumes")
    for container in spec.containers or ():
        if container.resources is not k8s.EMPTY_OBJECT:
            begins(container.resources, "{", "spec.containers[", container.name, "].resources")
    for container in spec.init_containers or ():
        if container.resources is not k8s.EMPTY_OBJECT:
            begins(container.resources, "{", "spec.initContainers[", container.name, "].resources")


def node_shapes(node: k8s.Node, shapes: Shapes) -> None:
    """Check every raw part of a node. Raises BadObjectError with the field only."""
    shapes.strings(node.metadata.labels, "metadata.labels")
    shapes.objects(node.spec.taints, "spec.taints")
    shapes.quantities(node.status.allocatable, "status.allocatable")
    begins(node.status.images, "[", "status.images")
