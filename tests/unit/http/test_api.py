"""The web API over the latest decisions and topics: documents, events to go on with, and who is told to start anew."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from support.answers.http import an_error
from support.published import a_finding, decided, records
from support.sites.shop import two_pods

from underhost.agents.http import api, details, events, page, runbooks
from underhost.agents.http import feed as feed_module
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.history import PastSites
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import start_server
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.site.snapshot import Options
from underhost.schemas.records import Outcome, Placement
from underhost.schemas.severities import SEVERITIES
from underhost.schemas.topics import OUTCOMES, PLACEMENTS, Topic
from underhost.streams.ports import Record

SITE = two_pods("h1", "h1")


class HeldTopics:
    """A TopicReader whose records are those that were added."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Record] = asyncio.Queue()

    def add(self, *written: tuple[Topic, str, object], start: int = 0) -> None:
        """Publish."""
        for record in records(*written, start=start):
            self.queue.put_nowait(record)

    async def follow(self, topics: Iterable[Topic], *, from_beginning: bool = False) -> AsyncIterator[Record]:
        """See `ports.TopicReader`."""
        while True:
            yield await self.queue.get()
            self.queue.task_done()


@dataclass
class Asked:
    """A server over the latest decisions, and a client."""

    latest: LatestDecisions
    topics: HeldTopics
    base: str
    client: aiohttp.ClientSession
    reasons: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and document."""
        async with self.client.get(f"{self.base}{path}") as response:
            return response.status, await response.json()

    @asynccontextmanager
    async def following(self, since: str, **headers: str) -> AsyncIterator["Follower"]:
        """A follower of the events from a version on."""
        path = f"{self.base}api/v1/events?since={since}"
        async with self.client.get(path, headers=headers) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            yield Follower(response)


class Follower:
    """Reads server-sent events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.last = ""

    async def next(self) -> tuple[str, Any]:
        """(event, data) of the next event that is no ping."""
        while True:
            event, data = await self.any()
            if event != "ping":
                return event, data

    async def any(self) -> tuple[str, Any]:
        """(event, data) of the next event, comments left out."""
        async with asyncio.timeout(30):
            while True:
                block = (await self._response.content.readuntil(b"\n\n")).decode()
                fields = dict(line.split(": ", 1) for line in block.strip().splitlines() if not line.startswith(":"))
                if "event" in fields:
                    self.last = fields.get("id", self.last)
                    return fields["event"], json.loads(fields["data"])


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    latest, topics, reasons = LatestDecisions(), HeldTopics(), dict[str, str]()
    feeds = ChangeFeeds(latest, "prod", lambda: reasons, topics)  # type: ignore[arg-type]
    past_sites = PastSites("prod", Options(), topics, feeds.known)  # type: ignore[arg-type]
    routes = [*page.routes(), *events.routes(feeds), *api.routes(feeds, ["whatif"], past_sites)]
    routes += details.routes(feeds, Options(), past_sites)
    server = await start_server(
        "127.0.0.1:0",
        unready=dict,
        registry=CollectorRegistry(),
        refresh=lambda: None,
        routes=HttpRoutes(routes, [feeds.running], [feeds.end]),
    )
    async with aiohttp.ClientSession() as client:
        yield Asked(latest, topics, server.address, client, reasons)
    await server.close()


async def test_before_the_first_decision_a_site_says_what_it_waits_for(asked: Asked) -> None:
    asked.reasons["site prod"] = "kubernetes has not listed pods"
    [site] = (await asked.get("api/v1/sites"))[1]["sites"]
    assert (site["site"], site["ready"], site["reason"]) == ("prod", False, "kubernetes has not listed pods")
    for path in ("map", "findings", "events", "pods/shop/db-0"):
        assert await asked.get(f"api/v1/{path}") == (503, an_error("site prod: kubernetes has not listed pods"))
    assert await asked.get("api/v1/map?site=other") == (404, an_error("no site 'other' here; there is: prod"))


async def test_the_severities_come_worst_first_with_what_the_page_shows_them_by(asked: Asked) -> None:
    _, found = await asked.get("api/v1/severities")
    assert [row["name"] for row in found["severities"]] == list(SEVERITIES)
    first = found["severities"][0]
    assert first.pop("remedies")["NodePorts"] == "Evict one of the pods that hold the port."
    assert first == {
        "name": "violation",
        "meaning": "A running pod would be refused on its own node today.",
        "alert": "critical",
        "colour": "crimson",
        "icon": "octagon",
        "remedy": "Evict the pod once another node takes it: `underhost whatif --delete POD` shows where it would go.",
        "runbook": "/runbooks/UnderhostViolation",
        "runbooks": {"Inventory": "/runbooks/UnderhostWritesStopped"},
        "grave": True,
    }


