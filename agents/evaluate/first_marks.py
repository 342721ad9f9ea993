"""What a whole site has to be looked at for, swept at once: the marks of a resident evaluator's first report.

In: a live model as it begins. Out: `Marks`, of what the parts of the full check find anything at; nothing else can hold
a finding. The findings themselves are the judges': they keep them place by place.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.site import CompiledSite
from underhost.agents.evaluate import violations as v
from underhost.agents.evaluate.groups import Place
from underhost.agents.evaluate.judge import Judge
from underhost.agents.evaluate.marks import Marks
from underhost.agents.evaluate.nodes import node_drift
from underhost.agents.evaluate.relations import Relations
from underhost.agents.evaluate.sweep import Meeting, meetings
from underhost.agents.rules.separation import INTER_POD_AFFINITY, Separation, SeparationId
from underhost.agents.site.snapshot import Snapshot


def marks_of(snapshot: Snapshot, live: CompiledSite, relations: Relations) -> Marks:
    """All that has to be judged."""
    model, marks = live.model, Marks()
    judge = Judge(model, live.state)
    for finding in (*v.alone_findings(snapshot, judge), *v.eviction_findings(snapshot, judge)):
        assert finding.pod is not None and finding.node is not None
        marks.pods.add(finding.pod)
        marks.nodes.add(finding.node)
    marks.nodes.update(finding.node for finding in node_drift(snapshot, model) if finding.node is not None)
    marks.hosts.update(snapshot.nodes)
    marks.near.update(cls.id for cls in model.classes if cls.required_affinity)
    marks.spread.update(cls.id for cls in model.classes if cls.hard)
    by_key: defaultdict[tuple[str, str], list[SeparationId]] = defaultdict(list)
    for at in relations.every():
        by_key[at.rule, at.key].append(at)
    hosts = model.topology.hosts
    for (rule, key), ats in by_key.items():
        domains, apart = model.topology.of(key), _separations(relations, ats)
        if rule == INTER_POD_AFFINITY:
            marks.broken.update(_places(apart, domains, meetings(model, domains, None, list(apart))))
        if hosts is not None and not model.topology.is_host_key(key):
            marks.undone.update(_places(apart, hosts, meetings(model, hosts, domains, list(apart))))
    return marks


def _separations(relations: Relations, ats: list[SeparationId]) -> dict[Separation, list[SeparationId]]:
    """Separations whose two sides are not empty; several selectors may make one."""
    found: defaultdict[Separation, list[SeparationId]] = defaultdict(list)
    for at in ats:
        one = relations.separation(at)
        if one.matched:
            found[one].append(at)
    return found


def _places(apart: dict[Separation, list[SeparationId]], domains: Domains, met: Iterable[Meeting]) -> Iterator[Place]:
    values = {code: value for value, code in domains.code_of.items()}
    for meeting in met:
        for at in apart[meeting.separation]:
            yield at, values[meeting.domain]
