from typing import Any

import pytest
from support.answers.rules import refused
from support.build import a_node, a_pod, a_site, nodes
from support.storage import claim, stored, uses, volume

from underhost.agents.rules.volume_restrictions import NAME, REASON_DISK_CONFLICT, REASON_IN_USE


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def rbd(pool: str, *monitors: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "rbd": {"monitors": list(monitors), "pool": pool, "image": "i", "readOnly": read_only}}


@pytest.mark.parametrize(
    ("wanted", "mounted", "conflict"),
    [
        pytest.param(gce("d"), gce("d"), True, id="a GCE disk is mounted once"),
        pytest.param(gce("d"), gce("e"), False, id="another GCE disk is free"),
        pytest.param(gce("d", True), gce("d", True), False, id="read-only mounts share a disk"),
        pytest.param(gce("d", True), gce("d"), True, id="one writer is enough for a conflict"),
        pytest.param(
            {"name": "v", "awsElasticBlockStore": {"volumeID": "a", "readOnly": True}},
            {"name": "v", "awsElasticBlockStore": {"volumeID": "a", "readOnly": True}},
            True,
            id="an AWS disk is never shared",
        ),
        pytest.param(
            {"name": "v", "iscsi": {"iqn": "q"}}, {"name": "v", "iscsi": {"iqn": "q"}}, True, id="iSCSI by its iqn"
        ),
        pytest.param(rbd("p", "m1", "m2"), rbd("p", "m2", "m3"), True, id="RBD images with a common monitor"),
        pytest.param(rbd("p", "m1"), rbd("p", "m2"), False, id="RBD images of different clusters"),
        pytest.param(rbd("p", "m1"), rbd("q", "m1"), False, id="RBD images of different pools"),
        pytest.param(
            {"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}, False, id="other volumes do not matter"
        ),
    ],
)
def test_a_disk_on_n1(wanted: dict[str, Any], mounted: dict[str, Any], conflict: bool) -> None:
    pods = [a_pod("there").spec(volumes=[mounted]).on("n1"), a_pod("new").spec(volumes=[wanted])]
    assert refused(a_site(*nodes("n1", "n2"), *pods), "new", NAME) == (
        {"n1": [REASON_DISK_CONFLICT]} if conflict else {}
    )


@pytest.mark.parametrize(
    ("mode", "node", "conflict"),
    [
        pytest.param("ReadWriteOncePod", "n1", True, id="a claim for one pod is in use"),
        pytest.param("ReadWriteOncePod", "gone", False, id="its user is on a node that is not there"),
        pytest.param("ReadWriteOnce", "n1", False, id="a claim for one node may be shared there"),
    ],
)
def test_a_claim_that_a_running_pod_uses(mode: str, node: str, conflict: bool) -> None:
    pods = [a_pod("there").spec(volumes=uses("c")).on(node), a_pod("new").spec(volumes=uses("c"))]
    site = stored(a_site(*nodes("n1", "n2"), *pods), claim("c", "v", mode=mode), volume("v", mode=mode))
    assert refused(site, "new", NAME) == ({name: [REASON_IN_USE] for name in ("n1", "n2")} if conflict else {})
    if node == "n1":
        assert refused(site, "there", NAME) == {}


def test_a_missing_claim_is_refused_everywhere_where_the_input_has_claims() -> None:
    site = a_site(a_node("n1"), a_pod("new").spec(volumes=uses("c")))
    assert refused(site, "new", NAME) == {}
    assert refused(stored(site, claim("x")), "new", NAME) == {"n1": ['persistentvolumeclaim "c" not found']}
