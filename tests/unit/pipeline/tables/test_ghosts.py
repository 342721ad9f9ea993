"""Objects whose tombstones a worker has missed: they go once their source has listed anew."""

from pathlib import Path

import pytest
from support.fakes.tables import StoredTables

from underhost.schemas.keys import listed_key, object_key
from underhost.schemas.kubernetes import Metadata, Pod, encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import PODS

SITE = "prod"


def key_of(name: str) -> str:
    return object_key(SITE, "pod", name, "shop")


async def a_restart(folder: Path, *marker: Listed) -> StoredTables:
    """A worker that holds two pods, of which the topic holds one; then its source's markers come."""
    before = StoredTables(folder, (PODS,))
    for name in ("db-0", "ghost"):
        await before.take(PODS, key_of(name), encode(Pod(Metadata(name=name, namespace="shop"))))
    await before.take(PODS, listed_key(SITE, "kubernetes"), encode(Listed(epoch=1, count=2)))
    after = await before.restarted()
    after.live = {key_of("db-0"): b""}
    for one in marker:
        await after.take(PODS, listed_key(SITE, "kubernetes"), encode(one))
    return after


@pytest.mark.parametrize(
    ("marker", "left"),
    [
        pytest.param(Listed(epoch=2, count=1), ["db-0"], id="fewer are listed than there are rows"),
        pytest.param(Listed(epoch=2, count=2), ["db-0", "ghost"], id="as many are listed"),
        pytest.param(Listed(epoch=2, count=1, doubt="half of it is gone"), ["db-0", "ghost"], id="a list in doubt"),
        pytest.param(Listed(epoch=1, count=1, seen=7), ["db-0", "ghost"], id="a sign of life, no list"),
    ],
)
async def test_a_pod_that_went_while_the_worker_was_down_for_days_is_no_ghost(
    tmp_path: Path, marker: Listed, left: list[str]
) -> None:
    tables = await a_restart(tmp_path, marker)
    assert sorted(tables.sites.state(SITE).rows(PODS)) == [f"shop/{name}" for name in left]
    rows = sorted(key.decode() for key, _ in tables.rows(PODS) if b"/listed/" not in key)
    assert rows == [key_of(name) for name in left]
