"""Plans over HTTP, and the picture of a site that the command line takes away and judges itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from support.answers.http import an_error
from support.answers.whatif import tried
from support.build import HOST, a_node, a_pod, a_site, term
from support.published import decided
from support.sites.remembered import RememberedTopics, hours_ago

from underhost.agents.commands.input.server import fetch
from underhost.agents.evaluate.check import check
from underhost.agents.http import plans, trials
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.history import PastSites
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import start_server
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.site.snapshot import Options
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import to_json
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.streams.files.reader import InputReader

DB = {"app": "db"}
SITE = a_site(
    a_node("n1"),
    a_node("n2"),
    a_node("n3"),
    a_pod("db-0").on("n1").labels(DB).owned_by("StatefulSet/db").apart(term(HOST, DB)),
    a_pod("db-1").on("n2").labels(DB).owned_by("StatefulSet/db").apart(term(HOST, DB)),
    on={"n1": "h1", "n2": "h2", "n3": "h2"},
    site="prod",
)
NODE = {"kind": "Node", "metadata": {"name": "n4"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}


class NoTopics:
    """A TopicReader of topics that stay empty."""

    async def follow(self, topics: Any, *, from_beginning: bool = False) -> AsyncIterator[Any]:
        """See `ports.TopicReader`."""
        await asyncio.Event().wait()
        yield


@dataclass
class Asked:
    """A server over the latest decisions, and a client."""

    latest: LatestDecisions
    base: str
    client: aiohttp.ClientSession

    async def post(self, body: object) -> tuple[int, Any]:
        """Status and document of a plan."""
        async with self.client.post(f"{self.base}api/v1/whatif", json=body) as response:
            return response.status, await response.json()


@pytest.fixture
async def asked(topics: RememberedTopics) -> AsyncIterator[Asked]:
    latest = LatestDecisions()
    feeds = ChangeFeeds(latest, "prod", lambda: {"site prod": "kubernetes has not listed pods"}, NoTopics())  # type: ignore[arg-type]
    options = Options(physical_host="required", scheduler_names=("underhost",))
    past_sites = PastSites("prod", options, topics, feeds.known)  # type: ignore[arg-type]
    server = await start_server(
        "127.0.0.1:0",
        unready=dict,
        registry=CollectorRegistry(),
        refresh=lambda: None,
        routes=HttpRoutes(plans.routes(feeds, options, past_sites), [feeds.running], [feeds.end]),
    )
    async with aiohttp.ClientSession() as client:
        yield Asked(latest, server.address, client)
    await server.close()


@pytest.fixture
def topics() -> RememberedTopics:
    """What happened before."""
    return RememberedTopics()


@pytest.fixture
async def ready(asked: Asked) -> Asked:
    asked.latest.put("prod", decided(SITE))
    return asked


async def test_a_plan_is_tried_as_the_command_line_tries_it(ready: Asked) -> None:
    status, found = await ready.post({"steps": [{"drain": "n1"}, {"uncordon": "n1"}]})
    wanted = tried(SITE, "drain n1", "uncordon n1", options=Options(physical_host="required"))
    assert (status, found) == (200, json.loads(to_json(wanted)))
    assert found["pending"] == {}
    assert [(one["step"], one["to"]) for one in found["moves"]] == [(2, "n1")]  # n3 shares its host with db-1


async def test_objects_can_be_added(ready: Asked) -> None:
    _, found = await ready.post({"site": "prod", "steps": [{"drain": "n1"}, {"add": [NODE]}]})
    assert [(one["step"], one["pod"], one["to"]) for one in found["moves"]] == [(2, "shop/db-0", "n4")]


async def test_each_host_alone(ready: Asked) -> None:
    _, found = await ready.post({"each": "host", "ha": False})
    assert (found["kind"], sorted(one["target"] for one in found["items"])) == (
        "WhatIfList",
        ["host/esx-h1", "host/esx-h2"],
    )
    assert all(one["pending"] for one in found["items"])


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"steps": [{"drain": "n9"}]}, 422, "node n9: not there"),
        ({"steps": [{"reboot": "n1"}]}, 422, "reboot: no such step"),
        ({"steps": [{"drain": "n1", "cordon": "n2"}]}, 422, "steps[0]: one option with its value is expected"),
        ({"steps": [{"cordon": "n1"}, {"drain": 1}]}, 422, "steps[1].drain: expected a string, got an integer"),
        ({"steps": [{"add": NODE}]}, 422, "steps[0].add: expected a list, got an object"),
        ({"steps": [["drain", "n1"]]}, 422, "steps[0]: expected an object, got a list"),
        ({"steps": [{"add": [{"kind": "Node", "metadata": 1}]}]}, 422, "steps[0].add: Node items[0]: metadata: "),
        ({"steps": [{"add": [{"kind": "Pod"}]}]}, 422, "steps[0].add: Pod items[0]: metadata.name"),
        ({"steps": [], "dryRun": True}, 422, "unknown field `dryRun`"),
        ({"each": "rack"}, 422, "each: host or node is expected"),
        ({"each": "host", "steps": [{"drain": "n1"}]}, 422, "no steps beside it"),
        ({"site": "other"}, 404, "no site 'other' here; there is: prod"),
    ],
)
async def test_what_cannot_be_tried_is_refused_in_one_line(ready: Asked, body: object, status: int, why: str) -> None:
    found = await ready.post(body)
    assert found[0] == status
    assert why in found[1]["error"]
    assert "\n" not in found[1]["error"]


async def test_before_the_first_decision_nothing_can_be_tried(asked: Asked) -> None:
    assert await asked.post({}) == (503, an_error("site prod: kubernetes has not listed pods"))


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plans, trials):
        monkeypatch.setattr(module, "WAITING", 0)


@pytest.mark.usefixtures("no_room")
async def test_more_plans_than_may_wait_are_told_to_come_again(ready: Asked) -> None:
    assert await ready.post({}) == (503, an_error("other plans are being tried; ask again"))
    async with ready.client.get(f"{ready.base}api/v1/snapshot") as response:
        assert (response.status, await response.json()) == (503, an_error("other snapshots are being sent; ask again"))


async def test_a_form_of_another_site_cannot_start_a_plan(ready: Asked) -> None:
    async with ready.client.post(f"{ready.base}api/v1/whatif", data={"steps": "[]"}) as response:
        assert response.status == 415


# ---------------------------------------------------------------------------------------------------------- snapshot
async def test_the_picture_that_is_taken_away_is_judged_alike(ready: Asked) -> None:
    picture = await fetch(ready.base, None)
    assert (picture.site, picture.judging.physical_host, picture.judging.host_keys) == (
        "prod",
        "required",
        list(Options().host_keys),
    )
    reading = InputReader()
    reading.read_text(picture.data, picture.place)
    found, notes = snapshot_of(reading.result(), picture.site, manifests=False)
    assert notes == []
    assert check(found, Options()) == check(SITE, Options())


async def test_it_is_a_file_that_f_reads(ready: Asked, tmp_path: Any) -> None:
    from underhost.streams.files.reader import load_files

    async with ready.client.get(f"{ready.base}api/v1/snapshot") as response:
        assert response.headers["Content-Type"] == "application/gzip"
        assert response.headers["Content-Disposition"] == 'attachment; filename="prod.json.gz"'
        file = tmp_path / "prod.json.gz"
        file.write_bytes(await response.read())
    objects = load_files([file])
    assert (objects.nodes, objects.pods) == (SITE.nodes, SITE.pods)


@pytest.mark.parametrize(
    ("site", "error", "why"),
    [("other", InputError, "no site 'other' here"), (None, Unreachable, "site prod: kubernetes has not listed pods")],
)
async def test_why_there_is_no_picture(asked: Asked, site: str | None, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        await fetch(asked.base, site)


async def test_an_address_where_no_worker_is(asked: Asked, unused_tcp_port: int) -> None:
    with pytest.raises(Unreachable, match=f"^http://127.0.0.1:{unused_tcp_port}: "):
        await fetch(f"http://127.0.0.1:{unused_tcp_port}", None)
    with pytest.raises(Refused, match="this is no worker of Underhost that hands out its picture"):
        await fetch(f"{asked.base}metrics", None)
    for wrong in ("127.0.0.1:8080", "ftp://x", "http://"):
        with pytest.raises(InputError, match="the address of a worker is expected"):
            await fetch(wrong, None)


async def test_a_worker_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from underhost.agents.commands.input import server as remote

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr(remote, "FIRST_ANSWER", 0.5)
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="no answer in time"):
            await fetch(f"http://127.0.0.1:{port}", None)


async def test_a_plan_is_tried_on_the_site_as_it_was(ready: Asked, topics: RememberedTopics) -> None:
    topics.state(SITE, hours_ago(3))
    topics.state(replace(SITE, nodes={name: node for name, node in SITE.nodes.items() if name != "n1"}), hours_ago(1))
    status, found = await ready.post({"steps": [{"drain": "n1"}], "at": "2h"})
    assert (status, list(found["pending"])) == (200, ["shop/db-0"])
    status, found = await ready.post({"steps": [{"drain": "n1"}], "at": "30m"})
    assert (status, found["error"]) == (422, "node n1: not there")
    assert (await ready.post({"steps": [], "at": "yesterday"}))[0] == 422
