"""One request to an API server, and each way in which it fails."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.fakes.kube import FakeKube, Fault

from underhost.schemas.errors import Conflict, Gone, InputError, Refused, Retry, UnderhostError, Unreachable
from underhost.streams.kubernetes import library
from underhost.streams.kubernetes.client import KubernetesClient, connect, retry_after, said
from underhost.streams.settings.clusters import KubernetesSettings

NODE = "/api/v1/nodes/n1"


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with FakeKube().serving() as server:
        yield server


async def test_connects_to_a_server_that_answers(kube: FakeKube, tmp_path: Path) -> None:
    async with await connect(kube.settings(tmp_path)) as client:
        assert client.server == kube.url
    assert kube.count("version") == 1


async def test_a_server_on_the_loopback_is_not_asked_through_a_proxy(
    kube: FakeKube, tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_tcp_port}")
    await (await connect(kube.settings(tmp_path))).close()
    assert kube.count("version") == 1


async def test_a_server_elsewhere_is_asked_through_the_proxy_with_our_credentials_alone(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp took a user of `.netrc` for the server's, and failed where the kubeconfig has a token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine kube.example login somebody password else")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", kube.url)
    kube.url, kube.token = "http://kube.example", "right"
    async with await connect(kube.settings(tmp_path, token="right")) as client:
        assert client.server == "http://kube.example"
    assert kube.count("version") == 1


async def test_the_imports_take_nothing_of_the_time_that_credentials_have(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine they alone took longer than that, and the credentials' plugin was blamed."""
    order: list[str] = []
    load, wait_for = library.load, asyncio.wait_for

    def imports() -> Any:
        order.append("imports")
        return load()

    def clock(awaitable: Any, timeout: float | None) -> Any:
        order.append("clock")
        return wait_for(awaitable, timeout)

    monkeypatch.setattr(library, "load", imports)
    monkeypatch.setattr(asyncio, "wait_for", clock)
    await (await connect(kube.settings(tmp_path))).close()
    assert order[:2] == ["imports", "clock"]


async def test_wrong_credentials_are_refused(kube: FakeKube, tmp_path: Path) -> None:
    kube.token = "right"
    with pytest.raises(Refused) as caught:
        await connect(kube.settings(tmp_path, token="wrong"))
    assert str(caught.value) == f"{kube.url}: Unauthorized (401)"
    assert kube.count("version") == 1


async def test_who_may_not_ask_for_the_version_may_still_be_allowed_to_list(kube: FakeKube, tmp_path: Path) -> None:
    kube.faults = [Fault("version", status=403)]
    await (await connect(kube.settings(tmp_path))).close()


async def test_a_closed_port_is_unreachable(kube: FakeKube, tmp_path: Path, unused_tcp_port: int) -> None:
    kube.url = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(Unreachable, match=f"^http://127.0.0.1:{unused_tcp_port}: Connect call failed"):
        await connect(kube.settings(tmp_path))


async def test_a_server_that_never_answers_is_unreachable(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underhost.streams.kubernetes.client.PROBE_TIMEOUT", 2.0)

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    kube.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    try:
        await asyncio.to_thread(library.load)  # no part of the short time goes into imports
        with pytest.raises(Unreachable) as caught:
            await connect(kube.settings(tmp_path))
    finally:
        server.close()
    assert str(caught.value) == f"{kube.url}: no answer in time"


@asynccontextmanager
async def a_page() -> AsyncIterator[str]:
    """The address of a server that answers everything with a page."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()


async def test_another_web_server_is_no_kubernetes_api(kube: FakeKube, tmp_path: Path) -> None:
    async with a_page() as kube.url:
        with pytest.raises(Refused, match="this is no Kubernetes API"):
            await connect(kube.settings(tmp_path))


def self_signed(folder: Path, names: str) -> tuple[Path, Path]:
    """(certificate, key) for these names."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test", "-addext"]
    command += [f"subjectAltName={names}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.mark.parametrize("names", ["IP:127.0.0.1", "DNS:elsewhere"], ids=["self-signed", "wrong name"])
async def test_an_untrusted_certificate_is_refused(names: str, kube: FakeKube, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path, names)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    runner = web.AppRunner(web.Application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    kube.url = "https://{}:{}".format(*runner.addresses[0])
    settings = kube.settings(tmp_path)
    if names.startswith("DNS"):
        assert settings.kubeconfig is not None
        text = settings.kubeconfig.read_text()
        ca = f'"certificate-authority": "{certificate}", "server"'
        settings.kubeconfig.write_text(text.replace('"server"', ca))
    try:
        with pytest.raises(Refused) as caught:
            await connect(settings)
    finally:
        await runner.cleanup()
    assert str(caught.value).startswith(f"{kube.url}: its certificate is not trusted: ")
    assert str(settings.kubeconfig) in str(caught.value)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        pytest.param(401, {}, Refused, id="401"),
        pytest.param(403, {}, Refused, id="403"),
        pytest.param(404, {}, Gone, id="404"),
        pytest.param(409, {}, Conflict, id="409"),
        pytest.param(410, {}, Gone, id="410"),
        pytest.param(422, {}, Refused, id="422"),
        pytest.param(429, {"Retry-After": "3"}, Retry, id="429"),
        pytest.param(500, {}, Unreachable, id="500"),
        pytest.param(503, {}, Unreachable, id="503"),
        pytest.param(503, {"Retry-After": "3"}, Retry, id="503 with a time"),
    ],
)
async def test_every_refusal_is_one_of_our_errors(
    status: int, headers: dict[str, str], expected: type[UnderhostError], kube: FakeKube, tmp_path: Path
) -> None:
    kube.faults = [Fault("get", status=status, headers=headers, message="so\n it \x1b[31mis")]
    async with await connect(kube.settings(tmp_path)) as client:
        with pytest.raises(expected) as caught:
            await client.call("GET", NODE)
    assert str(caught.value) == f"{kube.url}: so it [31mis ({status})"
    if isinstance(caught.value, Retry):
        assert caught.value.after == 3.0


