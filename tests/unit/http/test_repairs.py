"""Repairs and rolling maintenance over HTTP: a worker plans as the command line does, within its budgets."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from support.sites.remembered import RememberingSite, hours_ago
from support.sites.shop import a_shop, two_pods

from underhost.agents.http import trials
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.site.snapshot import Options
from underhost.agents.whatif.maintenance import Chosen, maintenance
from underhost.schemas.documents import to_json

SHOP = a_shop()
"""db-0 on n1 and db-1 on n2 share h1; n3 is on h2."""
MENDED = two_pods("h1", "h2")
FINDING = repair(SHOP, Options()).resolved_findings[0].id


class Asked:
    """A worker that shows a site, and a client."""

    def __init__(self, shown: RememberingSite, client: aiohttp.ClientSession) -> None:
        self.shown, self._client = shown, client

    async def post(self, what: str, **body: object) -> tuple[int, Any]:
        """Status and document."""
        async with self._client.post(f"{self.shown.address}api/v1/{what}", json=body) as response:
            return response.status, await response.json()


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    with RememberingSite() as shown:
        shown.put(SHOP)
        async with aiohttp.ClientSession() as client:
            yield Asked(shown, client)


@pytest.mark.parametrize(
    ("body", "terms"),
    [
        pytest.param({}, RepairTerms(), id="all of it"),
        pytest.param(
            {"maxVmotions": 0, "evictions": False}, RepairTerms(most_vmotions=0, evictions=None), id="nothing"
        ),
        pytest.param({"for": FINDING}, RepairTerms(finding=FINDING), id="one finding"),
        pytest.param({"only": ["lab"]}, RepairTerms(namespaces=frozenset({"lab"})), id="a namespace"),
        pytest.param(
            {"headroom": 10, "reserved": True, "admission": True}, RepairTerms(room=Room(10, True, True)), id="room"
        ),
    ],
)
async def test_a_repair_is_planned_as_the_command_line_does(asked: Asked, body: Any, terms: RepairTerms) -> None:
    status, found = await asked.post("repair", **body)
    assert (status, found) == (200, json.loads(to_json(repair(SHOP, Options(), terms))))


async def test_what_a_repair_says(asked: Asked) -> None:
    _, found = await asked.post("repair")
    assert [(step["vm"], step["from"], step["to"], step["because"]) for step in found["steps"]] == [
        ("n1", "esx-h1", "esx-h2", [FINDING])
    ]
    _, found = await asked.post("repair", maxVmotions=0, evictions=False)
    assert (found["steps"], [one["finding"] for one in found["unrepairable"]]) == ([], [FINDING])


@pytest.mark.parametrize(
    ("body", "chosen"),
    [
        pytest.param({"allHosts": True}, Chosen(all=True), id="all hosts"),
        pytest.param({"clusters": ["C0"], "atOnce": 1}, Chosen(clusters=("C0",), at_once=1), id="a cluster"),
        pytest.param({"hosts": ["host/esx-h1"]}, Chosen(hosts=("esx-h1",)), id="a host"),
    ],
)
async def test_maintenance_is_planned_as_the_command_line_does(asked: Asked, body: Any, chosen: Chosen) -> None:
    status, found = await asked.post("maintain", **body)
    assert (status, found) == (200, json.loads(to_json(maintenance(SHOP, Options(), chosen))))


async def test_one_plan_after_another_is_made_of_the_site_as_it_is(asked: Asked) -> None:
    first = await asked.post("repair")
    await asked.post("maintain", allHosts=True)
    assert await asked.post("repair") == first
    asked.shown.put(MENDED)
    _, found = await asked.post("repair")
    assert (found["steps"], found["objective"]["findingsLeft"]) == ([], 0)


async def test_a_plan_is_made_of_the_site_as_it_was(asked: Asked) -> None:
    asked.shown.past.state(MENDED, hours_ago(3))
    asked.shown.past.state(SHOP, hours_ago(1))
    for at, steps in (("2h", 0), ("30m", 1)):
        status, found = await asked.post("repair", at=at)
        assert (status, len(found["steps"])) == (200, steps)
        status, found = await asked.post("maintain", allHosts=True, at=at)
        assert (status, found["kind"]) == (200, "MaintenancePlan")


@pytest.mark.parametrize(
    ("what", "body", "status", "why"),
    [
        ("repair", {"for": "f0"}, 422, "finding f0: not there, or no move ends it"),
        ("repair", {"only": ["shopp"]}, 422, "namespace shopp is not there; did you mean shop?"),
        ("repair", {"maxVmotions": -1}, 422, "maxVmotions: expected an integer >= 0"),
        ("repair", {"headroom": 100}, 422, "headroom: expected an integer <= 99"),
        ("repair", {"only": ["a"] * 201}, 422, "only: expected a list of length <= 200"),
        ("repair", {"apply": True}, 422, "unknown field `apply`"),
        ("repair", {"site": "other"}, 404, "no site 'other' here; there is: prod"),
        ("maintain", {}, 422, "no host is named: allHosts, clusters or hosts are expected"),
        ("maintain", {"hosts": ["esx-h9"]}, 422, "host esx-h9: not there"),
        ("maintain", {"hosts": ["node/n1"]}, 422, "node/n1: a host is expected, as HOST or host/HOST"),
        ("maintain", {"clusters": ["C1"]}, 422, "cluster C1: not there"),
        ("maintain", {"hosts": ["x" * 1025]}, 422, "hosts[0]: expected a string of length <= 1024"),
    ],
)
async def test_what_cannot_be_planned_is_refused_in_one_line(
    asked: Asked, what: str, body: Any, status: int, why: str
) -> None:
    found = await asked.post(what, **body)
    assert found[0] == status
    assert why in found[1]["error"]
    assert "\n" not in found[1]["error"]


@pytest.mark.parametrize("what", ["repair", "maintain"])
async def test_planning_has_its_time(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.0)
    with RememberingSite() as shown:
        shown.put(SHOP)
        async with aiohttp.ClientSession() as client:
            status, found = await Asked(shown, client).post(what, **({"allHosts": True} if what == "maintain" else {}))
    assert status == 422
    assert found["error"].startswith("it takes longer than 0 s; the command line tries it without a bound")
