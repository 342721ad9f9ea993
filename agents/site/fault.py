"""A fault in one part of an object, before it is known whose part it is.

Raw parts (affinity, tolerations, resources ...) are parsed once for all objects that share them; whoever asked first
names the object: `within(object)` turns the fault into the error that callers of the engine see.
"""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def faults_of(object_: str) -> Iterator[None]:
    """Names the object that a Fault raised inside is of, such as `Pod shop/db-0`: raises BadObjectError instead."""
    try:
        yield
    except Fault as fault:
        raise fault.within(object_) from None


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
