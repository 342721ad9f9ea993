"""What a source does not believe of its server's answers, until a person accepts it.

In: the objects that a list or an update no longer shows, and a person's confirmation. Out: lines for markers, metrics
and people. A doubt lasts even when all objects are back: somebody should look at a server that showed nothing for a
while before anything is written again. How many objects are too many is decided in `reconcile.py`; that nothing is
written meanwhile, in `agents/pipeline/gates`.
"""

from collections.abc import Collection, Iterable

from underhost.streams.log import structlog

log = structlog.get_logger("underhost.watch")


class Doubts:
    """The doubts of one source, or of one kind of its objects.

    Attributes:
        lines: one line for each collapse that nobody has accepted; empty without a doubt.
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
        """Take over the doubt that the topics carry from an earlier run: nobody has accepted it since."""
        if doubt and not self.lines:
            self.see([doubt])

    def see(self, lines: Iterable[str], missing: Collection[str] = ()) -> None:
        """Note what the newest list lacks and is not believed to lack; no lines where the list is complete."""
        self.missing = frozenset(missing) - self.accepted  # somebody may have accepted it while it was judged
        if (now := list(lines)) and (self.missing or not missing):
            for line in now:
                if line not in self.lines:
                    log.error("list not believed", **self._context, reason=line)
            self.lines = now

    def accept(self) -> list[str]:
        """A person confirms that what is missing is gone. Returns the lines that this settles."""
        settled, self.lines = self.lines, []
        self.accepted |= self.missing
        self.missing = frozenset()
        if settled:
            log.warning("accepted by hand", **self._context, reason="; ".join(settled), objects=len(self.accepted))
        return settled

    def settle(self, accepted: Iterable[str]) -> None:
        """These accepted objects have been deleted, or have appeared again."""
        self.accepted -= frozenset(accepted)
