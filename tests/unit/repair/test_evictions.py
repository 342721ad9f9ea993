"""Which pods the evictor would end for which finding, where the next one would go, and why others stay."""

from collections.abc import Mapping
from typing import Any

import pytest
from support.build import HOST, ZONE, Built, NodeBuilder, PodBuilder, a_node, a_pod, a_site, a_workload, spread, term

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.repair.evictable import EvictionTerms
from underhost.agents.repair.evictions import Left, Repair, Repairs
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.streams.settings.labels import HostLabelSettings

OPTIONS = Options()
TERMS = EvictionTerms()
DB, WEB = {"app": "db"}, {"app": "web"}
APART = term(ZONE, DB)
PORT_80 = {"containerPort": 80, "hostPort": 80}


def zoned(*zones: str) -> list[NodeBuilder]:
    """Nodes n1, n2, ... in these zones."""
    return [a_node(f"n{at}").zone(zone).has(cpu="8") for at, zone in enumerate(zones, 1)]


def free(name: str, node: str, namespace: str = "shop") -> PodBuilder:
    """A replica of ReplicaSet `db` that no rule concerns."""
    return a_pod(name, namespace).on(node).labels(DB).owned_by("ReplicaSet/db")


def replica(name: str, node: str, namespace: str = "shop") -> PodBuilder:
    """A replica of ReplicaSet `db`; no two of them may share a zone."""
    return free(name, node, namespace).apart(APART)


def plan(site: Snapshot, terms: EvictionTerms = TERMS) -> tuple[list[str], dict[str, Mapping[str, str]]]:
    """The evictions as `POD -> NODE`, in order; and the reasons of what is left, by the finding's pod."""
    evaluator = Evaluator(OPTIONS)
    report = evaluator.update(site)
    moves: list[str] = []
    left: dict[str, Mapping[str, str]] = {}
    for each in Repairs(site, report, evaluator, terms).of(report.findings):
        match each:
            case Repair():
                moves.append(f"{each.candidate.pod} -> {each.to}")
            case Left():
                left[str(each.finding.pod)] = each.reasons
    return moves, left


def db(*objects: Built, **more: Any) -> Snapshot:
    return a_site(a_workload("ReplicaSet", "db", 6), *objects, **more)


NO_BETTER = "no other node would take it and mend anything without breaking something else"
MAYBE_WORSE = "its scheduler may put the next one where more is broken than now"


