"""How deciders order and sinks answer: the id of an action, and the outcome of one. Shared by all of them; pure."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from underhost.schemas.records import Action, Outcome

APPLIED, DRY_RUN, NOOP, REFUSED, FAILED = "applied", "dry-run", "noop", "refused", "failed"
FAILURES = frozenset({FAILED, REFUSED})
DONE = frozenset({APPLIED, NOOP})

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
