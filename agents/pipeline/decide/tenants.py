"""Who asks for more than a share: findings of rule `Tenant`, which name the namespace and what was left out.

In: outcomes in which a sink says so, and what the evaluation itself has capped. Out: findings. What a sink has said
stands for a while after it was said last: nobody says that somebody has come to his senses.
"""

from collections.abc import Collection, Iterable, Sequence

from underhost.agents.evaluate.findings import tenant_finding
from underhost.agents.pipeline.decide.finding_shares import FindingShares
from underhost.agents.sinks.orders import REFUSED
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Finding, Outcome
from underhost.schemas.shares import Capped, Shares, capped_of

KEPT = 1200.0
"""Seconds for which what a sink has said stands; DRS says it every ten minutes."""


class Tenants:
    """Of one site, whose `shares` are these.

    Attributes:
        due: when the next one is forgotten, monotonic seconds; None where there is none.
    """

    def __init__(self, site: str, shares: Shares | None = None) -> None:
        self._site, self._shares = site, FindingShares(shares or Shares())
        self._said: dict[tuple[str, str, str], tuple[Capped, float]] = {}
        self._capped: list[Capped] = []
        self.due: float | None = None

    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of a command; `now` is monotonic seconds."""
        said = capped_of(outcome.reason) if outcome.result == REFUSED else None
        if said is not None:
            self._said[said[:3]] = said, now + KEPT
            self.due = now

    def cap(self, capped: Iterable[Capped], now: float) -> None:
        """What the deciders have capped, as of now; `now` is monotonic seconds."""
        found = list(capped)
        if found != self._capped:
            self._capped, self.due = found, now

    def within_shares(
        self, findings: Sequence[Finding], open_: Collection[str], snapshot: Snapshot, now: float
    ) -> list[Finding]:
        """What is published of the findings, of which those with the ids `open_` are; and everybody who has more."""
        kept, capped = self._shares.within(findings, open_, snapshot)
        return [*kept, *self.findings(now, capped)]

    def findings(self, now: float, more: Iterable[Capped] = ()) -> list[Finding]:
        """Everybody who is capped now, `more` among them."""
        self._said = {who: (said, until) for who, (said, until) in self._said.items() if until > now}
        self.due = min((until for _, until in self._said.values()), default=None)
        found = {who: said for who, (said, _) in self._said.items()} | {
            said[:3]: said for said in (*self._capped, *more)
        }
        return [tenant_finding(self._site, said) for _, said in sorted(found.items())]
