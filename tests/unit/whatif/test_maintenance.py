"""Rolling maintenance: the order is the shortest, every wave is safe, and what cannot be emptied is told with why."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import msgspec
import pytest
from support.build import HOST, a_budget, a_node, a_pod, a_site, a_workload, term
from support.sites.quorate import ANNOTATION, ROLE

from underhost.agents.evaluate.check import check
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.maintenance import Chosen, maintenance
from underhost.schemas.documents import MaintenancePlan
from underhost.schemas.errors import InputError
from underhost.schemas.severities import QUORUM, at_or_above
from underhost.schemas.vsphere import Admission, Cluster, DrsRule, Host, Vm

ALL = Chosen(all=True)
GIB = 1024
DB = {"app": "db"}
V1 = {"v1": ("a", 8)}
HELD = "a device of its host, or a datastore or network that no other host reaches, holds it there"


def hosts(*names: str, memory: int = 64, **fields: Any) -> list[Host]:
    return [Host(id=f"id-{name}", name=name, cluster="C0", memory_mib=memory * GIB, **fields) for name in names]


def site(
    hosts_: list[Host], vms: dict[str, tuple[str, int]], *objects: object, rules: Sequence[DrsRule] = ()
) -> Snapshot:
    """`vms`: host and GiB of each; a VM that an object names as a node is that node's."""
    made = {
        name: Vm(id=name, name=name, host=f"id-{host}", memory_mib=size * GIB) for name, (host, size) in vms.items()
    }
    built = a_site(*objects, on={name: f"id-{host}" for name, (host, _) in vms.items()}, hosts=hosts_)
    joined = {name: msgspec.structs.replace(one, vm=name) for name, one in built.node_hosts.items()}
    named = {("C0", rule.name): rule for rule in rules}
    return replace(built, vms=made, node_hosts=joined, rules=named, clusters={"C0": Cluster(name="C0")})


def orders(plan: MaintenancePlan) -> list[list[str]]:
    return [wave.hosts for wave in plan.waves]


def anti(*vms: str) -> DrsRule:
    return DrsRule(name="-".join(vms), type="anti-affinity", vms=list(vms), cluster="C0")


def only_on(vm: str, *names: str) -> DrsRule:
    return DrsRule(name=vm, type="vm-host", vms=[vm], hosts=[f"id-{name}" for name in names], cluster="C0")


def with_vm(picture: Snapshot, name: str, **fields: object) -> Snapshot:
    return replace(picture, vms={**picture.vms, name: msgspec.structs.replace(picture.vms[name], **fields)})


def kept_free(picture: Snapshot, *names: str) -> Snapshot:
    """HA's admission control has these as failover hosts."""
    admission = Admission(failover_hosts=[f"id-{name}" for name in names])
    return replace(picture, clusters={"C0": Cluster(name="C0", admission=admission)})


def replicas(*nodes: str, **metadata: object):
    made = [a_pod(f"db-{at}").on(node).labels(DB).owned_by("StatefulSet/db") for at, node in enumerate(nodes)]
    return [one.metadata(**metadata) for one in made]


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        pytest.param(site(hosts("a", "b", "c", "d"), {}), [["a", "b", "c", "d"]], id="nothing runs"),
        pytest.param(
            site(hosts("a", "b", "c", "d"), {"v1": ("a", 32), "v2": ("b", 32)}),
            [["b", "c", "d"], ["a"]],
            id="one host has room for all",
        ),
        pytest.param(
            site(hosts("a", "b", "c", "d"), {f"v{at}": (host, 32) for at, host in enumerate("abcd")}),
            [["a", "b"], ["c", "d"]],
            id="half of them at a time",
        ),
        pytest.param(
            kept_free(site(hosts("a", "b", "c"), {"v1": ("a", 32), "v2": ("b", 32)}), "c"),
            [["a", "c"], ["b"]],
            id="a failover host takes nobody",
        ),
        pytest.param(
            site(hosts("a", "b", "c", "d"), {"v1": ("a", 8), "v2": ("b", 8)}, rules=[anti("v1", "v2")]),
            [["c", "d"], ["a", "b"]],
            id="two VMs that a DRS rule keeps apart",
        ),
        pytest.param(
            site(
                hosts("a", "b", "c", "d"),
                {"n1": ("a", 8), "n2": ("b", 8), "n3": ("c", 8)},
                *map(a_node, ("n1", "n2", "n3")),
                *(pod.apart(term(HOST, DB)) for pod in replicas("n1", "n2", "n3")),
            ),
            [["d"], ["a"], ["b"], ["c"]],
            id="three replicas that must be apart",
        ),
        pytest.param(
            site(
                hosts("a", "b", "c", "d"),
                {"n1": ("a", 8), "n2": ("b", 8), "n3": ("c", 8)},
                *(a_node(one).labels({f"{ROLE}control-plane": ""}) for one in ("n1", "n2", "n3")),
            ),
            [["d"], ["a"], ["b"], ["c"]],
            id="three control-plane nodes",
        ),
    ],
)
def test_the_order(picture: Snapshot, expected: list[list[str]]) -> None:
    plan = maintenance(picture, Options(), ALL)
    assert len(plan.waves) == len(expected)
    assert sorted(host for wave in orders(plan) for host in wave) == sorted(host for wave in expected for host in wave)
    assert (plan.blocked, plan.new_findings, plan.optimal) == ([], [], True)


