"""A site as it was, read from real topics: within a budget only the newest part can be told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.workers.embedded import a_publisher

from underhost.agents.site.snapshot import Joining
from underhost.agents.snapshots.history import SiteHistory
from underhost.schemas.errors import InputError
from underhost.schemas.keys import listed_key, object_key
from underhost.schemas.kubernetes import Metadata, Node, Pod, PodSpec, encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES_TOPICS, NODES, PODS, VMS
from underhost.schemas.vsphere import Vm
from underhost.streams.ports import Outgoing
from underhost.streams.reader import EmbeddedReader

SITE = "prod"
CHANGES = 200


def pod(name: str, node: str, site: str = SITE) -> Outgoing:
    value = Pod(Metadata(name=name, namespace="shop"), PodSpec(node_name=node))
    return Outgoing(PODS, object_key(site, "pod", name, "shop"), encode(value), name)


@asynccontextmanager
async def a_history(folder: Path) -> AsyncIterator[EmbeddedReader]:
    """A site with one pod that moves again and again, another that went, and another site beside it."""
    path = folder / "log.db"
    async with a_publisher(path) as publisher:
        marker = encode(Listed(1, 0))
        await publisher.publish(pod("db-1", "n1"), pod("other", "n1", site="elsewhere"))
        await publisher.publish(
            *(Outgoing(topic, listed_key(SITE, "kubernetes"), marker, "") for topic in KUBERNETES_TOPICS)
        )
        await publisher.publish(Outgoing(PODS, object_key(SITE, "pod", "db-1", "shop"), None, ""))
        for number in range(CHANGES):
            await publisher.publish(pod("db-0", f"n{number}"))
        yield EmbeddedReader(path)


async def test_without_a_budget_every_record_is_kept(tmp_path: Path) -> None:
    async with a_history(tmp_path) as reader:
        past = await SiteHistory.read(reader, SITE)
    assert len(past._changes) == 1 + len(KUBERNETES_TOPICS) + 1 + CHANGES


async def test_within_a_budget_the_newest_part_is_told_and_no_moment_before_it(tmp_path: Path) -> None:
    async with a_history(tmp_path) as reader:
        whole = await SiteHistory.read(reader, SITE)
        past = await SiteHistory.read(reader, SITE, budget=50_000)
    assert len(past._changes) * 400 < 50_000
    assert past.begins > whole.begins
    for moment in (past.begins, (past.begins + past.ends) // 2, past.ends):
        assert dict(past.at(moment).pods) == dict(whole.at(moment).pods), moment
    with pytest.raises(InputError, match="site prod: its history begins at "):
        past.at(past.begins - 1)


async def test_a_site_whose_newest_records_are_too_much_is_refused(tmp_path: Path) -> None:
    async with a_history(tmp_path) as reader:
        with pytest.raises(InputError, match="the site's history takes more than 0 MiB"):
            await SiteHistory.read(reader, SITE, budget=1000)


@pytest.mark.parametrize(
    ("join_by_name", "joined"), [pytest.param(True, ["n1"], id="allowed"), pytest.param(False, [], id="not allowed")]
)
async def test_the_past_joins_by_name_only_where_the_present_does(
    tmp_path: Path, join_by_name: bool, joined: list[str]
) -> None:
    async with a_history(tmp_path) as reader, a_publisher(tmp_path / "log.db") as publisher:
        await publisher.publish(
            Outgoing(NODES, object_key(SITE, "node", "n1"), encode(Node(Metadata(name="n1"))), ""),
            Outgoing(VMS, object_key(SITE, "vm", "vm-1"), encode(Vm(name="n1", id="vm-1", host="host-1")), ""),
        )
        past = await SiteHistory.read(reader, SITE, joining=Joining(by_name=join_by_name))
    assert list(past.at(past.ends).node_hosts) == joined
