"""Every rule exposes the same interface, so that loop, explain and checks need not know any of them."""

from pathlib import Path

import numpy as np
import pytest
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, spread, term
from support.storage import claim, csi_node, stored, uses, volume

from underhost.agents.compiled.model import compile
from underhost.agents.compiled.state import State
from underhost.agents.rules import REGISTRY
from underhost.agents.rules.rule import UNRESOLVABLE, UNSCHEDULABLE, Prepared, Refusal
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options

UPSTREAM_FILTER_ORDER = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
]
REFUSING = [name for name, rule in REGISTRY.items() if any(constant.startswith("REASON_") for constant in vars(rule))]
USERS = "UserNamespacesHostNetworkSupport"
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def state() -> State:
    """Two nodes, one of them refused by nearly every rule for the pending pod."""
    busy = {"containerPort": 1, "hostPort": 80}
    disk = [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}, *uses("c")]
    there = a_pod("there").labels(app="db").ports(busy).spec(volumes=disk).on("bad")
    pod = (
        a_pod("new")
        .labels(app="db")
        .containers({"ports": [busy], "resources": {"requests": {"cpu": "2"}}})
        .spec(volumes=[*disk, *uses("d")], hostNetwork=True, hostUsers=False)
        .apart(term(HOST, app("db")))
        .spreads(spread(ZONE, app("db"), nodeAffinityPolicy="Ignore"))
        .node_terms({"matchExpressions": [{"key": "good", "operator": "Exists"}]})
    )
    bad = a_node("bad").zone("a").has(cpu="1").cordoned().tainted("k=v:NoSchedule")
    good, shared = (
        a_node(name).zone("b").labels(good="yes").put("status", "declaredFeatures", value=[USERS])
        for name in ("good", "shared")
    )
    hosts = {"bad": "h1", "shared": "h1", "good": "h2"}
    behind = volume("v", ["good"], labels={ZONE: "b"})
    site = a_site(bad, good, shared, there, pod, on=hosts)
    site = stored(site, claim("c", "v"), claim("d", "w"), behind, volume("w"), csi_node("bad", count=1))
    return State(compile(site, Options(physical_host="required")))


def prepared_for_the_pod(name: str) -> tuple[Request, Prepared | None]:
    """What the rule says for the one pending pod, and what that pod requests."""
    here = state()
    pending = here.model.pending[0]
    return here.model.requests[pending.request], REGISTRY[name].prepare(here, here.model.classes[pending.cls])


def test_one_file_per_rule_named_by_the_rule() -> None:
    import underhost.agents.rules as package

    rules = [path for path in Path(package.__path__[0]).glob("*.py") if "\nNAME = " in path.read_text()]
    files = {path.stem for path in rules}
    assert {file.replace("_", "") for file in files} == {name.lower() for name in REGISTRY}


def test_the_registry_is_in_upstreams_filter_order_and_ours_comes_last() -> None:
    assert [name for name in REGISTRY if name in UPSTREAM_FILTER_ORDER] == UPSTREAM_FILTER_ORDER
    assert list(REGISTRY)[-1] == "PhysicalHost"


def test_weights_are_those_of_the_default_profile() -> None:
    assert {name: rule.WEIGHT for name, rule in REGISTRY.items() if rule.WEIGHT} == WEIGHTS


@pytest.mark.parametrize("name", list(REGISTRY))
def test_a_prepared_rule_answers_per_node_in_the_same_types(name: str) -> None:
    request, prepared = prepared_for_the_pod(name)
    if prepared is None:
        assert name in ("SchedulingGates", "NodeName")
        return
    assert isinstance(prepared, Prepared)
    for where, size in ((slice(None), 3), (np.array([2, 0]), 2)):
        codes = prepared.refuse(request, where)
        assert codes is None or (codes.dtype == np.int8 and codes.shape == (size,))
        conflicts = prepared.conflicts(where)
        assert conflicts is None or (conflicts.dtype == np.int64 and conflicts.shape == (size,))
    score = prepared.score(request, np.array([1, 2]))
    assert score is None or isinstance(score, int) or (score.dtype == np.int64 and score.shape == (2,))
    assert isinstance(prepared.skips(), bool)


@pytest.mark.parametrize("name", [name for name in REFUSING if name != "SchedulingGates"])
def test_every_code_has_reasons_and_the_tally_and_the_loop_agree_with_them(name: str) -> None:
    request, prepared = prepared_for_the_pod(name)
    codes = prepared.refuse(request, slice(None)) if prepared is not None else None
    if prepared is None or codes is None:
        assert name == "NodeName"
        return
    refused = np.flatnonzero(codes)
    assert len(refused), "the cluster of this test is meant to be refused by the rule"
    counted: dict[str, int] = {}
    for node in refused.tolist():
        refusal = prepared.explain(int(codes[node]), request, node)
        assert isinstance(refusal, Refusal) and refusal.code in (UNSCHEDULABLE, UNRESOLVABLE) and refusal.reasons
        for reason in refusal.reasons:
            counted[reason] = counted.get(reason, 0) + 1
    assert prepared.tally(codes[refused], request, refused) == counted
    mask = np.ones(3, bool)
    prepared.exclude(request, mask)
    assert (mask == (codes == 0)).all()


def test_the_rules_that_refuse_are_upstreams_filters_gates_and_ours() -> None:
    assert set(REFUSING) >= {*UPSTREAM_FILTER_ORDER, "PhysicalHost", "SchedulingGates"}


@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in REFUSING])
def test_a_rule_without_reasons_refuses_no_node(name: str) -> None:
    request, prepared = prepared_for_the_pod(name)
    assert prepared is not None
    codes = prepared.refuse(request, slice(None))
    assert codes is None or not codes.any()
