"""vMotions first: what the evictor asks of whoever moves VMs, which disturbs no pod."""

from typing import Protocol

from underhost.schemas.records import Finding


class Moves(Protocol):
    """Who moves VMs."""

    def leaves(self, finding: Finding) -> bool:
        """Whether no vMotion ends it, or none is made for it."""

    def hurries(self, finding: str) -> bool:
        """Whether a person waits for the end of the finding with this id."""
