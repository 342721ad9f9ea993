from fractions import Fraction
from typing import Any

import pytest
from support.build import PodBuilder, a_pod

from underhost.agents.site.requests import Request, exact, is_scalar, request_of

MIB = 1 << 20


def container(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def of(pod: PodBuilder) -> Request:
    return request_of(pod.build())


def resizing(pod: PodBuilder, actual: str, allocated: str, reason: str = "Deferred") -> PodBuilder:
    """A pod whose only container is being resized in place."""
    status = {"name": "c0", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": allocated}}
    found = pod.put("status", "containerStatuses", value=[status])
    return found.put("status", "conditions", value=[{"type": "PodResizePending", "status": "True", "reason": reason}])


def test_containers_without_requests_hold_nothing_but_count_in_scores() -> None:
    found = of(a_pod("web").containers({}, container(cpu="1")))
    assert (found.fit, found.held, found.balanced) == ({"cpu": 1000}, {"cpu": 1000}, (1000, 0))
    assert found.least == found.held_nonzero == (1100, 400 * MIB)


def test_a_request_of_zero_is_a_request_and_gets_no_default() -> None:
    assert of(a_pod("web").needs(cpu="0", memory="0")).least == (0, 0)


def test_pod_level_requests_replace_the_containers_but_not_in_the_score_of_emptiness() -> None:
    found = of(a_pod("web").needs(cpu="1").spec(resources={"requests": {"cpu": "3"}}, overhead={"cpu": "500m"}))
    assert (found.fit, found.held) == ({"cpu": 3500}, {"cpu": 3500})
    assert found.least == (1500, 200 * MIB)
    assert found.held_nonzero == (3500, 200 * MIB)


def test_pod_level_requests_leave_defaults_only_to_what_no_container_requests_either() -> None:
    pod = a_pod("web").containers(container(memory="64Mi"), {}).spec(resources={"requests": {"cpu": "3"}})
    assert of(pod).held_nonzero == (3000, 64 * MIB)


@pytest.mark.parametrize(
    ("pod", "held"),
    [
        pytest.param(resizing(a_pod("web").needs(cpu="1"), "3", "2"), 3000, id="what it has is the largest"),
        pytest.param(resizing(a_pod("web").needs(cpu="5"), "3", "2"), 5000, id="what it asks for is the largest"),
        pytest.param(
            resizing(a_pod("web").needs(cpu="5"), "3", "4", "Infeasible"),
            4000,
            id="what can never be had does not count",
        ),
    ],
)
def test_a_resize_under_way_holds_the_largest_amount(pod: PodBuilder, held: int) -> None:
    found = of(pod)
    assert found.held == {"cpu": held}


def whole_pod(asked: str, actual: str, allocated: str, reason: str = "Deferred") -> PodBuilder:
    """A pod whose requests as a whole are being resized in place."""
    pod = a_pod("web").needs(cpu="100m").spec(resources={"requests": {"cpu": asked}})
    pod = pod.put("status", "resources", value={"requests": {"cpu": actual}})
    pod = pod.put("status", "allocatedResources", value={"cpu": allocated})
    return pod.put("status", "conditions", value=[{"type": "PodResizePending", "status": "True", "reason": reason}])


@pytest.mark.parametrize(
    ("pod", "held"),
    [
        pytest.param(whole_pod("1", "3", "2"), 3000, id="what the pod has is the largest"),
        pytest.param(whole_pod("5", "3", "2"), 5000, id="what the pod asks for is the largest"),
        pytest.param(whole_pod("5", "3", "4", "Infeasible"), 4000, id="what can never be had does not count"),
    ],
)
def test_a_resize_of_the_pod_as_a_whole_holds_the_largest_amount(pod: PodBuilder, held: int) -> None:
    found = of(pod)
    assert found.held == {"cpu": held}
    assert found.balanced[0] == held
    assert found.fit == {"cpu": 1000 if held == 3000 else 5000}  # what must be free is what the spec says


def test_without_a_status_the_pod_as_a_whole_holds_what_it_asks_for() -> None:
    assert of(a_pod("web").spec(resources={"requests": {"cpu": "2"}})).held == {"cpu": 2000}


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        pytest.param("1", 1000, id="whole"),
        pytest.param("100m", 100, id="thousandths"),
        pytest.param("0.5m", Fraction(1, 2), id="half a thousandth"),
        pytest.param("1u", Fraction(1, 1000), id="a millionth"),
        pytest.param("1.5", 1500, id="a fraction"),
        pytest.param("2e3", 2_000_000, id="an exponent"),
        pytest.param("1Ki", 1024_000, id="a binary suffix"),
        pytest.param("0.5Gi", 512 * MIB * 1000, id="a fraction of a binary suffix"),
        pytest.param(2, 2000, id="a number"),
    ],
)
def test_amounts_are_exact_until_they_are_summed(text: str | int, thousandths: object) -> None:
    assert exact(text) == thousandths


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        pytest.param("example.com/gpu", True, id="extended"),
        pytest.param("hugepages-2Mi", True, id="huge pages"),
        pytest.param("attachable-volumes-csi", True, id="attachable volumes"),
        pytest.param("kubernetes.io/batch-cpu", True, id="prefixed native"),
        pytest.param("storage", False, id="unknown native"),
        pytest.param("requests.example.com/gpu", False, id="a quota's name"),
    ],
)
def test_which_resources_the_scheduler_counts(name: str, counts: bool) -> None:
    assert is_scalar(name) is counts
