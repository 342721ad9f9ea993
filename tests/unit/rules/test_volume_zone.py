import pytest
from support.answers.rules import refused
from support.build import a_node, a_pod, a_site
from support.storage import Json, claim, storage_class, stored, uses, volume

from underhost.agents.rules.volume_zone import NAME, REASON_CONFLICT, REASON_NO_CLASS, REASON_NO_NAME

ZONE, BETA = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
SITE = a_site(a_node("n1").zone("z1"), a_node("n2").zone("z2"), a_node("bare"), a_pod("p").spec(volumes=uses("c")))


@pytest.mark.parametrize(
    ("labels", "nowhere"),
    [
        pytest.param({ZONE: "z1"}, ["n2"], id="a volume of z1 keeps p off n2 in z2; bare, in no zone, is good"),
        pytest.param({BETA: "z1"}, ["n2"], id="the old label of the volume is held against the nodes' new one"),
        pytest.param({ZONE: "z1__z2"}, [], id="a volume of both zones"),
        pytest.param({ZONE: "z3"}, ["n1", "n2"], id="a volume of a zone without nodes"),
        pytest.param({ZONE: "z3____"}, [], id="a label with an empty zone says nothing"),
        pytest.param({}, [], id="a volume of no zone"),
    ],
)
def test_a_bound_volume_keeps_its_pod_in_its_zone(labels: dict[str, str], nowhere: list[str]) -> None:
    site = stored(SITE, claim("c", "v"), volume("v", labels=labels))
    assert refused(site, "p", NAME) == {name: [REASON_CONFLICT] for name in nowhere}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([claim("other")], 'persistentvolumeclaim "c" not found', id="the claim is missing"),
        pytest.param([claim("c", "v")], 'persistentvolume "v" not found', id="its volume is missing"),
        pytest.param([claim("c", storage_class="")], REASON_NO_CLASS, id="neither volume nor class"),
        pytest.param([claim("c")], 'storageclass.storage.k8s.io "fast" not found', id="its class is missing"),
        pytest.param([claim("c"), storage_class("fast")], REASON_NO_NAME, id="unbound, of a class that binds at once"),
    ],
)
def test_a_claim_without_its_volume_is_refused_on_every_node(objects: list[Json], reason: str) -> None:
    assert refused(stored(SITE, *objects), "p", NAME) == {name: [reason] for name in ("n1", "n2", "bare")}


def test_a_claim_that_waits_for_its_consumer_is_in_no_zone_yet() -> None:
    assert refused(stored(SITE, claim("c"), storage_class("fast", waits=True)), "p", NAME) == {}


def test_without_any_claim_in_the_input_nothing_is_refused() -> None:
    assert refused(a_site(a_node("n1"), a_pod("p").spec(volumes=uses("c"))), "p", NAME) == {}
