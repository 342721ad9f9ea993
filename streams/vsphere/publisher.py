"""What the topics hold of one vCenter, kept equal to its inventory: differences, tombstones and `listed` markers.

In: the inventory cache, after a whole list or after changes. Out: published records. An inventory that is empty or has
lost over 40 % at once is not believed: nothing of such a topic is deleted until a person accepts it, even if all of it
is back. When to list, poll and publish is left to the watcher.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

import msgspec

from underhost.schemas.keys import listed_key, parse_key
from underhost.schemas.kubernetes import decode
from underhost.schemas.records import Listed
from underhost.schemas.topics import DRS_RULES, HOSTS, VSPHERE, Topic
from underhost.schemas.vsphere import Cluster, DrsRule, Host
from underhost.streams.log import structlog
from underhost.streams.ports import Outgoing, Publisher, TopicReader
from underhost.streams.publish import publish_until_taken
from underhost.streams.timing import Timing
from underhost.streams.vsphere.cache import TAG, InventoryCache, Touched
from underhost.streams.vsphere.changes import ClusterState
from underhost.streams.vsphere.records import TOPICS_IN_ORDER, Records
from underhost.streams.watching.doubts import Doubts
from underhost.streams.watching.reconcile import doubt_of, is_collapse, plan_listing
from underhost.streams.watching.records import differs, marker_of, outgoing_of

log = structlog.get_logger("underhost.vsphere")


class InventoryPublisher:
    """Publishes one site's hosts, VMs and rules.

    Args:
        epoch: of the source's run, for the markers.
        sign_of_life: seconds between two markers that say only that the watcher still hears from vCenter.

    Attributes:
        doubts: what is not believed.
        listed: whether a list has been published; from then on publishing waits for the broker.
    """

    def __init__(
        self,
        site: str,
        epoch: int,
        publisher: Publisher,
        timing: Timing,
        *,
        sign_of_life: float,
        clock: Callable[[], float],
    ) -> None:
        self._site, self._epoch, self._publisher, self._timing = site, epoch, publisher, timing
        self._sign_of_life, self._clock = sign_of_life, clock
        self.doubts = Doubts(site=site)
        self.listed = False
        self._empty_is_right = False
        self._marked: tuple[str, float] | None = None
        """The doubt in the last markers, and when they were published."""
        self._held: dict[str, dict[str, bytes]] | None = None
        """What the topics hold, by the topic's full name and key, markers left out."""
        self._compared = clock()
        self._recent: dict[str, tuple[int, int]] = {}
        """By topic since the last poll: how many objects there were, and how many have vanished."""
        self._frozen: set[str] = set()
        """Topics of which nothing is published until a person accepts what is doubted."""

    async def load(self, reader: TopicReader) -> None:
        """Read once what the topics hold of an earlier run. Raises Unreachable."""
        if self._held is not None:
            return
        held = {topic.name: dict(await reader.state(topic, self._site)) for topic in TOPICS_IN_ORDER}
        marker = listed_key(self._site, VSPHERE)
        self.doubts.recall(doubt_of(self._site, VSPHERE, held))
        # No host, and no doubt about it: a person has accepted that in an earlier run.
        self._empty_is_right = list(held[HOSTS.name]) == [marker]
        for records in held.values():
            records.pop(marker, None)
        self._held = held

    async def compare(self, reader: TopicReader) -> None:
        """Read now and then what the topics hold in fact, so that the next comparison mends what is lost, or late."""
        every = self._timing.compare * (1 if reader.at_hand else 6)
        if self._clock() - self._compared < every:
            return
        self._compared = self._clock()
        marker, held = listed_key(self._site, VSPHERE), {}
        for topic in TOPICS_IN_ORDER:
            state = await reader.state(topic, self._site)
            held[topic.name] = {key: value for key, value in state.items() if key != marker}
        if held != self._known:
            log.error("the topics do not hold what was published", site=self._site)
            self._held = held

    def host_tags(self) -> dict[str, dict[str, str]]:
        """The tags that the topic shows of each host, by moref and category, those of its cluster among them."""
        found = {}
        for value in self._known[HOSTS.name].values():
            with suppress(msgspec.MsgspecError):  # `b""`: readers do not agree about it
                host = decode(value, Host)
                found[host.ref] = {
                    name.removeprefix(TAG): tag for name, tag in host.labels.items() if name.startswith(TAG)
                }
        return found

    def clusters(self) -> list[ClusterState]:
        """The clusters as the topic shows them, with their rules."""
        clusters: list[Cluster] = []
        rules: defaultdict[str, list[DrsRule]] = defaultdict(list)
        for key, value in self._known[DRS_RULES.name].items():
            with suppress(msgspec.MsgspecError):  # `b""`: readers do not agree about it
                if parse_key(key).kind == "cluster":
                    clusters.append(decode(value, Cluster))
                else:
                    rule = decode(value, DrsRule)
                    rules[rule.cluster].append(msgspec.structs.replace(rule, resource_version=""))
        return [
            ClusterState(
                one.id, one.name, one.drs, one.ha, tuple(rules[one.name]), one.automation, one.overrides, one.admission
            )
            for one in clusters
        ]

    def counts(self) -> dict[str, int]:
        """How many objects the topics hold, by the topics' short names."""
        return {topic.short: len(self._known[topic.name]) for topic in TOPICS_IN_ORDER}

    def accept(self) -> list[str]:
        """A person says that the shrunken inventory is right. The lines that are settled by that."""
        settled = self.doubts.accept()
        self._empty_is_right = bool(settled)
        return settled

    async def reconcile(self, cache: InventoryCache, *, first: bool = False) -> None:
        """Publish every difference between the cache and the topics; markers after a session's first list, too."""
        held, protected, doubts = self._known, cache.protected(), self.doubts
        deletable = {
            topic: {key: value for key, value in records.items() if key not in protected}
            for topic, records in held.items()
        }
        accepted, listed = doubts.accepted, cache.records()
        left_out = cache.left_out()
        plan = plan_listing(
            self._site,
            VSPHERE,
            TOPICS_IN_ORDER,
            deletable,
            listed,
            self._epoch,
            accepted=accepted | left_out,
            doubt=str(doubts),
        )
        lines = plan.shrunk
        if not listed[HOSTS.name] and not held[HOSTS.name] and not self._empty_is_right:
            lines = [*lines, f"hosts: vCenter shows none to site {self._site}; a right may be missing"]
        doubts.see(lines, plan.missing)
        await self._publish([*plan.changes(), *self._markers(listed, first)])
        doubts.settle(accepted)
        self._recent = {topic.name: (len(held[topic.name]), 0) for topic in TOPICS_IN_ORDER}
        self._frozen = plan.frozen
        self.listed = True

    async def publish_changes(self, cache: InventoryCache, touched: Touched) -> None:
        """Publish what changed of the touched objects; equal values that vCenter sends again are dropped."""
        if touched.everything:
            await self.reconcile(cache)
            return
        held, protected = self._known, cache.protected()
        outgoing, vanished = [], []
        for topic, key, record in cache.changed(touched):
            if topic.name in self._frozen:
                continue
            before = held[topic.name].get(key)
            if record is not None and differs(record, before):
                outgoing.append(outgoing_of(topic, key, record))
            elif record is None and before is not None and key not in protected:
                vanished.append((topic, key))
        left_out = cache.left_out() if vanished else set()
        outgoing.extend(
            outgoing_of(topic, key, None, parse_key(key).name) for topic, key in vanished if key in left_out
        )
        for topic in TOPICS_IN_ORDER:
            keys = [key for at, key in vanished if at is topic and key not in left_out]
            if keys and self._believed(topic, keys):
                # The last part of a key is a VM's or host's moref, which is its uid.
                outgoing.extend(outgoing_of(topic, key, None, parse_key(key).name) for key in keys)
        if self._marked is not None and self._marked[0] != str(self.doubts):
            outgoing.extend(self._markers(cache.records(), first=False))
        await self._publish(outgoing)

    def _believed(self, topic: Topic, vanished: list[str]) -> bool:
        """Whether these may be deleted, counted since the last poll: a slow collapse is one, too."""
        total, before = self._recent[topic.name]
        total, gone = max(total, len(self._known[topic.name])), before + len(vanished)
        self._recent[topic.name] = (total, gone)
        if not self.doubts and not is_collapse(gone, total) and gone < total:
            return True
        lines = list(self.doubts.lines)
        if not any(line.startswith(f"{topic.short}: ") for line in lines):
            told = f"{topic.short}: {gone} of {total} objects of site {self._site} vanished at once; not believed"
            lines.append(told)
        self.doubts.see(lines, self.doubts.missing.union(vanished))
        self._frozen.add(topic.name)
        return False

    def _markers(self, listed: Records, first: bool) -> list[Outgoing]:
        """The markers, if they are due: after a list, when a doubt comes or goes, and as a sign of life."""
        doubt, now, before = str(self.doubts), self._clock(), self._marked
        # A little early rather than a whole poll late.
        if not first and before is not None and before[0] == doubt and now - before[1] < 0.9 * self._sign_of_life:
            return []
        self._marked = doubt, now
        seen = time.time_ns() // 1_000_000
        return [
            marker_of(self._site, VSPHERE, topic, Listed(self._epoch, len(listed[topic.name]), doubt, seen))
            for topic in TOPICS_IN_ORDER
        ]

    async def _publish(self, records: list[Outgoing]) -> None:
        if not records:
            return
        if self.listed:
            await publish_until_taken(self._publisher, records, f"changes of site {self._site}", self._timing)
        else:
            await self._publisher.publish(*records)
        held, marker = self._known, listed_key(self._site, VSPHERE)
        for record in records:
            if record.key == marker:
                continue
            if record.value is None:
                held[record.topic.name].pop(record.key, None)
            else:
                held[record.topic.name][record.key] = record.value

    @property
    def _known(self) -> dict[str, dict[str, bytes]]:
        assert self._held is not None, "load comes first"
        return self._held
