"""A set is iterated over in the same order in every process: its members hash by when they came to be.

In: the begin of a seed. Out: futures, tasks and objects of Faust that hash by a number instead of by their address.
What hashes by value does so alike in every process that has `PYTHONHASHSEED=0`; see to that before (`__main__.py`).
"""

import asyncio
from itertools import count
from typing import Any

from faust.channels import Channel
from faust.tables.base import Collection
from mode import Service
from mode.utils.queues import FlowControlQueue

CLASSES = (Service, Channel, Collection, FlowControlQueue)
"""What Faust keeps in sets, and whatever has a hash of its own among it."""
NUMBER_BITS = 40
"""Bits of a number within its seed."""

_seeds, _numbers = count(1), count()


def begin() -> None:
    """Number what a new seed makes.

    No number comes twice in a process, as Faust's signals take a hash for an identity; but the lower bits, by which a
    set orders its members, are the same whenever the seed is played.
    """
    global _numbers
    _numbers = count(next(_seeds) << NUMBER_BITS)
    for each in CLASSES:
        each.__hash__ = _number  # type: ignore[assignment,method-assign]


def _number(instance: Any) -> int:
    """The hash of an object: its number, which it gets when it is first asked for."""
    try:
        return instance._number  # type: ignore[no-any-return]
    except AttributeError:
        instance._number = number = next(_numbers)
        return number


class OrderedFuture(asyncio.Future[Any]):
    """asyncio's, which is written in C: its hash can only be replaced in a class of its own."""

    __hash__ = _number  # type: ignore[assignment]


class OrderedTask(asyncio.Task[Any]):
    """asyncio's; see `OrderedFuture`."""

    __hash__ = _number  # type: ignore[assignment]
