"""Who in a consumer group gets which partitions, as Faust's leader of the group decides it."""

from pathlib import Path
from typing import Any

import pytest

from underhost.streams.faust.app import UnderhostApp, build_app
from underhost.streams.partition import partition_of
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

SITE, TOPICS, COUNT = "prod-a", {"underhost.pods", "t-pods-changelog"}, 8


class Cluster:
    """Topics of `COUNT` partitions, as aiokafka's metadata shows them."""

    def partitions_for_topic(self, topic: str) -> set[int]:
        """See `ClusterMetadata`."""
        return set(range(COUNT))


def an_app(only: str | None, servers: str | None = "127.0.0.1:9092") -> UnderhostApp:
    kafka = KafkaSettings(bootstrap_servers=servers, embedded=Path("never-opened.db"), partitions=COUNT)
    return build_app(Settings(kafka=kafka), app_id="t", only=only)


def rebalance(members: dict[str, UnderhostApp]) -> dict[str, set[int]]:
    """What each member has after a rebalance of the group: the same partitions of every topic."""
    asked = {name: app.assignor.metadata(TOPICS) for name, app in members.items()}
    given = next(iter(members.values())).assignor.assign(Cluster(), asked)
    got: dict[str, set[int]] = {}
    for name, app in members.items():
        app.assignor.on_assignment(given[name])
        shares: list[Any] = [set(partitions) for _, partitions in given[name].assignment]
        assert all(share == shares[0] for share in shares)
        got[name] = shares[0]
    return got


@pytest.mark.parametrize(
    ("only", "servers", "expected"),
    [
        pytest.param(SITE, "127.0.0.1:9092", {partition_of(SITE, COUNT)}, id="of one site"),
        pytest.param(None, "127.0.0.1:9092", set(range(COUNT)), id="of all sites"),
        pytest.param(SITE, None, set(range(COUNT)), id="the embedded log's only reader"),
    ],
)
def test_a_worker_reads_the_partitions_of_its_sites(only: str | None, servers: str | None, expected: set[int]) -> None:
    assert rebalance({"a": an_app(only, servers)}) == {"a": expected}


def test_a_standby_reads_nothing_and_gets_the_site_when_the_owner_is_gone() -> None:
    owner, standby, site = an_app(SITE), an_app(SITE), {partition_of(SITE, COUNT)}
    assert rebalance({"a": owner}) == {"a": site}
    assert rebalance({"a": owner, "b": standby}) == {"a": site, "b": set()}
    assert rebalance({"b": standby}) == {"b": site}
    assert rebalance({"a": an_app(SITE), "b": standby}) == {"a": set(), "b": site}
