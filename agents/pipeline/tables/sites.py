"""Which sites this worker holds, how far it has read, and whether a site's picture is complete enough to decide from.

In: assignments and recoveries (`recovery.py`), rows and offsets (`agents.py`), epochs of the watchers of this process
(`pipeline/supervisor.py`). Out: `unready`, the reason to decide nothing yet; a call of `on_change` for every change.
The objects themselves are in `agents/site/objects.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from underhost.agents.pipeline.tables.signs import Signs
from underhost.agents.site.objects import SiteState
from underhost.agents.site.snapshot import BY_VM, Joining, Snapshot
from underhost.agents.site.terms import readable_labels
from underhost.schemas.keys import Key
from underhost.schemas.records import Listed
from underhost.schemas.topics import KUBERNETES, NODES, VSPHERE, Topic
from underhost.streams.partition import partition_of
from underhost.streams.settings.model import Settings


class Sites:
    """The sites of the partitions that this worker holds; `signs` are the signs of life of their watchers.

    `read` are the state topics whose tables are kept here, `followed` further topics whose tables must have caught up
    before anything is decided. `partition_of` tells the partition of every record of a site. `only` limits the worker
    to these sites (None: every site of its partitions); `sources` tells which sources a site has.

    Attributes:
        turn: how often partitions came or went; what takes long sees by it that they have.
    """

    def __init__(
        self,
        read: Sequence[Topic],
        followed: Sequence[Topic],
        *,
        partition_of: Callable[[str], int],
        sources: Callable[[SiteState], frozenset[str]],
        only: frozenset[str] | None = None,
        joining: Joining = BY_VM,
    ) -> None:
        self.read, self.followed = tuple(read), tuple(followed)
        self.states: dict[str, SiteState] = {}
        self.on_change: Callable[[str], None] = lambda site: None
        self.partition_of, self._sources, self._only = partition_of, sources, only
        self._joining = joining
        self._held: frozenset[int] = frozenset()
        self.turn = 0
        self._next: dict[tuple[str, int], int] = {}
        self._highwater: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, str], int] = {}
        self.signs = Signs()

    # ---------------------------------------------------------------------------------------- what this worker holds
    def wants(self, site: str) -> bool:
        """Whether this worker is there for the site at all."""
        return self._only is None or site in self._only

    def holds(self, site: str) -> bool:
        """Whether the site's partition is ours now, and its tables are recovered."""
        return self.wants(site) and self.partition_of(site) in self._held

    def held(self) -> list[str]:
        """The sites that are known and held now, sorted."""
        named = set(self.states) | (self._only or set())
        return sorted(site for site in named if self.holds(site))

    def suspend(self) -> None:
        """A rebalance has begun: nothing is ours until the tables are recovered again."""
        self._held = frozenset()
        self.turn += 1

    def resume(
        self,
        partitions: Iterable[int],
        positions: Mapping[tuple[str, int], int],
        highwaters: Mapping[tuple[str, int], int],
    ) -> None:
        """The tables of these partitions are recovered; streams go on at `positions` (next offset by topic, partition).

        States of sites that are not ours any more are dropped whole: a ghost row would be a wrong decision.
        """
        self._held = frozenset(partitions)
        self.turn += 1
        self._next, self._highwater = dict(positions), dict(highwaters)
        self.states = {site: state for site, state in self.states.items() if self.holds(site)}
        self.signs.keep(self.holds)

    def state(self, site: str) -> SiteState:
        """The state of the site, made at its first row."""
        state = self.states.get(site)
        if state is None:
            state = self.states[site] = SiteState(site, self.read)
        return state

    # ------------------------------------------------------------------------------------------------ what was read
    def apply(self, topic: Topic, key: Key, value: Struct | None, timestamp: float, deleted_uid: str = "") -> None:
        """One row of a state topic changed; `timestamp` is the record's, in seconds since 1970.

        `deleted_uid` and what is raised are as in `SiteState.put`.
        """
        state = self.state(key.site)
        if state.put(topic, key, value, deleted_uid):
            self.on_change(key.site)
        state.as_of = max(state.as_of, timestamp)
        if isinstance(value, Listed) and value.seen and self.unready(key.site) is None:
            self.signs.note(key.site, key.name, value.seen)

    def advance(self, topic: Topic, partition: int, offset: int) -> None:
        """The record at this offset has been dealt with, whatever it held."""
        place = (topic.short, partition)
        highwater = self._highwater.get(place, 0)
        reached = self._next.get(place, 0) < highwater <= offset + 1
        self._next[place] = offset + 1
        if reached:
            for site in self.held():
                if self.partition_of(site) == partition:
                    self.on_change(site)

    def behind(self) -> int:
        """Records that the topics held when the partitions became ours, and that are not read yet.

        A worker that is limited to sites waits for their partitions alone.
        """
        ours = None if self._only is None else {self.partition_of(site) for site in self._only}
        return sum(
            max(0, end - self._next.get(place, 0))
            for place, end in self._highwater.items()
            if ours is None or place[1] in ours
        )

    def following(self, topic: Topic, partition: int) -> int:
        """The offset of the first record that has not been dealt with."""
        return self._next.get((topic.short, partition), 0)

    def has_vsphere(self, site: str) -> bool:
        """Whether the site has a vSphere side."""
        return VSPHERE in self._sources(self.state(site))

    def snapshot(self, site: str) -> Snapshot:
        """The site's picture as of now, stamped with the last offset of each topic that is in it."""
        partition = self.partition_of(site)
        following = {topic.short: self._next.get((topic.short, partition), 0) for topic in self.read}
        offsets = {short: offset - 1 for short, offset in following.items() if offset}
        return self.state(site).snapshot(vsphere=self.has_vsphere(site), offsets=offsets, joining=self._joining)

    def require_epoch(self, site: str, source: str, epoch: int | None) -> None:
        """From now on only a marker of this run of our own watcher counts; None: whatever marker is there.

        No later one either: where the wall clock was set back, that is a run of before.
        """
        if epoch is None:
            self._epochs.pop((site, source), None)
        else:
            self._epochs[site, source] = epoch

    def doubts(self, site: str) -> dict[str, str]:
        """What the site's sources say that they do not believe."""
        return self.states[site].doubts() if site in self.states else {}

    def silence(self, site: str, source: str) -> float:
        """Seconds since the source gave its last sign of life; 0.0 where it gives none (files)."""
        seen = self.states[site].seen(source) if site in self.states else 0
        return self.signs.silence(site, source, seen) if seen else 0.0

    def is_node(self, site: str, name: str) -> bool:
        """Whether the site has this node, as the watch has shown it last."""
        return site in self.states and self.states[site].has(NODES, name)

    def labels_of(self, site: str, name: str) -> Mapping[str, str] | None:
        """The labels of a node as the watch has shown them last; None for an unknown one."""
        node = self.states[site].rows(NODES).get(name) if site in self.states else None
        return None if node is None else readable_labels(node.metadata.labels)

    # ------------------------------------------------------------------------------------------------------- ready?
    def unready(self, site: str) -> str | None:
        """Why nothing is decided for the site now, as one line; None when its picture is complete."""
        if not self.holds(site):
            return "the site's partition is not held"
        partition = self.partition_of(site)
        for topic in (*self.read, *self.followed):
            place = (topic.short, partition)
            if self._next.get(place, 0) < self._highwater.get(place, 0):
                return f"{topic.short} is read up to {self._next.get(place, 0)} of {self._highwater[place]}"
        state = self.states.get(site)
        if state is None:
            return "nothing has been listed"
        for source in sorted(self._sources(state)):
            for topic in self.read:
                if topic.source != source:
                    continue
                epoch = state.epoch(topic, source)
                if epoch is None or epoch != self._epochs.get((site, source), epoch):
                    return f"{source} has not listed {topic.short}"
        return None


def joining_of(settings: Settings) -> Joining:
    """How the settings say which host a node runs on."""
    return Joining(settings.vsphere.joins_by_name, settings.hosts.label or "")


def sites_of(
    settings: Settings,
    read: Sequence[Topic],
    followed: Sequence[Topic] = (),
    *,
    only: frozenset[str] | None = None,
    shown_only: bool = False,
) -> Sites:
    """The sites of these topics. Our own has a vSphere side if it is configured, another one if its topics say so.

    Where sites are only shown (`shown_only`), the settings may not name a vCenter that our own site has all the same.
    """

    def sources(state: SiteState) -> frozenset[str]:
        own, listed = state.site == settings.site, state.has_marker(VSPHERE)
        has_vsphere = (own and settings.vsphere.configured) or (listed and (shown_only or not own))
        return frozenset({KUBERNETES, VSPHERE} if has_vsphere else {KUBERNETES})

    count = settings.kafka.partitions
    return Sites(
        read,
        followed,
        partition_of=lambda site: partition_of(site, count),
        sources=sources,
        only=only,
        joining=joining_of(settings),
    )
