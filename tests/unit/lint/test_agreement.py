"""What lint says can never be placed, the evaluator places nowhere; and as many wait as lint says."""

import io
import itertools
import re

import pytest
from oracle import generate
from support.answers.lint import Written, documents, report_of, zones
from support.build import HOST, ZONE, a_manifest, a_node, app, labelled, spread, term

from underhost.agents.lint.report import lint
from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import Report
from underhost.streams.files.reader import load_files

STUCK = {"node-affinity-unmet", "node-affinity-without-terms", "affinity-unmet", "taints-untolerated"}


def read(objects: list[Written]) -> tuple[Snapshot, Report]:
    objects_read = load_files(["-"], stdin=io.BytesIO(documents(*objects).encode()))
    snapshot, _ = snapshot_of(objects_read)
    return snapshot, lint(snapshot, Options(), objects_read.others)


def stuck(report: Report) -> list[str]:
    """The pods that lint says cannot be placed."""
    return sorted(
        {
            (one.object or "").removeprefix("Pod/")
            for one in report.findings
            if one.source in STUCK
            or (one.source == "topology-key-absent" and "podAntiAffinity" not in (one.field or ""))
            or (one.source == "selector-null" and "podAffinity" in (one.field or ""))
        }
    )


def test_no_node_is_feasible_for_a_pod_that_lint_says_cannot_be_placed() -> None:
    judged = 0
    for seed in range(30):
        snapshot, report = read(generate.document(seed)["items"])
        names = [name for name in stuck(report) if name in snapshot.pods]
        for name, verdict in explain(snapshot, Options(), names).pods.items():
            judged += 1
            assert [node for node, one in verdict.nodes.items() if one.feasible] == [], (seed, name)
    assert judged > 50


def waiting(objects: list[Written]) -> int:
    snapshot, _ = read(objects)
    return sum(node is None for node in schedule(snapshot, Options()).placements.values())


def said(objects: list[Written], check: str) -> int:
    """How many pods lint says can never be placed."""
    for one in report_of(objects).findings:
        if one.source == check:
            found = re.search(r"(\d+) can never be placed", one.message)
            return int(found[1]) if found else -1
    return 0


@pytest.mark.parametrize("key", [HOST, ZONE])
def test_as_many_replicas_wait_as_there_are_domains_too_few(key: str) -> None:
    for count, replicas in itertools.product((1, 2, 3, 4), (1, 2, 3, 5, 7)):
        objects = [*zones(*"abca"[:count]), a_manifest(replicas=replicas).apart(term(key, app("db")))]
        assert said(objects, "replicas-exceed-domains") == waiting(objects), (count, replicas)


def test_where_a_node_lacks_the_key_any_number_fits() -> None:
    objects = [*zones("a", "b", ""), a_manifest(replicas=9).apart(term(ZONE, app("db")))]
    assert (said(objects, "replicas-exceed-domains"), waiting(objects)) == (0, 0)


@pytest.mark.parametrize("tainted", [0, 1])
@pytest.mark.parametrize("policy", ["Ignore", "Honor"])
@pytest.mark.parametrize("selected", [False, True], ids=["any zone", "all zones but c"])
def test_as_many_replicas_wait_as_a_spread_has_no_room_for(tainted: int, policy: str, selected: bool) -> None:
    nodes = [
        *zones("a", "b", "c"),
        *(a_node("t").labels({ZONE: "d"}).tainted("dedicated=x:NoSchedule") for _ in range(tainted)),
    ]
    spread_out = a_manifest().node_terms(labelled(ZONE, "NotIn", "c")) if selected else a_manifest()
    for skew, least, replicas in itertools.product((1, 2), (None, 2, 3, 4, 5), (1, 2, 3, 4, 6, 9)):
        more = {} if least is None else {"minDomains": least}
        one = spread(ZONE, app("db"), skew=skew, nodeTaintsPolicy=policy, nodeAffinityPolicy=policy, **more)
        objects = [*nodes, spread_out.put("spec", "replicas", value=replicas).spreads(one)]
        assert said(objects, "spread-exceeds-domains") == waiting(objects), (skew, least, replicas)
