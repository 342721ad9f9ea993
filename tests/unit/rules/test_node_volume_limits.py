import pytest
from support.answers.rules import refused
from support.build import a_node, a_pod, a_site, nodes
from support.storage import HANDLES, Json, attachment, claim, csi_node, storage_class, stored, uses, volume

from underhost.agents.rules.node_volume_limits import NAME, REASON_EXCEEDED
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options

VOLUMES = [one for name in "abc" for one in (claim(name, f"v-{name}"), volume(f"v-{name}"))]
AWS = "ebs.csi.aws.com"
EBS = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}


@pytest.mark.parametrize(
    ("there", "wanted", "limit", "refuses"),
    [
        pytest.param("a", "b", 1, True, id="n1 holds its one volume already"),
        pytest.param("a", "b", 2, False, id="n1 has room for a second"),
        pytest.param("a", "a", 1, False, id="a volume that is there is not counted again"),
        pytest.param("", "ab", 1, True, id="two volumes of one pod exceed a limit of one"),
        pytest.param("", "a", 0, True, id="a limit of none"),
        pytest.param("a", "b", None, False, id="a driver without a limit"),
    ],
)
def test_n1_attaches_as_many_volumes_as_it_says(there: str, wanted: str, limit: int | None, refuses: bool) -> None:
    pods = [a_pod("there").spec(volumes=uses(*there)).on("n1"), a_pod("new").spec(volumes=uses(*wanted))]
    site = stored(a_site(*nodes("n1", "n2"), *pods), *VOLUMES, csi_node("n1", count=limit))
    assert refused(site, "new", NAME) == ({"n1": [REASON_EXCEEDED]} if refuses else {})


def test_a_running_pod_is_not_held_against_itself() -> None:
    pods = [a_pod("there").spec(volumes=uses("a")).on("n1")]
    site = stored(a_site(a_node("n1"), *pods), *VOLUMES, csi_node("n1", count=1))
    assert refused(site, "there", NAME) == {}


@pytest.mark.parametrize(
    ("name", "refuses"),
    [
        pytest.param("v-a", True, id="an attachment that no pod on n1 uses counts"),
        pytest.param("gone", False, id="an attachment of a volume that is not there does not"),
    ],
)
def test_attachments_count(name: str, refuses: bool) -> None:
    site = a_site(a_node("n1"), a_pod("new").spec(volumes=uses("b")))
    site = stored(site, *VOLUMES, csi_node("n1", count=1), attachment("x", "n1", name))
    assert refused(site, "new", NAME) == ({"n1": [REASON_EXCEEDED]} if refuses else {})


@pytest.mark.parametrize(
    ("there", "new", "refuses"),
    [
        pytest.param(uses("a"), [{"name": "i", **EBS}], False, id="the handle of a CSI volume, written inline"),
        pytest.param([{"name": "i", **EBS}], uses("a"), False, id="the other way round"),
        pytest.param(uses("a"), uses("t"), False, id="the same volume behind an in-tree claim"),
        pytest.param([], [{"name": "i", **EBS}, *uses("a", "t")], False, id="all three in one pod"),
        pytest.param(uses("other"), [{"name": "i", **EBS}], True, id="another handle"),
    ],
)
def test_a_volume_counts_once_however_it_is_written(there: list[Json], new: list[Json], refuses: bool) -> None:
    pods = [a_pod("there").spec(volumes=there).on("n1"), a_pod("new").spec(volumes=new)]
    behind = [
        *(claim("a", "v-a"), volume("v-a", source={"csi": {"driver": AWS, "volumeHandle": "vol-1"}})),
        *(claim("t", "v-t"), volume("v-t", source=EBS)),
        *(claim("other", "v-o"), volume("v-o", source={"csi": {"driver": AWS, "volumeHandle": "vol-2"}})),
    ]
    site = stored(a_site(a_node("n1"), *pods), *behind, csi_node("n1", AWS, count=1))
    assert refused(site, "new", NAME) == ({"n1": [REASON_EXCEEDED]} if refuses else {})


@pytest.mark.parametrize(
    ("objects", "driver", "refuses"),
    [
        pytest.param([claim("c", "v"), volume("v", source=EBS)], "ebs.csi.aws.com", True, id="an in-tree EBS volume"),
        pytest.param([claim("c"), storage_class("fast", waits=True)], HANDLES, True, id="a volume that is to be made"),
        pytest.param([claim("c")], HANDLES, False, id="a claim whose class is missing"),
        pytest.param([claim("c", "v"), volume("v", source={"nfs": {}})], HANDLES, False, id="a volume of no driver"),
    ],
)
def test_what_counts_as_a_drivers_volume(objects: list[Json], driver: str, refuses: bool) -> None:
    site = a_site(a_node("n1"), a_pod("new").spec(volumes=uses("c")))
    site = stored(site, *objects, csi_node("n1", driver, count=0))
    assert refused(site, "new", NAME) == ({"n1": [REASON_EXCEEDED]} if refuses else {})


def test_a_missing_claim_is_looked_up_in_vain_on_every_node() -> None:
    site = stored(a_site(a_node("n1"), a_pod("new").spec(volumes=uses("x"))), *VOLUMES)
    assert refused(site, "new", NAME) == {"n1": ['looking up PVC shop/x: persistentvolumeclaim "x" not found']}


def test_volumes_of_pods_placed_before_count() -> None:
    pods = [a_pod(f"p-{name}").spec(volumes=uses(name)) for name in "abc"]
    limits = [csi_node("n1", count=1), csi_node("n2", count=1)]
    placed = schedule(stored(a_site(*nodes("n1", "n2"), *pods), *VOLUMES, *limits), Options())
    assert sorted(node or "" for node in placed.placements.values()) == ["", "n1", "n2"]
    assert placed.failed == {placed.order[-1]: {REASON_EXCEEDED: 2}}
