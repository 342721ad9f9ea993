"""A maintenance that a person has asked for: which hosts have their turn, and how far it is.

In: terms, from whoever asks; hosts and vMotions as they are begun and end, from the decider. Out: progress, for whoever
follows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from underhost.agents.sinks.moves.campaign import ACTING, ENDED, PLANNING, Undertaking
from underhost.schemas.documents import MaintainedHost, MaintenanceProgress

if TYPE_CHECKING:
    from underhost.agents.whatif.maintenance import Chosen

WAITING, EMPTYING, ENTERING, IN_MODE, LEAVING, HAD = "waiting", "emptying", "entering", "maintenance", "leaving", "done"
"""The states of a host, in their order."""


ABANDONED = "the worker that carried it out has ended, or has lost the site, and nobody goes on with it"


@dataclass(frozen=True)
class MaintenanceTerms:
    """Which hosts have their turn. `out`: each is taken out of maintenance mode again, as soon as it is in it."""

    chosen: "Chosen"
    out: bool = False


class MaintenanceRun(Undertaking[MaintenanceProgress]):
    """One maintenance. `terms` say what is asked."""

    what = "maintenance"

    def __init__(self, site: str, terms: MaintenanceTerms) -> None:
        super().__init__()
        self.terms = terms
        self.progress = MaintenanceProgress(
            id=self.id, site=site, state=PLANNING, hosts=[], steps=[], why="", done=False
        )

    def plan(self, names: Iterable[str]) -> None:
        """These hosts will have their turn, in this order."""
        hosts = [MaintainedHost(name, WAITING) for name in names]
        self.progress = replace(self.progress, state=ACTING, hosts=hosts)

    def host(self, name: str, state: str) -> None:
        """A host is in another state."""
        hosts = [replace(one, state=state) if one.host == name else one for one in self.progress.hosts]
        self.progress = replace(self.progress, hosts=hosts, why="")

    def end(self, why: str = "") -> None:
        """Nothing more is done: every host had its turn, or `why` not."""
        self.progress = replace(self.progress, state=ENDED, why=why, done=not why)

    def abandon(self) -> None:
        """The decider that has begun it is gone, and no other one knows what that has seen."""
        self.end("; ".join([ABANDONED, *left_over(self.progress)]))


def left_over(progress: MaintenanceProgress) -> list[str]:
    """How things stand with a maintenance that nobody goes on with, as far as its progress tells."""
    begun = [one.host for one in progress.hosts if one.state not in (HAD, WAITING)]
    left = [one.host for one in progress.hosts if one.state == WAITING]
    parts = [f"{', '.join(begun)} may be in maintenance mode"] if begun else []
    return [*parts, *([f"{', '.join(left)} had no turn"] if left else [])]