async def test_the_map_and_the_findings_are_one_picture(asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0", "shop/db-1")))
    _, site_map = await asked.get("api/v1/map?site=prod")
    _, found = await asked.get("api/v1/findings")
    assert (site_map["apiVersion"], site_map["kind"], found["kind"]) == ("underhost/v1", "Map", "Findings")
    assert site_map["version"] == found["version"]
    assert site_map["hosts"] == [{"id": "h1", "name": "esx-h1", "cluster": "C0"}]
    assert site_map["pods"] == [{"name": "shop/db-0", "node": "n1"}, {"name": "shop/db-1", "node": "n2"}]
    assert [(each["id"], each["firstSeen"]) for each in found["findings"]] == [("f1", "2026-01-05T08:00:00.000Z")]
    _, sites = await asked.get("api/v1/sites")
    assert sites["features"] == ["whatif"]
    assert sites["sites"] == [
        {"site": "prod", "ready": True, "reason": "", "hosts": 1, "nodes": 2, "pods": 2, "findings": {"physical": 1}}
    ]


async def test_a_pod_is_explained_on_every_node_as_if_it_were_taken_out_first(asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0", "shop/db-1")))
    asked.topics.add((PLACEMENTS, "prod/pod/shop/db-0", Placement("shop/db-0", "u", "n1", 7, 0, {}, {})))
    await asked.get("api/v1/map")
    await asked.topics.queue.join()
    status, document = await asked.get("api/v1/pods/shop/db-0")
    assert (status, document["host"], document["pod"]["node"]) == (200, "esx-h1", "n1")
    nodes = document["verdict"]["nodes"]
    assert (nodes["n1"]["feasible"], nodes["n1"]["physicalConflicts"]) == (True, 1)
    assert nodes["n2"]["failing"]["InterPodAffinity"] == ["node(s) didn't match pod anti-affinity rules"]
    assert [each["id"] for each in document["findings"]] == ["f1"]
    assert [each["text"] for each in document["history"]] == ["shop/db-0 is to run on n1 (score 7)"]
    assert await asked.get("api/v1/pods/shop/gone") == (
        404,
        an_error("pod shop/gone: not in site prod, or finished"),
    )


async def test_a_follower_sees_a_move_and_its_finding_in_one_event(asked: Asked) -> None:
    apart_ = replace(SITE, node_hosts={"n1": SITE.node_hosts["n1"]})
    asked.latest.put("prod", decided(apart_))
    _, site_map = await asked.get("api/v1/map")
    async with asked.following(site_map["version"]) as follower:
        asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0", "shop/db-1")))
        kind, change = await follower.next()
        assert (kind, sorted(change)) == ("change", ["findings", "nodes", "notJudged", "pods"])
        assert change["notJudged"] == []
        assert [(node["name"], node["host"]) for node in change["nodes"]] == [("n2", "h1")]
        assert {pod["name"] for pod in change["pods"]} == {"shop/db-0", "shop/db-1"}  # the finding names them
        asked.topics.add((OUTCOMES, "prod/node//n2", Outcome("i", "label", "node/n2", "applied", "set host=esx-h1")))
        kind, entry = await follower.next()
        assert (kind, entry["text"]) == ("activity", "Node n2: set host=esx-h1")
        asked.latest.put("prod", decided(SITE))
        assert await follower.next() == ("change", {"goneFindings": ["f1"]})


async def test_a_follower_that_comes_back_goes_on_where_it_was(asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE))
    _, site_map = await asked.get("api/v1/map")
    async with asked.following(site_map["version"]) as follower:
        asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0")))
        await follower.next()
        seen = follower.last
    asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0"), a_finding("f2", "shop/db-1")))
    async with asked.following("ignored", **{"Last-Event-ID": seen}) as follower:
        kind, change = await follower.next()
        assert (kind, [each["id"] for each in change["findings"]]) == ("change", ["f2"])


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param("", id="none"),
        pytest.param("another-1", id="of another life"),
        pytest.param("nonsense", id="no version"),
        pytest.param("{epoch}-" + "9" * 5000, id="of more digits than Python reads"),
        pytest.param("{epoch}-²", id="of digits that are no number"),
    ],
)
async def test_a_follower_whose_version_is_not_known_is_told_to_read_again(asked: Asked, seen: str) -> None:
    asked.latest.put("prod", decided(SITE))
    _, site_map = await asked.get("api/v1/map")
    async with asked.following(seen.format(epoch=site_map["version"].rpartition("-")[0])) as follower:
        assert await follower.next() == ("reset", {})


