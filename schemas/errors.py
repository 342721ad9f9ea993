"""Errors named by what the caller can do about them; adapters translate third-party exceptions into these.

A rejection by a rule is a value, never one of these. `worded` says what msgspec found wrong as a person would, with the
place, keys of maps named.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_TYPE = re.compile(r"`([^`]+)`")
_GOT = re.compile(r"got `(\w+)`$")
_STEP = re.compile(r"\.[^.\[]+|\[[^\]]*\]")
_ANY_KEY = "[...]"
_WORDS = {"str": "a string", "int": "an integer", "bool": "true or false", "array": "a list", "object": "an object"}
_WORDS |= {"null": "null", "float": "a number"}
_TYPES = {str: "str", int: "int", bool: "bool", list: "array", dict: "object", type(None): "null", float: "float"}
_KEY_SHOWN = 60


class UnderhostError(Exception):
    """Base of all errors of this project; its text is one line for a person."""


class InputError(UnderhostError):
    """Bad usage, file or configuration: exit code 2.

    Attributes:
        faults: every fault found, each one line; the message joins them.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


class BadObjectError(InputError):
    """An object of the input breaks the API's rules; names file, object and field."""

    def __init__(self, message: str, *, object_: str = "", field: str = "", file: str = "") -> None:
        self.message, self.object, self.field, self.file = message, object_, field, file
        super().__init__(": ".join(part for part in (file, object_, field, message) if part))

    def within(self, file: str) -> "BadObjectError":
        """The same fault with the file named."""
        return BadObjectError(self.message, object_=self.object, field=self.field, file=self.file or file)


class BackendError(UnderhostError):
    """A backend (Kafka, Kubernetes, vCenter) is unreachable, refuses us or is stale: exit code 3."""


class Unreachable(BackendError):
    """Nothing answers at the address: retrying later may help."""


class KafkaAway(Unreachable):
    """Kafka has answered at the start and does not now: a worker tries again for ever."""


class Refused(BackendError):
    """The backend said no (password, certificate, permission, validation): retrying as is will not help."""


class Forbidden(Refused):
    """The backend knows the account, and lets it not do this: a right is missing (403)."""


class Unready(UnderhostError):
    """No answer can be given now (starting, not ours, not listed, not trusted): asking later, or elsewhere, helps."""


class Gone(UnderhostError):
    """The object, or the watch position, no longer exists."""


class Conflict(UnderhostError):
    """The object changed since the decision (uid, resourceVersion, already bound elsewhere): decide again."""


class Retry(UnderhostError):
    """The backend asks to come back later.

    Attributes:
        after: seconds to wait.
    """

    def __init__(self, message: str, after: float) -> None:
        self.after = after
        super().__init__(message)


class BadEvent(UnderhostError):
    """A record of a topic cannot be read: it goes to dead-letters and the stream goes on."""


class LateRecord(BadEvent):
    """A record came after newer ones of the same object or of a newer publisher: it is left out.

    Attributes:
        why: `term`, `version` or `uid`: what shows that it is late.
    """

    def __init__(self, why: str, message: str) -> None:
        self.why = why
        super().__init__(message)


def worded(error: msgspec.ValidationError, data: bytes | msgspec.Raw = b"") -> tuple[str, str]:
    """The message and the path of an error; `data`, the JSON that was decoded, tells which key of a map it was."""
    match = _AT.match(str(error))
    what, path = (match["what"], match["path"] or "") if match else (str(error), "")
    if _ANY_KEY in path:
        got = _GOT.search(what)
        path = _with_keys(path, data, got[1] if got else "")
    message = _TYPE.sub(lambda found: _words(found[1]), what)
    return message[:1].lower() + message[1:], path


def type_of(value: object) -> str:
    """What a value is in JSON, in words: `a list`, `null`."""
    return _WORDS[_TYPES.get(type(value), "object")]


def _words(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null" or types == "null"]
    if "float" in names:  # an integer is a number
        names = [name for name in names if name != "int"]
    return " or ".join(_WORDS.get(name, f"`{name}`") for name in names)


def _with_keys(path: str, data: bytes | msgspec.Raw, got: str) -> str:
    """The path with the keys that the decoder leaves out: of the first value there of the type that it met."""
    try:
        steps = _found(msgspec.json.decode(data), _STEP.findall(path), got)
    except (msgspec.DecodeError, RecursionError):
        steps = None
    return path.replace(_ANY_KEY, "[]") if steps is None else "".join(steps)


def _found(value: Any, steps: Sequence[str], got: str) -> list[str] | None:
    if not steps:
        return [] if _TYPES.get(type(value)) == got else None
    step, rest = steps[0], steps[1:]
    if step == _ANY_KEY:
        for key, part in value.items() if isinstance(value, dict) else ():
            found = _found(part, rest, got)
            if found is not None:
                return [f"[{key[:_KEY_SHOWN]}]", *found]
        return None
    if step[0] == "[":
        inside = isinstance(value, list) and step[1:-1].isdecimal() and int(step[1:-1]) < len(value)
        found = _found(value[int(step[1:-1])], rest, got) if inside else None
    else:
        found = _found(value.get(step[1:]), rest, got) if isinstance(value, dict) else None
    return None if found is None else [step, *found]