def test_a_plan_names_its_waves_and_what_each_moves() -> None:
    picture = site(hosts("a", "b", "c"), {"v1": ("a", 40), "v2": ("b", 40)})
    plan = maintenance(picture, Options(), ALL)
    told = [(wave.hosts, [(one.vm, one.from_, one.to) for one in wave.vm_moves]) for wave in plan.waves]
    assert told == [(["c"], []), (["a"], [("v1", "a", "c")]), (["b"], [("v2", "b", "a")])]
    assert [one.step for wave in plan.waves for one in wave.vm_moves] == [2, 3]


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        pytest.param(
            site(hosts("a", "b"), {"v1": ("a", 40), "v2": ("b", 40)}),
            [
                ("a", ["v1"], "no other host of its cluster has room"),
                ("b", ["v2"], "no other host of its cluster has room"),
            ],
            id="no room",
        ),
        pytest.param(
            site(hosts("a", "b"), {"v1": ("a", 8), "v2": ("b", 8)}, rules=[anti("v1", "v2")]),
            [
                ("a", ["v1"], "rules or quorums keep it from every host that has room"),
                ("b", ["v2"], "rules or quorums keep it from every host that has room"),
            ],
            id="a rule",
        ),
        pytest.param(
            site(hosts("a", "b"), {"v1": ("a", 8)}, rules=[only_on("v1", "a")]),
            [("a", ["v1"], "rules or quorums keep it from every host that has room")],
            id="a VM-Host rule",
        ),
        pytest.param(
            with_vm(site(hosts("a", datastores=["d1"]) + hosts("b", datastores=["d2"]), V1), "v1", datastores=["d1"]),
            [("a", ["v1"], HELD)],
            id="a datastore that no other host has",
        ),
        pytest.param(
            with_vm(
                site(
                    [*hosts("a", "c", datastores=["d1"]), *hosts("b", memory=32, datastores=["d2"])],
                    {"v1": ("a", 20), "v2": ("c", 50)},
                ),
                "v1",
                datastores=["d1"],
            ),
            [
                ("a", ["v1"], "no other host that reaches its datastores and networks has room"),
                ("c", ["v2"], "no other host of its cluster has room"),
            ],
            id="the host with its datastore is full",
        ),
        pytest.param(
            with_vm(site(hosts("a", "b"), V1), "v1", pinned="GPU"), [("a", ["v1"], HELD)], id="a device of its host"
        ),
        pytest.param(
            site(
                hosts("a") + hosts("b", memory=32) + hosts("c", memory=16, state="maintenance"),
                {"v1": ("a", 20), "v2": ("a", 20)},
            ),
            [("a", ["v1", "v2"], "its VMs fit the other hosts one by one, but not all of them")],
            id="one by one, but not together",
        ),
        pytest.param(
            site(hosts("a") + hosts("z", state="disconnected"), {}), [("z", [], "it is not connected")], id="not there"
        ),
    ],
)
def test_what_cannot_be_emptied_is_told_with_why(picture: Snapshot, expected: list[tuple[str, list[str], str]]) -> None:
    assert [(one.host, one.vms, one.why) for one in maintenance(picture, Options(), ALL).blocked] == expected


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(site(hosts("a", "b", "c"), V1, rules=[only_on("v1", "a", "c")]), id="a VM-Host rule"),
        pytest.param(
            with_vm(site([*hosts("a", "c", networks=["n1"]), *hosts("b", networks=["n2"])], V1), "v1", networks=["n1"]),
            id="a network that one host lacks",
        ),
    ],
)
def test_a_vm_moves_where_it_may_run(picture: Snapshot) -> None:
    plan = maintenance(picture, Options(), Chosen(hosts=("a",)))
    assert [(one.vm, one.to) for wave in plan.waves for one in wave.vm_moves] == [("v1", "c")]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param(Chosen(hosts=("c", "id-d")), [["c", "d"]], id="named, by name or id"),
        pytest.param(Chosen(clusters=("C0",)), [["c", "d"], ["a", "b"]], id="a cluster"),
        pytest.param(Chosen(all=True, at_once=1), [["c"], ["d"], ["a"], ["b"]], id="one at a time"),
    ],
)
def test_which_hosts_and_how_many_at_once(chosen: Chosen, expected: list[list[str]]) -> None:
    picture = site(hosts("a", "b", "c", "d"), {f"v{at}": (host, 32) for at, host in enumerate("aabb")})
    assert orders(maintenance(picture, Options(), chosen)) == expected


