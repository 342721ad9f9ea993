"""What a person has asked a run for, a repair above all: what is to be done, and how far it is.

In: terms, from whoever asks; steps and their end, from the deciders. Out: progress, for whoever follows it. The event
loop asks and follows, the evaluating thread decides: each value is replaced as a whole.
"""

import secrets
from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import replace

from underhost.agents.sinks.orders import DONE
from underhost.schemas.documents import MaintenanceProgress, RepairDone, RepairProgress
from underhost.schemas.errors import Unreachable
from underhost.schemas.records import Finding

if TYPE_CHECKING:
    from underhost.agents.planner.terms import RepairTerms

D = TypeVar("D", RepairProgress, MaintenanceProgress)
T = TypeVar("T", bound="Undertaking[Any]")

PLANNING, ACTING, ENDED = "planning", "acting", "ended"
ORDERED = "ordered"
KEPT = 16
"""What has ended and may still be asked for."""


class Undertaking(ABC, Generic[D]):
    """What a person has asked for. `what` is it in a word.

    Attributes:
        id: what it is followed by. progress: how far it is.
    """

    what: str
    progress: D

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is done for it."""
        return self.progress.state == ENDED

    def order(self, step: RepairDone) -> None:
        """A step is begun."""
        self.progress = replace(self.progress, state=ACTING, steps=[*self.progress.steps, step])

    def say(self, id_: str, state: str, reason: str) -> None:
        """What became of a step, by the id of its command."""
        steps = [replace(one, state=state, reason=reason) if one.id == id_ else one for one in self.progress.steps]
        self.progress = replace(self.progress, steps=steps)

    def wait(self, why: str) -> None:
        """What it waits for."""
        if why != self.progress.why:
            self.progress = replace(self.progress, why=why)


class Campaign(Undertaking[RepairProgress]):
    """One repair. `terms` say what is asked."""

    what = "repair"

    def __init__(self, site: str, terms: "RepairTerms") -> None:
        super().__init__()
        self.terms = terms
        self.progress = RepairProgress(id=self.id, site=site, state=PLANNING, steps=[], left_findings=[], why="")

    @property
    def moved(self) -> int:
        """How many vMotions were made for it."""
        return sum(step.vm is not None and step.state in DONE for step in self.progress.steps)

    def end(self, left: Sequence[Finding], why: str = "") -> None:
        """Nothing more is done; `left` are the findings that stay."""
        self.progress = replace(self.progress, state=ENDED, left_findings=list(left), why=why)


class Campaigns:
    """What people have asked one run for, of its own site: repairs, and what else moves VMs. One at a time."""

    def __init__(self) -> None:
        self._all: dict[str, Undertaking[Any]] = {}

    def under_way(self, kind: type[T]) -> T | None:
        """The one of this kind that is under way."""
        return next((one for one in list(self._all.values()) if isinstance(one, kind) and not one.is_over), None)

    def others(self, kind: type[Undertaking[Any]]) -> bool:
        """Whether one of another kind is under way."""
        return any(not isinstance(one, kind) and not one.is_over for one in list(self._all.values()))

    def add(self, one: T) -> T:
        """Begin one. Raises Unreachable while another one is under way."""
        other = next((each for each in list(self._all.values()) if not each.is_over), None)
        if other is not None:
            raise Unreachable(f"{'another' if other.what == one.what else 'a'} {other.what} is under way")
        self._all[one.id] = one
        for id_ in list(self._all)[:-KEPT]:
            del self._all[id_]
        return one

    def last(self, kind: type[T]) -> T | None:
        """The one of this kind that was begun last."""
        return next((one for one in reversed(list(self._all.values())) if isinstance(one, kind)), None)

    def find(self, id_: str, kind: type[T]) -> T | None:
        """The one of this id, if it is of this kind."""
        one = self._all.get(id_)
        return one if isinstance(one, kind) else None
