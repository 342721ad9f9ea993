"""Which evictions repair what is broken: only pods whose next one has a strictly better place.

In: a snapshot, its report, and a way to judge the snapshot as it would be. Out: one eviction after another, each judged
on the outcome of those before it; and findings that no eviction ends, with the reasons. Pure. An eviction is worth it
where the pod, made anew by its owner, has a feasible node on which fewer pods break a rule than now and no pod breaks
one that it did not break before; and no node that its scheduler may choose leaves more broken than now.

Only pods go whose own rule is broken (`refusers.py`), of each group the fewest (`fewest.py`), of equal choices the
lowest priority, then the youngest. May the pod be evicted at all: `evictable.py`. When, and how many at once: the
decider.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.repair.evictable import EvictionTerms, why_never
from underhost.agents.repair.reached import ReachedRules
from underhost.agents.repair.refusers import Broken, BrokenGroup, Faults, groups_of, rather
from underhost.agents.schedule.places import Places, RunningPod
from underhost.agents.site.owners import Application, application_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import Report
from underhost.schemas.kubernetes import Pod
from underhost.schemas.records import Finding, pods_named
from underhost.schemas.severities import CO_LOCATED, REPAIRABLE, ROWS, UNSATISFIABLE

NEVER_MORE = (*REPAIRABLE, UNSATISFIABLE)
"""Severities of which an eviction never makes a new one."""
RULES = tuple(severity for severity in NEVER_MORE if severity != CO_LOCATED)
"""Those of them that a rule is behind."""
NO_BETTER = "no other node would take it and mend anything without breaking something else"
BESIDE = "the next one would share its host with all its other replicas"
MAYBE_WORSE = "its scheduler may put the next one where more is broken than now"
GOES = "it goes already"
VAIN = 16  # unequal pods of one group that are thought through in vain before it is left
PLACES = 16  # feasible nodes that are tried for a pod whose scheduler chooses by itself
Fact = tuple[str, str, str, str, str, str]  # severity, rule, source, key, value, pod


@dataclass(frozen=True)
class Candidate:
    """A pod that may go.

    `host` is its ESXi host's id, or "node/NAME" while that is unknown; `broken` the facts' beginning that it shares
    with its group: severity, rule, source, key, value.
    """

    pod: str
    object: Pod
    node: str
    host: str
    application: Application
    finding: Finding
    broken: Broken


@dataclass(frozen=True)
class Repair:
    """Evict the candidate: the next one has a place on node `to`.

    `choices` are the hosts on which its scheduler may put it; infinite where that is ours, which takes `to`.
    """

    candidate: Candidate
    to: str
    choices: float = math.inf


@dataclass(frozen=True)
class Left:
    """No eviction ends the finding; `reasons` by pod. `ids` are those of all findings that are one matter with it."""

    finding: Finding
    ids: list[str]
    reasons: dict[str, str]


def facts_of(findings: Iterable[Finding], severities: Iterable[str] = NEVER_MORE) -> frozenset[Fact]:
    """Which pod breaks what where: groups may split and merge, this stays comparable."""
    wanted = frozenset(severities)
    return frozenset(
        (*broken_of(finding), pod) for finding in findings if finding.severity in wanted for pod in pods_named(finding)
    )


def badness_of(facts: Iterable[Fact]) -> tuple[int, ...]:
    """How much is broken, by severity, the worst first; compared."""
    counts = Counter(severity for severity, *_ in facts)
    return tuple(counts[row.name] for row in ROWS)


def broken_of(finding: Finding) -> Broken:
    """What is broken, and where."""
    key, value = ("", finding.node or "") if finding.domain is None else (finding.domain.key, finding.domain.value)
    return finding.severity, finding.rule, finding.source or "", key, value


class Repairs:
    """Looks for repairs of one picture.

    Args:
        report: the snapshot's. evaluator: judges a snapshot as it would be.
        may: whether this pod may go now; where not, the finding waits.
        effort: snapshots that are judged at most, by and large.
        everywhere: an eviction counts only where, besides, the finding ends and no rule is newly broken on every node
            that the next pod may land on.

    Attributes:
        exhausted: the effort was not enough for all findings.
        snapshot: the site once all repairs that were told of are done.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        report: Report,
        evaluator: SiteEvaluator,
        terms: EvictionTerms,
        *,
        may: Callable[[Candidate], bool] = lambda candidate: True,
        effort: int = 1 << 30,
        everywhere: bool = False,
    ) -> None:
        self._everywhere = everywhere
        self._snapshot, self._terms, self._evaluator, self._may = snapshot, terms, evaluator, may
        self._effort = effort
        self._facts = facts_of(report.findings)
        self._going = set[str]()
        self._kept: Places | None = None
        self.exhausted = False

    def of(self, findings: Sequence[Finding]) -> Iterator[Repair | Left]:
        """What to do about these findings of the report, in their order. Raises BadObjectError."""
        for group in groups_of(findings, broken_of):
            if group.finding.severity in self._terms.severities:
                if self._effort <= 0:
                    self.exhausted = True
                    return
                yield from self._break(group)

    @property
    def snapshot(self) -> Snapshot:
        """See the class."""
        return self._snapshot

    @property
    def _places(self) -> Places:
        if self._kept is None:
            self._kept = Places(self._evaluator.state(self._snapshot), self._terms.schedulers)
        return self._kept

    def _break(self, group: BrokenGroup) -> Iterator[Repair | Left]:
        never: dict[str, str] = {}
        vain = set[RunningPod]()
        helped = False
        while members := [pod for pod in group.pods if (*group.broken, pod) in self._facts]:
            if any(self._snapshot.pods[pod].metadata.deletion_timestamp is not None for pod in members):
                return  # what is leaving may end it
            chosen = self._chosen(group, members, never)
            if not chosen or len(vain) > VAIN:
                if not helped:
                    yield Left(group.finding, group.ids, never)
                return
            candidates = (self._candidate(pod, group) for pod in chosen)
            candidate = next((one for one in candidates if self._may(one)), None)
            if candidate is None:
                return
            here = self._places.where(candidate.pod)
            better = NO_BETTER if here in vain else self._better(candidate, here.node)
            if isinstance(better, str):
                vain.add(here)
                never[candidate.pod] = better
            else:
                vain.clear()
                helped = True
                self._going.add(candidate.pod)
                yield better

    def _chosen(self, group: BrokenGroup, members: Sequence[str], never: dict[str, str]) -> list[str]:
        """The members to evict, in the order in which they rather go; the reasons of those that may not go."""
        pods = self._snapshot.pods
        for pod in members:
            why = GOES if pod in self._going else why_never(self._snapshot, pods[pod], self._terms)
            if why is not None:
                never.setdefault(pod, why)
        if all(pod in never for pod in members):
            return []
        faults = Faults(self._places, group.finding, members, pods)
        for pod, why in faults.innocent.items():
            never.setdefault(pod, why)
        able = rather({pod: pods[pod] for pod in members if pod not in never})
        return faults.preferred(able) if able else []

    def _candidate(self, pod: str, group: BrokenGroup) -> Candidate:
        found = self._snapshot.pods[pod]
        application = application_of(self._snapshot, found)
        assert application is not None  # pods without an owner are never evicted
        node = found.spec.node_name
        return Candidate(pod, found, node, self._host(node), application, group.finding, group.broken)

    def _host(self, node: str) -> str:
        """The host's id, or "node/NAME" while that is unknown."""
        joined = self._snapshot.node_hosts.get(node)
        return joined.host if joined is not None and joined.host else f"node/{node}"

    def _better(self, candidate: Candidate, here: int) -> Repair | str:
        """The repair, after which the next pod counts as running in its place; why there is none."""
        names, scheduler = self._places.model.nodes.names, candidate.object.spec.scheduler_name
        # Our own scheduler takes the first; of others nobody knows.
        ours = scheduler in self._terms.ours
        kinds: list[int] = []
        if self._everywhere and not ours:
            best, kinds, is_safe = self._places.landings(candidate.pod, self._mates(candidate))
            if not is_safe or here in best:
                return MAYBE_WORSE
        else:
            best = self._places.best(candidate.pod)
        best = best[: 1 if ours else PLACES]
        choices = math.inf if ours else len({self._host(names[node]) for node in (*best, *kinds)})
        before, found, beside = badness_of(self._facts), None, False
        for node in dict.fromkeys((*best, *kinds)):
            if node == here or (found is not None and kinds and node not in kinds):
                continue
            would_be, facts = self._as_if(candidate, names[node])
            if not ours and badness_of(facts) > before:
                return MAYBE_WORSE
            gone = (*candidate.broken, candidate.pod) not in facts
            mends = gone and _ruled(facts) < _ruled(self._facts)
            if self._everywhere and not mends:
                return NO_BETTER if ours else MAYBE_WORSE
            if found is None and gone and facts < self._facts and node in best:
                found = names[node], would_be, facts
            beside = beside or mends
        if found is None:
            return BESIDE if beside else NO_BETTER
        to, self._snapshot, self._facts = found
        self._kept = None
        return Repair(candidate, to, choices)

    def _mates(self, candidate: Candidate) -> Iterator[str]:
        """The pods of its application."""
        snapshot, namespace = self._snapshot, candidate.application.namespace
        for key, pod in snapshot.pods.items():
            if pod.metadata.namespace == namespace and application_of(snapshot, pod) == candidate.application:
                yield key

    def _as_if(self, candidate: Candidate, node: str) -> tuple[Snapshot, frozenset[Fact]]:
        """The site, and what is broken there, with the candidate on this node."""
        spec = msgspec.structs.replace(candidate.object.spec, node_name=node)
        moved = msgspec.structs.replace(candidate.object, spec=spec)
        would_be = replace(self._snapshot, pods={**self._snapshot.pods, candidate.pod: moved})
        self._effort -= 1
        self._kept = None
        findings = self._evaluator.update(would_be).findings
        facts = facts_of(findings)
        if new := facts - self._facts:
            told_of = [one for one in findings if not new.isdisjoint(facts_of([one]))]
            rules = ReachedRules(self._evaluator.state(would_be).model)
            facts -= new - facts_of(rules.counted(told_of))
        return would_be, facts


def _ruled(facts: frozenset[Fact]) -> frozenset[Fact]:
    """Those of the facts that a rule is behind."""
    return frozenset(fact for fact in facts if fact[0] in RULES)