@pytest.mark.parametrize(
    ("site", "moves"),
    [
        pytest.param(
            db(*zoned("a", "a", "b"), replica("db-0", "n1"), replica("db-1", "n2")),
            ["shop/db-0 -> n3"],
            id="of two equals that share a zone, the first by name goes where none is",
        ),
        pytest.param(
            a_site(
                a_workload("ReplicaSet", "db", 3).metadata(annotations={"underhost.io/quorum": "true"}),
                *zoned("a", "a", "b", "b"),
                *(free(f"db-{at}", f"n{at}") for at in (1, 2, 3)),
                on={"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h3"},
            ),
            ["shop/db-1 -> n4"],
            id="a member of a quorum leaves the host that holds too many of them",
        ),
        pytest.param(
            db(
                *zoned("a", "a", "b"),
                replica("db-0", "n1").created("2026-01-01T00:00:00Z"),
                replica("db-1", "n2").created("2026-01-02T00:00:00Z"),
            ),
            ["shop/db-1 -> n3"],
            id="the younger goes",
        ),
        pytest.param(
            db(
                *zoned("a", "a", "b"),
                replica("db-0", "n1").spec(priority=5).created("2026-01-02T00:00:00Z"),
                replica("db-1", "n2").spec(priority=9).created("2026-01-03T00:00:00Z"),
            ),
            ["shop/db-0 -> n3"],
            id="the one of lower priority goes, though it is older",
        ),
        pytest.param(
            db(*zoned("a", "a", "a", "b", "c"), *(replica(f"db-{at}", f"n{at + 1}") for at in range(3))),
            ["shop/db-0 -> n4", "shop/db-1 -> n5"],
            id="of three that share a zone two go",
        ),
        pytest.param(
            db(
                *zoned("a", "b"),
                replica("loner", "n1").apart(term(ZONE, WEB)),
                *(a_pod(f"web-{at}").on("n1").labels(WEB).owned_by("ReplicaSet/db") for at in range(3)),
            ),
            ["shop/loner -> n2"],
            id="one pod that three others must not meet goes alone",
        ),
        pytest.param(
            db(
                *zoned("a", "b", "c"),
                replica("db-0", "n1").apart(term(HOST, DB)),
                replica("db-1", "n2").apart(term(HOST, DB)),
                on={"n1": "h1", "n2": "h1", "n3": "h2"},
            ),
            ["shop/db-0 -> n3"],
            id="replicas on two nodes of one ESXi host",
        ),
        pytest.param(
            db(
                *zoned("a", "a", "a", "b"),
                *(free(f"db-{at}", f"n{at + 1}").spreads(spread(ZONE, DB)) for at in range(3)),
            ),
            ["shop/db-0 -> n4"],
            id="as many as the spread needs, and no more",
        ),
        pytest.param(
            db(
                *zoned("a", "b"),
                free("a-small-one", "n1").needs(cpu="1"),
                free("large", "n1").needs(cpu="4"),
                free("larger", "n1").needs(cpu="5"),
            ),
            ["shop/large -> n2"],
            id="where a node is over-committed, one that makes room enough by itself",
        ),
        pytest.param(
            db(
                *zoned("a", "b"),
                free("db-0", "n1").near(term(ZONE, WEB)),
                a_pod("web-0").on("n2").labels(WEB),
            ),
            ["shop/db-0 -> n2"],
            id="a pod follows the one that it must be near",
        ),
        pytest.param(
            db(*zoned("a", "b"), free("db-0", "n1").spec(nodeSelector={ZONE: "b"})),
            ["shop/db-0 -> n2"],
            id="a pod on a node that its selector excludes",
        ),
        pytest.param(
            db(*zoned("a", "b"), free("db-0", "n1").ports(PORT_80), free("db-1", "n1").ports(PORT_80)),
            ["shop/db-0 -> n2"],
            id="two pods that hold one host port",
        ),
        pytest.param(
            db(*zoned("a", "a", "b"), replica("db-0", "n1"), replica("db-1", "n2").deleted()),
            [],
            id="what is being deleted ends the finding by itself",
        ),
        pytest.param(
            db(*zoned("a", "b"), free("db-0", "n1"), free("db-1", "n1")),
            [],
            id="co-located replicas are left alone",
        ),
    ],
)
def test_the_fewest_pods_go_to_a_place_that_breaks_nothing(site: Snapshot, moves: list[str]) -> None:
    assert plan(site) == (moves, {})


def test_co_located_replicas_are_parted_where_that_is_asked_for() -> None:
    site = db(*zoned("a", "b"), free("db-0", "n1"), free("db-1", "n1"))
    assert plan(site, EvictionTerms(severities=frozenset({"co-located"}))) == (["shop/db-0 -> n2"], {})


def test_two_findings_do_not_share_the_last_place() -> None:
    site = db(
        *zoned("a", "a", "b"),
        a_pod("load").on("n3").needs(cpu="3"),
        *(replica(f"db-{at}", f"n{at + 1}").needs(cpu="4") for at in range(2)),
        *(
            a_pod(f"web-{at}")
            .on(f"n{at + 1}")
            .labels(WEB)
            .owned_by("ReplicaSet/db")
            .apart(term(ZONE, WEB))
            .needs(cpu="4")
            for at in range(2)
        ),
    )
    assert plan(site) == (["shop/db-0 -> n3"], {"shop/web-0": {"shop/web-0": NO_BETTER, "shop/web-1": NO_BETTER}})


