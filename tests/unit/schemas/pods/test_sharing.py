"""Pods of one owner have their equal parts in common, and nothing is kept of a pod that is gone."""

import pytest
from support.build import HOST, PodBuilder, a_node, a_pod, app, term

from underhost.agents.site.objects import SiteState, shared_parts
from underhost.schemas.keys import Key
from underhost.schemas.kubernetes import EMPTY_LIST, EMPTY_OBJECT, Node, Pod, decode, encode
from underhost.schemas.pods.sharing import SharedParts, alone
from underhost.schemas.topics import PODS

WHOLE = {"metadata.owner_references", "metadata.labels", "spec.containers", "spec.affinity", "status"}
"""The parts that are looked at."""


def web(name: str) -> PodBuilder:
    return a_pod(name).labels(app="web").apart(term(HOST, app("web"))).owned_by("ReplicaSet/web").on("n1")


class Site:
    """A site whose pods come from their topic."""

    def __init__(self) -> None:
        self.state = SiteState("site", [PODS])

    def put(self, built: PodBuilder) -> Pod:
        """The pod as the site has it once its record was read: it is what the record says."""
        self.state.put(PODS, _key(built), decode(encode(built.build()), Pod))
        held: Pod = self.state.rows(PODS)[f"shop/{built.name}"]
        assert held == built.build()
        return held

    def remove(self, *built: PodBuilder) -> None:
        for each in built:
            self.state.put(PODS, _key(each), None)


def _key(built: PodBuilder) -> Key:
    return Key("site", "pod", "shop", built.name)


def common(one: Pod, other: Pod) -> set[str]:
    """The parts that are the very same object in both."""
    return {part for part in WHOLE if _part(one, part) is _part(other, part)}


def _part(pod: Pod, path: str) -> object:
    found: object = pod
    for name in path.split("."):
        found = getattr(found, name)
    return found


replicas = pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(web("b"), WHOLE, id="a replica"),
        pytest.param(web("b").on("n2"), WHOLE, id="a replica on another node"),
        pytest.param(web("b").labels(index="1"), WHOLE - {"metadata.labels"}, id="a label of its own"),
        pytest.param(web("b").ready(False), WHOLE - {"status"}, id="one that is not ready"),
        pytest.param(
            web("b").apart(term(HOST, app("db"))), WHOLE - {"spec.affinity"}, id="terms of its own, as of a DaemonSet"
        ),
        pytest.param(web("b").owned_by("ReplicaSet/new"), set(), id="a replica of another owner"),
    ],
)


@replicas
def test_a_pod_has_what_is_equal_from_the_first_of_its_owner(other: PodBuilder, expected: set[str]) -> None:
    site = Site()
    assert common(site.put(web("a")), site.put(other)) == expected


@replicas
def test_a_pod_of_a_list_has_it_from_there_as_well(other: PodBuilder, expected: set[str]) -> None:
    parts = SharedParts(keeps_bytes=False)
    first, second = (parts.put(decode(encode(each.build()), Pod)) for each in (web("a"), other))
    assert common(first, second) == expected


def test_pods_without_an_owner_share_nothing() -> None:
    site = Site()
    one, other = (site.put(a_pod(name).labels(app="web").on("n1")) for name in "ab")
    assert common(one, other) - {"metadata.owner_references", "spec.affinity"} == set()  # both have none


def test_a_pod_that_changes_shares_with_the_others_and_not_with_what_it_was() -> None:
    site = Site()
    first, other = site.put(web("a")), site.put(web("b").ready(False))
    changed = site.put(web("b"))
    assert (common(changed, first), common(changed, other) & {"status"}) == (WHOLE, set())


def test_the_only_pod_of_an_owner_keeps_nothing_of_what_it_was() -> None:
    site = Site()
    was, now = site.put(web("a").ready(False)), site.put(web("a"))
    assert common(was, now) == set()
    assert common(now, site.put(web("b"))) == WHOLE


def test_once_all_pods_of_an_owner_are_gone_the_next_shares_nothing_with_them() -> None:
    site = Site()
    gone = site.put(web("a"))
    site.put(web("b"))
    site.remove(web("a"), web("b"))
    assert common(gone, site.put(web("c"))) == set()


def test_a_topic_that_begins_anew_shares_nothing_with_what_it_held() -> None:
    site = Site()
    before = site.put(web("a"))
    site.state.replace(PODS, [], shared_parts())
    assert common(before, site.put(web("b"))) == set()


REQUESTS = {"resources": {"requests": {"cpu": "1"}}}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(web("b"), id="a replica"),
        pytest.param(web("b").labels(index="1"), id="labels of its own"),
        pytest.param(web("b").tolerates({"operator": "Exists"}), id="tolerations of its own"),
        pytest.param(web("b").apart(term(HOST, app("db"))), id="terms of its own"),
        pytest.param(web("b").containers(REQUESTS), id="containers of its own"),
        pytest.param(web("b").put("status", "resources", value={"requests": {}}), id="a status of its own"),
        pytest.param(web("b").owned_by("ReplicaSet/new"), id="another owner"),
        pytest.param(a_pod("b").labels(app="web"), id="no owner"),
    ],
)
def test_a_pod_of_a_list_keeps_none_of_the_bytes_that_it_was_decoded_from(other: PodBuilder) -> None:
    parts, text = SharedParts(keeps_bytes=False), [bytearray(encode(each.build())) for each in (web("a"), other)]
    pods = [parts.put(decode(each, Pod)) for each in text]
    for each in text:
        each.clear()  # raises where somebody still reads it
    assert pods == [web("a").build(), other.build()]


def test_any_object_can_be_had_without_its_bytes() -> None:
    text = bytearray(encode(a_node("n1").build()))
    node = alone(decode(text, Node))
    text.clear()
    assert node == a_node("n1").build()


def test_parts_that_are_not_there_are_the_same_ones_as_before() -> None:
    parts = SharedParts(keeps_bytes=False)
    for pod in (parts.put(decode(encode(built.build()), Pod)) for built in (web("a"), a_pod("b").owned_by("Job/b"))):
        assert (pod.spec.tolerations is EMPTY_LIST, pod.spec.node_selector is EMPTY_OBJECT) == (True, True)
