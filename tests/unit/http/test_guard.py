"""Who may ask, by which name, and what a browser is told about the answer."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from underhost.agents.http.guard import is_ours
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import HttpServer, start_server


async def _echo(request: web.Request) -> web.Response:
    return web.json_response({"said": await request.text()})


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    routes = HttpRoutes([web.get("/api/v1/echo", _echo), web.post("/api/v1/echo", _echo), web.get("/", _echo)], [], [])
    server = await start_server(
        "127.0.0.1:0",
        unready=dict,
        registry=CollectorRegistry(),
        refresh=lambda: None,
        hosts=["page.org"],
        routes=routes,
    )
    yield server
    await server.close()


async def ask(server: HttpServer, method: str, path: str, data: str | None = None, **headers: str) -> tuple[int, str]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, f"http://127.0.0.1:{server.port}{path}", data=data, headers=given) as response,
    ):
        return response.status, await response.text()


JSON = "application/json"


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        pytest.param("127.0.0.1:8080", True, id="an address"),
        pytest.param("[::1]:8080", True, id="an address of version 6"),
        pytest.param("10.1.2.3", True, id="a pod's address, as a probe has it"),
        pytest.param("localhost:8080", True, id="localhost"),
        pytest.param("underhost", True, id="a Service in its own namespace"),
        pytest.param("underhost.ops.svc:80", True, id="a Service"),
        pytest.param("underhost.ops.svc.cluster.local", True, id="a Service in full"),
        pytest.param("Page.ORG:8080", True, id="a name that was configured"),
        pytest.param("evil.example", False, id="a public name"),
        pytest.param("127.0.0.1.evil.example", False, id="a public name that looks like an address"),
        pytest.param("svc.evil.example", False, id="a public name that begins like a Service"),
        pytest.param("", False, id="no name"),
        pytest.param("[::1", False, id="half an address"),
    ],
)
def test_only_names_that_nobody_outside_can_own_are_served(host: str, ours: bool) -> None:
    assert is_ours(host, {"page.org"}) is ours


async def test_a_public_name_that_points_here_is_refused_but_probes_are_answered(server: HttpServer) -> None:
    assert await ask(server, "GET", "/api/v1/echo", Host="evil.example") == (
        421,
        '{"apiVersion": "underhost/v1", '
        '"error": "this host name is not served; name it in web.hosts", "kind": "Error"}',
    )
    assert (await ask(server, "GET", "/healthz", Host="evil.example"))[0] == 200


async def test_a_form_or_script_of_another_origin_is_refused(server: HttpServer) -> None:
    here = f"127.0.0.1:{server.port}"
    said = (200, '{"said": "{}"}')
    assert await ask(server, "POST", "/api/v1/echo", "{}", Content_Type=JSON) == said
    assert await ask(server, "POST", "/api/v1/echo", "{}", Content_Type=JSON, Origin=f"http://{here}") == said
    assert (await ask(server, "POST", "/api/v1/echo", "{}", Content_Type=JSON, Origin="http://evil.example"))[0] == 403
    assert (await ask(server, "POST", "/api/v1/echo", "{}", Content_Type=JSON, Origin="null"))[0] == 403
    assert (await ask(server, "POST", "/api/v1/echo", "{}", Content_Type=JSON, Sec_Fetch_Site="cross-site"))[0] == 403
    assert (await ask(server, "POST", "/api/v1/echo", "{}", Content_Type="text/plain"))[0] == 415


CROSS, SAME = "cross-site", "same-site"
LINK = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
FRAME = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("/api/v1/echo", {}, 200, id="a program"),
        pytest.param("/api/v1/echo", {"Sec_Fetch_Site": "same-origin"}, 200, id="the page"),
        pytest.param("/api/v1/echo", {"Sec_Fetch_Site": "none"}, 200, id="a person who types the address"),
        pytest.param("/api/v1/echo", {"Sec_Fetch_Site": CROSS}, 403, id="an image or a script of another site"),
        pytest.param("/api/v1/echo", {"Sec_Fetch_Site": SAME}, 403, id="one of a neighbouring name"),
        pytest.param("/api/v1/echo", {"Sec_Fetch_Site": CROSS, **LINK}, 403, id="a link to what costs something"),
        pytest.param("/api/v1/echo", {"Origin": "http://evil.example"}, 403, id="another origin"),
        pytest.param("/api/v1/echo", {"Origin": "http://[::1"}, 403, id="half an origin"),
        pytest.param("/api/v1/echo", {"Origin": "null"}, 403, id="an origin that is hidden"),
        pytest.param("/?finding=f1", {"Sec_Fetch_Site": CROSS, **LINK}, 200, id="a link to the page"),
        pytest.param("/?finding=f1", {"Sec_Fetch_Site": CROSS, **FRAME}, 403, id="the page in a frame"),
        pytest.param("/?finding=f1", {"Sec_Fetch_Site": CROSS}, 403, id="the page, read by a script"),
        pytest.param("/healthz", {"Sec_Fetch_Site": CROSS, "Origin": "null"}, 200, id="a probe"),
    ],
)
async def test_reading_is_refused_to_other_sites_as_writing_is(
    server: HttpServer, path: str, headers: dict[str, str], status: int
) -> None:
    assert (await ask(server, "GET", path, **headers))[0] == status


async def test_a_body_over_a_mebibyte_is_refused(server: HttpServer) -> None:
    assert await ask(server, "POST", "/api/v1/echo", " " * ((1 << 20) + 1), Content_Type=JSON) == (
        413,
        '{"apiVersion": "underhost/v1", "error": "the body is too large", "kind": "Error"}',
    )


async def test_every_answer_keeps_the_browser_honest(server: HttpServer) -> None:
    evil = {"Origin": "http://evil.example"}
    for path, sent, status in (("/api/v1/echo", {}, 200), ("/nowhere", {}, 404), ("/api/v1/echo", evil, 403)):
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"http://127.0.0.1:{server.port}{path}", headers=sent) as response,
        ):
            headers = response.headers
        assert response.status == status
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; script-src 'self'; style-src 'self';")
        assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
        assert {"Access-Control-Allow-Origin", "Server"}.isdisjoint(headers)
