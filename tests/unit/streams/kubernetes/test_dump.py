"""A live cluster listed once, page by page, for whoever would else read a dump."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from support.build import a_node, a_pod
from support.fakes.kube import FakeKube, Fault

from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import InputReader
from underhost.streams.kubernetes import dump
from underhost.streams.kubernetes.dump import read_cluster
from underhost.streams.settings.clusters import KubernetesSettings


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    async with FakeKube().serving() as server:
        server.seed("nodes", *(a_node(f"n{at}") for at in range(3)))
        server.seed("namespaces", {"metadata": {"name": "shop"}})
        server.seed("pods", *(a_pod(f"p{at}").on("n1") for at in range(7)))
        yield server


async def listed(settings: KubernetesSettings) -> tuple[Objects, list[str]]:
    reading = InputReader()
    notes = await read_cluster(settings, reading.read_text)
    return reading.result(), notes


async def test_every_page_of_every_list_is_read(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "PAGE", 3)
    objects, notes = await listed(kube.settings(tmp_path))
    assert sorted(objects.nodes) == ["n0", "n1", "n2"]
    assert sorted(objects.pods) == [f"shop/p{at}" for at in range(7)]
    assert (kube.count("list", "pods"), kube.count("continue", "pods")) == (1, 2)
    assert notes == []
    assert kube.count("watch") == 0


async def test_lists_are_handed_on_in_one_order_whichever_is_answered_first(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump, "PAGE", 3)
    kube.faults = [
        Fault("list", "namespaces", after=("continue", "pods", 2)),
        Fault("list", "virtualmachineinstancereplicasets", status=403, message="forbidden"),
    ]
    places: list[str] = []
    await read_cluster(kube.settings(tmp_path), lambda _, place: places.append(place.rpartition("/")[2]))
    assert places == [
        *("namespaces", "nodes", "pods", "pods", "pods", "services", "replicasets", "statefulsets", "deployments"),
        *("jobs", "replicationcontrollers", "poddisruptionbudgets"),
    ]


async def test_what_the_cluster_does_not_serve_is_left_out(kube: FakeKube, tmp_path: Path) -> None:
    assert (await listed(kube.settings(tmp_path)))[1] == []
    assert kube.count("list", "virtualmachineinstancereplicasets") == 1


async def test_what_may_not_be_read_and_could_be_done_without_is_noted(kube: FakeKube, tmp_path: Path) -> None:
    kube.faults = [Fault("list", "virtualmachineinstancereplicasets", status=403, message="forbidden")]
    _, notes = await listed(kube.settings(tmp_path))
    assert notes == [f"not read, and so not judged: virtualmachineinstancereplicasets: {kube.url}: forbidden (403)"]


@pytest.mark.parametrize(
    ("fault", "error", "why"),
    [
        pytest.param(Fault("list", "pods", status=403, message="forbidden"), Refused, "forbidden", id="not allowed"),
        pytest.param(Fault("list", "pods", status=500), Unreachable, "a fault was asked for", id="a server that fails"),
        pytest.param(Fault("continue", "pods", status=410), Unreachable, "expired", id="a list that expires"),
    ],
)
async def test_a_list_that_cannot_be_done_without_ends_it(
    kube: FakeKube,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    error: type[Exception],
    why: str,
) -> None:
    monkeypatch.setattr(dump, "PAGE", 3)
    kube.faults = [fault]
    with pytest.raises(error, match=why):
        await listed(kube.settings(tmp_path))


async def test_a_throttled_list_is_asked_for_again(kube: FakeKube, tmp_path: Path) -> None:
    kube.faults = [Fault("list", "pods", status=429, headers={"Retry-After": "0"})]
    objects, _ = await listed(kube.settings(tmp_path))
    assert len(objects.pods) == 7


async def test_a_server_that_answers_the_version_and_then_nothing_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def about(request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.36.3"})

    async def never(request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    app = web.Application()
    app.router.add_get("/version", about)
    app.router.add_get("/{path:.*}", never)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    kube = FakeKube()
    kube.url = "http://{}:{}".format(*runner.addresses[0])
    monkeypatch.setattr(dump, "FIRST_ANSWER", 1.0)
    try:
        with pytest.raises(Unreachable, match="gives no answer within 1 s"):
            await listed(kube.settings(tmp_path))
    finally:
        await runner.cleanup()


async def test_an_object_that_breaks_the_apis_rules_is_named_with_its_address(kube: FakeKube, tmp_path: Path) -> None:
    kube.seed("pods", {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"containers": "none"}})
    with pytest.raises(InputError) as refused:
        await listed(kube.settings(tmp_path))
    assert str(refused.value).startswith(f"{kube.url}/api/v1/pods: Pod/shop/odd: spec.containers: ")
