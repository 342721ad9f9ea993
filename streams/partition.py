"""Which partition a site's records go to: always the same one, so that a topic is totally ordered for a site.

In: a site and the count of partitions. Out: murmur2(site) modulo the count, as Kafka's default partitioner hashes the
bytes of the site.
"""

from functools import lru_cache

from aiokafka.partitioner import murmur2

POSITIVE = 0x7FFFFFFF


@lru_cache(maxsize=4096)  # murmur2 is plain Python, and a worker asks for few sites again and again
def partition_of(site: str, count: int) -> int:
    """The partition of a site among `count`. Raises ValueError when `count` is not positive."""
    if count < 1:
        raise ValueError(f"a topic has at least one partition, not {count}")
    return int(murmur2(site.encode()) & POSITIVE) % count