@pytest.mark.parametrize(
    ("picture", "chosen", "said"),
    [
        pytest.param(site(hosts("a"), {}), Chosen(hosts=("b",)), "host b: not there", id="no such host"),
        pytest.param(site(hosts("a"), {}), Chosen(clusters=("C1",)), "cluster C1: not there", id="no such cluster"),
        pytest.param(Snapshot(), ALL, "no ESXi host is known", id="no inventory"),
    ],
)
def test_what_is_not_there_is_bad_input(picture: Snapshot, chosen: Chosen, said: str) -> None:
    with pytest.raises(InputError, match=said):
        maintenance(picture, Options(), chosen)


def test_hosts_without_capacity_take_anything_and_it_is_said() -> None:
    plan = maintenance(site(hosts("a", "b", memory=0), {"v1": ("a", 500)}), Options(), ALL)
    assert [(one.what, one.why) for one in plan.not_judged if one.what.startswith("room")] == [
        ("room of 2 hosts", "the inventory does not say how much they have")
    ]
    assert len(plan.waves) == 2


# ------------------------------------------------------------------------------------------------- against brute force
class SmallSite:
    """Up to six hosts and seven VMs, with what keeps them apart known beforehand."""

    def __init__(self, seed: int) -> None:
        pick = random.Random(seed)
        self.names = [f"h{at}" for at in range(pick.randrange(2, 7))]
        self.room = {name: pick.choice([32, 48, 64]) for name in self.names}
        vms = [f"n{at}" for at in range(pick.randrange(0, 8 if len(self.names) < 6 else 6))]
        self.size = {vm: pick.choice([4, 8, 16]) for vm in vms}
        self.start = {vm: pick.choice(self.names) for vm in vms}
        self.apart = [one for one in combinations(vms, 2) if pick.random() < 0.15]
        self.members = pick.sample(vms, 3) if len(vms) >= 3 and pick.random() < 0.5 else []
        asked = {"annotations": {ANNOTATION: "true"}}
        made = [a_pod(f"db-{vm}").on(vm).owned_by("StatefulSet/db") for vm in self.members]
        workload = a_workload("StatefulSet", "db", 3).metadata(**asked)
        listed = [one for name in self.names for one in hosts(name, memory=self.room[name])]
        where = {vm: (self.start[vm], self.size[vm]) for vm in vms}
        rules = [anti(*pair) for pair in self.apart]
        self.snapshot = site(listed, where, *map(a_node, vms), workload, *made, rules=rules)

    def is_right(self, places: dict[str, str], moved: set[str]) -> bool:
        """Whether every VM that has moved may be where it is."""
        for host in {places[vm] for vm in moved}:
            here = [vm for vm in places if places[vm] == host]
            if sum(self.size[vm] for vm in here) > self.room[host]:
                return False
            members = {vm for vm in here if vm in self.members}
            if len(members) > 1 and members & moved:
                return False
        broken = [pair for pair in self.apart if places[pair[0]] == places[pair[1]]]
        return not any(vm in moved for pair in broken for vm in pair)

    def after(self, places: dict[str, str], away: tuple[str, ...]) -> Iterator[dict[str, str]]:
        moving = [vm for vm in places if places[vm] in away]
        others = [name for name in self.names if name not in away]
        for chosen in product(others, repeat=len(moving)):
            then = {**places, **dict(zip(moving, chosen, strict=True))}
            if self.is_right(then, set(moving)):
                yield then

    def shortest(self) -> int | None:
        """Every order and every place, one wave more each time."""
        for number in range(1, len(self.names) + 1):
            self._seen: set[object] = set()
            if self._ends(self.start, tuple(self.names), number):
                return number
        return None

    def _ends(self, places: dict[str, str], waiting: tuple[str, ...], number: int) -> bool:
        state = (tuple(places.items()), waiting, number)
        if not waiting or number == 0 or state in self._seen:
            return not waiting
        self._seen.add(state)
        sizes = range(1, len(waiting) + 1) if number > 1 else [len(waiting)]
        return any(
            self._ends(then, tuple(one for one in waiting if one not in away), number - 1)
            for size in sizes
            for away in combinations(waiting, size)
            for then in self.after(places, away)
        )


SEEDS = [
    pytest.param(range(30), id="any sites"),
    pytest.param([311, 387, 553, 650], id="a few hosts go first, to let many go at once"),
]


