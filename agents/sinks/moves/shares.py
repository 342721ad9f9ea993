"""Whose vMotions: each namespace has its share of an hour, and within the caps of all they take turns.

In: findings, the moves of a plan, and commands. Out: the findings whose namespace has something left, moves in turn,
and who has had its share. A vMotion is made for the namespaces whose findings it ends. Times are monotonic seconds.
"""

from collections.abc import Iterable

from underhost.agents.evaluate.findings import namespace_of
from underhost.agents.planner.order import PlannedMove
from underhost.agents.sinks.moves.vain import desired_move
from underhost.agents.sinks.orders import seconds_of
from underhost.agents.sinks.rates import HOUR, Rate
from underhost.agents.sinks.turns import in_turn
from underhost.schemas.records import Action, Finding
from underhost.schemas.shares import Capped


class MoveShares:
    """Of one site.

    Attributes:
        spared: the namespaces that have had their share, as was last seen. capped: those of them whose findings wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun: dict[str, Rate] = {}
        self._whose: dict[str, str] = {}
        self.spared: frozenset[str] = frozenset()
        self.capped: list[Capped] = []

    def remember(self, earlier: Iterable[Action], now: float, clock: float) -> None:
        """The moves of an earlier run, of each VM the last; `clock`: now in seconds since 1970."""
        found = [one for one in map(desired_move, earlier) if one is not None and not one.refuse]
        for desired in sorted(found, key=lambda one: seconds_of(one.at)):
            self.begin(desired.namespaces, now - max(0.0, clock - seconds_of(desired.at)))

    def left(self, findings: Iterable[Finding], due: Iterable[Finding], now: float) -> list[Finding]:
        """Those of the `due` ones that may be moved for now; a plan is made for all `findings`."""
        self._whose = {one.id: namespace_of(one) for one in findings}
        self.spared = frozenset(name for name in self._whose.values() if self._room_at(name, now) > now)
        told = f"for its findings no more than {self._most} vMotions are made in an hour"
        due = list(due)
        waiting = {namespace_of(one) for one in due} & self.spared
        self.capped = [Capped("moves", name, "", told) for name in sorted(waiting)]
        return [one for one in due if namespace_of(one) not in self.spared]

    def room_at(self, now: float) -> float:
        """When the first of those that wait has something left; infinite where nobody waits."""
        return min((self._room_at(one.namespace, now) for one in self.capped), default=float("inf"))

    def namespaces_of(self, move: PlannedMove) -> list[str]:
        """For whose findings a move is."""
        return sorted({self._whose.get(finding, "") for finding in move.because} - {""})

    def in_turn(self, moves: Iterable[PlannedMove]) -> list[PlannedMove]:
        """The moves, those of the namespaces first that had the fewest, and one namespace after another."""

        def whose(move: PlannedMove) -> str:
            return min(self.namespaces_of(move), key=self._count, default="")

        return in_turn(sorted(moves, key=lambda move: self._count(whose(move))), whose)

    def admits(self, move: PlannedMove, now: float) -> bool:
        """Whether one of those that it is made for has something left."""
        whose = self.namespaces_of(move)
        return not whose or any(self._room_at(one, now) <= now for one in whose)

    def begin(self, namespaces: Iterable[str], now: float) -> None:
        """A move for these is ordered."""
        for one in namespaces:
            self._begun.setdefault(one, Rate(self._most, HOUR)).add(now)

    def _count(self, namespace: str) -> int:
        return len(self._begun[namespace]) if namespace in self._begun else 0

    def _room_at(self, namespace: str, now: float) -> float:
        """When the namespace may have one more: now, or later."""
        begun = self._begun.get(namespace)
        if begun is None:
            return now
        at = begun.room_at(now)
        if not begun:
            del self._begun[namespace]
        return at
