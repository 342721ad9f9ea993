"""Writes past the session: what the server receives, which connection carries it, and how it fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.fakes.kube import FakeKube

from underhost.schemas.errors import Conflict, Unreachable
from underhost.streams.before_write import WriteQuestion
from underhost.streams.kubernetes.client import KubernetesClient, connect

MERGE_PATCH = "application/merge-patch+json"
PODS = "/api/v1/namespaces/shop/pods"
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class RawServer:
    """An API server that says `answers[n]` to the n-th request, and holds on to what came."""

    answers: list[bytes]
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = dict(line.split(": ", 1) for line in head.splitlines()[1:-1])
                self.bodies.append(await reader.readexactly(int(lines.get("Content-Length", 0))))
                self.heads.append(head)
                self.asked.set()
                if not self.answers:
                    await reader.read()  # never answered
                    return
                answer = self.answers.pop(0)
                writer.write(answer)
                await writer.drain()
                if b"Connection: close" in answer or not answer.startswith(b"HTTP"):
                    return
        except asyncio.IncompleteReadError:
            return
        finally:
            self.closed.set()
            writer.close()


Serve = Callable[..., Awaitable[tuple[RawServer, KubernetesClient]]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Makes a raw server that answers so, and its client."""
    opened: list[Any] = []

    async def begin(*answers: bytes, token: str = "", prefix: str = "") -> tuple[RawServer, KubernetesClient]:
        async with FakeKube().serving() as kube:
            settings = kube.settings(tmp_path, token=token)
            client = await connect(settings)
            raw = RawServer(list(answers))
            server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
            raw.url = client.server = "http://{}:{}{}".format(*server.sockets[0].getsockname(), prefix)
            opened.extend([server, client])
            return raw, client

    yield begin
    for one in opened:
        await one.close() if isinstance(one, KubernetesClient) else one.close()


async def test_a_write_is_sent_as_the_session_would_send_it(serve: Serve) -> None:
    server, client = await serve(CREATED, CREATED, token="secret", prefix="/k8s/clusters/c-1")
    query = (("fieldManager", "under host"),)
    assert await client.call("POST", f"{PODS}/a%2Fb/binding", query=query, body={"kind": "Binding"}) == b"{}"
    async with client.open("POST", f"{PODS}/a%2Fb/binding", query=query, body={"kind": "Binding"}) as response:
        assert response.status == 201
    past, through = (sorted(head.split("\r\n")) for head in server.heads)
    assert past == through
    assert f"POST /k8s/clusters/c-1{PODS}/a%2Fb/binding?fieldManager=under+host HTTP/1.1" in past
    assert {"authorization: Bearer secret", "Content-Type: application/json", "Content-Length: 18"} < set(past)
    assert server.bodies == [b'{"kind":"Binding"}'] * 2


async def test_writes_one_after_another_share_a_connection(serve: Serve) -> None:
    server, client = await serve(CREATED, CREATED)
    for _ in range(2):
        await client.call("PATCH", PODS, body={"metadata": {}}, content_type=MERGE_PATCH)
    assert server.connections == 1


async def test_a_connection_that_the_server_closes_is_not_used_again(serve: Serve) -> None:
    server, client = await serve(CREATED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), CREATED)
    for _ in range(2):
        await client.call("POST", PODS, body={})
    assert server.connections == 2


async def test_what_is_only_on_the_way_is_no_answer(serve: Serve) -> None:
    _, client = await serve(b"HTTP/1.1 103 Early Hints\r\n\r\n" + CREATED)
    assert await client.call("POST", PODS, body={}) == b"{}"


async def test_an_answer_in_chunks_is_read_whole(serve: Serve) -> None:
    parts = [b'{"mes', b'sage":"bound already"}']
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
    _, client = await serve(b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    with pytest.raises(Conflict, match=r": bound already \(409\)$"):
        await client.call("POST", PODS, body={})


async def test_who_is_led_elsewhere_writes_there(serve: Serve) -> None:
    elsewhere, _ = await serve(CREATED)
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere.url}/there\r\nContent-Length: 0\r\n\r\n".encode()
    _, client = await serve(moved, moved)
    assert await client.call("POST", PODS, body={"kind": "Binding"}) == b"{}"
    assert elsewhere.heads[0].startswith("POST /there HTTP/1.1")
    assert elsewhere.bodies == [b'{"kind":"Binding"}']


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"half of it\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{", id="half a body"),
        pytest.param(b"", id="no answer"),
    ],
)
async def test_without_a_whole_answer_nobody_knows_whether_it_was_done(serve: Serve, answer: bytes) -> None:
    server, client = await serve(answer)
    with pytest.raises(Unreachable, match=f"^{server.url}: "):
        await client.call("POST", PODS, body={})


async def test_a_write_that_is_given_up_takes_its_connection_with_it(serve: Serve) -> None:
    server, client = await serve()
    writing = asyncio.ensure_future(client.call("POST", PODS, body={}))
    await server.asked.wait()
    writing.cancel()
    await asyncio.wait([writing])
    await asyncio.wait_for(server.closed.wait(), 30)
    server.answers = [CREATED]
    assert await client.call("POST", PODS, body={}) == b"{}"
    assert server.connections == 2


async def test_nothing_is_sent_once_this_worker_may_no_longer_write(serve: Serve) -> None:
    server, client = await serve(CREATED)

    def no_more() -> None:
        raise Unreachable("the lease was lost")

    with pytest.raises(Unreachable, match="the lease was lost"), WriteQuestion(no_more):
        await client.call("POST", PODS, body={})
    await asyncio.wait_for(server.closed.wait(), 30)
    assert server.heads == []


async def test_a_header_that_would_begin_another_one_is_not_sent(serve: Serve) -> None:
    server, client = await serve(CREATED)
    with pytest.raises(ValueError, match="header Accept holds a line break"):
        await client.call("POST", PODS, body={}, accept="a\r\nX-Other: b")
    assert server.heads == []


async def test_a_write_behind_a_proxy_goes_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeKube().serving() as kube:
        kube.seed("pods", {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": {}})
        binding = {"metadata": {"name": "web-0", "uid": "uid-web-0"}, "target": {"name": "node-1"}}
        monkeypatch.setenv("HTTP_PROXY", kube.url)
        kube.url = "http://kube.example"
        async with await connect(kube.settings(tmp_path)) as client:
            await client.call("POST", f"{PODS}/web-0/binding", body=binding)
        assert kube.get("pods", "web-0", "shop")["spec"]["nodeName"] == "node-1"