def test_a_pod_that_waits_takes_the_place_first() -> None:
    pair = (replica("db-0", "n1"), replica("db-1", "n2"))
    older = replica("db-2", "")
    assert plan(db(*zoned("a", "a", "b"), *pair)) == (["shop/db-0 -> n3"], {})
    assert plan(db(*zoned("a", "a", "b"), *pair, older)) == (
        [],
        {"shop/db-0": {"shop/db-0": NO_BETTER, "shop/db-1": NO_BETTER}},
    )


def test_a_pod_that_others_must_be_near_stays_with_them() -> None:
    site = db(
        *zoned("a", "a", "b"),
        replica("db-0", "n1").apart(term(ZONE, WEB)),
        a_pod("web-0").on("n2").labels(WEB),
        a_pod("agent").on("n2").near(term(ZONE, DB)),
    )
    moves, left = plan(site)
    assert moves == []
    assert left["shop/db-0"]["shop/db-0"] == NO_BETTER


def test_where_one_may_not_go_the_other_does() -> None:
    site = db(*zoned("a", "a", "b"), a_pod("db-0").on("n1").labels(DB).apart(APART), replica("db-1", "n2"))
    assert plan(site) == (["shop/db-1 -> n3"], {})


DB_0 = replica("db-0", "n1")


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(
            a_pod("db-0").on("n1").labels(DB).apart(APART), "it has no owner that would make another", id="a bare pod"
        ),
        pytest.param(DB_0.owned_by("DaemonSet/agent"), "it belongs to its node", id="of a DaemonSet"),
        pytest.param(
            DB_0.metadata(annotations={"kubernetes.io/config.mirror": "x"}), "it belongs to its node", id="a mirror pod"
        ),
        pytest.param(
            DB_0.owned_by("Job/import"),
            "its owner, Job import, is not one that is known to make another",
            id="of a Job, which would count a failure",
        ),
        pytest.param(
            DB_0.owned_by("VirtualMachineInstance/vm-abcde"),
            "its owner, VirtualMachineInstance vm-abcde, is not one that is known to make another",
            id="a machine without a replica set",
        ),
        pytest.param(
            DB_0.owned_by("ReplicaSet/gone"), "its owner, ReplicaSet gone, is gone or wants no pods", id="an owner gone"
        ),
        pytest.param(
            DB_0.owned_by("ReplicaSet/none"),
            "its owner, ReplicaSet none, is gone or wants no pods",
            id="scaled to none",
        ),
        pytest.param(
            replica("db-0", "n1", "kube-system"), "pods of namespace kube-system are left alone", id="namespace"
        ),
        pytest.param(
            DB_0.spec(priority=2_000_000_000),
            "its priority is that of the system's own pods",
            id="critical to the system",
        ),
        pytest.param(
            DB_0.spec(schedulerName="volcano"),
            "nobody is known to serve its scheduler volcano",
            id="nobody would place the next one",
        ),
        pytest.param(
            DB_0.spec(volumes=[{"name": "v", "emptyDir": {}}]),
            "it has an emptyDir, whose content would be lost",
            id="an emptyDir",
        ),
        pytest.param(
            DB_0.spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            "it has volume claims, and where they can be attached is not watched",
            id="a claim",
        ),
        pytest.param(DB_0.spec(volumes="none"), "its volumes cannot be read", id="volumes of another shape"),
    ],
)
def test_some_pods_are_never_evicted(pod: PodBuilder, reason: str) -> None:
    terms = EvictionTerms(except_namespaces=frozenset({"kube-system"}))
    site = db(
        a_workload("ReplicaSet", "none", 0),
        *zoned("a", "a", "b"),
        pod,
        a_pod("db-1", pod.namespace).on("n2").labels(DB).apart(APART),
    )
    moves, left = plan(site, terms)
    assert (moves, left[pod.key][pod.key]) == ([], reason)


