"""What happens to the pods of a simulated node that is tainted, lost, opened again, or new."""

import msgspec
import pytest
from support.simulation.operated import OperatedSite, a_site
from support.simulation.taints import tolerated_for

from underhost.schemas.errors import Conflict
from underhost.schemas.kubernetes import Metadata, Node, Pod, PodSpec
from underhost.streams.simulated.objects import raw

ON_WORKER = ("coredns", "virt-api", "virt-controller")


def pods_on(site: OperatedSite, node: str) -> list[str]:
    """The kinds of pods on a node that are not being deleted, by the beginning of their names."""
    return sorted(
        pod.metadata.name.rsplit("-", 1)[0]
        for pod in site.kubernetes.pods().values()
        if pod.spec.node_name == node and pod.metadata.deletion_timestamp is None
    )


def busy(site: OperatedSite) -> str:
    """A worker that runs a pod which can run elsewhere, too."""
    return next(
        pod.spec.node_name for name, pod in site.kubernetes.pods().items() if name.startswith("kubevirt/virt-api")
    )


@pytest.mark.parametrize(
    ("tolerations", "taint", "seconds"),
    [
        pytest.param([], {"key": "gpu", "effect": "NoExecute"}, 0.0, id="what it does not tolerate ends it at once"),
        pytest.param([], {"key": "gpu", "effect": "NoSchedule"}, None, id="a taint for scheduling ends nothing"),
        pytest.param(
            [{"key": "gpu", "operator": "Exists"}],
            {"key": "gpu", "effect": "NoExecute"},
            None,
            id="what it tolerates without an end it may stay with",
        ),
        pytest.param(
            [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 30}],
            {"key": "gpu", "effect": "NoExecute"},
            30.0,
            id="what it tolerates for a time ends it after that",
        ),
        pytest.param(
            [],
            {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
            300.0,
            id="admission lets every pod stay five minutes on a lost node",
        ),
    ],
)
def test_how_long_a_taint_leaves_a_pod(tolerations: list[object], taint: dict[str, str], seconds: float | None) -> None:
    pod = Pod(Metadata(name="p"), PodSpec(tolerations=raw(tolerations)))
    node = Node(Metadata(name="n"))
    node = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=raw([taint])))
    assert tolerated_for(pod, node) == seconds


def test_a_noexecute_taint_moves_what_does_not_tolerate_it_and_the_node_stays_empty() -> None:
    site = a_site()
    node = busy(site)
    site.taint(node, "maintenance", "NoExecute")
    site.advance(5)
    assert pods_on(site, node) == ["kube-proxy"]
    replicas = [name for name in site.kubernetes.pods() if name.startswith("kubevirt/virt-api")]
    assert len(replicas) == 2
    site.untaint(node, "maintenance")
    site.advance(5)
    assert pods_on(site, node) == ["kube-proxy", "virt-handler"]


def test_a_lost_node_keeps_its_pods_for_five_minutes_before_they_are_made_elsewhere() -> None:
    site = a_site()
    node = busy(site)
    before = pods_on(site, node)
    site.fail_node(node)
    site.advance(40 + 299)
    assert pods_on(site, node) == before
    site.advance(2)
    assert pods_on(site, node) == ["kube-proxy", "virt-handler"]
    moved = [pod for name, pod in site.kubernetes.pods().items() if name.startswith("kubevirt/virt-api")]
    assert len(moved) == 3, "the old one terminates until its node is back"
    site.restore_node(node)
    site.advance(60)
    assert sum(name.startswith("kubevirt/virt-api") for name in site.kubernetes.pods()) == 2


def test_a_node_that_is_back_in_time_keeps_its_pods() -> None:
    site = a_site()
    node = busy(site)
    before = pods_on(site, node)
    site.fail_node(node)
    site.advance(60)
    site.restore_node(node)
    site.advance(600)
    assert pods_on(site, node) == before


def test_a_drained_node_takes_pods_again_once_it_is_open() -> None:
    site = a_site()
    site.drain("kni-worker")
    site.advance(60)
    assert pods_on(site, "kni-worker") == ["kube-proxy", "virt-handler"]
    for other in ("kni-worker2", "kni-worker3", "kni-worker4", "kni-worker5", "kni-worker6"):
        site.cordon(other)
    site.uncordon("kni-worker")
    name = next(name for name in site.kubernetes.pods() if name.startswith("kubevirt/virt-api"))
    site.delete_pod(*name.split("/"))
    site.advance(5)
    assert "virt-api-74bb5f4c7d" in pods_on(site, "kni-worker")


def test_a_stand_by_node_is_a_vm_of_its_own_and_gets_the_daemons() -> None:
    site = a_site()
    site.drain("kni-worker6")
    site.add_node("kni-worker7", "esx-4", like="kni-worker6")
    site.advance(5)
    node = site.kubernetes.nodes()["kni-worker7"]
    assert (node.spec.unschedulable, bytes(node.spec.taints)) == (False, b"[]")
    assert b'"performance":"high"' in bytes(node.metadata.labels)
    assert site.vsphere.host_of("kni-worker7") == "esx-4"
    assert node.spec.provider_id == f"vsphere://{site.vsphere.vm('kni-worker7').uuid}"
    assert pods_on(site, "kni-worker7") == ["kube-proxy", "virt-handler"]
    with pytest.raises(Conflict):
        site.add_node("kni-worker7", "esx-4", like="kni-worker6")


def test_the_pods_of_a_deleted_node_are_gone_and_made_anew() -> None:
    site = a_site()
    node = busy(site)
    site.delete_node(node)
    site.advance(5)
    assert not any(pod.spec.node_name == node for pod in site.kubernetes.pods().values())
    assert sum(name.startswith("kubevirt/virt-api") for name in site.kubernetes.pods()) == 2
