from typing import Any

import pytest
from support.build import PodBuilder, a_node, a_pod, a_site, app, term

from underhost.agents.compiled.model import compile
from underhost.agents.schedule.preemption import might_preempt, note
from underhost.agents.site.snapshot import Options

HOST = "kubernetes.io/hostname"


def wants(priority: int, cpu: str = "2", **spec: Any) -> PodBuilder:
    return a_pod("new").needs(cpu=cpu).spec(priority=priority, **spec)


@pytest.mark.parametrize(
    ("pod", "helps"),
    [
        pytest.param(wants(10), True, id="the pod on n1 has a lower priority"),
        pytest.param(wants(0), False, id="nobody has a lower priority"),
        pytest.param(wants(10, preemptionPolicy="Never"), False, id="a pod that never preempts"),
        pytest.param(wants(10, cpu="9"), False, id="n1 would be too small if it were empty"),
        pytest.param(wants(10, nodeSelector={"disk": "ssd"}), False, id="n1 is no node for it at all"),
        pytest.param(wants(10, schedulingGates=[{"name": "g"}]), False, id="a gated pod"),
        pytest.param(
            a_pod("new").spec(priority=10).apart(term(HOST, app("db"))), True, id="only anti-affinity keeps it off n1"
        ),
    ],
)
def test_evicting_the_pod_on_n1_would_let_a_pending_pod_in(pod: PodBuilder, helps: bool) -> None:
    there = a_pod("there").labels(app="db").needs(cpu="2").on("n1")
    site = a_site(a_node("n1").has(cpu="2"), there, pod)
    assert might_preempt(site, compile(site, Options()), ["shop/new"]) == (["shop/new"] if helps else [])


def test_one_note_names_the_first_pods() -> None:
    pods = [a_pod(f"p{i}").needs(cpu="2").spec(priority=10) for i in range(5)]
    site = a_site(a_node("n1").has(cpu="2"), a_pod("there").needs(cpu="2").on("n1"), *pods)
    assert note(site, compile(site, Options()), [f"shop/p{i}" for i in range(5)]) == (
        "preemption is not considered: pods of lower priority run on nodes that are refused only for what runs there, "
        "for shop/p0, shop/p1, shop/p2 and 2 more"
    )
    assert note(site, compile(site, Options()), []) is None
