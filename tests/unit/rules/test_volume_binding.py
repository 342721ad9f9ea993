import pytest
from support.answers.rules import refused
from support.build import a_node, a_pod, a_site, nodes
from support.storage import Json, claim, storage_class, stored, uses, volume

from underhost.agents.rules import volume_binding as rule
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options

NO_PROVISIONER = "kubernetes.io/no-provisioner"
SITE = a_site(*nodes("n1", "n2"), a_pod("p").spec(volumes=uses("c")))
LOCAL = storage_class("local", waits=True, provisioner=NO_PROVISIONER)
WAITS = storage_class("fast", waits=True)


def free(name: str, *hosts: str, **more: str) -> Json:
    return volume(name, list(hosts) or None, storage_class="local", phase="Available", **more)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([claim("x")], 'persistentvolumeclaim "c" not found', id="the claim is missing"),
        pytest.param([claim("c"), storage_class("fast")], rule.REASON_IMMEDIATE, id="unbound, and to be bound at once"),
        pytest.param([claim("c")], rule.REASON_IMMEDIATE, id="unbound, of a class that is not there"),
        pytest.param(
            [claim("c", "v", meta={"annotations": {}}), WAITS],
            rule.REASON_IMMEDIATE,
            id="bound beforehand, not yet done",
        ),
        pytest.param(
            [claim("c", "v", phase="Lost")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
            id="the claim has lost its volume",
        ),
        pytest.param(
            [claim("c", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "c" is being deleted',
            id="the claim is being deleted",
        ),
        pytest.param([claim("c", "v")], rule.REASON_NO_VOLUME, id="the bound volume is not there"),
        pytest.param(
            [claim("c", storage_class="local"), LOCAL], rule.REASON_BIND_CONFLICT, id="no volume, and nobody makes one"
        ),
    ],
)
def test_p_is_refused_everywhere(objects: list[Json], reason: str) -> None:
    assert refused(stored(SITE, *objects), "p", rule.NAME) == {"n1": [reason], "n2": [reason]}


def test_a_bound_volume_that_only_n1_reaches_keeps_p_off_n2() -> None:
    site = stored(SITE, claim("c", "v"), volume("v", ["n1"]))
    assert refused(site, "p", rule.NAME) == {"n2": [rule.REASON_NODE_CONFLICT]}


@pytest.mark.parametrize(
    ("objects", "nowhere"),
    [
        pytest.param([free("v", "n1")], ["n2"], id="a free volume on n1"),
        pytest.param([free("v")], [], id="a free volume that every node reaches"),
        pytest.param([free("v", "n1", size="512Mi")], ["n1", "n2"], id="a volume that is too small"),
        pytest.param([free("v", "n1", mode="ReadWriteMany")], ["n1", "n2"], id="a volume of another access mode"),
        pytest.param(
            [free("v", "n1", owner="c"), free("w", "n2")], ["n2"], id="one kept for the claim, though w is free"
        ),
        pytest.param([free("v", "n1", owner="other")], ["n1", "n2"], id="a volume that is kept for another claim"),
    ],
)
def test_a_waiting_claim_takes_a_volume_where_there_is_one(objects: list[Json], nowhere: list[str]) -> None:
    site = stored(SITE, claim("c", storage_class="local"), LOCAL, *objects)
    assert refused(site, "p", rule.NAME) == {name: [rule.REASON_BIND_CONFLICT] for name in nowhere}


@pytest.mark.parametrize(
    ("values", "nowhere"),
    [
        pytest.param([], [], id="everywhere"),
        pytest.param(["n2"], ["n1"], id="in the class's topology only"),
    ],
)
def test_a_volume_is_made(values: list[str], nowhere: list[str]) -> None:
    terms = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": values}]}] if values else []
    site = stored(SITE, claim("c"), storage_class("fast", waits=True, allowedTopologies=terms))
    assert refused(site, "p", rule.NAME) == {name: [rule.REASON_BIND_CONFLICT] for name in nowhere}


def test_a_claim_whose_node_was_chosen_goes_nowhere_else() -> None:
    site = stored(SITE, claim("c", node="n2"), WAITS)
    assert refused(site, "p", rule.NAME) == {"n1": [rule.REASON_BIND_CONFLICT]}


def test_a_bound_and_a_waiting_claim_of_one_pod_both_give_their_reason() -> None:
    site = a_site(*nodes("n1", "n2"), a_pod("p").spec(volumes=uses("c", "d")))
    site = stored(site, claim("c", "v"), volume("v", ["n1"]), claim("d", storage_class="local"), LOCAL)
    assert refused(site, "p", rule.NAME) == {
        "n1": [rule.REASON_BIND_CONFLICT],
        "n2": [rule.REASON_NODE_CONFLICT, rule.REASON_BIND_CONFLICT],
    }


def test_the_first_pod_takes_the_smallest_volume_that_fits_and_the_second_the_other() -> None:
    pods = [a_pod(name).spec(volumes=uses(name)) for name in ("p", "q")]
    claims = [claim(name, storage_class="local") for name in ("p", "q")]
    site = stored(a_site(*nodes("n1", "n2"), *pods), *claims, LOCAL, free("v", "n1", size="9Gi"), free("w", "n1"))
    assert schedule(site, Options()).placements == {"shop/p": "n1", "shop/q": "n1"}
    site = stored(a_site(*nodes("n1", "n2"), *pods), *claims, LOCAL, free("v", "n1"))
    placed = schedule(site, Options())
    assert placed.placements == {"shop/p": "n1", "shop/q": None}
    assert placed.failed == {"shop/q": {rule.REASON_BIND_CONFLICT: 2}}


def test_a_second_pod_of_a_claim_follows_the_first_to_the_node_of_the_new_volume() -> None:
    pods = [a_pod("p").spec(volumes=uses("c")), a_pod("q").spec(volumes=uses("c")).needs(cpu="1")]
    placed = schedule(stored(a_site(*nodes("n1", "n2"), *pods), claim("c"), WAITS), Options())
    assert placed.placements == {"shop/p": "n1", "shop/q": "n1"}


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        pytest.param(
            None, 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"', id="none"
        ),
        pytest.param("uid-x", "PVC shop/p-v was not created for pod shop/p (pod is not owner)", id="another pod's"),
    ],
)
def test_an_ephemeral_volume_needs_its_own_claim(owner: str | None, reason: str) -> None:
    made = {"ownerReferences": [{"kind": "Pod", "name": "x", "uid": owner, "controller": True}]}
    objects = [claim("other")] if owner is None else [claim("p-v", "pv", meta=made | {"annotations": {}})]
    site = a_site(a_node("n1"), a_pod("p").spec(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]))
    assert refused(stored(site, *objects), "p", rule.NAME) == {"n1": [reason]}


def test_of_equally_large_volumes_the_first_by_name_is_taken_in_any_input_order() -> None:
    pods = [a_pod("p").spec(volumes=uses("c")), a_pod("q").spec(volumes=uses("d"))]
    claims = [claim(name, storage_class="local") for name in ("c", "d")]
    both = [free("v"), free("w", "n2")]  # p takes v, so that only w is left for q
    for volumes in (both, both[::-1]):
        placed = schedule(stored(a_site(*nodes("n1", "n2"), *pods), *claims, LOCAL, *volumes), Options())
        assert placed.placements["shop/q"] == "n2"
