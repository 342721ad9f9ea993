"""vMotions whose end nobody knows: their commands are ordered once more, or followed where they are not right any more.

In: commands of an earlier run without an answer, and those of this run whose answer was lost on the way. Out: which are
due. vCenter may have begun such a move: the sink finds the VM there, or on its way, and moves nothing twice. Times are
monotonic seconds.
"""

from collections.abc import Iterable

from underhost.agents.planner.order import PlannedMove
from underhost.agents.sinks.moves.sink import VAIN, DesiredMove
from underhost.agents.sinks.orders import FAILED
from underhost.schemas.commands import MOVE
from underhost.schemas.records import Action, Outcome


def is_unknown(outcome: Outcome) -> bool:
    """Whether nobody knows what became of the move: the answer was lost, or never came."""
    return outcome.kind == MOVE and outcome.result == FAILED and not outcome.reason.startswith(VAIN)


class UnknownEnds:
    """Of one site."""

    def __init__(self, earlier: Iterable[Action], outcomes: Iterable[Outcome]) -> None:
        """Of an earlier run, `earlier` are the newest commands of each VM, and `outcomes` what became of them."""
        known = {outcome.id for outcome in outcomes if not is_unknown(outcome)}
        self._waiting = {action.target: (0.0, action) for action in earlier if action.id not in known}

    def wait(self, action: Action, at: float) -> None:
        """The command is due once more then."""
        self._waiting[action.target] = at, action

    def forget(self, target: str) -> None:
        """The move is over."""
        self._waiting.pop(target, None)

    def take(self, now: float) -> list[Action]:
        """The commands that are due now."""
        due = [action for at, action in self._waiting.values() if at <= now]
        for action in due:
            del self._waiting[action.target]
        return due

    @property
    def due(self) -> float:
        """When the next one is due; infinite where none is."""
        return min((at for at, _ in self._waiting.values()), default=float("inf"))


def as_planned(vm: str, desired: DesiredMove) -> PlannedMove:
    """What a command desires, as a plan has it."""
    return PlannedMove(
        vm,
        desired.name,
        desired.cluster,
        desired.from_,
        desired.from_name,
        desired.to,
        desired.to_name,
        1,
        list(desired.because),
    )