def test_what_the_settings_allow_is_evicted() -> None:
    terms = EvictionTerms(owners=frozenset({"Job"}), schedulers=frozenset({"volcano"}), empty_dir=True, volumes=True)
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
    import_ = a_pod("db-0").on("n1").labels(DB).owned_by("Job/import").apart(APART)
    site = db(
        *zoned("a", "a", "b"),
        import_.spec(schedulerName="volcano", volumes=volumes),
        a_pod("db-1").on("n2").labels(DB).apart(APART),
    )
    assert plan(site, terms) == (["shop/db-0 -> n3"], {})


def test_a_pod_whose_node_could_not_end_it_stays() -> None:
    dead = a_node("n1").zone("a").put("status", "conditions", value=[{"type": "Ready", "status": "Unknown"}])
    site = db(dead, *zoned("a", "a", "b")[1:], replica("db-0", "n1"), replica("db-1", "n2"))
    assert plan(site) == (["shop/db-1 -> n3"], {})


def test_a_machine_of_a_replica_set_is_evicted() -> None:
    site = db(
        a_workload("VirtualMachineInstanceReplicaSet", "vm", 2),
        *zoned("a", "a", "b"),
        a_pod("virt-launcher-vmabcde-1").on("n1").labels(DB).owned_by("VirtualMachineInstance/vmabcde").apart(APART),
        a_pod("db-1").on("n2").labels(DB).apart(APART),
    )
    assert plan(site) == (["shop/virt-launcher-vmabcde-1 -> n3"], {})


def test_our_own_scheduler_goes_where_it_says_and_not_where_it_could() -> None:
    """Both free nodes are feasible; the better one for the pod breaks another's spread."""
    theirs = free("db-0", "n1").apart(term(HOST, WEB)).spec(nodeSelector={"disk": "fast"})
    mine = theirs.spec(schedulerName="underhost")
    nodes = [
        a_node("n1").labels({ZONE: "a", "disk": "fast"}),
        a_node("n2").labels({ZONE: "b", "disk": "fast"}),
        a_node("n3").labels({ZONE: "c", "disk": "fast"}),
    ]
    crowd = [a_pod(f"crowd-{at}").on(f"n{at}").labels(DB).spreads(spread(ZONE, DB)) for at in (2,)]
    web = a_pod("web-0").on("n1").labels(WEB)
    load = a_pod("load").on("n3").needs(cpu="4")
    for pod, expected in ((theirs, ["shop/db-0 -> n3"]), (mine, [])):
        terms = EvictionTerms(schedulers=frozenset({"default-scheduler", "underhost"}))
        site = db(*nodes, pod, web, load, *crowd)
        assert plan(site, terms)[0] == expected


def test_a_pod_stays_whose_scheduler_may_put_the_next_one_where_more_is_broken() -> None:
    """Both `web` must share a host: with `db` beside both of them, on n1 and n3, moving VMs cannot part them either."""
    key = HostLabelSettings().key
    on = {"n0": "e0", "n1": "e1", "n2": "e1", "n3": "e1"}
    nodes = [a_node(node).labels({key: host}) for node, host in on.items()]
    web = [a_pod(f"web-{at}").on(node).labels(WEB).near(term(key, WEB)) for at, node in enumerate(("n1", "n3"))]
    first, second = (free(f"db-{at}", f"n{at + 2}").spreads(spread(HOST, DB)) for at in range(2))
    alone = a_pod("db-1").on("n3").labels(DB).spreads(spread(HOST, DB))
    terms = EvictionTerms(schedulers=frozenset({"default-scheduler", "underhost"}))
    assert plan(db(*nodes, *web, first, second, on=on), terms)[0] == ["shop/db-1 -> n0"]
    moves, left = plan(db(*nodes, *web, first, alone, on=on), terms)
    assert (moves, left["shop/db-0"]["shop/db-0"]) == ([], MAYBE_WORSE)
    assert plan(db(*nodes, *web, first.spec(schedulerName="underhost"), alone, on=on), terms)[0] == ["shop/db-0 -> n0"]
