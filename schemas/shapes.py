"""A decoder's words about a value of a wrong type, as a person says them, with the place where the value is.

In: an error of msgspec, and what was decoded. Out: a message and a path, keys of maps named.
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
