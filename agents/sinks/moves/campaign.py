"""A repair that a person has asked for: what is to be done, and how far it is.

In: terms, from whoever asks; steps and their end, from the deciders. Out: progress, for whoever follows it. The event
loop asks and follows, the evaluating thread decides: each value is replaced as a whole.
"""

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from underhost.agents.sinks.orders import DONE
from underhost.schemas.documents import RepairDone, RepairProgress
from underhost.schemas.errors import Unreachable
from underhost.schemas.records import Finding

if TYPE_CHECKING:
    from underhost.agents.planner.terms import RepairTerms

PLANNING, ACTING, ENDED = "planning", "acting", "ended"
ORDERED = "ordered"
KEPT = 16
"""Repairs that have ended and may still be asked for."""


class Campaign:
    """One repair. `terms` say what is asked.

    Attributes:
        progress: how far it is.
    """

    def __init__(self, id_: str, site: str, terms: "RepairTerms") -> None:
        self.terms = terms
        self.progress = RepairProgress(id=id_, site=site, state=PLANNING, steps=[], left_findings=[], why="")

    @property
    def is_over(self) -> bool:
        """Whether nothing more is done for it."""
        return self.progress.state == ENDED

    @property
    def moved(self) -> int:
        """How many vMotions were made for it."""
        return sum(step.vm is not None and step.state in DONE for step in self.progress.steps)

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

    def end(self, left: Sequence[Finding], why: str = "") -> None:
        """Nothing more is done; `left` are the findings that stay."""
        self.progress = replace(self.progress, state=ENDED, left_findings=list(left), why=why)


class Campaigns:
    """The repairs that people have asked one run for, of its own site."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._all: dict[str, Campaign] = {}

    @property
    def current(self) -> Campaign | None:
        """The one that is under way."""
        return next((one for one in list(self._all.values()) if not one.is_over), None)

    def begin(self, terms: "RepairTerms") -> Campaign:
        """Begin one. Raises Unreachable while another one is under way."""
        if self.current is not None:
            raise Unreachable("another repair is under way")
        one = Campaign(secrets.token_hex(8), self._site, terms)
        self._all[one.progress.id] = one
        for id_ in list(self._all)[:-KEPT]:
            del self._all[id_]
        return one

    def of(self, id_: str) -> Campaign | None:
        """The one of this id."""
        return self._all.get(id_)
