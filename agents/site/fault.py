"""A fault in one part of an object, before it is known whose part it is.

Raw parts (affinity, tolerations, resources ...) are parsed once for all objects that share them; whoever asked first
names the object: `within(object)` turns the fault into the error that callers of the engine see.
"""

from typing import TypeVar

import msgspec

from underhost.schemas.errors import BadObjectError, worded

T = TypeVar("T")
_SHOWN = 120  # characters of a value that a message repeats


class Fault(ValueError):
    """`field` (a path inside the object) holds what the API does not allow; `message` is one line."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")

    def within(self, object_: str) -> BadObjectError:
        """The same fault, of a named object such as `Pod shop/db-0`."""
        return BadObjectError(self.message, object_=object_, field=self.field)


class _FaultsOf:
    __slots__ = ("_object",)

    def __init__(self, object_: str) -> None:
        self._object = object_

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        if isinstance(raised, Fault):
            raise raised.within(self._object) from None


def faults_of(object_: str) -> _FaultsOf:
    """Names the object that a Fault raised inside is of, such as `Pod shop/db-0`: raises BadObjectError instead.

    No generator: each change of a node enters several of these.
    """
    return _FaultsOf(object_)


def decode(data: bytes, decoder: "msgspec.json.Decoder[T]", field: str) -> T:
    """The typed value of a raw part. Raises Fault that names the part and, inside it, the wrong value's path."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        message, path = worded(error, data)
        raise Fault(field + path, message) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Fault(field, str(error)) from None


def shown(value: object) -> str:
    """A value as a message repeats it: quoted, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
