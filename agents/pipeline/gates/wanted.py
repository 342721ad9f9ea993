"""The commands that the decisions of this run stand by: no other command of its own kinds is carried out.

In: what each evaluation of the site orders, and which commands of earlier runs it would order again. Out: whether a
command is still wanted. The topics bring commands back after a crash, and bring those of a worker that does not know
yet that the site is another's; either may be wrong by now. A topic may also hold a command twice. So the cycle says
what it stands by before it publishes, and a command of before waits for the first decisions of this run.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from underhost.agents.pipeline.gates.may_write import Gate
from underhost.agents.sinks.orders import REFUSED, outcome
from underhost.schemas.records import Action, Outcome

SUPERSEDED = "it was ordered before a restart or by another worker, and is not what is wanted now"
REMEMBERED = 5_000
"""Commands that have their outcome and are not carried out twice; and commands of other kinds that are known."""


class _CountedOrder(NamedTuple):
    """A command, and how often it was ordered and not carried out yet."""

    id: str
    times: int


class WantedCommands(Gate):
    """Of one site. `kinds` are those that this worker decides and carries out; of what another worker decides it is
    told nothing, and what another worker carries out is never done here."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = frozenset(kinds)
        self._began = 0.0
        self._ordered: dict[tuple[str, str], _CountedOrder] = {}
        self._done: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._others: OrderedDict[str, None] = OrderedDict()
        self._earlier: frozenset[str] = frozenset()
        self._decided = asyncio.Event()

    def knows(self, action: Action) -> bool:
        """Whether this run decides commands of this kind, or has decided this very one.

        The id of a command that is not refused as forged is a digest of all that it says.
        """
        return action.kind in self._kinds or action.id in self._others

    def begin(self) -> None:
        """The site's partition is held from now on."""
        self._began = time.time()

    def end(self) -> None:
        """The partition may move: what was decided is nobody's any more."""
        self._decided.clear()
        self._ordered.clear()
        self._done.clear()
        self._others.clear()

    def forget(self, kinds: Collection[str]) -> None:
        """Another worker may carry out these kinds: what was ordered is not wanted any more."""
        self._ordered = {place: one for place, one in self._ordered.items() if place[0] not in kinds}

    def order(self, actions: Iterable[Action]) -> None:
        """This run is about to order these. Of each target the newest command counts."""
        for action in actions:
            if action.kind in self._kinds:
                place = action.kind, action.target
                self._ordered[place] = _CountedOrder(action.id, self._times(action) + 1)
                self._done.pop(place, None)
            else:
                self._others[action.id] = None
                if len(self._others) > REMEMBERED:
                    self._others.popitem(last=False)

    def decide(self, actions: Iterable[Action], earlier: Collection[str]) -> None:
        """One evaluation orders `actions`; `earlier` are the ids of commands of earlier runs that it would order again.

        Only the first evaluation tells of those: what is not among them then is refused, and ordered anew.
        """
        self.order(actions)
        if not self._decided.is_set():
            self._earlier = frozenset(earlier)
            self._decided.set()

    def done(self, action: Action) -> None:
        """The command has its outcome.

        The decider may have read that it failed, and have ordered the very same, before this is called.
        """
        place, times = (action.kind, action.target), self._times(action)
        if times > 1:
            self._ordered[place] = _CountedOrder(action.id, times - 1)
        elif action.kind in self._kinds and (times or place not in self._ordered):
            self._ordered.pop(place, None)
            self._done[place] = action.id
            if len(self._done) > REMEMBERED:
                self._done.popitem(last=False)

    def was_done(self, action: Action) -> bool:
        """Whether it has its outcome already, and was not ordered again: it comes because the topic holds it twice.

        What it did the first time, the decider has gone on from.
        """
        return self._done.get((action.kind, action.target)) == action.id

    def is_of_this_run(self, action: Action, at: float) -> bool:
        """Whether it was ordered since the partition is ours; where others decide, only its time `at` can tell."""
        return self._is_ordered(action) if action.kind in self._kinds else at >= self._began

    def refuses(self, action: Action) -> Outcome | None:
        """See `Gate.refuses`."""
        if self.is_unsure(action) or action.kind not in self._kinds:
            return None
        return None if self._is_ordered(action) or action.id in self._earlier else outcome(action, REFUSED, SUPERSEDED)

    def is_unsure(self, action: Action) -> bool:
        """See `Gate.is_unsure`: of a command that is not of this run, before the first decisions of this run."""
        return action.kind in self._kinds and not self._is_ordered(action) and not self._decided.is_set()

    async def settled(self, action: Action) -> None:
        """See `Gate.settled`."""
        await self._decided.wait()

    def _is_ordered(self, action: Action) -> bool:
        return self._times(action) > 0

    def _times(self, action: Action) -> int:
        """How often it was ordered and not carried out yet."""
        known = self._ordered.get((action.kind, action.target))
        return known.times if known is not None and known.id == action.id else 0
