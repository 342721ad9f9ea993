"""Credentials and authorities that change, or cannot be had, while a client is in use; and proxies with a password."""

import asyncio
import json
import os
import ssl
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from aiohttp import web
from support.build import a_node
from support.fakes.kube import FakeKube
from support.processes.authority import Authority

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.kubernetes import client as module
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.kubernetes.kubeconfig import Origin, load
from underhost.streams.settings.clusters import KubernetesSettings

NODE, APPLY = "/api/v1/nodes/n1", "application/apply-patch+yaml"


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with FakeKube().serving() as server:
        yield server


def written(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "kubeconfig"
    tree = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    path.write_text(json.dumps(tree))
    return path


def use(authority: Path, folder: Path) -> Path:
    """The file of the authorities that count holds this one now."""
    (folder / "ca.pem").write_text(authority.read_text())
    return folder / "ca.pem"


@asynccontextmanager
async def tls(authority: Authority, port: int = 0) -> AsyncIterator[int]:
    """A server whose certificate this authority vouches for; its port."""
    context, made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), authority.certificate("kube", "IP:127.0.0.1")
    context.load_cert_chain(made.cert, made.key)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_an_authority_that_was_replaced_on_disk_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_INTERVAL", 0.0)
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    file = use(old.cert, tmp_path)
    async with tls(old) as port:
        server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(file)}
        client = await connect(KubernetesSettings(kubeconfig=written(tmp_path, server, {"token": "t"})))
    async with client, tls(new, port):
        with pytest.raises(Refused, match="its certificate is not trusted"):
            await client.call("GET", NODE)
        use(new.cert, tmp_path)
        with pytest.raises(Refused, match="its certificate is not trusted"):
            await client.call("GET", NODE)
        assert await client.call("GET", NODE) == b"{}"


async def test_what_a_system_sweeps_out_of_its_temporary_files_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = tmp_path / "tmp"
    swept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(swept))
    authority = b64encode(Authority(tmp_path, "authority").cert.read_bytes()).decode()
    cluster = {"server": "https://kube.example", "certificate-authority-data": authority}
    origin = Origin((written(tmp_path, cluster, {"token": "t"}),), None)
    for _ in range(2):
        await (await load(origin)).close()
        for file in list(swept.iterdir()):
            file.unlink()


async def test_a_plugin_that_gives_no_answer_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    plugin = {"apiVersion": "v1", "command": "sh", "args": ["-c", f"echo $$ > {pipe}; exec sleep 30"]}
    origin = Origin((written(tmp_path, {"server": "https://kube.example"}, {"exec": plugin}),), None)
    loading = asyncio.create_task(load(origin))
    pid = int(await asyncio.to_thread(pipe.read_text))
    loading.cancel()
    await asyncio.gather(loading, return_exceptions=True)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_what_a_plugin_has_begun_ends_with_it_and_is_not_waited_for(tmp_path: Path) -> None:
    """A wrapper's own child held the pipes: the start, and whoever met a token that had ended, waited as long as it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    wrapper = f"exec 3> {pipe}; echo up >&3; sleep 60; echo"
    plugin = {"apiVersion": "v1", "command": "sh", "args": ["-c", wrapper]}
    loading = asyncio.create_task(
        load(Origin((written(tmp_path, {"server": "https://kube.example"}, {"exec": plugin}),), None))
    )
    with await asyncio.to_thread(pipe.open) as held:
        assert await asyncio.to_thread(held.readline) == "up\n"
        async with asyncio.timeout(20):
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
        assert await asyncio.to_thread(held.read) == ""  # wrapper and child are gone: nobody holds the other end


@asynccontextmanager
async def given_up(kube: FakeKube, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesClient]:
    """A client whose token has ended; whoever met that has given up, and the plugin answers once `answer` is there."""
    wait = f"until test -e {folder}/answer; do sleep 0.1; done; cat {folder}/answer"
    plugin = {"apiVersion": "v1", "command": "sh", "args": ["-c", f"exec 3> {folder}/pipe; echo up >&3; {wait}"]}
    os.mkfifo(folder / "pipe")
    kube.seed("nodes", a_node("n1"))
    monkeypatch.setattr(module, "RENEW_INTERVAL", 0.0)
    async with await connect(kube.settings(folder, token="first")) as client:
        kube.token = "second"
        written(folder, {"server": kube.url}, {"exec": plugin})
        call = asyncio.create_task(client.call("GET", NODE))
        with await asyncio.to_thread((folder / "pipe").open) as pipe:
            await asyncio.to_thread(pipe.readline)
            monkeypatch.setattr(module, "RENEW_INTERVAL", 60.0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            yield client
            await client.close()
            assert await asyncio.to_thread(pipe.read) == ""  # the plugin has ended


async def test_credentials_are_renewed_though_whoever_met_the_401_gives_up(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease waits for 5 s: a plugin that takes longer was ended each time, and nobody had credentials any more."""
    async with given_up(kube, tmp_path, monkeypatch) as client:
        answer = {"apiVersion": "v1", "kind": "ExecCredential", "status": {"token": "second"}}
        (tmp_path / "written").write_text(json.dumps(answer))
        (tmp_path / "written").rename(tmp_path / "answer")
        assert json.loads(await client.call("GET", NODE))["metadata"]["name"] == "n1"


