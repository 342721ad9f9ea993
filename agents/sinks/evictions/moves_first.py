"""vMotions first: what the evictor asks of whoever moves VMs, which disturbs no pod."""

from typing import Protocol


class Moves(Protocol):
    """Who moves VMs, by findings' ids."""

    def leaves(self, finding: str) -> bool:
        """Whether no vMotion ends it."""

    def hurries(self, finding: str) -> bool:
        """Whether a person waits for its end."""
