"""The simulated Kubernetes cluster: owners, schedulers, budgets, bindings and labels."""

import pytest
from support.simulation.operated import OperatedSite, a_site

from underhost.schemas.errors import Conflict, Gone, Retry
from underhost.schemas.kubernetes import PodSpec
from underhost.streams.simulated.controllers import Owner
from underhost.streams.simulated.objects import is_ready

DATABASE = "virt-launcher-mssql2016p948r-257pn"
CACHE = "varnish-cache-54489f9fc9-5pbr2"
WHERE = {
    "varnish-cache-54489f9fc9-5pbr2": "kni-worker5",
    "varnish-cache-54489f9fc9-9s9tm": "kni-worker3",
    "varnish-cache-54489f9fc9-dflzs": "kni-worker",
    "virt-launcher-blackboxtk49x-nw45s": "kni-worker",
    "virt-launcher-blackboxxt829-snjth": "kni-worker5",
    "virt-launcher-blackboxzf9kt-6mh56": "kni-worker3",
    "virt-launcher-mssql2016p948r-257pn": "kni-worker4",
    "virt-launcher-mssql2016tpj6n-l2fnf": "kni-worker2",
    "virt-launcher-mssql2016z2qnw-t924b": "kni-worker6",
}


async def all_bound(site: OperatedSite) -> OperatedSite:
    """Bind the application as the blog shows it, and let it start."""
    for name, node in WHERE.items():
        uid, _ = await site.kubernetes.pod_node("customapp", name)
        await site.kubernetes.bind_pod("customapp", name, uid, node)
    site.advance(1)
    return site


def application(site: OperatedSite) -> dict[str, str]:
    pods = site.kubernetes.pods().values()
    return {pod.metadata.name: pod.spec.node_name for pod in pods if pod.metadata.namespace == "customapp"}


def test_the_cluster_places_its_own_pods_and_leaves_those_of_our_scheduler_to_us() -> None:
    site = a_site()
    site.advance(3600)
    assert application(site) == dict.fromkeys(WHERE, "")
    others = [pod for pod in site.kubernetes.pods().values() if pod.metadata.namespace != "customapp"]
    assert {pod.status.phase for pod in others} == {"Running"}
    assert {pod.spec.node_name for pod in others} == set(site.kubernetes.nodes())


async def test_a_bound_pod_becomes_ready_after_its_start() -> None:
    site = a_site()
    uid, _ = await site.kubernetes.pod_node("customapp", CACHE)
    await site.kubernetes.bind_pod("customapp", CACHE, uid, "kni-worker5")
    site.advance(0.5)
    assert site.kubernetes.pods()[f"customapp/{CACHE}"].status.phase == "Pending"
    site.advance(0.1)
    pod = site.kubernetes.pods()[f"customapp/{CACHE}"]
    assert pod.status.phase == "Running"
    assert is_ready(pod)


async def test_a_binding_needs_the_right_uid_and_an_unbound_pod() -> None:
    kubernetes = a_site().kubernetes
    uid, node = await kubernetes.pod_node("customapp", CACHE)
    assert node == ""
    with pytest.raises(Conflict, match="UID in precondition: other"):
        await kubernetes.bind_pod("customapp", CACHE, "other", "kni-worker5")
    await kubernetes.bind_pod("customapp", CACHE, uid, "kni-worker5")
    with pytest.raises(Conflict, match="already assigned to node 'kni-worker5'"):
        await kubernetes.bind_pod("customapp", CACHE, uid, "kni-worker3")
    with pytest.raises(Gone, match='pods "nobody" not found'):
        await kubernetes.bind_pod("customapp", "nobody", uid, "kni-worker3")
    assert (await kubernetes.pod_node("customapp", CACHE))[1] == "kni-worker5"


async def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    site = a_site()
    uid, _ = await site.kubernetes.pod_node("customapp", CACHE)
    site.delete_pod("customapp", CACHE)
    with pytest.raises(Conflict, match="is being deleted"):
        await site.kubernetes.bind_pod("customapp", CACHE, uid, "kni-worker5")


