"""Health, readiness and metrics over HTTP."""

import asyncio
import socket
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web as http
from prometheus_client import CollectorRegistry, Gauge
from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in

from underhost.agents.http.budgets.bodies import body_of
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import start_server
from underhost.schemas.errors import InputError
from underhost.streams.settings.model import WebSettings
from underhost.streams.settings.web import split_listen

HEALTHY = '{"apiVersion": "underhost/v1", "kind": "Health", "status": "ok"}'
READY = '{"apiVersion": "underhost/v1", "kind": "Readiness", "reasons": {}, "status": "ok"}'


async def get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def test_readiness_names_what_is_not_ready() -> None:
    reasons = {"site prod": "kubernetes has not listed pods"}
    registry = CollectorRegistry()
    seen = Gauge("seen", "How often the metrics were brought up to date.", registry=registry)
    web = await start_server("127.0.0.1:0", unready=lambda: reasons, registry=registry, refresh=seen.inc)
    try:
        assert await get(web.port, "/healthz") == (200, HEALTHY)
        assert await get(web.port, "/readyz") == (
            503,
            '{"apiVersion": "underhost/v1", "kind": "Readiness", '
            '"reasons": {"site prod": "kubernetes has not listed pods"}, "status": "waiting"}',
        )
        reasons.clear()
        assert await get(web.port, "/readyz") == (200, READY)
        status, text = await get(web.port, "/metrics")
        assert (status, text.splitlines()[-1]) == (200, "seen 1.0")
        with pytest.raises(InputError, match=f"web.listen 127.0.0.1:{web.port}: address already in use"):
            await start_server(f"127.0.0.1:{web.port}", unready=dict, registry=registry, refresh=seen.inc)
    finally:
        await web.close()


async def test_a_socket_that_listens_already_is_taken_over_with_who_waits_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
        early, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        web = await start_server(
            f"127.0.0.1:{port}", unready=dict, registry=CollectorRegistry(), refresh=lambda: None, opened=opened
        )
        try:
            assert (web.port, web.address) == (port, f"http://127.0.0.1:{port}/")
            assert (await early.read()).splitlines()[-1] == HEALTHY.encode()
        finally:
            writer.close()
            await web.close()
        assert opened.fileno() == -1  # nothing listens there any more


@pytest.mark.parametrize(
    ("listen", "place"),
    [("127.0.0.1:8080", ("127.0.0.1", 8080)), (":9", ("0.0.0.0", 9)), ("[::1]:80", ("::1", 80))],
)
def test_a_listen_address_is_a_host_and_a_port(listen: str, place: tuple[str, int]) -> None:
    assert split_listen(listen) == place


@pytest.mark.parametrize("listen", ["", "here", "here:", "here:http", "here:70000", "here:²"])
def test_anything_else_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT is expected"):
        split_listen(listen)


async def test_a_worker_counts_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from underhost.agents import worker as worker_module
    from underhost.agents.pipeline.metrics import Metrics

    metrics = Metrics()
    monkeypatch.setattr(worker_module, "Metrics", lambda: metrics)
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    cluster.node("n2", "h1")
    cluster.pod("db-0", "n1", app="db")
    cluster.pod("db-1", "n2", app="db")
    async with running(settings_in(tmp_path), cluster) as worker:
        await worker.until(lambda: len(cluster.labelled) == 2)
        await worker.until(lambda: metrics.registry.get_sample_value("underhost_findings", PHYSICAL) == 1)
    value = metrics.registry.get_sample_value
    assert value("underhost_records_published_total", {"topic": "violations"}) == 1
    assert value("underhost_source_records_total", {"source": "vsphere"}) == 6
    assert value("underhost_findings", {"site": "default", "severity": "violation"}) == 0


PHYSICAL = {"site": "default", "severity": "physical"}


async def test_a_worker_tells_how_many_rows_its_tables_hold(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.node("n1", "h1")
    for number in range(3):
        cluster.pod(f"db-{number}", "n1")
    settings = settings_in(tmp_path).model_copy(update={"web": WebSettings(listen="127.0.0.1:0")})
    addresses: list[str] = []
    async with running(settings, cluster, on_listening=addresses.append) as worker:
        await worker.until(lambda: len(cluster.labelled) == 1)
        _, text = await get(int(addresses[0].strip("/").rpartition(":")[2]), "/metrics")
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    # The marker of the source's list is a row, too.
    assert [found[f'underhost_table_rows{{topic="{topic}"}}'] for topic in ("nodes", "pods", "vms")] == [
        "2.0",
        "4.0",
        "2.0",
    ]
    assert float(found["underhost_tasks"]) > 10


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes; it resets who has sent what it had not read by then."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


HALF = b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"GET /heal", [], id="half of the first line"),
        pytest.param(HALF, [], id="half of the headers"),
        pytest.param(HALF + b"\r\n{", ["408 Request Timeout"], id="half of the body"),
        pytest.param(WHOLE, ["200 OK"], id="nothing after a request"),
        pytest.param(WHOLE + WHOLE[:20], ["200 OK"], id="half of another request"),
    ],
)
async def test_who_sends_half_a_request_is_cut_off_and_holds_nobody_up(sent: bytes, answered: list[str]) -> None:
    async def echo(request: http.Request) -> http.Response:
        return http.Response(body=await body_of(request))

    registry, routes = CollectorRegistry(), HttpRoutes([http.post("/echo", echo)], [], [])
    patience = 2.0 if answered else 0.5  # a busy machine may stand still for a second: what is answered must come in
    web = await start_server(
        "127.0.0.1:0", unready=dict, registry=registry, refresh=lambda: None, routes=routes, patience=patience
    )
    try:
        slow = []
        for _ in range(200):
            slow.append(await asyncio.open_connection("127.0.0.1", web.port))
            slow[-1][1].write(sent)  # at once: its patience has begun
        assert await get(web.port, "/healthz") == (200, HEALTHY)
        async with asyncio.timeout(60):
            said = [await until_closed(reader) for reader, _ in slow]
        for _, writer in slow:
            writer.close()
    finally:
        await web.close()
    first = [line.decode() for each in said for line in each.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    assert first == [f"HTTP/1.1 {status}" for status in answered * len(slow)]