async def test_a_follower_that_is_behind_what_is_kept_is_told_to_read_again(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "KEPT_BYTES", 10)
    asked.latest.put("prod", decided(SITE))
    _, site_map = await asked.get("api/v1/map")
    asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0")))
    async with asked.following(site_map["version"]) as follower:
        assert await follower.next() == ("reset", {})


async def test_a_ping_says_why_a_site_is_not_up_to_date(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.01)
    asked.latest.put("prod", decided(SITE))
    _, site_map = await asked.get("api/v1/map")
    async with asked.following(site_map["version"]) as follower:
        assert await follower.any() == ("ping", {"reason": ""})
        asked.reasons["kafka"] = "nothing can be published"
        while (told := await follower.any()) == ("ping", {"reason": ""}):
            pass
        assert told == ("ping", {"reason": "kafka: nothing can be published"})


async def test_a_site_that_is_not_ours_any_more_sends_its_followers_away(asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE))
    _, site_map = await asked.get("api/v1/map")
    async with asked.following(site_map["version"]) as follower:
        asked.latest.clear()
        assert await follower.next() == ("reset", {})
    assert (await asked.get("api/v1/map"))[0] == 503


@pytest.fixture(params=[("FOLLOWERS", 503, ""), ("EACH", 429, ", 1 of them for you")], ids=["of all", "of a client"])
def bound(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    name, status, why = request.param
    monkeypatch.setattr(events, name, 1)
    return status, f"other followers are connected{why}; ask again"


async def test_followers_are_counted(bound: tuple[int, str], asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE))
    _, site_map = await asked.get("api/v1/map")
    async with asked.following(site_map["version"]):
        status, why = bound
        assert await asked.get("api/v1/events") == (status, an_error(why))


@pytest.mark.parametrize(
    "path",
    [
        "map",
        "map?at=1m",
        "findings",
        "findings?at=1m",
        "activity",
        "activity?subject=pod/shop/db-0",
        "events",
        "pods/shop/db-0",
    ],
)
async def test_a_site_that_nobody_knows_is_not_there_whatever_is_asked(asked: Asked, path: str) -> None:
    asked.latest.put("prod", decided(SITE))
    site = f"{'&' if '?' in path else '?'}site=%00other%ff"
    status, found = await asked.get(f"api/v1/{path}{site}")
    assert (status, found["error"]) == (404, "no site '\\x00other\ufffd' here; there is: prod")


@pytest.mark.parametrize(
    ("subject", "texts"),
    [
        ("pod/shop/db-9", ["shop/db-9 is to run on n1 (score 7)"]),  # it is gone
        ("vm/vm-9", ["moves vm-9: moved"]),
        ("pod/shop/db-0", []),
        ("node/n1", []),
        ("host/h1", []),
        ("finding/f1", []),
    ],
)
async def test_what_happened_to_an_object_that_is_or_was_there(asked: Asked, subject: str, texts: list[str]) -> None:
    asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0")))
    asked.topics.add((PLACEMENTS, "prod/pod/shop/db-9", Placement("shop/db-9", "u", "n1", 7, 0, {}, {})))
    asked.topics.add((OUTCOMES, "prod/vm/vm-9", Outcome("i", "moves", "vm/vm-9", "applied", "moved")), start=1)
    await asked.topics.queue.join()
    status, found = await asked.get(f"api/v1/activity?subject={subject}")
    assert (status, [entry["text"] for entry in found["entries"]]) == (200, texts)


FORMS = "pod/NAMESPACE/NAME, node/NAME, host/ID, vm/ID or finding/ID is expected"


@pytest.mark.parametrize(
    ("subject", "status", "why"),
    [
        ("pod/shop/gone", 404, "pod shop/gone: not in site prod, and nothing is remembered of it"),
        ("node/n9", 404, "node n9: not in site prod, and nothing is remembered of it"),
        ("finding/f9", 404, "finding f9: not in site prod, and nothing is remembered of it"),
        ("pod", 422, f"subject 'pod': {FORMS}"),
        ("shop/db-0", 422, f"subject 'shop/db-0': {FORMS}"),
        ("", 422, f"subject '': {FORMS}"),
    ],
)
async def test_a_subject_of_which_nothing_is_known_is_told(asked: Asked, subject: str, status: int, why: str) -> None:
    asked.latest.put("prod", decided(SITE))
    assert await asked.get(f"api/v1/activity?subject={subject}") == (status, an_error(why))


