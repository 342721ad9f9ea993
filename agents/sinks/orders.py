"""How deciders order and sinks answer: the id of an action, and the outcome of one. Shared by all of them; pure."""

import hashlib
from collections.abc import Awaitable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

import msgspec

from underhost.schemas.errors import Conflict, Gone, InputError, Refused, Retry, Unreachable
from underhost.schemas.records import Action, Outcome

APPLIED, DRY_RUN, NOOP, REFUSED, FAILED = "applied", "dry-run", "noop", "refused", "failed"
FAILURES = frozenset({FAILED, REFUSED})
DONE = frozenset({APPLIED, NOOP})
UNANSWERED = 60.0
"""Seconds that a command of an earlier run is waited for: after that it counts as lost."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="sorted")


def order(kind: str, target: str, desired: Mapping[str, object], because: str, snapshot: Mapping[str, int]) -> Action:
    """A command, whose id is the digest of all else that it says: equal content gives an equal id."""
    action = Action("", kind, target, dict(desired), because, dict(snapshot))
    return msgspec.structs.replace(action, id=digest_of(action))


def digest_of(action: Action) -> str:
    """24 hexadecimal digits of a command's whole content, which are the id of one that we have ordered."""
    offsets = _encoded(tuple(action.snapshot.items()))
    content = _encoder.encode([action.kind, action.target, action.desired, action.because, offsets])
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def forged(action: Action) -> str:
    """Why this is no command that anybody of us has ordered: its id is not its content's; "" where it is.

    So whoever knows the id of a command knows what it says, and nothing else can be put in its place.
    """
    digest = digest_of(action)
    return "" if digest == action.id else f"its id {action.id[:40]!r} is not its content's, {digest}"


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


def read_back(action: Action, kind: str, type_: type[T]) -> T | None:
    """What a command of an earlier run desires; None for one of another kind, or of another version of this program."""
    try:
        return msgspec.convert(action.desired, type_) if action.kind == kind else None
    except msgspec.ValidationError:
        return None


def seconds_of(at: str) -> float:
    """When a command was decided, in seconds since 1970, of its RFC 3339 time; 0 where that is no time."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def named(action: Action, kind: str) -> str:
    """The name in a target `KIND/NAME`; of a pod `namespace/name`. Raises Refused for the target of another kind."""
    found, _, name = action.target.partition("/")
    if found != kind or not name:
        raise Refused(f"{action.target} is not the target of a command of kind {action.kind}")
    return name


async def answer(action: Action, writing: Awaitable[tuple[str, str]]) -> Outcome:
    """Await (result, reason). What the cluster rejects is refused; what it cannot do now has failed.

    Refused is, too, what our own settings do not allow: the password's file is gone, say.
    """
    try:
        return outcome(action, *await writing)
    except (Gone, Conflict, Refused, InputError) as error:
        return outcome(action, REFUSED, str(error))
    except (Retry, Unreachable) as error:
        return outcome(action, FAILED, str(error))
