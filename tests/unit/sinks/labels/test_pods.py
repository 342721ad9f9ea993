"""What a binding hands over to its pod: the host and what is derived from it, and never what somebody selects by."""

import gc
from dataclasses import replace
from weakref import ref

import pytest
from support.build import Built, a_budget, a_namespace, a_node, a_pod, a_service, a_site, a_workload

from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.vsphere import Host
from underhost.streams.settings.labels import HostLabelSettings

KEY, RACK = "node.cluster.x-k8s.io/esxi-host", "example.com/rack"
HOSTS = [
    Host(id="h1", name="esx-1.lab", labels={"rack": "R 7"}),
    Host(id="h2", name="esx-" + "long-name." * 9 + "lab"),
    Host(id="h3", name="fe80::1"),
]
SETTINGS = HostLabelSettings.model_validate({"derived": [{"key": RACK, "from": "rack"}]})


def site(*objects: Built, host: str = "h1") -> Snapshot:
    return a_site(a_node("n1"), *objects, on={"n1": host}, hosts=HOSTS)


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        pytest.param(site(), {KEY: "esx-1.lab", RACK: "R-7"}, id="the host, and its rack as a label can say it"),
        pytest.param(site(host="h2"), {KEY: "esx-" + "long-name." * 5 + "long-name"}, id="a long name, and no rack"),
        pytest.param(site(host="h3"), {KEY: "fe80--1.ipv6-literal"}, id="an address"),
        pytest.param(site(host=""), {}, id="a host that is not known"),
        pytest.param(a_site(a_node("n1")), {}, id="no vSphere"),
        pytest.param(site(a_namespace("shop", **{"underhost.io/host-label": "false"})), {}, id="the namespace says no"),
        pytest.param(
            site(a_namespace("shop", team="a")), {KEY: "esx-1.lab", RACK: "R-7"}, id="the namespace says else"
        ),
        pytest.param(site(a_service("shop/db", **{KEY: "esx-1.lab"})), {RACK: "R-7"}, id="a Service selects by it"),
        pytest.param(
            site(a_service("other/db", **{KEY: "x"})), {KEY: "esx-1.lab", RACK: "R-7"}, id="another namespace's Service"
        ),
        pytest.param(
            site(a_workload("ReplicaSet", "db").selects({"matchLabels": {RACK: "x"}})),
            {KEY: "esx-1.lab"},
            id="an owner selects by the rack",
        ),
        pytest.param(
            site(a_budget("db", {"matchExpressions": [{"key": KEY, "operator": "Exists"}]})),
            {RACK: "R-7"},
            id="a budget selects by it",
        ),
    ],
)
def test_what_a_binding_hands_over(picture: Snapshot, expected: dict[str, str]) -> None:
    found = BindingLabels(SETTINGS).of(picture, "shop/db-0", "n1")
    assert found == expected
    assert all(0 < len(value) <= 63 for value in found.values())


def test_it_follows_hosts_and_selectors_from_snapshot_to_snapshot() -> None:
    labels = BindingLabels(HostLabelSettings())
    said = [
        labels.of(picture, "shop/db-0", "n1")
        for picture in (site(), site(a_service("shop/db", **{KEY: "x"})), site(host="h3"))
    ]
    assert said == [{KEY: "esx-1.lab"}, {}, {KEY: "fe80--1.ipv6-literal"}]


def test_hosts_selectors_and_namespaces_are_followed_each_for_itself() -> None:
    labels, picture = BindingLabels(HostLabelSettings()), site()
    changes = (
        picture,
        replace(picture, services=site(a_service("shop/db", **{KEY: "x"})).services),
        picture,
        replace(picture, namespaces=site(a_namespace("shop", **{"underhost.io/host-label": "false"})).namespaces),
        picture,
        replace(picture, hosts={"h1": Host(id="h1", name="esx-9.lab")}),
    )
    said = [labels.of(one, "shop/db-0", "n1") for one in changes]
    assert said == [{KEY: "esx-1.lab"}, {}, {KEY: "esx-1.lab"}, {}, {KEY: "esx-1.lab"}, {KEY: "esx-9.lab"}]


def test_where_nodes_labels_are_only_observed_pods_are_told_all_the_same() -> None:
    labels = BindingLabels(HostLabelSettings(mode="observe"))
    assert labels.of(site(), "shop/db-0", "n1") == {KEY: "esx-1.lab"}


def test_the_snapshot_of_the_last_binding_is_not_kept() -> None:
    labels = BindingLabels(SETTINGS)
    picture = site(a_pod("db-0"))
    labels.of(picture, "shop/db-0", "n1")
    seen = ref(picture)
    del picture
    gc.collect()
    assert seen() is None
