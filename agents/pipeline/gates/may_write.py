"""May this command be carried out now? The gates, which the dispatcher asks in order right before each write.

In: a command whose turn it is. Out: the first refusal, as the command's outcome, or None where every gate lets it
through. The gates of a run are listed once, in `pipeline/run.py`; each is in its own module of this room.

Two checks are no gates. A dry run is the sink's: its outcome says what would have been written. The fence in front of
the writers (`fence.py`) asks for membership once more at each request, for a sink makes several.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from underhost.schemas.records import Action, Outcome


class Gate(ABC):
    """One reason why a command may not be carried out now."""

    @abstractmethod
    def refuses(self, action: Action) -> Outcome | None:
        """What becomes of the command instead; None where the gate lets it through, or cannot tell yet."""

    def is_unsure(self, action: Action) -> bool:
        """Whether the gate cannot tell yet."""
        return False

    async def settled(self, action: Action) -> None:  # noqa: B027 - most gates can always tell
        """Wait until the gate may be able to tell."""

    def answered(self, result: Outcome) -> None:  # noqa: B027 - most gates need not know
        """What became of a command that every gate let through."""


async def refusal(gates: Iterable[Gate], action: Action, *, patient: bool = True) -> Outcome | None:
    """The first gate's refusal, None where there is none. Unless `patient`, no gate is waited for.

    A gate that had to wait sends the command back to the first: much may have changed meanwhile.
    """
    while True:
        for gate in gates:
            if (refused := gate.refuses(action)) is not None:
                return refused
            if patient and gate.is_unsure(action):
                await gate.settled(action)
                break
        else:
            return None
