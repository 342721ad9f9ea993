"""What a tenant's terms that select a whole site cost when a pod of others comes."""

from dataclasses import replace

import pytest
from support.build import HOST, PodBuilder, a_node, a_pod, a_site, term

from underhost.agents.affinity.separation import Row
from underhost.agents.evaluate import meetings
from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.site.snapshot import Options


def selecting_all(number: int) -> PodBuilder:
    """A pod on n1 whose terms, no two of them alike, select every pod of the site."""
    nobody = [{"matchExpressions": [{"key": f"k{number}-{at}", "operator": "DoesNotExist"}]} for at in range(5)]
    terms = [term(HOST, selector, namespaceSelector={}) for selector in nobody]
    return a_pod(f"all-{number}", "evil").on("n1").apart(*terms)


@pytest.mark.parametrize(("node", "rows"), [("n1", 20 * 5 * 21), ("n2", 0)], ids=["beside them", "on another node"])
def test_a_pod_is_looked_at_only_where_somebody_carries_the_term(
    node: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = a_site(a_node("n1"), a_node("n2"), *map(selecting_all, range(20)), a_pod("db-0", "shop").on("n2"))
    evaluator, made = Evaluator(Options()), list[Row]()
    evaluator.update(there)
    monkeypatch.setattr(meetings, "Row", lambda *fields: made.append(Row(*fields)) or made[-1])
    came = a_pod("db-1", "shop").on(node)
    now = replace(there, pods={**there.pods, came.key: came.build()})
    assert evaluator.update(now) == check(now, Options())
    assert len(made) == rows


def test_separations_that_share_pods_are_one_finding_however_they_come_and_go() -> None:
    site = a_site(a_node("n1"), a_node("n2"), *map(selecting_all, range(6)), a_pod("db-0", "shop").on("n1"))
    evaluator = Evaluator(Options())
    evaluator.update(site)
    for gone in ("evil/all-0", "shop/db-0", "evil/all-3"):
        without = replace(site, pods={key: pod for key, pod in site.pods.items() if key != gone})
        assert evaluator.update(without) == check(without, Options())
        assert evaluator.update(site) == check(site, Options())
