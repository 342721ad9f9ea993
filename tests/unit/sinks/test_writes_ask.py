"""Each request that changes a cluster asks whether this worker may still write, when nothing but sending is left."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.fakes.kube import FakeKube

from underhost.agents.sinks.events.writer import KubernetesEvents
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.schemas.errors import Unreachable
from underhost.streams.before_write import WriteQuestion, before_write
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.ports import PodState
from underhost.streams.vsphere.client import in_thread

LOST = "the lease is lost"


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with FakeKube().serving() as server:
        server.seed("nodes", {"metadata": {"name": "n1"}})
        yield server


@pytest.fixture
async def client(kube: FakeKube, tmp_path: Path) -> AsyncIterator[KubernetesClient]:
    async with await connect(kube.settings(tmp_path)) as made:
        yield made


def lost() -> None:
    raise Unreachable(LOST)


WRITES: dict[str, Callable[[KubernetesApiWriter, KubernetesEvents], Awaitable[Any]]] = {
    "a label": lambda api, events: api.apply_node_labels("n1", "uid-n1", {"host": "h1"}),
    "the start-up taint": lambda api, events: api.replace_taints("n1", "uid-n1", [{"key": "t"}], []),
    "a binding": lambda api, events: api.bind_pod("shop", "db-0", "uid-db-0", "n1"),
    "a pod's label": lambda api, events: api.merge_pod_labels("shop", "db-0", "uid-db-0", "1", {"host": "h1"}),
    "an eviction": lambda api, events: api.request_eviction("shop", "db-0", "uid-db-0"),
    "an Event": lambda api, events: events.create_event("shop", {}),
    "an Event told again": lambda api, events: events.change_event("shop", "e", {}),
    "a pod's condition": lambda api, events: events.set_pod_condition("shop", "db-0", PodState("u", "1", "", {}), {}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_is_not_sent_by_a_worker_that_may_not_write_any_more(
    kube: FakeKube, client: KubernetesClient, write: Callable[..., Awaitable[Any]]
) -> None:
    with WriteQuestion(lost), pytest.raises(Unreachable, match=LOST):
        await write(KubernetesApiWriter(client), KubernetesEvents(client))
    assert [request.verb for request in kube.requests] == ["version"]


async def test_what_only_reads_asks_nothing(client: KubernetesClient) -> None:
    with WriteQuestion(lost):
        assert (await KubernetesApiWriter(client).node_labels("n1"))[0] == "uid-n1"


async def test_a_lease_that_ends_while_the_credentials_plugin_runs_is_noticed(
    kube: FakeKube, client: KubernetesClient
) -> None:
    may = True

    async def plugin(*_: object) -> None:
        nonlocal may
        may = False

    def ask() -> None:
        if not may:
            lost()

    client._api.update_params_for_auth = plugin
    with WriteQuestion(ask), pytest.raises(Unreachable, match=LOST):
        await KubernetesApiWriter(client).apply_node_labels("n1", "uid-n1", {"host": "h1"})
    assert kube.count("patch") == 0


async def test_a_thread_that_nobody_waits_for_any_more_writes_nothing() -> None:
    began, goes_on = asyncio.Event(), threading.Event()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    said: list[str] = []

    def read_then_write() -> None:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait(60)
        try:
            before_write()
        except Unreachable as error:
            said.append(str(error))
        loop.call_soon_threadsafe(ended.set)

    async def call() -> None:
        with WriteQuestion(lambda: None):
            await in_thread(read_then_write)

    calling = asyncio.create_task(call())
    await began.wait()
    calling.cancel()
    await asyncio.wait([calling])
    goes_on.set()
    await ended.wait()
    assert said == ["nothing is written by this worker: whoever asked for it has given up"]


def test_what_nobody_has_asked_about_is_written() -> None:
    before_write()
