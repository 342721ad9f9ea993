from typing import Any

import pytest
from support.answers.rules import refused, scores, verdict
from support.build import PodBuilder, a_node, a_pod, a_site

from underhost.agents.rules.node_resources_fit import NAME, REASON_TOO_MANY_PODS
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options
from underhost.schemas.errors import BadObjectError

CPU, MEMORY = "Insufficient cpu", "Insufficient memory"


def container(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def init(**requests: str) -> dict[str, Any]:
    return {"name": "i", "image": "i", **container(**requests)}


def sidecar(**requests: str) -> dict[str, Any]:
    return {**init(**requests), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("pod", "reasons"),
    [
        pytest.param(a_pod("web").needs(cpu="2", memory="4Gi"), [], id="what is left is enough"),
        pytest.param(a_pod("web").needs(cpu="2001m"), [CPU], id="a thousandth of a core too much is refused"),
        pytest.param(a_pod("web").needs(memory="4294967297"), [MEMORY], id="a byte too much is refused"),
        pytest.param(a_pod("web").needs(cpu="3", memory="5Gi"), [CPU, MEMORY], id="every missing resource is a reason"),
        pytest.param(
            a_pod("web").needs(ephemeral_storage="101Gi"), ["Insufficient ephemeral-storage"], id="storage counts"
        ),
        pytest.param(a_pod("web").needs(cpu="0"), [], id="a request of zero always fits"),
        pytest.param(
            a_pod("web").needs(**{"example.com/gpu": "1"}),
            ["Insufficient example.com/gpu"],
            id="an absent resource is 0",
        ),
        pytest.param(
            a_pod("web").needs(storage="1Gi"), [], id="resources that the scheduler does not know do not count"
        ),
        pytest.param(
            a_pod("web").containers(container(cpu="1"), container(cpu="1500m")), [CPU], id="containers are summed up"
        ),
        pytest.param(
            a_pod("web").containers(container(cpu="0.1m"), container(cpu="1999.9m")),
            [],
            id="amounts are rounded up once, after the sum",
        ),
        pytest.param(
            a_pod("web").needs(cpu="1").spec(initContainers=[init(cpu="2"), init(cpu="2")]),
            [],
            id="init containers run one after another: the largest counts",
        ),
        pytest.param(
            a_pod("web").needs(cpu="1").spec(initContainers=[sidecar(cpu="1"), init(cpu="1500m")]),
            [CPU],
            id="a sidecar started before runs beside the init container",
        ),
        pytest.param(
            a_pod("web").needs(cpu="1").spec(initContainers=[init(cpu="2"), sidecar(cpu="1")]),
            [],
            id="a sidecar started later does not",
        ),
        pytest.param(
            a_pod("web").needs(cpu="1").spec(overhead={"cpu": "1100m"}), [CPU], id="the overhead of the runtime counts"
        ),
        pytest.param(
            a_pod("web").needs(cpu="1").spec(resources={"requests": {"cpu": "2500m"}}),
            [CPU],
            id="a request of the pod replaces the sum of its containers",
        ),
    ],
)
def test_a_node_with_half_of_4_cores_and_8_gibibytes_taken(pod: PodBuilder, reasons: list[str]) -> None:
    there = a_pod("there").needs(cpu="2", memory="4Gi").on("n1")
    assert refused(a_site(a_node("n1"), there, pod), "web", NAME) == ({"n1": reasons} if reasons else {})


def test_a_node_that_is_full_of_pods_refuses_even_one_that_requests_nothing() -> None:
    pods = [a_pod(f"there-{i}").on("n1") for i in range(3)]
    assert refused(a_site(a_node("n1").has(pods="3"), *pods, a_pod("web")), "web", NAME) == {
        "n1": [REASON_TOO_MANY_PODS]
    }


def test_what_exceeds_the_node_is_unresolvable_and_what_others_hold_is_not() -> None:
    there = a_pod("there").needs(cpu="3").on("n1")
    snapshot = a_site(a_node("n1"), there, a_pod("big").needs(cpu="5"), a_pod("late").needs(cpu="2"))
    assert verdict(snapshot, "big").nodes["n1"].code == {NAME: "UnschedulableAndUnresolvable"}
    assert verdict(snapshot, "late").nodes["n1"].code == {NAME: "Unschedulable"}


def test_finished_pods_hold_nothing_and_pods_being_deleted_still_do() -> None:
    finished = a_pod("finished").needs(cpu="4").on("n1").finished()
    going = a_pod("going").needs(cpu="4").on("n2").deleted()
    snapshot = a_site(a_node("n1"), a_node("n2"), finished, going, a_pod("web").needs(cpu="1"))
    assert refused(snapshot, "web", NAME) == {"n2": [CPU]}


def test_a_resize_under_way_holds_the_largest_of_its_amounts() -> None:
    amounts = {"name": "c0", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}
    resizing = a_pod("resizing").needs(cpu="1").on("n1").put("status", "containerStatuses", value=[amounts])
    snapshot = a_site(a_node("n1"), resizing, a_pod("web").needs(cpu="1500m"), a_pod("small").needs(cpu="1"))
    assert refused(snapshot, "web", NAME) == {"n1": [CPU]}
    assert refused(snapshot, "small", NAME) == {}


def test_the_emptier_node_scores_higher_with_defaults_where_requests_are_missing() -> None:
    # n1: cpu (4000 − 1000 − 100)·100/4000 = 72, memory (8192 − 2048 − 200)·100/8192 = 72; n2: 97 and 97
    there = a_pod("there").needs(cpu="1", memory="2Gi").on("n1")
    snapshot = a_site(a_node("n1"), a_node("n2"), there, a_pod("web"))
    assert scores(snapshot, "web", NAME) == {"n1": 72, "n2": 97}


def test_failed_nodes_are_counted_by_every_missing_resource() -> None:
    small, full = a_node("small").has(cpu="1", memory="1Gi"), a_node("full").has(pods="0")
    snapshot = a_site(small, full, a_node("n3").has(cpu="1"), a_pod("web").needs(cpu="2", memory="2Gi"))
    assert schedule(snapshot, Options()).failed == {"shop/web": {CPU: 2, MEMORY: 1, REASON_TOO_MANY_PODS: 1}}


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            a_pod("web").needs(memory="10Q"),
            "Pod shop/web: spec.containers[0].resources.requests[memory]",
            id="a suffix",
        ),
        pytest.param(
            a_pod("web").spec(overhead={"cpu": "much"}), "Pod shop/web: spec.overhead[cpu]", id="a word in the overhead"
        ),
        pytest.param(
            a_pod("web").needs(cpu="-1"),
            "Pod shop/web: spec.containers[0].resources.requests[cpu]",
            id="a negative amount",
        ),
    ],
)
def test_what_is_no_quantity_is_named_with_its_pod_and_field(pod: PodBuilder, message: str) -> None:
    with pytest.raises(BadObjectError) as caught:
        schedule(a_site(a_node("n1"), pod), Options())
    assert str(caught.value).startswith(message)


def test_a_node_with_a_wrong_quantity_is_named() -> None:
    with pytest.raises(BadObjectError, match=r"^Node n1: status.allocatable\[memory\]: "):
        schedule(a_site(a_node("n1").has(memory="many")), Options())
