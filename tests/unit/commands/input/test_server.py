"""`--server` at a worker that asks who comes, and shows who it is."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from support.processes.authority import Authority
from support.sites.doors import TOKEN

from underhost.agents.commands.input.server import fetch, findings
from underhost.agents.http.listeners import open_listeners
from underhost.agents.http.routes import HttpRoutes
from underhost.schemas.errors import Refused
from underhost.schemas.page import OPTIONS, SITE
from underhost.streams.settings.model import Settings
from underhost.streams.settings.web import ListenerTlsSettings, WebSettings


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[str]:
    """A worker with a token and a certificate, whose picture is two letters."""

    async def picture(request: web.Request) -> web.Response:
        judging = json.dumps({"hostKeys": [], "physicalHost": "preferred"})
        return web.Response(body=b"ok", headers={SITE: "prod", OPTIONS: judging})

    async def open_now(request: web.Request) -> web.Response:
        known = request.query.get("site") == "prod"
        return web.json_response({"site": "prod", "version": "1", "findings": [], "notJudged": []} if known else [])

    (tmp_path / "token").write_text(TOKEN)
    made = Authority(tmp_path, "ours").certificate("worker", "IP:127.0.0.1")
    tls = ListenerTlsSettings(cert_file=made.cert, key_file=made.key)
    settings = Settings(web=WebSettings(listen="127.0.0.1:0", tls=tls, token_file=tmp_path / "token"))
    routes = HttpRoutes([web.get("/api/v1/snapshot", picture), web.get("/api/v1/findings", open_now)], [], [])
    opened = await open_listeners(settings, routes, unready=dict, registry=CollectorRegistry(), refresh=lambda: None)
    yield opened.address.rstrip("/")
    await opened.close()


async def test_who_shows_the_token_and_knows_the_certificate_gets_the_picture(worker: str, tmp_path: Path) -> None:
    found = await fetch(worker, None, tmp_path / "token", tmp_path / "ours.pem")
    assert (found.data, found.site, found.place) == (b"ok", "prod", f"{worker}/api/v1/snapshot")


async def test_what_is_open_is_asked_by_site(worker: str, tmp_path: Path) -> None:
    assert (await findings(worker, "prod", tmp_path / "token", tmp_path / "ours.pem")).findings == []
    with pytest.raises(Refused, match="this is no worker of Underhost"):
        await findings(worker, None, tmp_path / "token", tmp_path / "ours.pem")


async def test_a_password_of_netrc_does_not_take_the_tokens_place(
    worker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert (await fetch(worker, None, tmp_path / "token", tmp_path / "ours.pem")).site == "prod"


async def test_what_is_missing_is_one_line_that_names_the_option(worker: str, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("another-token-of-another-worker")
    for shown, why in ((None, "the token is needed"), (tmp_path / "wrong", "that is not the token")):
        with pytest.raises(Refused) as refused:
            await fetch(worker, None, shown, tmp_path / "ours.pem")
        assert str(refused.value) == f"{worker}: {why} (--token-file)"
    with pytest.raises(Refused) as refused:
        await fetch(worker, None, tmp_path / "token")
    assert str(refused.value).startswith(f"{worker}: certificate not trusted: ")
    assert str(refused.value).endswith(" (--ca-file)")
