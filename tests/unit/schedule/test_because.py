"""What stands in the way of a pod on a node, rule by rule; the words for it are in test_obstacles.py."""

from typing import Any

import pytest
from support.answers.rules import verdict
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, labelled, nodes, spread, term
from support.storage import HANDLES, claim, csi_node, stored, uses, volume

from underhost.agents.rules.rule import Prepared
from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import to_builtins

ESXI = "node.cluster.x-k8s.io/esxi-host"
PORT = {"containerPort": 80, "hostPort": 80}


def because(snapshot: Snapshot, pod: str = "new", node: str = "n1", **options: Any) -> dict[str, Any]:
    """What the rules name on one node, as it stands in the document."""
    found = to_builtins(verdict(snapshot, pod, Options(**options)))["nodes"][node]
    assert isinstance(found.get("because", {}), dict)
    return dict(found.get("because", {}))


def db(name: str, node: str) -> Any:
    return a_pod(name).labels(app="db").on(node)


NEW = a_pod("new").labels(app="db")


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(
            a_site(a_node("n1").tainted("k=v:NoSchedule", "old:NoExecute", "soft:PreferNoSchedule"), NEW),
            {"TaintToleration": [{"taint": "k=v:NoSchedule"}, {"taint": "old:NoExecute"}]},
            id="every taint that is not tolerated",
        ),
        pytest.param(
            a_site(a_node("n1").cordoned(), NEW),
            {"NodeUnschedulable": [{"taint": "node.kubernetes.io/unschedulable:NoSchedule"}]},
            id="a cordon, by the taint that stands for it",
        ),
        pytest.param(
            a_site(a_node("n1").labels(disk="hdd", size="3"), NEW.spec(nodeSelector={"disk": "ssd", "gpu": "yes"})),
            {"NodeAffinity": [{"selector": "disk in (ssd)", "has": "hdd"}, {"selector": "gpu in (yes)", "has": None}]},
            id="what the nodeSelector asks for",
        ),
        pytest.param(
            a_site(
                a_node("n1").labels(disk="hdd", size="3"),
                NEW.node_terms(
                    {
                        "matchExpressions": [
                            {"key": "disk", "operator": "In", "values": ["nvme", "ssd"]},
                            {"key": "size", "operator": "Exists"},
                        ]
                    },
                    labelled("size", "Gt", "5"),
                    labelled("old", "DoesNotExist"),
                ),
            ),
            {},
            id="nothing where one of the terms matches",
        ),
        pytest.param(
            a_site(
                a_node("n1").labels(disk="hdd", size="3"),
                NEW.node_terms(
                    labelled("disk", "In", "nvme", "ssd"),
                    labelled("size", "Gt", "5"),
                    labelled("disk", "DoesNotExist"),
                    labelled("size", "Gt", "x"),
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]},
                ),
            ),
            {
                "NodeAffinity": [
                    {"selector": "disk in (nvme, ssd)", "has": "hdd"},
                    {"selector": "size>5", "has": "3"},
                    {"selector": "!disk", "has": "hdd"},
                    {"selector": "size>x", "has": "3"},
                    {"selector": "metadata.name in (n7)", "has": "n1"},
                ]
            },
            id="what each term of node affinity asks for, read or not",
        ),
        pytest.param(
            a_site(a_node("n1"), a_pod("old").ports({**PORT, "hostIP": "10.0.0.1"}).on("n1"), NEW.ports(PORT)),
            {"NodePorts": [{"port": "10.0.0.1/80/TCP", "pod": "shop/old"}]},
            id="the port as the other pod holds it",
        ),
        pytest.param(
            a_site(
                a_node("n1").has(cpu="4", memory="8Gi", pods="1"),
                a_pod("old").needs(cpu="3500m", memory="1Gi").on("n1"),
                NEW.needs(cpu="1", memory="7680Mi", **{"nvidia.com/gpu": "2"}),
            ),
            {
                "NodeResourcesFit": [
                    {"resource": "pods", "asked": "1", "free": "0", "allocatable": "1"},
                    {"resource": "cpu", "asked": "1", "free": "500m", "allocatable": "4"},
                    {"resource": "memory", "asked": "7680Mi", "free": "7Gi", "allocatable": "8Gi"},
                    {"resource": "nvidia.com/gpu", "asked": "2", "free": "0", "allocatable": "0"},
                ]
            },
            id="each resource that is short",
        ),
        pytest.param(
            a_site(a_node("n1").zone("a"), db("old", "n1"), NEW.apart(term(ZONE, app("db")))),
            {"InterPodAffinity": [{"pod": "shop/old", "key": ZONE, "value": "a"}]},
            id="the pods to be kept apart from, with their domain",
        ),
        pytest.param(
            a_site(a_node("n1").zone("a"), db("old", "n1").apart(term(ZONE, app("db"))), NEW),
            {"InterPodAffinity": [{"pod": "shop/old", "key": ZONE, "value": "a"}]},
            id="the pods whose own rule keeps this one away",
        ),
        pytest.param(
            a_site(a_node("n1").zone("a"), NEW.near(term(ZONE, app("web")), term("rack", app("web")))),
            {"InterPodAffinity": [{"selector": "app in (web)", "has": None}, {"selector": "rack", "has": None}]},
            id="what nobody near meets, and a topologyKey that the node lacks",
        ),
        pytest.param(
            a_site(
                a_node("n1").zone("a"), a_node("n2").zone("b"), db("old", "n1"), NEW.spreads(spread(ZONE, app("db")))
            ),
            {"PodTopologySpread": [{"pod": "shop/old", "key": ZONE, "value": "a"}]},
            id="the pods that a spread counts",
        ),
        pytest.param(
            a_site(a_node("n1"), a_node("n2").zone("b"), NEW.spreads(spread(ZONE, app("db")))),
            {"PodTopologySpread": [{"selector": ZONE, "has": None}]},
            id="the key of a spread that the node lacks",
        ),
        pytest.param(
            a_site(
                a_node("n1"),
                a_node("n2"),
                db("old", "n2").apart(term(HOST, app("db"))),
                NEW.apart(term(HOST, app("db"))),
                on={"n1": "h1", "n2": "h1"},
            ),
            {"PhysicalHost": [{"pod": "shop/old", "key": "host", "value": "esx-h1"}]},
            id="whom a shared host brings too near, where that is only counted",
        ),
        pytest.param(
            a_site(
                a_node("n1"), a_node("n2"), db("old", "n2"), NEW.apart(term(ESXI, app("db"))), on={"n1": "h", "n2": "h"}
            ),
            {"InterPodAffinity": [{"pod": "shop/old", "key": ESXI, "value": "esx-h"}]},
            id="by the host key the live host's name",
        ),
        pytest.param(
            a_site(a_node("n1"), NEW),
            {},
            id="nothing where nothing refuses",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(snapshot: Snapshot, expected: dict[str, Any]) -> None:
    assert because(snapshot) == expected


@pytest.mark.parametrize(
    ("volumes", "objects", "expected"),
    [
        pytest.param(
            uses("c"),
            [claim("c", "v"), volume("v", ["n9"])],
            {"VolumeBinding": [{"selector": f"{HOST} in (n9)", "has": "n1"}]},
            id="the node affinity of a bound volume",
        ),
        pytest.param(
            uses("c"),
            [claim("c", "v"), volume("v", labels={ZONE: "b__c"})],
            {"VolumeZone": [{"selector": f"{ZONE} in (b, c)", "has": "a"}]},
            id="the zones of a bound volume",
        ),
        pytest.param(
            uses("c", "old"),
            [claim("c", "v"), volume("v"), claim("old", "w"), volume("w"), csi_node("n1", count=1)],
            {
                "NodeVolumeLimits": [
                    {
                        "resource": f"attachable-volumes-csi-{HANDLES}",
                        "asked": "1",
                        "free": "0",
                        "allocatable": "1",
                    }
                ]
            },
            id="the volumes that a node may attach",
        ),
        pytest.param(
            uses("old"),
            [claim("old", "w", mode="ReadWriteOncePod"), volume("w")],
            {"VolumeRestrictions": [{"pod": "shop/old", "key": "node", "value": "n1"}]},
            id="the one pod that has the claim",
        ),
        pytest.param(
            [{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}],
            [claim("old", "w"), volume("w")],
            {"VolumeRestrictions": [{"pod": "shop/old", "key": "node", "value": "n1"}]},
            id="the pod of the node that has the disk",
        ),
    ],
)
def test_volumes_name_what_stands_in_the_way(volumes: Any, objects: list[Any], expected: dict[str, Any]) -> None:
    old = a_pod("old").spec(volumes=[*uses("old"), {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]).on("n1")
    site = a_site(a_node("n1").zone("a"), old, a_pod("new").spec(volumes=volumes))
    assert because(stored(site, *objects)) == expected


def test_a_pod_on_a_node_that_is_not_there_is_told_which() -> None:
    site = a_site(a_node("n1"), a_pod("lost").on("n7"))
    assert because(site, "lost") == {"NodeName": [{"selector": "metadata.name in (n7)", "has": "n1"}]}


def test_the_running_pod_itself_is_never_in_its_own_way() -> None:
    apart = term(ZONE, app("db"))
    pods = [db(f"db-{at}", f"n{at}").apart(apart) for at in (1, 2)]
    site = a_site(a_node("n1").zone("a"), a_node("n2").zone("a"), *pods)
    expected = {"InterPodAffinity": [{"pod": "shop/db-2", "key": ZONE, "value": "a"}]}
    assert because(site, "db-1", "n1") == because(site, "db-1", "n2") == expected


def test_a_nominated_pod_is_named_as_if_it_ran() -> None:
    vip = a_pod("vip").labels(app="db").nominated("n1", 10)
    new = a_pod("new").apart(term(HOST, app("db")))
    assert because(a_site(*nodes("n1", "n2"), vip, new)) == {
        "InterPodAffinity": [{"pod": "shop/vip", "key": HOST, "value": "n1"}]
    }


def test_of_many_pods_the_first_ten_are_named() -> None:
    pods = [db(f"db-{at:02}", "n1") for at in range(12)]
    found = because(a_site(a_node("n1").zone("a"), *pods, NEW.apart(term(ZONE, app("db")))))
    assert [one["pod"] for one in found["InterPodAffinity"]] == [f"shop/db-{at:02}" for at in range(10)]


def test_where_a_conflict_refuses_it_is_named_beside_the_reason() -> None:
    apart = term(HOST, app("db"))
    site = a_site(*nodes("n1", "n2"), db("old", "n2"), NEW.apart(apart), on={"n1": "h1", "n2": "h1"})
    found = to_builtins(explain(site, Options(physical_host="required"), ["shop/new"]))["pods"]["shop/new"]["nodes"]
    assert found["n1"] == {
        "feasible": False,
        "failing": {"PhysicalHost": ["node(s) were on a physical host that runs a pod to be kept apart"]},
        "code": {"PhysicalHost": "Unschedulable"},
        "because": {"PhysicalHost": [{"pod": "shop/old", "key": "host", "value": "esx-h1"}]},
    }
    assert list(found["n2"]["failing"]) == ["InterPodAffinity"]


def test_no_placement_asks_what_stands_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*arguments: object) -> None:
        raise AssertionError("a placement asked")

    monkeypatch.setattr(Prepared, "explain_fully", asked)
    vip = a_pod("vip").labels(app="db").nominated("n1", 10)
    site = a_site(a_node("n1"), db("old", "n1"), vip, NEW.apart(term(HOST, app("db"))))
    assert schedule(site, Options(scheduler_names=("default-scheduler",))).failed["shop/new"] == {
        "node(s) didn't match pod anti-affinity rules": 1
    }
