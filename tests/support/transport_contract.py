"""What every place where topics live must do: the same checks run over the embedded log and over real Kafka.

A subclass gives the settings of an empty place in a fixture `kafka`, and `publisher(kafka)`, an async context manager.
"""

import asyncio
import hashlib
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace

import pytest

from underhost.schemas.errors import InputError
from underhost.schemas.topics import DEAD_LETTERS, NODES, PLACEMENTS, PODS, TOPICS, VIOLATIONS
from underhost.streams.admin import describe_topics, ensure_topics
from underhost.streams.partition import partition_of
from underhost.streams.ports import Outgoing, Publisher, Record
from underhost.streams.publish import dead_letter
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings


def pod(name: str, value: bytes | None, site: str = "prod-a") -> Outgoing:
    """A record of a pod."""
    return Outgoing(PODS, f"{site}/pod/shop/{name}", value, f"uid-{name}/1")


async def take(records: object, count: int) -> list[Record]:
    """The first `count` records of a stream, within ten seconds."""
    found: list[Record] = []
    async with asyncio.timeout(10):
        async for record in records:  # type: ignore[attr-defined]
            found.append(record)
            if len(found) == count:
                break
    return found


class TransportContract:
    """The checks."""

    def publisher(self, kafka: KafkaSettings) -> AbstractAsyncContextManager[Publisher]:
        """A publisher without a worker."""
        raise NotImplementedError

    async def test_every_topic_of_the_table_exists_after_ensure_with_the_configured_partitions(
        self, kafka: KafkaSettings
    ) -> None:
        await ensure_topics(kafka)
        described = await describe_topics(kafka)
        assert [(one.name, one.partitions, one.cleanup) for one in described] == [
            (topic.name, kafka.partitions, topic.cleanup) for topic in TOPICS
        ]
        assert {one.records for one in described} == {0}

    async def test_a_second_ensure_changes_nothing_and_another_count_is_refused_by_name(
        self, kafka: KafkaSettings
    ) -> None:
        await ensure_topics(kafka)
        await ensure_topics(kafka)
        with pytest.raises(InputError, match=r"topic underhost\.pods has 4 partitions, 5 are configured"):
            await ensure_topics(kafka.model_copy(update={"partitions": 5}))
        assert {one.partitions for one in await describe_topics(kafka)} == {4}

    async def test_a_state_topic_that_is_not_compacted_is_refused(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka, [replace(PODS, cleanup="delete"), NODES])
        with pytest.raises(InputError) as error:
            await ensure_topics(kafka)
        assert [fault.partition(": ")[2] for fault in error.value.faults] == [
            "topic underhost.pods has cleanup.policy delete, it must be compact"
        ]
        assert {one.partitions for one in await describe_topics(kafka, [PLACEMENTS])} == {0}, "nothing was created"

    async def test_a_record_is_read_back_from_its_sites_partition_with_its_cloud_event(
        self, kafka: KafkaSettings
    ) -> None:
        await ensure_topics(kafka)
        async with self.publisher(kafka) as publisher:
            await publisher.publish(Outgoing(NODES, "prod-a/node//n1", b"{}", "uid-1/7", {"extra": b"1"}))
        async with aclosing(open_reader(kafka).history([NODES])) as history:
            [record] = [record async for record in history]
        headers = dict(record.headers)
        assert headers.pop("ce_time").endswith(b"Z")
        assert headers == {
            "ce_specversion": b"1.0",
            "ce_id": b"uid-1/7",
            "ce_source": b"/sites/prod-a",
            "ce_type": b"underhost.nodes.v1",
            "content-type": b"application/json",
            "extra": b"1",
        }
        assert (record.topic, record.partition, record.offset) == ("underhost.nodes", partition_of("prod-a", 4), 0)
        assert (record.key, record.value) == (b"prod-a/node//n1", b"{}")

    async def test_state_is_the_last_value_of_each_key_of_the_site_without_the_deleted(
        self, kafka: KafkaSettings
    ) -> None:
        await ensure_topics(kafka)
        sites = ["prod-a", "prod-b", "prod-c", "prod-d", "prod-e"]  # five sites in four partitions: two share one
        async with self.publisher(kafka) as publisher:
            for site in sites:
                await publisher.publish(
                    pod("a", b"1", site), pod("b", b"1", site), pod("a", b"2", site), pod("b", None, site),
                    pod("c", b"3", site), pod("d", None, site),
                )  # fmt: skip
        reader = open_reader(kafka)
        for site in sites:
            assert await reader.state(PODS, site) == {
                f"{site}/pod/shop/a": b"2",
                f"{site}/pod/shop/c": b"3",
            }
        assert await reader.state(PODS, "nobody") == {}
        assert await reader.state(NODES, "prod-a") == {}

    async def test_a_batch_is_read_in_the_order_it_was_published(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka)
        async with self.publisher(kafka) as publisher:
            await publisher.publish(*(pod("a", b"%d" % number) for number in range(3000)))
        async with aclosing(open_reader(kafka).history([PODS, NODES])) as history:
            values = [int(record.value or b"-1") async for record in history]
        assert values == list(range(3000))

    async def test_a_follower_gets_what_is_there_and_then_what_comes(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka)
        async with self.publisher(kafka) as publisher:
            await publisher.publish(pod("a", b"1"))
            async with aclosing(open_reader(kafka).follow([PODS, VIOLATIONS], from_beginning=True)) as records:
                assert [record.value for record in await take(records, 1)] == [b"1"]
                await publisher.publish(pod("a", b"2"))
                assert [record.value for record in await take(records, 1)] == [b"2"]
                await publisher.publish(pod("b", None, "prod-b"), Outgoing(VIOLATIONS, "prod-a/9f", b"v", "9f"))
                late = await take(records, 2)
        assert sorted((record.topic, record.value) for record in late) == [
            ("underhost.pods", None),
            ("underhost.violations", b"v"),
        ]

    async def test_a_follower_knows_when_it_has_got_all_that_was_there(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka)
        caught_up = asyncio.Event()
        async with self.publisher(kafka) as publisher:
            await publisher.publish(*(pod("a", b"%d" % number) for number in range(600)))
            records = open_reader(kafka).follow([PODS, VIOLATIONS], from_beginning=True, caught_up=caught_up)
            async with aclosing(records):
                for _ in range(600):
                    await anext(records)
                    assert not caught_up.is_set()
                waiting = asyncio.ensure_future(anext(records))
                async with asyncio.timeout(30):
                    await caught_up.wait()
                await publisher.publish(pod("b", b"later"))
                assert (await waiting).value == b"later"

    async def test_a_follower_from_now_on_does_not_get_the_past(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka)
        async with self.publisher(kafka) as publisher:
            await publisher.publish(pod("a", b"past"))
            async with aclosing(open_reader(kafka).follow([PODS])) as records:
                waiting = asyncio.ensure_future(take(records, 1))
                number = 0
                while not waiting.done():  # publish until the follower, which starts at some moment, sees one
                    await publisher.publish(pod("a", b"%d" % number))
                    number += 1
                    await asyncio.wait([waiting], timeout=0.05)
        assert waiting.result()[0].value != b"past"

    async def test_history_ends_at_the_records_that_were_there_when_it_began(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka)
        there = [b"%d" % number for number in range(600)]  # more than is fetched at once
        values = []
        async with self.publisher(kafka) as publisher:
            await publisher.publish(*(pod("a", value) for value in there))
            async with aclosing(open_reader(kafka).history([PODS])) as history:
                async for record in history:
                    if not values:
                        await publisher.publish(pod("a", b"later"), pod("b", b"later"))
                    values.append(record.value)
        assert values == there

    async def test_a_dead_letter_keeps_no_bytes_unless_asked_and_says_where_they_came_from(
        self, kafka: KafkaSettings
    ) -> None:
        await ensure_topics(kafka)
        secret = Record("underhost.pods", 1, 6, 0, b"prod-a/pod/shop/s", b'{"env": "hunter2"', ())
        async with self.publisher(kafka) as publisher:
            await publisher.publish(dead_letter(secret, "tables", ValueError("no")))
        async with aclosing(open_reader(kafka).history([DEAD_LETTERS])) as history:
            [letter] = [record async for record in history]
        digest = b"sha256:" + hashlib.sha256(b'{"env": "hunter2"').hexdigest().encode()
        assert (letter.key, letter.value) == (b"prod-a/pod/shop/s", digest)
        assert b"hunter2" not in b"".join(value or b"" for _, value in letter.headers)
        kafka = kafka.model_copy(update={"keep_unreadable": True})
        readable = Record("underhost.pods", 1, 7, 0, b"prod-a/pod/shop/a", b"\xff{", ())
        garbled = Record("underhost.pods", 3, 8, 0, b"\xff\xfe", b"x", ())
        keyless = Record("underhost.pods", 2, 9, 0, None, b"y", ())
        async with self.publisher(kafka) as publisher:
            await publisher.publish(
                *(dead_letter(one, "tables", ValueError("no")) for one in (readable, garbled, keyless))
            )
        async with aclosing(open_reader(kafka).history([DEAD_LETTERS])) as history:
            letters = {record.value: record async for record in history}
        assert letters[b"\xff{"].key == b"prod-a/pod/shop/a"
        assert letters[b"\xff{"].partition == partition_of("prod-a", 4)
        assert (letters[b"x"].key, letters[b"x"].partition) == (b"\xff\xfe", 3)
        assert (letters[b"y"].key, letters[b"y"].partition) == (b"", 2)
        headers = dict(letters[b"x"].headers)
        assert (headers["origin_topic"], headers["origin_partition"], headers["origin_offset"]) == (
            b"underhost.pods",
            b"3",
            b"8",
        )
        assert (headers["stage"], headers["error"]) == (b"tables", b"ValueError: no")
        assert headers["content-type"] == b"application/octet-stream"

    async def test_described_records_and_ends_count_what_was_published(self, kafka: KafkaSettings) -> None:
        await ensure_topics(kafka)
        async with self.publisher(kafka) as publisher:
            await publisher.publish(pod("a", b"1"), pod("b", b"2"), Outgoing(PLACEMENTS, "prod-b/pod/x/y", b"p", "p"))
        described = {one.name: one for one in await describe_topics(kafka)}
        ends = [0, 0, 0, 0]
        ends[partition_of("prod-a", 4)] = 2
        assert (described["underhost.pods"].records, described["underhost.pods"].ends) == (2, tuple(ends))
        assert described["underhost.placements"].records == 1
