"""One partition per site, the same that Kafka's default partitioner gives the site's bytes."""

import pytest

from underhost.streams.partition import partition_of

# Apache Kafka's own test vectors (UtilsTest.testMurmur2): the bytes and murmur2 of them.
KAFKA_VECTORS = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize("site", KAFKA_VECTORS)
@pytest.mark.parametrize("count", [1, 2, 8, 1024])
def test_a_site_goes_where_kafka_puts_a_key_of_the_same_bytes(site: str, count: int) -> None:
    assert partition_of(site, count) == (KAFKA_VECTORS[site] & 0x7FFFFFFF) % count


@pytest.mark.parametrize(("site", "partition"), [("default", 3), ("prod-a", 4), ("prod-b", 0), ("é", 7)])
def test_a_sites_partition_of_eight_never_changes(site: str, partition: int) -> None:
    assert partition_of(site, 8) == partition


@pytest.mark.parametrize("count", [0, -1])
def test_a_topic_without_partitions_is_an_error(count: int) -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        partition_of("default", count)
