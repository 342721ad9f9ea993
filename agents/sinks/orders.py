"""How deciders order and sinks answer: the id of an action, and the outcome of one. Shared by all of them; pure."""

import hashlib
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec

from underhost.schemas.errors import Conflict, Gone, Refused, Retry, Unreachable
from underhost.schemas.records import Action, Outcome

APPLIED, DRY_RUN, NOOP, REFUSED, FAILED = "applied", "dry-run", "noop", "refused", "failed"
FAILURES = frozenset({FAILED, REFUSED})
DONE = frozenset({APPLIED, NOOP})

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="sorted")


def order(kind: str, target: str, desired: Mapping[str, object], because: str, snapshot: Mapping[str, int]) -> Action:
    """A command; equal kind, target, desired and snapshot give an equal id."""
    identity = _encoder.encode([kind, target, desired, _encoded(tuple(snapshot.items()))])
    id_ = hashlib.blake2b(identity, digest_size=12).hexdigest()
    return Action(id_, kind, target, dict(desired), because, dict(snapshot))


@lru_cache(maxsize=16)  # one snapshot orders hundreds
def _encoded(snapshot: tuple[tuple[str, int], ...]) -> msgspec.Raw:
    return msgspec.Raw(_encoder.encode(dict(snapshot)))


def outcome(action: Action, result: str, reason: str) -> Outcome:
    """What became of the command."""
    return Outcome(action.id, action.kind, action.target, result, reason)


def desired_of(action: Action, type_: type[T], what: str) -> T:
    """What the command desires. Raises Refused: it is not `what` (`a label command`)."""
    try:
        return msgspec.convert(action.desired, type_)
    except msgspec.ValidationError as error:
        raise Refused(f"not {what}: {error}") from error


async def answer(action: Action, writing: Awaitable[tuple[str, str]]) -> Outcome:
    """Await (result, reason). What the cluster rejects is refused; what it cannot do now has failed."""
    try:
        return outcome(action, *await writing)
    except (Gone, Conflict, Refused) as error:
        return outcome(action, REFUSED, str(error))
    except (Retry, Unreachable) as error:
        return outcome(action, FAILED, str(error))
