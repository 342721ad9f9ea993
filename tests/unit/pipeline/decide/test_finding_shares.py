"""One tenant has its share of the open findings; nobody else's are left out for it."""

import random
from typing import Any

import msgspec
import pytest
from support.build import a_pod, a_site

from underhost.agents.pipeline.decide.finding_shares import FindingShares
from underhost.schemas.records import Finding
from underhost.schemas.shares import Capped, Shares

SITE = a_site(
    *(a_pod(f"w-{at}", "evil").owned_by("StatefulSet/w") for at in range(9)),
    *(a_pod(f"b-{at}", "evil") for at in range(9)),
    *(a_pod(f"db-{at}").owned_by("StatefulSet/db") for at in range(9)),
)


def finding(id_: str, pod: str | None, severity: str = "violation", **more: Any) -> Finding:
    return Finding(id=id_, severity=severity, rule="NodeAffinity", reason="", message="", pod=pod, **more)


def shown(
    findings: list[Finding], shares: Shares, open_: frozenset[str] = frozenset()
) -> tuple[list[str], list[Capped]]:
    kept, capped = FindingShares(shares).within(findings, open_, SITE)
    return [one.id for one in kept], capped


OWNER_SAID = Capped("findings", "evil", "StatefulSet/w", "of its findings the gravest 2 are told")
ALL_SAID = Capped("findings", "evil", "", "of its findings the gravest 3 are told")
DB = [finding(f"d{at}", f"shop/db-{at}") for at in range(2)]


@pytest.mark.parametrize(
    ("findings", "shares", "ids", "capped"),
    [
        pytest.param(
            [*(finding(f"w{at}", f"evil/w-{at}") for at in range(4)), *DB],
            Shares(findings=10, owner=20),
            ["w0", "w1", "d0", "d1"],
            [OWNER_SAID],
            id="one owner has its part",
        ),
        pytest.param(
            [*(finding(f"b{at}", f"evil/b-{at}") for at in range(5)), *DB],
            Shares(findings=3, owner=100),
            ["b0", "b1", "b2", "d0", "d1"],
            [ALL_SAID],
            id="all of a namespace have its share",
        ),
        pytest.param(
            [finding("b0", "evil/b-0", "co-located"), *(finding(f"b{at}", f"evil/b-{at}") for at in range(1, 4))],
            Shares(findings=3, owner=100),
            ["b1", "b2", "b3"],
            [ALL_SAID],
            id="the gravest stay",
        ),
        pytest.param(
            [finding(f"b{at}", f"shop/db-{at}", object="Namespace/evil") for at in range(4)] + DB,
            Shares(findings=3, owner=100),
            ["b0", "b1", "b2", "d0", "d1"],
            [ALL_SAID],
            id="whose rule it is, not whose pod",
        ),
        pytest.param(
            [finding(f"n{at}", None, node=f"n{at}") for at in range(9)],
            Shares(findings=1),
            [f"n{at}" for at in range(9)],
            [],
            id="nodes have no share",
        ),
    ],
)
def test_what_is_beyond_a_share_is_not_told(
    findings: list[Finding], shares: Shares, ids: list[str], capped: list[Capped]
) -> None:
    assert shown(findings, shares) == (ids, capped)


def test_of_equally_grave_ones_those_that_are_open_stay() -> None:
    found = [finding(f"b{at}", f"evil/b-{at}") for at in range(5)]
    assert shown(found, Shares(findings=2, owner=100), frozenset({"b3", "b4"}))[0] == ["b3", "b4"]


@pytest.mark.parametrize("seed", range(20))
def test_who_has_how_many_is_followed(seed: int) -> None:
    """From one evaluation to the next findings come, go, change, and become another namespace's."""
    pick, shares = random.Random(seed), Shares(findings=6, owner=50, alerts=4)
    followed, now = FindingShares(shares), dict[str, Finding]()
    for _ in range(30):
        for _ in range(pick.randrange(6)):
            at = pick.randrange(9)
            pod = pick.choice([f"evil/w-{at}", f"evil/b-{at}", f"shop/db-{at}", None])
            now[f"f{pick.randrange(25)}"] = finding("", pod, pick.choice(["violation", "physical"]))
        for id_ in pick.sample(sorted(now), min(len(now), pick.randrange(4))):
            del now[id_]
        now = {id_: one if one.id == id_ else msgspec.structs.replace(one, id=id_) for id_, one in now.items()}
        open_ = frozenset(pick.sample(sorted(now), len(now) // 2))
        found = list(now.values())
        assert followed.within(found, open_, SITE) == FindingShares(shares).within(found, open_, SITE)
