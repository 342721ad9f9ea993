"""The host rules on a picture that follows changes: as the evaluator says them, and as a new picture does."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from support.answers.rules import refused
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, nodes, term
from support.sites.changing import ChangingSite
from support.sites.random_cluster import HOST_KEY, RandomCluster

from underhost.agents.compiled.domains import Domains
from underhost.agents.compiled.overlay import Moved
from underhost.agents.extender.judge import REFUSALS, Coming, Verdict, judge
from underhost.agents.extender.picture import HostPicture, Outdated
from underhost.agents.rules import inter_pod_affinity, physical_host
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.kubernetes import Pod

REQUIRED = Options(physical_host="required")


def asked(picture: HostPicture, key: str, pod: Pod, options: Options = REQUIRED, **more: Any) -> Verdict:
    cls, request = picture.class_of(key, pod)
    return judge(picture, options, picture.apart(cls), request, **more)


def refusals(picture: HostPicture, key: str, pod: Pod, rule: str) -> dict[str, list[str]]:
    codes = asked(picture, key, pod).codes
    found = {picture.names[at]: REFUSALS[int(codes[at])] for at in np.flatnonzero(codes).tolist()}
    return {name: [one.reason] for name, one in found.items() if one.rule == rule}


def waiting(snapshot: Snapshot) -> dict[str, Pod]:
    return {key: pod for key, pod in snapshot.pods.items() if not pod.spec.node_name and pod.status.phase != "Failed"}


def without(snapshot: Snapshot, *parts: str, keys: tuple[str, ...] | None = None) -> Snapshot:
    """The pods without these parts of affinity and without spread; of anti-affinity only terms of these keys."""

    def cut(pod: Pod) -> Pod:
        affinity = json.loads(bytes(pod.spec.affinity)) or {}
        affinity = {part: value for part, value in affinity.items() if part not in parts}
        apart = affinity.get("podAntiAffinity", {}).get(physical_required, [])
        if keys is not None and apart:
            affinity["podAntiAffinity"] = {physical_required: [one for one in apart if one["topologyKey"] in keys]}
        spec = msgspec.structs.replace(
            pod.spec,
            affinity=msgspec.Raw(json.dumps(affinity).encode()),
            topology_spread_constraints=msgspec.Raw(b"[]"),
        )
        return msgspec.structs.replace(pod, spec=spec)

    return replace(snapshot, pods={key: cut(pod) for key, pod in snapshot.pods.items()})


physical_required = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize("seed", range(40))
def test_a_shared_host_is_refused_where_the_evaluator_refuses_it(seed: int) -> None:
    snapshot = without(RandomCluster(seed).snapshot(), "podAffinity", keys=(HOST, ZONE))
    picture = HostPicture(snapshot, REQUIRED)
    for key, pod in waiting(snapshot).items():
        expected = refused(snapshot, key, physical_host.NAME, REQUIRED)
        assert refusals(picture, key, pod, physical_host.NAME) == expected


@pytest.mark.parametrize("seed", range(40))
def test_anti_affinity_on_the_host_key_is_refused_where_the_evaluator_refuses_it(seed: int) -> None:
    whole = without(RandomCluster(seed).snapshot(), "podAffinity")
    on_host = without(whole, keys=(HOST_KEY,))
    options = Options(cross_namespace="act")  # as upstream follows every term
    picture = HostPicture(whole, options)
    for key, pod in waiting(whole).items():
        expected = refused(on_host, key, inter_pod_affinity.NAME)
        verdict = asked(picture, key, pod, options)
        found = {picture.names[at]: [REFUSALS[int(verdict.codes[at])].reason] for at in np.flatnonzero(verdict.codes)}
        assert found == expected


@pytest.mark.parametrize("seed", range(6))
def test_after_each_change_it_says_what_a_picture_made_anew_says(seed: int) -> None:
    site, options = ChangingSite(random.Random(seed)), Options(physical_host="required" if seed % 2 else "preferred")
    before, anew = site.snapshot, 0
    picture = HostPicture(before, options)
    for _ in range(120):
        said = site.change()
        try:
            follow(picture, before, site.snapshot)
        except Outdated:
            picture, anew = HostPicture(site.snapshot, options), anew + 1
        before = site.snapshot
        fresh = HostPicture(before, options)
        assert picture.names == fresh.names
        for key, pod in waiting(before).items():
            try:
                now = asked(picture, key, pod, options)
            except Outdated:
                picture, anew = HostPicture(before, options), anew + 1
                now = asked(picture, key, pod, options)
            for one, other in zip(now[:4], asked(fresh, key, pod, options)[:4], strict=True):  # the arrays of a verdict
                assert one.tolist() == other.tolist(), (said, key)
    assert anew < 100


def follow(picture: HostPicture, before: Snapshot, now: Snapshot) -> None:
    for name in differing(before.namespaces, now.namespaces):
        picture.follower.follow_namespace(name, now.namespaces.get(name))
    picture.follower.follow_nodes(now, differing(before.nodes, now.nodes), now.pods)
    picture.follow_pods(now, differing(before.pods, now.pods))


def differing(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [key for key in {**before, **now} if before.get(key) is not now.get(key)]


HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2", "n4": "h2"}
DB = a_pod("db-0").labels(app="db")
NEW = a_pod("db-1").labels(app="db").apart(term(HOST, app("db")))


def test_pods_thought_away_and_pods_on_their_way_leave_the_picture_as_it_was() -> None:
    picture = HostPicture(a_site(*nodes(*HOSTS), DB.on("n1"), NEW, on=HOSTS), REQUIRED)
    new = NEW.build()
    cls, _ = picture.class_of("shop/db-1", new)
    there = picture.class_at("shop/db-0")
    assert asked(picture, "shop/db-1", new).conflicts.tolist() == [0, 1, 0, 0]
    away = asked(picture, "shop/db-1", new, gone=[Moved(there, 0, -1)])
    assert away.conflicts.tolist() == [0, 0, 0, 0]
    sure = asked(picture, "shop/db-1", new, coming=[Coming(cls, np.array([2], np.intp))])
    assert (sure.conflicts.tolist(), sure.possible.tolist()) == ([0, 1, 0, 1], [False] * 4)
    unsure = asked(picture, "shop/db-1", new, coming=[Coming(cls, np.array([1, 2], np.intp))])
    assert (unsure.conflicts.tolist(), unsure.possible.tolist()) == ([0, 1, 0, 0], [True, False, False, True])
    assert asked(picture, "shop/db-1", new).conflicts.tolist() == [0, 1, 0, 0]


def test_a_pod_that_may_come_to_the_same_zone_is_in_nobodys_way_by_a_zone_key() -> None:
    zoned = [a_node("n1").zone("a"), a_node("n2").zone("a"), a_node("n3").zone("b"), a_node("n4").zone("c")]
    new = a_pod("db-1").labels(app="db").apart(term(ZONE, app("db")))
    picture = HostPicture(a_site(*zoned, new, on=HOSTS), REQUIRED)
    cls, _ = picture.class_of("shop/db-1", new.build())
    one = Coming(cls, np.array([0, 2], np.intp))
    assert asked(picture, "shop/db-2", new.build(), coming=[one]).possible.tolist() == [False, False, False, True]


@pytest.mark.parametrize("key", [HOST, HOST_KEY])
def test_an_unknown_host_is_shared_with_nobody(key: str) -> None:
    hosts = {"n1": "h1", "n2": "h1", "n3": "", "n4": ""}
    new = a_pod("db-1").labels(app="db").apart(term(key, app("db")))
    picture = HostPicture(a_site(*nodes(*hosts), new, on=hosts), REQUIRED)
    cls, _ = picture.class_of("shop/db-1", new.build())
    one = Coming(cls, np.array([1, 2], np.intp))
    verdict = asked(picture, "shop/db-2", new.build(), coming=[one])
    assert verdict.possible.tolist() == [True, key == HOST_KEY, False, False]


def test_a_pod_on_its_way_may_be_the_one_that_affinity_on_the_host_wants() -> None:
    near = a_pod("web").near(term(HOST_KEY, app("db")))
    other = a_pod("db-9").labels(app="db").on("n4")
    picture = HostPicture(a_site(*nodes(*HOSTS), NEW, near, other, on=HOSTS), Options())
    cls, _ = picture.class_of("shop/db-1", NEW.build())
    assert asked(picture, "shop/web", near.build()).codes.astype(bool).tolist() == [True, True, False, False]
    one = Coming(cls, np.array([0, 2], np.intp))
    assert asked(picture, "shop/web", near.build(), coming=[one]).codes.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("values", "nodes_", "pairs"),
    [
        pytest.param(["a", "b", "a", None], [0, 1], [(0, 0), (0, 2), (1, 1)], id="shared domains"),
        pytest.param(["a", None, "c"], [1, 2], [(1, 2)], id="a node without the key is in no pair"),
        pytest.param([None, None], [0, 1], [], id="nobody has the key"),
        pytest.param(["a", "a"], [], [], id="of no node"),
    ],
)
def test_neighbours_are_the_pairs_of_one_domain(
    values: list[str | None], nodes_: list[int], pairs: list[tuple[int, int]]
) -> None:
    of, other = Domains("k", values).neighbours(np.array(nodes_, np.intp))
    assert sorted(zip(of.tolist(), other.tolist(), strict=True)) == pairs