async def test_a_client_that_is_closed_ends_the_plugin_that_it_still_runs(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with given_up(kube, tmp_path, monkeypatch):
        pass


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_what_met_an_ended_token_is_asked_once_more_with_the_new_one(
    method: str, kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin's token ends every 15 minutes: each time a lease was lost, and a write refused."""
    monkeypatch.setattr(module, "RENEW_INTERVAL", 0.0)
    kube.seed("nodes", a_node("n1"))
    settings = kube.settings(tmp_path, token="first")
    async with await connect(settings) as client:
        kube.token = "second"
        kube.settings(tmp_path, token="second")
        body = {"metadata": {"uid": "uid-n1", "labels": {"a": "b"}}}
        query = [("fieldManager", "underhost"), ("force", "true")]
        options: Any = {"query": query, "body": body, "content_type": APPLY} if method == "PATCH" else {}
        assert json.loads(await client.call(method, NODE, **options))["metadata"]["name"] == "n1"
    assert kube.count("patch" if method == "PATCH" else "get") == 2


async def test_a_token_that_is_refused_for_good_is_asked_with_twice_at_most(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_INTERVAL", 0.0)
    async with await connect(kube.settings(tmp_path, token="first")) as client:
        kube.token = "second"
        with pytest.raises(Refused, match="Unauthorized"):
            await client.call("GET", NODE)
    assert kube.count("get") == 2


async def test_why_credentials_cannot_be_renewed_is_said(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_INTERVAL", 0.0)
    path = written(tmp_path, {"server": kube.url}, {"token": "first"})
    async with await connect(KubernetesSettings(kubeconfig=path)) as client:
        kube.token = "second"
        path.unlink()
        with structlog.testing.capture_logs() as logs, pytest.raises(Refused, match="Unauthorized"):
            await client.call("GET", NODE)
    assert [(entry["event"], entry["server"], entry["reason"]) for entry in logs] == [
        ("credentials not read again", kube.url, f"{path}: No such file or directory")
    ]


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        pytest.param(
            "http://ops:canary@127.0.0.1:{}", "the proxy says 407 Proxy Authentication Required", id="refused"
        ),
        pytest.param(
            "ops:canary@127.0.0.1:{}", "the address of the proxy, or of a redirect, is not a URL", id="not a URL"
        ),
    ],
)
async def test_the_password_of_a_proxy_is_in_no_error(proxy: str, said: str, tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = proxy.format(server.sockets[0].getsockname()[1])
        path = written(tmp_path, {"server": "https://kube.invalid", "proxy-url": url}, {"token": "t"})
        with pytest.raises(Unreachable) as caught:
            await connect(KubernetesSettings(kubeconfig=path))
    assert str(caught.value) == f"https://kube.invalid: {said}"
