"""Which sites this worker holds, how far it has read, and whether a site's picture is complete enough to decide from.

In: assignments and recoveries (`recovery.py`), rows and offsets (`tables.py`), epochs of the watchers of this process
(`supervise.py`). Out: `unready`, the reason to decide nothing yet; a call of `on_change` for every change. The objects
themselves are in `site_state.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from underhost.agents.site.objects import SiteState
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.keys import Key
from underhost.schemas.topics import Topic


class Sites:
    """The sites of the partitions that this worker holds.

    `read` are the state topics whose tables are kept here, `followed` further topics whose tables must have caught up
    before anything is decided. `only` limits the worker to these sites (None: every site of its partitions);
    `sources` tells which sources a site has.
    """

    def __init__(
        self,
        read: Sequence[Topic],
        followed: Sequence[Topic],
        *,
        partition_of: Callable[[str], int],
        sources: Callable[[SiteState], frozenset[str]],
        only: frozenset[str] | None = None,
    ) -> None:
        self.read, self.followed = tuple(read), tuple(followed)
        self.states: dict[str, SiteState] = {}
        self.on_change: Callable[[str], None] = lambda site: None
        self._partition_of, self._sources, self._only = partition_of, sources, only
        self._held: frozenset[int] = frozenset()
        self._next: dict[tuple[str, int], int] = {}
        self._highwater: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, str], int] = {}

    # ---------------------------------------------------------------------------------------- what this worker holds
    def partition_of(self, site: str) -> int:
        """The partition of every record of the site."""
        return self._partition_of(site)

    def wants(self, site: str) -> bool:
        """Whether this worker is there for the site at all."""
        return self._only is None or site in self._only

    def holds(self, site: str) -> bool:
        """Whether the site's partition is ours now, and its tables are recovered."""
        return self.wants(site) and self._partition_of(site) in self._held

    def held(self) -> list[str]:
        """The sites that are known and held now, sorted."""
        named = set(self.states) | (self._only or set())
        return sorted(site for site in named if self.holds(site))

    def suspend(self) -> None:
        """A rebalance has begun: nothing is ours until the tables are recovered again."""
        self._held = frozenset()

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
        self._next, self._highwater = dict(positions), dict(highwaters)
        self.states = {site: state for site, state in self.states.items() if self.holds(site)}

    def state(self, site: str) -> SiteState:
        """The state of the site, made at its first row."""
        state = self.states.get(site)
        if state is None:
            state = self.states[site] = SiteState(site, self.read)
        return state

    # ------------------------------------------------------------------------------------------------ what was read
    def apply(self, topic: Topic, key: Key, value: Struct | None, timestamp: float) -> None:
        """One row of a state topic changed; `timestamp` is the record's, in seconds since 1970."""
        state = self.state(key.site)
        state.as_of = max(state.as_of, timestamp)
        if state.put(topic, key, value):
            self.on_change(key.site)

    def advance(self, topic: Topic, partition: int, offset: int) -> None:
        """The record at this offset has been dealt with, whatever it held."""
        place = (topic.short, partition)
        highwater = self._highwater.get(place, 0)
        reached = self._next.get(place, 0) < highwater <= offset + 1
        self._next[place] = offset + 1
        if reached:
            for site in self.held():
                if self._partition_of(site) == partition:
                    self.on_change(site)

    def behind(self) -> int:
        """Records that the topics held when the partitions became ours, and that are not read yet."""
        return sum(max(0, end - self._next.get(place, 0)) for place, end in self._highwater.items())

    def following(self, topic: Topic, partition: int) -> int:
        """The offset of the first record that has not been dealt with."""
        return self._next.get((topic.short, partition), 0)

    def snapshot(self, site: str, *, vsphere: bool) -> Snapshot:
        """The site's picture as of now, stamped with the last offset of each topic that is in it."""
        partition = self._partition_of(site)
        following = {topic.short: self._next.get((topic.short, partition), 0) for topic in self.read}
        offsets = {short: offset - 1 for short, offset in following.items() if offset}
        return self.state(site).snapshot(vsphere=vsphere, offsets=offsets)

    def require_epoch(self, site: str, source: str, epoch: int | None) -> None:
        """From now on only a marker of this run of our own watcher counts; None: whatever marker is there."""
        if epoch is None:
            self._epochs.pop((site, source), None)
        else:
            self._epochs[site, source] = epoch

    def doubts(self, site: str) -> dict[str, str]:
        """What the site's sources say that they do not believe."""
        return self.states[site].doubts() if site in self.states else {}

    def seen(self, site: str, source: str) -> int:
        """When the source last heard from its server, milliseconds since 1970; 0 where nothing says so."""
        return self.states[site].seen(source) if site in self.states else 0

    # ------------------------------------------------------------------------------------------------------- ready?
    def unready(self, site: str) -> str | None:
        """Why nothing is decided for the site now, as one line; None when its picture is complete."""
        if not self.holds(site):
            return "the site's partition is not held"
        partition = self._partition_of(site)
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
                epoch, wanted = state.epoch(topic, source), self._epochs.get((site, source), 0)
                if epoch is None or epoch < wanted:
                    return f"{source} has not listed {topic.short}"
        return None
