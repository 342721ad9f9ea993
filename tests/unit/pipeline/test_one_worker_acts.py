"""Workers that know nothing of one another's topics, on the leases of one cluster: one acts in each role."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.fakes.leases import FakeLeases
from support.fakes.pipeline import FakeCluster, FakeEvaluator
from support.workers.fleet import until
from support.workers.pipeline import Running, running, settings_in

from underhost.agents.pipeline.leases.roles import LeaseOrigin
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.roles import parse_roles
from underhost.agents.pipeline.run import Pipeline
from underhost.schemas.errors import Forbidden
from underhost.schemas.topics import NODE_HOSTS, OUTCOMES
from underhost.streams.settings.model import LeaseSettings, Settings, WebSettings

LABELLER, KUBERNETES, BINDER = (f"underhost-default-{role}" for role in ("labeller", "kubernetes", "binder"))


def configured(folder: Path, *, sinks: bool = True) -> Settings:
    """A worker's settings, with a log of its own; its leases last three seconds."""
    folder.mkdir()
    web = WebSettings(listen="127.0.0.1:0")
    return settings_in(folder, sinks=sinks).model_copy(update={"lease": LeaseSettings(seconds=3), "web": web})


class Worker:
    """A worker, and what it says of itself."""

    def __init__(self, worker: Running, address: str) -> None:
        self.worker, self._address = worker, address

    async def readyz(self) -> tuple[int, dict[str, Any]]:
        """Code, and what the document says."""
        async with aiohttp.ClientSession() as client, client.get(f"{self._address}readyz") as answer:
            said = await answer.json()
            return answer.status, {"status": said["status"], "reasons": said["reasons"]}


@asynccontextmanager
async def a_worker(
    folder: Path, cluster: FakeCluster, leases: FakeLeases, identity: str, *, sinks: bool = True
) -> AsyncIterator[Worker]:
    """A worker of this name; it is stopped cleanly at the end."""
    connections = replace(cluster.connections(), leases=LeaseOrigin(leases, identity))
    addresses: list[str] = []
    async with running(configured(folder, sinks=sinks), connections, on_listening=addresses.append) as worker:
        await until(lambda: bool(addresses))
        yield Worker(worker, addresses[0])


async def test_the_second_worker_stands_by_and_acts_once_the_first_has_ended(tmp_path: Path) -> None:
    cluster, leases = FakeCluster(), FakeLeases()
    cluster.node("n1", "h1")
    async with AsyncExitStack() as stack:
        async with a_worker(tmp_path / "one", cluster, leases, "one") as first:
            await first.worker.until(lambda: len(cluster.labelled) == 1)
            second = await stack.enter_async_context(a_worker(tmp_path / "two", cluster, leases, "two"))
            roles = "kubernetes", "vsphere", "labeller", "binder"
            every = {f"underhost-default-{role}": "one" for role in roles}
            await until(lambda: {name: lease.holder for name, lease in leases.held.items()} == every)
            await until(lambda: leases.asked.count(LABELLER) > 1)
            cluster.move("n1", "h2")
            await first.worker.until(lambda: len(cluster.labelled) == 2)
            code, said = await second.readyz()
            assert (code, said["status"]) == (200, "standby")
            assert said["reasons"][f"lease {LABELLER}"] == f"lease {LABELLER} is held by one"
            assert (await first.readyz())[1] == {"status": "ok", "reasons": {}}
            assert (second.worker.published, cluster.sources[0].name) == ([], "kubernetes")
        cluster.move("n1", "h3")
        await second.worker.until(lambda: len(cluster.labelled) == 3)
        assert {lease.holder for lease in leases.held.values()} == {"two"}
        await second.worker.until(lambda: len(second.worker.records(OUTCOMES)) >= 1)  # told after it is done
    assert {lease.holder for lease in leases.held.values()} == {""}


