"""Who may do what: with no credential, the token, a password, or something wrong; on loopback and elsewhere."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from support.answers.http import an_error
from support.sites.doors import TOKEN, basic, bearer, knock, listening

from underhost.agents.http.doors import session
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.rights import RIGHTS
from underhost.agents.http.routes import http_routes
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.streams.settings.model import Settings
from underhost.streams.settings.web import WebSettings

OPEN = ["GET /healthz", "GET /readyz", "GET /metrics", "GET /", "GET /static/page.css", "GET /extender/readyz"]
HELD = [
    "GET /api/v1/sites",
    "GET /api/v1/severities",
    "GET /api/v1/map",
    "GET /api/v1/findings?site=prod",
    "GET /api/v1/activity",
    "GET /api/v1/events",
    "HEAD /api/v1/map",
]
COSTS = [
    "GET /api/v1/map?at=5m",
    "GET /api/v1/findings?at=5m",
    "GET /api/v1/pods/shop/db-0",
    "GET /api/v1/history",
    "GET /api/v1/snapshot",
    "POST /api/v1/whatif",
    "POST /api/v1/repair",
    "POST /api/v1/maintain",
    "POST /extender/filter",
    "POST /extender/prioritize",
    "POST /extender/preempt",
]
BIND = "POST /extender/bind"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def web(token_file: Path | None = None, **more: object) -> Settings:
    known = {} if token_file is None else {"token_file": token_file}
    return Settings(web=WebSettings(listen="127.0.0.1:0", **known, **more))


async def statuses(address: str, requests: list[str], **headers: str) -> dict[int, list[str]]:
    """The requests, by the status of their answers."""
    found: dict[int, list[str]] = {}
    for request in requests:
        found.setdefault((await knock(address, request, **headers)).status, []).append(request)
    return found


async def test_on_loopback_without_a_token_all_but_binding_is_open() -> None:
    async with listening(web()) as opened:
        assert await statuses(opened.address, [*OPEN, *HELD, *COSTS]) == {200: [*OPEN, *HELD, *COSTS]}
        refused = await knock(opened.address, BIND)
        assert refused[:2] == (403, an_error("nobody may change anything here: web.tokenFile is not configured"))


async def test_with_a_token_what_changes_or_costs_something_needs_it_on_loopback_too(token_file: Path) -> None:
    async with listening(web(token_file)) as opened:
        assert await statuses(opened.address, [*OPEN, *HELD, *COSTS, BIND]) == {
            200: [*OPEN, *HELD],
            401: [*COSTS, BIND],
        }
        assert await statuses(opened.address, [*COSTS, BIND], **bearer()) == {200: [*COSTS, BIND]}
        assert await statuses(opened.address, [*COSTS, BIND], **bearer("another-token-of-somebody")) == {
            403: [*COSTS, BIND]
        }


async def test_where_reading_is_closed_only_probes_and_the_pages_own_files_are_open(token_file: Path) -> None:
    async with listening(web(token_file, anonymous_read=False)) as opened:
        everything = [*OPEN, *HELD, *COSTS, BIND]
        assert await statuses(opened.address, everything) == {200: OPEN, 401: [*HELD, *COSTS, BIND]}
        assert await statuses(opened.address, everything, **bearer()) == {200: everything}


async def test_a_refusal_says_what_is_needed_in_one_line_and_how_it_is_shown(token_file: Path) -> None:
    async with listening(web(token_file)) as opened:
        nothing = await knock(opened.address, "POST /api/v1/whatif", body={})
        assert nothing[:2] == (401, an_error("the token is needed"))
        assert nothing.headers["WWW-Authenticate"] == 'Bearer realm="underhost"'
        wrong = await knock(opened.address, "POST /api/v1/whatif", body={}, **bearer("x"))
        assert wrong[:2] == (403, an_error("that is not the token"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(basic(), 200, id="the token as the password of urlPrefix"),
        pytest.param(basic("not-the-token-at-all"), 403, id="another password"),
        pytest.param(bearer(), 200, id="the token itself"),
        pytest.param({"Authorization": "bearer " + TOKEN}, 200, id="a scheme in small letters"),
        pytest.param({"Authorization": TOKEN}, 403, id="no scheme"),
        pytest.param({"Authorization": "Basic !!!"}, 403, id="no base64"),
        pytest.param({"Authorization": "Basic /w=="}, 403, id="no text"),
        pytest.param({"Authorization": "Bearer"}, 403, id="no token"),
        pytest.param({"Authorization": "Bearer \udcff"}, 403, id="bytes that are no text"),
        pytest.param({"Authorization": "Negotiate x"}, 403, id="another scheme"),
    ],
)
async def test_what_is_shown_at_the_extender(token_file: Path, headers: dict[str, str], status: int) -> None:
    async with listening(web(token_file)) as opened:
        assert (await knock(opened.address, "POST /extender/filter", body={}, **headers)).status == status


async def test_a_password_opens_nothing_but_the_extender(token_file: Path) -> None:
    async with listening(web(token_file)) as opened:
        assert await statuses(opened.address, ["POST /api/v1/whatif", "GET /api/v1/snapshot"], **basic()) == {
            403: ["POST /api/v1/whatif", "GET /api/v1/snapshot"]
        }


async def test_what_there_is_not_is_404_whoever_asks(token_file: Path) -> None:
    async with listening(web(token_file, anonymous_read=False)) as opened:
        assert (await knock(opened.address, "GET /nowhere")).status == 404
        assert (await knock(opened.address, "DELETE /api/v1/map")).status == 405


def test_every_route_of_a_worker_has_its_row_and_every_row_a_route(tmp_path: Path) -> None:
    routes = http_routes(Settings(), LatestDecisions(), dict, lambda: None, CollectorRegistry())
    made = [*routes.routes, *routes.questions, *session.routes(Door())]
    paths = {f"{route.method} {route.path.replace(':.+}', '}')}" for route in made}
    assert paths | {"GET /healthz", "GET /readyz", "GET /metrics"} == set(RIGHTS)
