"""What the streams offer to the agents, as protocols: both transports and the tests' fakes implement them."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import NamedTuple, Protocol

from underhost.schemas.topics import Topic


class Outgoing(NamedTuple):
    """A record to publish. `value` None is a tombstone. `headers` are added to the CloudEvents ones.

    `event_id` is the CloudEvents id; a state record's is `UID/resourceVersion`. What is `on_disk` the embedded log
    forces to the disk before it acknowledges it, whatever its durability. `original` is what a dead letter is about; it
    is published in the place of its digest where `kafka.keepUnreadable` says so.
    """

    topic: Topic
    key: str
    value: bytes | None
    event_id: str
    headers: Mapping[str, bytes] = {}
    on_disk: bool = False
    original: bytes | None = None

    def with_headers(self, more: Mapping[str, bytes]) -> "Outgoing":
        """The same with these headers besides."""
        headers = {**self.headers, **more}
        return Outgoing(self.topic, self.key, self.value, self.event_id, headers, self.on_disk, self.original)


class ProducerRecord(NamedTuple):
    """A record as a producer takes it; `topic` is the full name."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int
    headers: list[tuple[str, bytes]]
    on_disk: bool = False


class Record(NamedTuple):
    """A record read back. `timestamp` is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class Publisher(Protocol):
    """Keyed, ordered, acknowledged sends: the partition is chosen from the key's site."""

    async def publish(self, *records: Outgoing) -> None:
        """Send in order and return once every record is acknowledged. Raises Unreachable."""


class TopicReader(Protocol):
    """Reads topics without a consumer group: for watchers that restart, and for operators' commands.

    Attributes:
        at_hand: whether a state is in the memory of this process, instead of a day of records that have to be read.
    """

    at_hand: bool = False

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """The live records of a site in a compacted topic, by key, as of now.

        `b""` where readers hold another record of the key than the newest one: it must be published again.
        """

    def follow(
        self,
        topics: Iterable[Topic],
        *,
        from_beginning: bool = False,
        begun: asyncio.Event | None = None,
        caught_up: asyncio.Event | None = None,
    ) -> AsyncGenerator[Record, None]:
        """Records of all partitions as they arrive, until the caller stops; with `from_beginning` all older ones first.

        `begun` is set once no later record can be missed, `caught_up` once every record that was there at the start
        has been yielded.
        """

    def history(self, topics: Iterable[Topic], site: str | None = None) -> AsyncIterator[Record]:
        """Every record that is there now, in the order of each partition, and no later one.

        With a site only those of its partition, other sites' of the same partition among them.
        """

    async def check(self) -> None:
        """Return if the topics can be read now. Raises Unreachable."""

    async def close(self) -> None:
        """Release connections."""


class LiveLabels(NamedTuple):
    """A live object's uid, resourceVersion, labels, and the field manager by label key, of several the
    one that decides."""

    uid: str
    version: str
    labels: Mapping[str, str]
    managers: Mapping[str, str]


class LiveVm(NamedTuple):
    """A VM as vCenter has it now: its host's reference, whether it is powered on, and the task that migrates it."""

    name: str
    host: str
    is_on: bool
    task: str = ""


class LiveHost(NamedTuple):
    """An ESXi host as vCenter has it now.

    `vms` are those on it that are powered on, names by reference; `task` puts it into maintenance mode, or takes it
    out, right now.
    """

    name: str
    is_connected: bool
    in_maintenance: bool
    vms: Mapping[str, str] = {}
    task: str = ""


class PodState(NamedTuple):
    """A live pod and one of its conditions. `node` is "" before it is bound, `condition` is empty where it has none."""

    uid: str
    version: str
    node: str
    condition: Mapping[str, str]
    scheduler: str = ""


class Source(Protocol):
    """A watcher of one site: list, mark as listed, then publish changes until it is cancelled.

    Attributes:
        name: `kubernetes` or `vsphere`.
        epoch: the start of this run, in milliseconds since 1970.
    """

    name: str
    epoch: int

    @property
    def shrunk(self) -> list[str]:
        """One line for each list that is not believed and that nobody has accepted; empty when all is well."""
        return []

    @property
    def stale(self) -> str:
        """Why what the topics hold is too old to act on, "" while it is not."""
        return ""

    @property
    def contact(self) -> float | None:
        """When the server was last heard of, monotonic seconds; None before that, and for files."""
        return None

    def accept(self) -> list[str]:
        """A person confirms that what is missing is gone: delete it. Returns the settled lines."""
        return []

    def refresh(self) -> None:
        """Read what the server does not announce again now: we have just changed it. Often nothing to do."""
        return

    @abstractmethod
    async def run(self) -> None:
        """Runs until cancelled; retries for ever after the first success.

        Raises InputError (files, passwords, configuration) or a BackendError before that.
        """
