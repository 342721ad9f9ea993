"""Commands that an earlier run left under way: they are not ordered once more while a sink may still carry them out.

In: the tables of `actions` and `outcomes` as a site becomes ready, then the deciders' actions. Out: the actions to
publish. What this run orders itself, its deciders remember.
"""

from collections.abc import Collection, Iterable

from underhost.agents.sinks.orders import UNANSWERED
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import ACTIONS
from underhost.streams.derived import outgoing, target_key
from underhost.streams.ports import Outgoing


class UnfinishedCommands:
    """The newest command of each target, if it has no outcome. `now` is monotonic seconds."""

    def __init__(self, site: str, ordered: Iterable[Action], outcomes: Iterable[Outcome], now: float) -> None:
        self._site, self._until = site, now + UNANSWERED
        answered = {outcome.id for outcome in outcomes}
        self._waiting = {_place(action): action for action in ordered if action.id not in answered}
        self.confirmed: frozenset[str] = frozenset()
        """Ids of the earlier run's commands that the newest picture still asks for."""

    def fresh(self, actions: Collection[Action], now: float) -> list[Action]:
        """Those that ask for something else than what is under way."""
        if now >= self._until:
            self._waiting.clear()
        under_way = {action.id: self._under_way(action) for action in actions}
        self.confirmed = frozenset(earlier.id for earlier in under_way.values() if earlier is not None)
        return [action for action in actions if under_way[action.id] is None]

    def _under_way(self, action: Action) -> Action | None:
        """The earlier command that asks for the same."""
        waiting = self._waiting.get(_place(action))
        return waiting if waiting is not None and waiting.desired == action.desired else None

    def records(self, actions: Iterable[Action]) -> list[Outgoing]:
        """The records of `actions`; what is remembered of a command must outlast a power cut."""
        return [
            outgoing(ACTIONS, target_key(self._site, action.target), action)._replace(
                on_disk=COMMANDS[action.kind].is_remembered
            )
            for action in actions
        ]

    def commit(self, actions: Iterable[Action]) -> None:
        """These are published: what was under way for their targets is superseded."""
        for action in actions:
            self._waiting.pop(_place(action), None)

    def observe(self, outcome: Outcome) -> None:
        """A command was answered; an older one's answer changes nothing."""
        place = (outcome.kind, outcome.target)
        waiting = self._waiting.get(place)
        if waiting is not None and waiting.id == outcome.id:
            del self._waiting[place]


def _place(action: Action) -> tuple[str, str]:
    return action.kind, action.target
