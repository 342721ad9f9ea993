"""VMs whose moves were in vain: which host is tried no more for a while, and which VM is left to a person.

In: moves that failed, and moves that somebody has undone. Out: what the next plan leaves out. Times are monotonic
seconds. A move is undone where its VM has arrived, and is to be moved again from somewhere else within an hour.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from underhost.agents.sinks.moves.sink import LEFT, VAIN, DesiredMove
from underhost.agents.sinks.orders import DONE, read_back, seconds_of
from underhost.schemas.commands import MOVE
from underhost.schemas.records import Action, Outcome

MOST = 2
"""Moves of one VM that may be in vain before it is left to a person."""
BARRED = 600.0
"""Seconds for which a host is no way out for a VM that could not be moved there."""
UNDONE = 3600.0
"""Seconds for which a VM should stay where it was moved to."""
KEPT = 86_400.0
"""Seconds after which a VM is tried again that was left to a person."""


@dataclass
class _Past:
    """What is remembered of a VM: moves in vain, when the last was, the host that is barred; where it was moved to."""

    vain: int = 0
    at: float = 0.0
    why: str = ""
    barred: str = ""
    to: str = ""
    arrived: float = float("-inf")
    said: bool = False


class MovesInVain:
    """Of one site."""

    def __init__(self) -> None:
        self._past: dict[str, _Past] = {}

    def vain(self, vm: str) -> int:
        """Moves of the VM that were in vain so far."""
        return self._past[vm].vain if vm in self._past else 0

    def why(self, vm: str) -> str:
        """What became of the last of them."""
        return self._past[vm].why if vm in self._past else ""

    def arrived(self, vm: str, to: str, now: float) -> None:
        """The VM was moved."""
        past = self._past.setdefault(vm, _Past())
        past.to, past.arrived = to, now

    def failed(self, vm: str, to: str, why: str, now: float) -> None:
        """The VM could not be moved to this host."""
        past = self._past.setdefault(vm, _Past())
        past.vain, past.at, past.why, past.barred, past.said = past.vain + 1, now, why, to, False

    def undone(self, vm: str, from_: str, now: float) -> bool:
        """Whether the VM, which is to be moved from this host, was moved by us and somebody has undone it; counted."""
        past = self._past.get(vm)
        if past is None or past.to in ("", from_) or now - past.arrived >= UNDONE:
            return False
        past.vain, past.at, past.why, past.said = past.vain + 1, now, "its last move was undone", False
        past.to = ""
        return True

    def held(self, now: float) -> dict[str, str]:
        """The VMs that are left to a person, with the reason."""
        self._past = {vm: past for vm, past in self._past.items() if now - max(past.at, past.arrived) < KEPT}
        return {vm: _why(past) for vm, past in self._past.items() if past.vain >= MOST}

    def barred(self, now: float) -> frozenset[tuple[str, str]]:
        """(VM, host) that is no way out now."""
        return frozenset((vm, past.barred) for vm, past in self._past.items() if past.barred and now - past.at < BARRED)

    def to_say(self) -> list[tuple[str, str]]:
        """The VMs that are left to a person since this was last asked, with the reason."""
        news = [(vm, past) for vm, past in sorted(self._past.items()) if past.vain >= MOST and not past.said]
        for _, past in news:
            past.said = True
        return [(vm, _why(past)) for vm, past in news]

    def remember(self, actions: Iterable[Action], outcomes: Iterable[Outcome], now: float, clock: float) -> None:
        """What an earlier run knew, from the newest command of each VM and what became of it.

        `clock`: now in seconds since 1970.
        """
        results = {outcome.id: outcome for outcome in outcomes}
        for action in actions:
            desired = desired_move(action)
            if desired is None:
                continue
            vm, result = action.target.partition("/")[2], results.get(action.id)
            at = now - max(0.0, clock - seconds_of(desired.at))
            past = self._past[vm] = _Past(desired.vain, at, desired.why, said=bool(desired.refuse))
            if result is None or desired.refuse:
                continue
            if result.result in DONE and desired.because:
                past.to, past.arrived = desired.to, at
            elif result.reason.startswith(VAIN):
                self.failed(vm, desired.to, result.reason, at)


def _why(past: _Past) -> str:
    times = "a move" if past.vain == 1 else f"{past.vain} moves"
    return f"{times} of it failed or were undone, at last: {past.why}: it {LEFT}"


def desired_move(action: Action) -> DesiredMove | None:
    """What a command to move a VM desires; None for another one."""
    return read_back(action, MOVE, DesiredMove)


def outdated(action: Action, clock: float) -> bool:
    """Whether nobody needs to remember the command any more; `clock` is in seconds since 1970."""
    desired = desired_move(action)
    return desired is None or clock - seconds_of(desired.at) > KEPT
