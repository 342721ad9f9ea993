"""The vMotions of one site, whoever orders them: those under way, how many may be, and which were in vain.

In: moves of a plan, and pictures. Out: `move` commands. The mover's decider hears what becomes of all of them.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from underhost.agents.planner.order import PlannedMove
from underhost.agents.sinks.moves.once_more import UnknownEnds
from underhost.agents.sinks.moves.pace import MovePace, MoveUnderWay
from underhost.agents.sinks.moves.sink import DesiredMove
from underhost.agents.sinks.moves.vain import MovesInVain
from underhost.agents.sinks.orders import order
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import MOVE
from underhost.schemas.records import Action, Outcome
from underhost.streams.derived import rfc3339
from underhost.streams.settings.sinks import MoveSettings

LOST = 3660.0
"""Seconds after which a command without an outcome counts as lost."""
UNSEEN = 60.0
"""Seconds for which a picture is waited for that shows a move that was made."""


class Moving:
    """Of one site.

    Attributes:
        pace: those under way. vain: those that came to nothing. unknown: those whose end nobody knows.
    """

    def __init__(
        self,
        settings: MoveSettings,
        clock: Callable[[], float],
        earlier: Iterable[Action] = (),
        outcomes: Iterable[Outcome] = (),
    ) -> None:
        """`clock`: seconds since 1970; `earlier`, `outcomes`: the newest command of each VM, and what became of it."""
        self.pace, self.vain, self._clock = MovePace(settings), MovesInVain(), clock
        self.unknown = UnknownEnds(earlier, outcomes)

    def begin(
        self, move: PlannedMove, because: str, snapshot: Snapshot, now: float, namespaces: Sequence[str] = ()
    ) -> Action:
        """The command to make a move, which is under way from now on; it counts as made for these namespaces."""
        desired = DesiredMove(
            name=move.name,
            cluster=move.cluster,
            from_=move.from_,
            to=move.to,
            from_name=move.from_name,
            to_name=move.to_name,
            because=list(move.because),
            namespaces=list(namespaces),
            at=rfc3339(self._clock()),
            vain=self.vain.vain(move.vm),
            why=self.vain.why(move.vm),
        )
        action = order(MOVE, f"vm/{move.vm}", msgspec.to_builtins(desired), because, snapshot.offsets)
        where, repairs = (move.cluster, move.from_, move.to), bool(move.because)
        self.pace.begin(MoveUnderWay(action, [action.id], move.vm, *where, now, repairs=repairs))
        return action

    def refusals(self, snapshot: Snapshot) -> list[Action]:
        """Commands that the sink refuses, so that people are told of what is left to them."""
        return [self._refusal(vm, why, snapshot) for vm, why in self.vain.to_say()]

    def _refusal(self, vm: str, why: str, snapshot: Snapshot) -> Action:
        desired = DesiredMove(
            name=snapshot.vms[vm].name if vm in snapshot.vms else vm,
            at=rfc3339(self._clock()),
            vain=self.vain.vain(vm),
            why=self.vain.why(vm),
            refuse=why,
        )
        return order(MOVE, f"vm/{vm}", msgspec.to_builtins(desired), why, snapshot.offsets)

    def settle(self, snapshot: Snapshot, now: float) -> bool:
        """What is over ends: the picture shows it, or nothing will. Whether there is such a move."""
        before = len(self.pace.under_way)
        for one in list(self.pace.under_way.values()):
            vm = snapshot.vms.get(one.vm)
            unseen = one.applied is not None and now - one.applied >= UNSEEN
            if vm is not None and vm.host == one.to:
                one.seen = now if one.seen is None else one.seen
            there = one.seen is not None and (one.applied is not None or now - one.seen >= UNSEEN)
            if vm is None or there or unseen or now - one.at >= LOST:
                self.end(one.vm)
        return len(self.pace.under_way) < before

    def end(self, vm: str, *, counts: bool = True) -> None:
        """A move is over; `counts` see `MovePace.end`."""
        self.pace.end(vm, counts=counts)
        self.unknown.forget(f"vm/{vm}")