@pytest.mark.parametrize("said", ["Wed, 21 Oct 2026 07:28:00 GMT", "²", "9" * 400, "9" * 5000, ""])
def test_a_time_to_wait_that_is_no_number_of_seconds_is_none(said: str) -> None:
    assert retry_after({"Retry-After": said}) is None


@pytest.mark.parametrize(("said", "seconds"), [("0", 0.0), ("32", 32.0), ("60", 60.0), ("61", 60.0), ("86400", 60.0)])
def test_a_server_puts_nobody_off_for_longer_than_a_minute(said: str, seconds: float) -> None:
    assert retry_after({"Retry-After": said}) == seconds


async def test_a_connection_that_breaks_in_the_middle_of_an_answer_is_unreachable(
    kube: FakeKube, tmp_path: Path
) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()

    async with await connect(kube.settings(tmp_path)) as client:
        server = await asyncio.start_server(half, "127.0.0.1", 0)
        client.server = "http://{}:{}".format(*server.sockets[0].getsockname())
        with pytest.raises(Unreachable, match="^" + client.server):
            await client.call("GET", NODE)
        server.close()


@pytest.mark.parametrize("body", [b'{"message":"\xff"}', b'{"more":' + b"[" * 100_000], ids=["not UTF-8", "nested"])
def test_a_refusal_that_cannot_be_decoded_is_said_as_it_is(body: bytes) -> None:
    assert said(500, body) == f"{body.decode(errors='replace')[:256]} (500)"


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
async def test_a_page_that_somebody_on_the_way_answers_is_no_success(
    method: str, kube: FakeKube, tmp_path: Path
) -> None:
    async with await connect(kube.settings(tmp_path)) as client, a_page() as client.server:
        with pytest.raises(Unreachable) as caught:
            await client.call(method, NODE, body={})
        assert str(caught.value) == f"{client.server}: the answer is not that of a Kubernetes API (200)"


def test_long_messages_are_cut() -> None:
    assert said(500, b"x" * 1000) == "x" * 256 + " (500)"
    assert said(500, b"") == "no reason given (500)"


def test_nothing_of_the_client_library_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys; import underhost.streams.kubernetes.watcher, underhost.agents.sinks.kubernetes_writer; "
        "assert 'kubernetes_asyncio' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_a_missing_kubeconfig_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        await connect(KubernetesSettings(kubeconfig=tmp_path / "none"))


@asynccontextmanager
async def in_a_pod(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[KubernetesClient, Path]]:
    """A client of a pod's own account, which reads its token for each request; and the file of the token."""
    certificate, key = self_signed(folder, "IP:127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"user": request.headers["Authorization"]})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    (folder / "token").write_text("first")
    library.load()
    loader = "kubernetes_asyncio.config.incluster_config"
    monkeypatch.setattr(f"{loader}.SERVICE_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(f"{loader}.SERVICE_CERT_FILENAME", str(certificate))
    monkeypatch.setattr(f"{loader}.TOKEN_REFRESH_PERIOD", timedelta(0))
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(runner.addresses[0][1])}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    try:
        async with await connect(KubernetesSettings(), environ={**environ, "HOME": str(folder)}) as client:
            yield client, folder / "token"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Token file exists but empty."),
        (None, "No such file or directory"),
        (b"\xff", "'utf-8' "),
        (b"\0\0", "the user's token holds a line break, or another character that no token has"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_pods_token_that_cannot_be_read_now_is_unreachable_and_read_again(
    content: bytes | None, why: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_a_pod(tmp_path, monkeypatch) as (client, token):
        if content is None:
            token.unlink()
        else:
            token.write_bytes(content)
        with pytest.raises(Unreachable) as caught:
            await client.call(method, NODE)
        assert str(caught.value).startswith(f"{client.server}: the credentials cannot be read now: {why}")
        assert not await client.answers(1.0)
        token.write_text("second")
        assert json.loads(await client.call(method, NODE)) == {"user": "Bearer second"}
        assert await client.answers(10.0)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_pods_token_is_sent_without_the_line_break_at_its_end(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_a_pod(tmp_path, monkeypatch) as (client, token):
        token.write_text("second\n")
        assert json.loads(await client.call(method, NODE)) == {"user": "Bearer second"}
