"""What a source does not believe of its server's answers, until a person accepts it.

In: what a list or an update shows to be missing, and a person's word. Out: the lines for markers, metrics and people.
Held by each source (live watchers, followers, files). A doubt lasts, even when all objects are back: a server that
showed nothing for a while is a reason to look before anything is written again. What counts as a collapse is
`reconcile.py`'s; that nothing is written meanwhile is the guards' (`agents/pipeline/gates/guards.py`).
"""

from collections.abc import Collection, Iterable

import structlog

log = structlog.get_logger("underhost.watch")


class Doubts:
    """The doubts of one source, or of one kind of its objects.

    Attributes:
        lines: one line for each collapse that nobody has accepted; empty when all is well.
        missing: keys of the objects that are held though they are not shown any more.
        accepted: keys that a person has said are gone, until they have been deleted.
    """

    def __init__(self, **context: str) -> None:
        self.lines: list[str] = []
        self.missing: frozenset[str] = frozenset()
        self.accepted: frozenset[str] = frozenset()
        self._context = context

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "; ".join(self.lines)

    def recall(self, doubt: str) -> None:
        """What the topics say that an earlier run did not believe: nobody has accepted it since."""
        if doubt and not self.lines:
            self.see([doubt])

    def see(self, lines: Iterable[str], missing: Collection[str] = ()) -> None:
        """What the newest list shows to be missing beyond belief; nothing, where it is whole again."""
        self.missing = frozenset(missing) - self.accepted  # somebody may have accepted it while it was judged
        if (now := list(lines)) and (self.missing or not missing):
            for line in now:
                if line not in self.lines:
                    log.error("list not believed", **self._context, reason=line)
            self.lines = now

    def accept(self) -> list[str]:
        """A person says that what is missing is gone: the lines that are settled by that."""
        settled, self.lines = self.lines, []
        self.accepted |= self.missing
        self.missing = frozenset()
        if settled:
            log.warning("accepted by hand", **self._context, reason="; ".join(settled), objects=len(self.accepted))
        return settled

    def settle(self, accepted: Iterable[str]) -> None:
        """These that were accepted have been deleted, or are there again."""
        self.accepted -= frozenset(accepted)