@pytest.mark.parametrize("seeds", SEEDS)
def test_on_small_sites_no_order_is_shorter(seeds: Sequence[int]) -> None:
    for seed in seeds:
        small = SmallSite(seed)
        plan, shortest = maintenance(small.snapshot, Options(), ALL), small.shortest()
        if shortest is None:
            assert plan.blocked, f"seed {seed}"
        else:
            assert (plan.blocked, len(plan.waves), plan.optimal) == ([], shortest, True), f"seed {seed}"
        assert [one for one in plan.new_findings if at_or_above(one.severity, QUORUM)] == [], f"seed {seed}"
        carried_out(small, plan)


def carried_out(small: SmallSite, plan: MaintenancePlan) -> None:
    """Move by move, each is right, and each wave empties its hosts."""
    places = dict(small.start)
    for wave in plan.waves:
        for move in wave.vm_moves:
            assert places[move.vm] == move.from_ and move.to not in wave.hosts
            places[move.vm] = str(move.to)
            assert small.is_right(places, {move.vm})
        assert not set(places.values()) & set(wave.hosts)


def test_sixteen_hosts_have_their_turn_and_no_budget_and_no_quorum_is_broken() -> None:
    names = [f"h{at:02d}" for at in range(16)]
    vms = {f"n{at:02d}": (names[at // 3], 8 + at % 3 * 4) for at in range(48)}
    roles = {f"n{at:02d}": {f"{ROLE}control-plane": ""} for at in (0, 3, 6)}
    objects = [a_node(vm).labels(roles.get(vm, {})) for vm in vms]
    for number in range(6):
        app_ = {"app": f"app-{number}"}
        nodes = [f"n{(number * 3 + at * 9 + number) % 48:02d}" for at in range(5)]
        objects += [
            a_pod(f"app-{number}-{at}")
            .on(node)
            .labels(app_)
            .owned_by(f"StatefulSet/app-{number}")
            .apart(term(HOST, app_))
            for at, node in enumerate(nodes)
        ]
        objects.append(a_workload("StatefulSet", f"app-{number}", 5).metadata(annotations={ANNOTATION: "true"}))
        objects.append(a_budget(f"app-{number}", app_, max_unavailable=1))
    picture = site(hosts(*names), vms, *objects)
    before = check(picture, Options())
    assert [one for one in before.findings if at_or_above(one.severity, QUORUM)] == []
    plan = maintenance(picture, Options(), ALL)
    assert sorted(host for wave in orders(plan) for host in wave) == names
    assert (plan.blocked, [one for one in plan.new_findings if at_or_above(one.severity, QUORUM)]) == ([], [])
    after, refs = picture, {host.name: host.id for host in picture.hosts.values()}
    for move in (move for wave in plan.waves for move in wave.vm_moves):
        joined = msgspec.structs.replace(after.node_hosts[move.vm], host=refs[str(move.to)], host_name=str(move.to))
        after = replace(after, node_hosts={**after.node_hosts, move.vm: joined})
        report = check(after, Options())
        assert [one for one in report.findings if at_or_above(one.severity, QUORUM)] == []
        assert report.budgets == before.budgets
    assert len(plan.waves) <= plan.lower_bound + 1


def test_of_a_cluster_of_many_vms_all_hosts_have_their_turn() -> None:
    names = [f"h{at:02d}" for at in range(20)]
    vms = {f"v{at:04d}": (names[at % 20], 1) for at in range(1200)}
    plan = maintenance(site(hosts(*names, memory=100), vms), Options(), ALL)
    assert sorted(host for wave in orders(plan) for host in wave) == names
    assert (len(plan.waves), plan.lower_bound, plan.optimal) == (3, 3, True)


@pytest.mark.parametrize(
    ("cross_namespace", "blocked"), [("report", []), ("act", ["a"])], ids=["reported", "acted upon"]
)
def test_what_a_pod_asks_of_others_keeps_no_host_from_its_maintenance(cross_namespace: str, blocked: list[str]) -> None:
    """Of three hosts the others hold pods of a tenant that want nobody of the first one's namespace near."""
    apart = term(HOST, DB, namespaces=["shop"])
    strangers = [a_pod(f"x-{node}", "evil").apart(apart).on(node) for node in ("v2", "v3")]
    vms = {"v1": ("a", 8), "v2": ("b", 8), "v3": ("c", 8)}
    picture = site(hosts("a", "b", "c"), vms, *map(a_node, vms), a_pod("db", "shop").labels(DB).on("v1"), *strangers)
    plan = maintenance(picture, Options(cross_namespace=cross_namespace), Chosen(hosts=("a",)))
    assert [one.host for one in plan.blocked] == blocked
    assert [one.object for one in plan.new_findings] == ([] if blocked else ["Namespace/evil"])
