"""A repair, or maintenance, is carried out for who has the token, by a worker that may, and followed to its end."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.sites.shop import a_shop
from support.sites.shown import ShownSite

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.token import TokenFile
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.maintenance.run import MaintenanceRun, MaintenanceTerms
from underhost.agents.sinks.moves.campaign import Campaign, Campaigns
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import API_VERSION
from underhost.schemas.errors import Unreachable

TOKEN = "correct-horse-battery-staple"
SHOP = a_shop()
ADVICE = next(one.id for one in Evaluator(Options()).update(SHOP).findings if one.severity == "drift")


class Repairs:
    """Implements `Repairing`. `refuses`: why no repair can be begun."""

    def __init__(self) -> None:
        self.campaigns, self.refuses = Campaigns(), ""

    def begin_repair(self, site: str, terms: RepairTerms) -> Campaign:
        if self.refuses:
            raise Unreachable(self.refuses)
        return self.campaigns.add(Campaign("prod", terms))

    def repair(self, id_: str) -> Campaign | None:
        return self.campaigns.find(id_, Campaign)

    def begin_maintenance(self, site: str, terms: MaintenanceTerms) -> MaintenanceRun:
        if self.refuses:
            raise Unreachable(self.refuses)
        return self.campaigns.add(MaintenanceRun(site, terms))

    def maintenance(self, id_: str = "") -> MaintenanceRun | None:
        return self.campaigns.find(id_, MaintenanceRun) if id_ else self.campaigns.last(MaintenanceRun)


class Asked:
    """A worker, and a client that shows this token."""

    def __init__(self, shown: ShownSite, repairs: Repairs, client: aiohttp.ClientSession) -> None:
        self.shown, self.repairs, self._client, self.token = shown, repairs, client, TOKEN

    async def maintain(self, method: str, path: str = "", **body: object) -> tuple[int, Any]:
        """Status and document, of maintenance."""
        return await self.ask(method, path, "maintenance", **body)

    async def last(self) -> tuple[int, Any]:
        """Status and document, of the last maintenance."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self._client.get(f"{self.shown.address}api/v1/maintenance", headers=headers) as response:
            return response.status, await response.json()

    async def ask(self, method: str, path: str = "", what: str = "repair", **body: object) -> tuple[int, Any]:
        """Status and document."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        url = f"{self.shown.address}api/v1/{what}/apply{path}"
        async with self._client.request(
            method, url, json=body if method == "POST" else None, headers=headers
        ) as response:
            return response.status, await response.json()


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    (tmp_path / "token").write_text(TOKEN)
    site = ShownSite(Door(TokenFile(tmp_path / "token")))
    site.repairing = repairs = Repairs()
    with site as shown:
        shown.put(SHOP)
        async with aiohttp.ClientSession() as client:
            yield Asked(shown, repairs, client)


async def test_a_repair_is_begun_with_what_was_asked_for(asked: Asked) -> None:
    status, found = await asked.ask("POST", only=["shop"], maxVmotions=2, evictions=False, headroom=10)
    assert (status, found["state"], found["steps"], found["site"]) == (200, "planning", [], "prod")
    begun = asked.repairs.campaigns.find(found["id"], Campaign)
    assert begun is not None
    assert (begun.terms.namespaces, begun.terms.most_vmotions, begun.terms.evictions) == ({"shop"}, 2, None)
    assert begun.terms.room.headroom == 10


async def test_it_is_followed_by_its_id(asked: Asked) -> None:
    _, found = await asked.ask("POST")
    begun = asked.repairs.campaigns.find(found["id"], Campaign)
    assert begun is not None
    begun.end((), "as a test wants it")
    status, now = await asked.ask("GET", f"/{found['id']}")
    assert (status, now["state"], now["why"]) == (200, "ended", "as a test wants it")


async def test_one_that_nobody_has_begun_here_is_not_there(asked: Asked) -> None:
    status, found = await asked.ask("GET", "/0123")
    assert (status, found["error"]) == (404, "no repair 0123 was begun by this worker since its start")


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"only": ["shopp"]}, 422, "namespace shopp is not there; did you mean shop?"),
        ({"for": "f0"}, 422, "finding f0: not there, or no move ends it"),
        ({"for": ADVICE}, 422, f"finding {ADVICE}: not there, or no move ends it"),
        ({"at": "1h"}, 422, "at: what is past cannot be changed any more"),
        ({"maxVmotions": -1}, 422, "maxVmotions: expected an integer >= 0"),
        ({"site": "other"}, 404, "no site 'other' here; there is: prod"),
    ],
)
async def test_what_cannot_be_begun_is_refused_in_one_line(asked: Asked, body: Any, status: int, why: str) -> None:
    found = await asked.ask("POST", **body)
    assert (found[0], found[1]["error"]) == (status, why)


async def test_a_worker_that_may_not_move_vms_says_why(asked: Asked) -> None:
    asked.repairs.refuses = "this worker moves no VMs"
    status, found = await asked.ask("POST")
    assert (status, found["error"]) == (503, "this worker moves no VMs")


async def test_a_second_repair_waits_for_the_first(asked: Asked) -> None:
    await asked.ask("POST")
    status, found = await asked.ask("POST")
    assert (status, found["error"]) == (503, "another repair is under way")


async def test_while_the_pipeline_starts_again_nobody_can_repair(asked: Asked) -> None:
    asked.shown.repairing = None
    assert (await asked.ask("POST"))[0] == 503


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong-horse-battery-staple", 403)])
async def test_without_the_token_nothing_is_begun(asked: Asked, token: str, status: int) -> None:
    asked.token = token
    assert (await asked.ask("POST"))[0] == status
    assert asked.repairs.campaigns.under_way(Campaign) is None


# --------------------------------------------------------------------------------------------------------- maintenance
async def test_maintenance_is_begun_with_what_was_asked_for(asked: Asked) -> None:
    status, found = await asked.maintain("POST", hosts=["host/esx-h1"], atOnce=2, exit=True)
    assert (status, found["state"], found["hosts"], found["site"]) == (200, "planning", [], "prod")
    begun = asked.repairs.maintenance(found["id"])
    assert begun is not None
    assert (begun.terms.chosen.hosts, begun.terms.chosen.at_once, begun.terms.out) == (("esx-h1",), 2, True)


@pytest.mark.parametrize("by", ["id", "the last one"])
async def test_maintenance_is_followed(asked: Asked, by: str) -> None:
    _, found = await asked.maintain("POST", allHosts=True)
    begun = asked.repairs.maintenance()
    assert begun is not None
    begun.end("as a test wants it")
    status, now = await (asked.maintain("GET", f"/{found['id']}") if by == "id" else asked.last())
    now = now.get("maintenance", now)
    assert (status, now["state"], now["done"], now["why"]) == (200, "ended", False, "as a test wants it")


async def test_maintenance_that_nobody_has_begun_here_is_not_there(asked: Asked) -> None:
    _, repair = await asked.ask("POST")
    status, found = await asked.maintain("GET", f"/{repair['id']}")
    assert (status, found["error"]) == (404, f"no maintenance {repair['id']} was begun by this worker since its start")
    assert await asked.last() == (200, {"apiVersion": API_VERSION, "kind": "LastMaintenance", "maintenance": None})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param({}, "no host is named: allHosts, clusters or hosts are expected", id="none"),
        pytest.param({"hosts": ["esx-h9"]}, "host esx-h9: not there", id="no such host"),
        pytest.param({"clusters": ["C9"]}, "cluster C9: not there", id="no such cluster"),
        pytest.param({"allHosts": True, "at": "1h"}, "at: what is past cannot be changed any more", id="the past"),
    ],
)
async def test_maintenance_that_cannot_be_begun_is_refused_in_one_line(asked: Asked, body: Any, why: str) -> None:
    status, found = await asked.maintain("POST", **body)
    assert (status, found["error"]) == (422, why)


async def test_repair_and_maintenance_wait_for_each_other(asked: Asked) -> None:
    await asked.ask("POST")
    status, found = await asked.maintain("POST", allHosts=True)
    assert (status, found["error"]) == (503, "a repair is under way")


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong-horse-battery-staple", 403)])
async def test_without_the_token_no_host_has_its_turn(asked: Asked, token: str, status: int) -> None:
    asked.token = token
    assert (await asked.maintain("POST", allHosts=True))[0] == status
    assert asked.repairs.maintenance() is None
