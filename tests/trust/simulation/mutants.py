"""Old defects, brought back one at a time: a simulation that does not find them again looks at the wrong things.

In: nothing. Out: a table of mutations, each of which replaces what mended a defect, or keeps a promise of CHANGELOG, by
what was there before.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from underhost.agents.pipeline import run
from underhost.agents.pipeline.decide.open_findings import PublishedFindings
from underhost.agents.pipeline.decide.placements import BindingQueue
from underhost.agents.pipeline.gates.fence import fenced
from underhost.agents.pipeline.gates.guards import Guards, Standstill
from underhost.agents.pipeline.gates.wanted import WantedCommands
from underhost.agents.pipeline.leases.roles import RoleLease
from underhost.agents.pipeline.leases.seeking import Seeking
from underhost.agents.sinks.labels import sink as labels
from underhost.agents.sinks.moves import decider as moves
from underhost.agents.site import objects
from underhost.schemas.errors import BackendError
from underhost.schemas.records import Action, FindingEvent
from underhost.schemas.topics import KUBERNETES
from underhost.streams.faust.commits import CarefulCommits
from underhost.streams.faust.fetching import CarefulFetches
from underhost.streams.ports import Outgoing, Publisher
from underhost.streams.simulated import sources
from underhost.streams.watching import reflector


@dataclass(frozen=True)
class Mutant:
    """One defect: what a user saw, and how it is brought back in this process."""

    defect: str
    bring_back: Callable[[], None]


def _stands_by_everything() -> None:
    async def at_once(self: WantedCommands, action: Action) -> bool:
        return False

    WantedCommands.refuses = lambda self, action: None  # type: ignore[method-assign]
    WantedCommands.waits = at_once  # type: ignore[method-assign]


def _fetches_carelessly() -> None:
    for name in ("stop_flow", "on_partitions_revoked", "_getmany", "seek_wait"):
        delattr(CarefulFetches, name)


def _forgets_failed_bindings() -> None:
    BindingQueue.observe = lambda self, outcome, now: None  # type: ignore[method-assign]


def _leaves_resolved_rows() -> None:
    begin = PublishedFindings.__init__

    def without(self: PublishedFindings, site: str, published: Iterable[FindingEvent]) -> None:
        begin(self, site, published)
        self._unburied = []

    PublishedFindings.__init__ = without  # type: ignore[method-assign]


def _takes_every_label() -> None:
    labels.is_person = lambda manager: True  # type: ignore[assignment]


def _writes_though_nothing_is_heard() -> None:
    standstill = Guards.standstill

    def without(self: Guards, site: str, *kinds: Iterable[str]) -> Standstill:
        still = standstill(self, site, *kinds)
        return replace(still, stale={name: why for name, why in still.stale.items() if name != KUBERNETES})

    Guards.standstill = without  # type: ignore[method-assign]


def _refuses_what_is_ordered_again() -> None:
    def forget(self: WantedCommands, action: Action) -> None:
        known = self._ordered.get((action.kind, action.target))
        if known is not None and known.id == action.id:
            del self._ordered[action.kind, action.target]

    WantedCommands.done = forget  # type: ignore[method-assign]


def _takes_late_records() -> None:
    objects._refuse_late = lambda held, value, deleted_uid: None


def _commits_what_is_under_way() -> None:
    for name in ("_new_offset", "ack"):
        delattr(CarefulCommits, name)


def _gives_up() -> None:
    async def once(publisher: Publisher, records: Sequence[Outgoing], what: str, timing: Any = None) -> None:
        try:
            await publisher.publish(*records)
        except BackendError:
            return

    sources.publish_until_taken = reflector.publish_until_taken = once


def _asks_for_the_lease_when_a_command_begins() -> None:
    run.fenced = lambda writers, membership, lease: fenced(writers, membership, RoleLease())  # type: ignore[assignment]


def _writes_whoever_watches() -> None:
    Seeking._has_picture = lambda self: True  # type: ignore[method-assign]


def _forgets_moves_whose_answer_is_lost() -> None:
    moves.is_unknown = lambda outcome: False  # type: ignore[assignment]


MUTANTS: Mapping[str, Mutant] = {
    "superseded": Mutant(
        "a command from before a restart is carried out though it stands no more", _stands_by_everything
    ),
    "fetches": Mutant("a record is left out after a rebalance", _fetches_carelessly),
    "bindings": Mutant("a binding that failed is never tried again", _forgets_failed_bindings),
    "resolved": Mutant(
        "a finding stays open after a kill between its resolution and its tombstone", _leaves_resolved_rows
    ),
    "refused again": Mutant(
        "an order that failed and is given again is refused as one of before a restart", _refuses_what_is_ordered_again
    ),
    "late": Mutant("a record of a former owner that comes late overwrites newer state", _takes_late_records),
    "committed": Mutant("a command under way is lost by a kill where a later one was done", _commits_what_is_under_way),
    "given up": Mutant("a change is lost while the topics take no records", _gives_up),
    "fence": Mutant(
        "a write that was under way is made by a worker that has lost its lease meanwhile",
        _asks_for_the_lease_when_a_command_begins,
    ),
    "watched elsewhere": Mutant(
        "labels of an old picture: another worker watches the clusters, and publishes elsewhere",
        _writes_whoever_watches,
    ),
    "lost moves": Mutant(
        "more VMs move at once than the caps allow, after an answer was lost", _forgets_moves_whose_answer_is_lost
    ),
    "strangers": Mutant("a label of an in-house controller is overwritten", _takes_every_label),
    "silence": Mutant(
        "everything is written as before while nothing is heard of Kubernetes", _writes_though_nothing_is_heard
    ),
}
