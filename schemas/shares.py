"""What one namespace may have of a site, and how it is said that one asks for more.

In: nothing, or a sentence of an outcome. Out: the shares with their defaults, and `Capped`: who asked for more of what.
Outcomes carry it as a sentence from whoever caps to the evaluator, which names the tenant in a finding.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Shares:
    """The most that one namespace may have; `owner` is the percentage of it that one owner in it may have.

    Attributes:
        terms: terms between pods and spread constraints of one pod that count.
        drs_rules, drs_edits: rules in a vSphere cluster, and changes of them in an hour.
        moves: vMotions for its findings in an hour.
        findings, alerts: that are open, and that fire at a receiver. events: told in a minute.
    """

    terms: int = 64
    drs_rules: int = 500
    drs_edits: int = 60
    moves: int = 60
    findings: int = 1000
    alerts: int = 200
    events: int = 300
    owner: int = 20

    def of_owner(self, share: int) -> int:
        """What one owner may have of its namespace's share; one at least."""
        return max(1, share * self.owner // 100)


class Capped(NamedTuple):
    """Somebody who asked for more than the share.

    Attributes:
        setting: under `shares`, as it is written in the configuration.
        namespace, owner: who; `owner` is "" where it is the whole namespace.
        told: what was left out, a clause for people.
    """

    setting: str
    namespace: str
    owner: str
    told: str

    def __str__(self) -> str:
        who = f"{self.owner} of namespace {self.namespace}" if self.owner else f"namespace {self.namespace}"
        return f"{who} has its share (shares.{self.setting}): {self.told}"


_SAID = re.compile(r"(?:(?P<owner>\S+) of )?namespace (?P<namespace>\S+) has its share \(shares\.(?P<setting>\w+)\): ")


def capped_of(said: str) -> Capped | None:
    """What a sentence says; None for any other."""
    found = _SAID.match(said)
    if found is None:
        return None
    return Capped(found["setting"], found["namespace"], found["owner"] or "", said[found.end() :])
