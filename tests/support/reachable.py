"""What an object holds: the sizes of all containers that can be reached from it, for tests of what must not grow.

In: any object. Out: by path of attributes, the lengths of the containers there, added up. `[*]` stands for every item
of a container, so a path is the same whatever the keys are. An object counts where it is met first.
"""

import asyncio
import logging
import threading
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

CONTAINERS = (Mapping, Sequence, Set)
ATOMS = (str, bytes, bytearray, memoryview, int, float, complex, bool, type(None), range)
LEFT_OUT = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
    logging.Logger,
    threading.Thread,
    asyncio.AbstractEventLoop,
)
"""They lead to the whole process."""


def sizes(root: object) -> dict[str, int]:
    """Path to the number of items there."""
    found: dict[str, int] = {}
    seen, waiting = {id(root)}, deque([(type(root).__name__, root)])
    kept = [root]  # keeps ids from being used anew while we look
    while waiting:
        path, one = waiting.popleft()
        if isinstance(one, CONTAINERS):
            found[path] = found.get(path, 0) + len(one)
        for name, part in _parts(one):
            if isinstance(part, (*ATOMS, *LEFT_OUT)) or id(part) in seen:
                continue
            seen.add(id(part))
            kept.append(part)
            waiting.append((path + name, part))
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int], by: int) -> dict[str, tuple[int, int]]:
    """The paths that hold more than `by` items more than before: (before, after)."""
    return {path: (before.get(path, 0), n) for path, n in sorted(after.items()) if n > before.get(path, 0) + by}


def _parts(one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, Mapping):
        for key, value in list(one.items()):
            yield "[key]", key
            yield "[*]", value
    elif isinstance(one, (Sequence, Set)):
        yield from (("[*]", item) for item in list(one))
    elif isinstance(one, partial):
        yield from ((".func", one.func), (".args", one.args), (".keywords", one.keywords))
    elif isinstance(one, types.MethodType):
        yield ".self", one.__self__
    elif isinstance(one, types.FunctionType):
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
            try:
                yield f".{name}", cell.cell_contents
            except ValueError:
                continue  # not set yet
        return
    for name in _names(type(one)):
        if hasattr(one, name):
            yield f".{name}", getattr(one, name)
    for name, value in list(getattr(one, "__dict__", {}).items()):
        yield f".{name}", value


def _names(kind: type) -> Iterator[str]:
    """The slots of a class, those of a Struct among them."""
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
    yield from getattr(kind, "__struct_fields__", ())