async def test_an_owner_makes_another_pod_at_once_and_the_old_one_is_gone_after_its_grace() -> None:
    site = await all_bound(a_site())
    site.delete_pod("customapp", DATABASE)
    site.advance(0)
    new = application(site).keys() - WHERE.keys()
    assert [name.startswith("virt-launcher-mssql2016") for name in new] == [True]
    assert application(site)[DATABASE] == "kni-worker4"  # still terminating there
    assert application(site)[new.pop()] == ""  # the new one waits for our scheduler
    site.advance(1)
    assert DATABASE not in application(site)
    assert len(application(site)) == 9


def test_an_owner_that_is_scaled_down_gives_up_the_pods_that_wait() -> None:
    site = a_site()
    site.controllers.scale("ReplicaSet", "customapp", "varnish-cache-54489f9fc9", 1)
    site.advance(2)
    assert len([name for name in application(site) if name.startswith("varnish-cache")]) == 1


def test_a_stateful_set_that_is_scaled_down_gives_up_its_last_ordinals() -> None:
    site = a_site()
    site.controllers.add_owner(Owner("StatefulSet", "customapp", "db", {"app": "db"}, PodSpec(), replicas=3))
    site.advance(1)
    site.delete_pod("customapp", "db-0")  # made anew, it is the youngest
    site.advance(2)
    site.controllers.scale("StatefulSet", "customapp", "db", 1)
    site.advance(2)
    assert [name for name in application(site) if name.startswith("db-")] == ["db-0"]


async def test_a_budget_counts_what_is_ready() -> None:
    site = a_site()
    assert {budget.status.disruptions_allowed for budget in site.kubernetes.budgets()} == {0}
    await all_bound(site)
    figures = {
        budget.metadata.name: (
            budget.status.expected_pods,
            budget.status.current_healthy,
            budget.status.desired_healthy,
            budget.status.disruptions_allowed,
        )
        for budget in site.kubernetes.budgets()
    }
    assert figures == {"blackbox": (3, 3, 2, 1), "mssql2016": (3, 3, 2, 1), "varnish-cache": (3, 3, 2, 1)}


async def test_a_second_eviction_is_refused_while_the_first_is_not_made_up_for() -> None:
    site = await all_bound(a_site())
    site.kubernetes.evict_pod("customapp", DATABASE)
    site.advance(0)
    with pytest.raises(Retry, match="disruption budget") as caught:
        site.kubernetes.evict_pod("customapp", "virt-launcher-mssql2016tpj6n-l2fnf")
    assert caught.value.after == 5.0


async def test_a_drain_moves_what_budgets_allow_and_leaves_daemons_and_mirrors() -> None:
    site = await all_bound(a_site())
    site.drain("kni-worker")
    site.advance(1)
    left = [pod for pod in site.kubernetes.pods().values() if pod.spec.node_name == "kni-worker"]
    assert sorted(pod.metadata.generate_name for pod in left) == ["kube-proxy-", "virt-handler-"]
    assert site.kubernetes.nodes()["kni-worker"].spec.unschedulable


async def test_a_label_that_a_person_changes_is_theirs() -> None:
    site = a_site()
    kubernetes = site.kubernetes
    uid, labels, managers = await kubernetes.node_labels("kni-worker")
    assert (labels["topology.kubernetes.io/zone"], managers["topology.kubernetes.io/zone"]) == ("scu", "kubelet")
    await kubernetes.apply_node_labels("kni-worker", uid, {"example.com/host": "esx-1"})
    site.label_node("kni-worker", {"example.com/host": "esx-1"})
    assert (await kubernetes.node_labels("kni-worker"))[2]["example.com/host"] == "underhost"
    site.label_node("kni-worker", {"example.com/host": "esx-2"})
    assert (await kubernetes.node_labels("kni-worker"))[2]["example.com/host"] == "kubectl-label"
    site.label_node("kni-worker", {"example.com/host": None})
    assert "example.com/host" not in (await kubernetes.node_labels("kni-worker"))[1]