async def test_before_the_first_decision_nobody_can_say_which_subjects_are_there(asked: Asked) -> None:
    asked.reasons["site prod"] = "kubernetes has not listed pods"
    found = await asked.get("api/v1/activity?subject=node/n1")
    assert found == (503, an_error("site prod: kubernetes has not listed pods"))
    assert (await asked.get("api/v1/activity"))[0] == 200


async def test_what_nobody_looks_at_is_not_worked_out(asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE))
    versions = [(await asked.get("api/v1/map"))[1]["version"]]
    for number in range(3):
        asked.latest.put("prod", decided(SITE, a_finding(f"f{number}", "shop/db-0")))
    versions.append((await asked.get("api/v1/map"))[1]["version"])
    before, after = (int(version.rpartition("-")[2]) for version in versions)
    assert after == before + 1  # one step for three decisions


async def test_the_page_is_served_whole_and_kept_by_its_tag(asked: Asked) -> None:
    async with asked.client.get(asked.base) as response:
        text, tag = await response.text(), response.headers["ETag"]
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert text.startswith("<!doctype html>")
    async with asked.client.get(asked.base, headers={"If-None-Match": tag}) as response:
        assert (response.status, await response.text()) == (304, "")
    for path in ("static/nothing.js", "static/..%2fpage.py", "static/%2e%2e/page.py"):
        async with asked.client.get(f"{asked.base}{path}") as response:
            assert response.status == 404


async def test_every_severity_leads_to_a_runbook_that_the_page_has_itself(asked: Asked) -> None:
    _, found = await asked.get("api/v1/severities")
    addresses = {address for row in found["severities"] for address in (row["runbook"], *row["runbooks"].values())}
    for address in addresses:
        async with asked.client.get(f"{asked.base}{address.removeprefix('/')}") as response:
            text = await response.text()
            assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
            assert f"<h1>{address.removeprefix('/runbooks/')}</h1>" in text
            assert "<h2>Steps</h2>" in text
    async with asked.client.get(f"{asked.base}runbooks/UnderhostNothing") as response:
        assert response.status == 404


def test_runbooks_are_those_of_the_web_where_alerts_name_them() -> None:
    rows = api.severities("https://git.example/docs/runbooks/")
    assert rows[0].runbook == "https://git.example/docs/runbooks/UnderhostViolation.md"
    assert rows[0].runbooks == {"Inventory": "https://git.example/docs/runbooks/UnderhostWritesStopped.md"}
    assert api.severities("docs/runbooks")[0].runbook == "/runbooks/UnderhostViolation"


def test_a_runbook_links_to_other_runbooks_and_names_what_the_package_has_not() -> None:
    text = runbooks.page("UnderhostPhysical", runbooks.runbooks()["UnderhostPhysical"]).decode()
    assert '<a href="UnderhostUnsatisfiable">UnderhostUnsatisfiable</a>' in text
    assert "(<code>underhost repair --for FINDING</code> says which VM" in text
    assert '<code class="language-sh">underhost violations --severity physical' in text


async def test_the_map_of_a_large_site_comes_in_pieces(asked: Asked) -> None:
    asked.latest.put("prod", decided(SITE, a_finding("f1", "shop/db-0")))
    _, outline = await asked.get("api/v1/map?pods=named")
    assert [pod["name"] for pod in outline["pods"]] == ["shop/db-0"]
    assert {node["name"]: node["pods"] for node in outline["nodes"]} == {"n1": 1, "n2": 1}
    assert outline["totals"] == {"pods": 2, "own": 2, "workloads": 1}
    _, piece = await asked.get("api/v1/map?node=n2&node=nowhere")
    assert ([pod["name"] for pod in piece["pods"]], piece["version"]) == (["shop/db-1"], outline["version"])
    _, whole = await asked.get("api/v1/map")
    assert ([pod["name"] for pod in whole["pods"]], "totals" in whole) == (["shop/db-0", "shop/db-1"], False)
    assert await asked.get("api/v1/map?pods=some") == (422, an_error("pods 'some': named is expected"))
    many = "&".join(["node=n1"] * 201)
    assert await asked.get(f"api/v1/map?{many}") == (422, an_error("node: at most 200 at once"))