async def test_a_worker_whose_lease_another_one_takes_writes_no_more(tmp_path: Path) -> None:
    cluster, leases = FakeCluster(), FakeLeases()
    cluster.node("n1", "h1")
    async with a_worker(tmp_path / "one", cluster, leases, "one") as worker:
        await worker.worker.until(lambda: len(cluster.labelled) == 1)
        leases.give(LABELLER, "another", seconds=3600)
        asked = leases.asked.count(LABELLER)
        await until(lambda: leases.asked.count(LABELLER) > asked)
        cluster.move("n1", "h2")
        cluster.pod("db-0", app="db")
        await worker.worker.until(lambda: len(cluster.bound) == 1)  # its other roles go on
        assert len(cluster.labelled) == 1
        assert await worker.readyz() == (
            200,
            {"status": "standby", "reasons": {f"lease {LABELLER}": f"lease {LABELLER} is held by another"}},
        )


@pytest.mark.parametrize("role", ["labeller", "vsphere"])
async def test_who_sees_half_the_site_keeps_no_role_from_the_worker_that_sees_it_all(tmp_path: Path, role: str) -> None:
    """Of workers with topics of their own, one had died; the next one on that host is to the leases the same."""
    cluster, leases = FakeCluster(), FakeLeases()
    cluster.node("n1", "h1")
    leases.give(f"underhost-default-{role}", "two", seconds=3)
    leases.give(KUBERNETES, "one", seconds=3)
    async with AsyncExitStack() as stack:
        for name in ("two", "one"):
            worker = await stack.enter_async_context(a_worker(tmp_path / name, cluster, leases, name))
        await worker.worker.until(lambda: len(cluster.labelled) == 1)
        await until(lambda: {lease.holder for lease in leases.held.values()} == {"one"})


async def test_a_worker_that_ends_while_it_is_given_its_partitions_takes_no_lease_again(tmp_path: Path) -> None:
    cluster, leases = FakeCluster(), FakeLeases()
    connections = replace(cluster.connections(), leases=LeaseOrigin(leases, "one"))
    settings, roles = configured(tmp_path / "one"), parse_roles(None)
    pipeline = Pipeline(settings, roles, connections, Metrics(), evaluator=FakeEvaluator(), on_event=None)
    running = asyncio.ensure_future(pipeline.run())
    await until(lambda: len(leases.held) == 4)
    running.cancel()
    await pipeline.close()
    await pipeline._resume()  # as a recovery does that was under way
    keepers = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("lease of")]
    assert (keepers, pipeline.watchers.sources) == ([], [])
    assert {lease.holder for lease in leases.held.values()} == {""}


FORBIDDEN = "cannot create leases in namespace a (403); grant get, create and update on leases in namespace a"


async def test_who_may_not_take_leases_shows_what_it_sees_and_writes_nothing(tmp_path: Path) -> None:
    cluster, leases = FakeCluster(), FakeLeases(fails=Forbidden(FORBIDDEN))
    cluster.node("n1", "h1")
    async with a_worker(tmp_path / "one", cluster, leases, "one") as worker:
        await worker.worker.until(lambda: worker.worker.states(NODE_HOSTS, "hostName") == [("default/node//n1", "h1")])
        await until(lambda: leases.asked.count(LABELLER) > 1)
        code, said = await worker.readyz()
        assert (code, said["status"]) == (200, "standby")
        assert said["reasons"][f"lease {LABELLER}"] == f"lease {LABELLER} is not held: {FORBIDDEN}"
        without = f"it publishes without: lease {KUBERNETES} is not held: {FORBIDDEN}"
        assert said["reasons"][f"lease {KUBERNETES}"] == without
        leases.fails = None
        await worker.worker.until(lambda: len(cluster.labelled) == 1)  # the right was granted
        await until(lambda: {lease.holder for lease in leases.held.values()} == {"one"})
        assert await worker.readyz() == (200, {"status": "ok", "reasons": {}})


async def test_a_dry_run_that_may_not_take_leases_is_well_and_says_so(tmp_path: Path) -> None:
    cluster, leases = FakeCluster(), FakeLeases(fails=Forbidden(FORBIDDEN))
    cluster.node("n1", "h1")
    async with a_worker(tmp_path / "one", cluster, leases, "one", sinks=False) as worker:
        await worker.worker.until(lambda: bool(worker.worker.states(NODE_HOSTS, "hostName")))
        code, said = await worker.readyz()
    assert (code, said["status"], sorted(said["reasons"])) == (
        200, "ok", [f"lease {KUBERNETES}", "lease underhost-default-vsphere"],
    )  # fmt: skip
