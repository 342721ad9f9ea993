"""Labels that lag behind the live host."""

import dataclasses

import pytest
from support.build import a_node, a_pod, a_site

from underhost.agents.pipeline.decide.label_stale import StaleLabels, StalePods
from underhost.agents.site.snapshot import Options
from underhost.schemas.vsphere import Host

KEY, ALIAS = "node.cluster.x-k8s.io/esxi-host", "alpha.cna.vmware.com/host"
HOSTS = [Host(id="host-1", name="esx-1.lab"), Host(id="host-2", name="esx-2.lab")]


def site(value, host="host-2", key=KEY):
    labels = {} if value is None else {key: value}
    return a_site(a_node("n1").labels(labels), on={"n1": host}, hosts=HOSTS)


def stale(*pictures, options=None):
    """What is found at each (picture, time)."""
    labels = StaleLabels(options or Options())
    return [[(one.node, one.domain.key, one.domain.value) for one in labels.findings(*one)] for one in pictures]


def test_a_label_that_names_another_host_is_found_after_a_minute():
    labels = StaleLabels(Options())
    assert labels.findings(site("esx-1.lab"), 100.0) == []
    assert labels.due == 160.0
    assert labels.findings(site("esx-1.lab"), 159.9) == []
    (finding,) = labels.findings(site("esx-1.lab"), 160.0)
    assert (finding.severity, finding.rule, finding.node) == ("label-stale", "PhysicalHost", "n1")
    assert finding.message == f"Label {KEY} of node n1 names esx-1.lab, but its VM runs on ESXi host esx-2.lab."
    assert labels.due is None


def test_a_label_that_follows_in_time_is_not_found():
    assert stale((site("esx-1.lab"), 0.0), (site("esx-2.lab"), 30.0), (site("esx-2.lab"), 90.0)) == [[], [], []]


def test_a_label_that_was_right_in_between_starts_anew():
    pictures = [
        (site("esx-1.lab"), 0.0),
        (site("esx-2.lab"), 50.0),
        (site("esx-1.lab"), 59.0),
        (site("esx-1.lab"), 61.0),
    ]
    assert stale(*pictures) == [[], [], [], []]


def test_another_vmotion_starts_the_minute_anew():
    hosts = [*HOSTS, Host(id="host-3", name="esx-3.lab")]
    moved = a_site(a_node("n1").labels({KEY: "esx-1.lab"}), on={"n1": "host-3"}, hosts=hosts)
    assert stale((site("esx-1.lab"), 0.0), (moved, 59.0), (moved, 61.0)) == [[], [], []]


def test_an_alias_that_the_node_carries_is_judged_too():
    assert stale((site("esx-1.lab", key=ALIAS), 0.0), (site("esx-1.lab", key=ALIAS), 60.0))[1] == [
        ("n1", ALIAS, "esx-1.lab")
    ]


def test_an_empty_label_is_stale_once_the_host_is_known():
    assert stale((site(""), 0.0), (site(""), 60.0))[1] == [("n1", KEY, "")]


def test_an_absent_label_or_an_unknown_host_is_not_stale():
    unknown = dataclasses.replace(site("esx-1.lab"), node_hosts={})
    for picture in (site(None), site("esx-1.lab", host=""), unknown):
        assert stale((picture, 0.0), (picture, 120.0)) == [[], []]


def test_the_host_may_be_named_as_the_label_writes_it_or_by_its_id():
    for value in ("esx-2.lab", "host-2"):
        assert stale((site(value), 0.0), (site(value), 120.0)) == [[], []]


def test_a_finding_open_since_before_a_restart_stays_open_until_the_label_is_right():
    [[], [open_before]] = [StaleLabels(Options(), bound=bound).findings(site("esx-1.lab"), 0.0) for bound in (60, 0)]
    labels = StaleLabels(Options(), known=[open_before.id])
    assert labels.findings(site("esx-1.lab"), 0.0) == [open_before]
    assert labels.findings(site("esx-2.lab"), 1.0) == []
    assert labels.findings(site("esx-1.lab"), 2.0) == []


def test_where_only_pods_change_the_minute_goes_on_and_a_vmotion_is_still_seen():
    before = site("esx-1.lab")
    pods = dataclasses.replace(before, pods={})
    back = dataclasses.replace(pods, node_hosts=site("esx-1.lab", "host-1").node_hosts)
    named = [[("n1", KEY, "esx-1.lab")]]
    assert stale((before, 0.0), (pods, 30.0), (pods, 60.0), (back, 61.0)) == [[], [], *named, []]


def pods(host, *values):
    carried = [a_pod(f"db-{at}").on("n1").labels({KEY: value, "app": "db"}) for at, value in enumerate(values)]
    return a_site(a_node("n1"), a_pod("other").on("n1"), *carried, on={"n1": host}, hosts=HOSTS)


def test_pods_that_a_vmotion_has_taken_along_are_found_at_once_a_node():
    labels = StalePods(Options())
    assert labels.findings(pods("host-1", "esx-1.lab", "esx-1.lab")) == []
    (finding,) = labels.findings(pods("host-2", "esx-1.lab", "esx-1.lab"))
    assert (finding.severity, finding.node, finding.pods, finding.pod) == ("label-stale", "n1", 2, None)
    assert finding.message == (
        f"Label {KEY} of 2 pods on node n1 (shop/db-0 and shop/db-1) names esx-1.lab, but the node's VM runs on ESXi "
        "host esx-2.lab by now."
    )


@pytest.mark.parametrize(
    ("then", "found"),
    [
        pytest.param(pods("host-1", "esx-1.lab", "esx-1.lab"), [], id="the VM comes back"),
        pytest.param(pods("host-2", "esx-2.lab", "esx-2.lab"), [], id="other pods have come"),
        pytest.param(pods("host-2", "esx-1.lab", "esx-2.lab"), [1], id="one of them is another one"),
        pytest.param(pods("host-2"), [], id="they are gone"),
        pytest.param(pods("", "esx-1.lab"), [], id="the host is not known any more"),
    ],
)
def test_a_finding_about_pods_ends_with_what_it_says(then, found):
    labels = StalePods(Options())
    labels.findings(pods("host-2", "esx-1.lab", "esx-1.lab"))
    assert [one.pods for one in labels.findings(then)] == found
    assert [one.pods for one in StalePods(Options()).findings(then)] == found
