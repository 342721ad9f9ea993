"""A new list compared with what the topics hold: publish differences only, and tombstones of what has vanished.

In: the live records of a site (`TopicReader.state`) and the objects that a source has just listed. Out: the records to
publish, in order, with the `listed` markers last. Pure: reading, publishing and logging are left to the caller.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import Struct

from underhost.schemas.keys import LISTED, listed_key, parse_key
from underhost.schemas.kubernetes import decode, encode
from underhost.schemas.records import Listed
from underhost.schemas.topics import BUDGETS as DISRUPTION_BUDGETS
from underhost.schemas.topics import DRS_RULES, SERVICES, WORKLOADS, Topic
from underhost.streams.ports import Outgoing
from underhost.streams.watching.records import differs, marker_of, outgoing_of, went_back

SHRINK_LIMIT = 0.4
MAY_BECOME_EMPTY = frozenset({SERVICES.name, WORKLOADS.name, DISRUPTION_BUDGETS.name, DRS_RULES.name})
"""Topics that may rightly become empty: their shrinking is believed unless nodes, pods, ... have shrunk as well."""


class Unpublished(NamedTuple):
    """An object of a topic as it is now; `value` is None where it is gone."""

    topic: Topic
    key: str
    value: Struct | None


@dataclass(frozen=True)
class ListingPlan:
    """What to publish after a list.

    Attributes:
        news: what changed, topic by topic. markers: one `listed` marker a topic, to be published after them.
        shrunk: one line for each topic whose list is not believed, because of the objects that vanished. The caller
            logs them as errors.
        missing: keys of the vanished objects that are not believed to be gone.
        frozen: full names of the topics that are not believed: nothing of theirs is published.
    """

    news: list[Unpublished] = field(default_factory=list)
    markers: list[Outgoing] = field(default_factory=list)
    shrunk: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    frozen: set[str] = field(default_factory=set)

    def changes(self) -> Iterator[Outgoing]:
        """The records of what changed, in order. Each is made when it is asked for: those of a large site are large."""
        return (outgoing_of(*one) for one in self.news)

    def records(self) -> Iterator[Outgoing]:
        """Changes and markers, in the order in which they are published."""
        return chain(self.changes(), self.markers)


def plan_listing(
    site: str,
    source: str,
    topics: Sequence[Topic],
    held: Mapping[str, Mapping[str, bytes]],
    listed: Mapping[str, Mapping[str, Struct]],
    epoch: int,
    shrink_limit: float = SHRINK_LIMIT,
    *,
    accepted: Collection[str] = (),
    doubt: str = "",
    seen: int = 0,
    certain: bool = False,
) -> ListingPlan:
    """Compare a list with what is held, topic by topic.

    `held` and `listed` are by the topic's full name, then by record key; markers in `held` are ignored. An object that
    differs in its resourceVersion only is not published. Where a list is empty, or shorter than what is held by more
    than `shrink_limit`, a broken answer is likelier than the truth. The topic then stays as it is, because two
    inventories must not be mixed; where what is shown is `certain`, because a watch goes on from this list, only what
    vanished stays. Always believed: a single object that vanished beside others; services, workloads, budgets and rules
    that vanished while nothing else did.

    `accepted` are objects that a person has confirmed to be gone. `doubt` is that of an earlier list which nobody has
    accepted yet: while it stands no object is believed to be gone. The markers carry the doubt of this list, or else
    that one, and `seen` (`records.Listed`).
    """
    plan = ListingPlan()
    objects = {topic.name: _objects(held.get(topic.name, {})) for topic in topics}
    gone = {name: sorted(kept.keys() - listed.get(name, {}).keys()) for name, kept in objects.items()}
    missing = {name: [key for key in keys if key not in accepted] for name, keys in gone.items()}
    count = {name: len(objects[name]) - len(gone[name]) + len(keys) for name, keys in missing.items()}
    suspicious = {
        name
        for name, keys in missing.items()
        if keys and (doubt or not listed.get(name) or is_collapse(len(keys), count[name], shrink_limit))
    }
    if not doubt and not suspicious - MAY_BECOME_EMPTY:
        suspicious = set()
    for topic in topics:
        name = topic.name
        if name in suspicious:
            plan.missing.update(missing[name])
            plan.shrunk.append(
                f"{topic.short}: {len(missing[name])} of {count[name]} objects of site {site} are missing in "
                f"the new list; not believed"
            )
        if name in suspicious and not certain:
            plan.frozen.add(name)
        else:
            plan.news.extend(_news(topic, objects[name], listed.get(name, {})))
        deleted = [key for key in gone[name] if key not in plan.missing]
        # Whatever has the name is gone, even where the topic's newest record is a late one of an earlier object.
        plan.news.extend(Unpublished(topic, key, None) for key in deleted)
    now = "; ".join(plan.shrunk) or doubt
    for topic in topics:
        listed_now = Listed(epoch=epoch, count=len(listed.get(topic.name, {})), doubt=now, seen=seen)
        plan.markers.append(marker_of(site, source, topic, listed_now))
    return plan


def _news(topic: Topic, held: Mapping[str, bytes], listed: Mapping[str, Struct]) -> Iterator[Unpublished]:
    """The objects that differ; what is held in a version that is no more is deleted first."""
    for key, value in sorted(listed.items()):
        before = held.get(key)
        if before is not None and before == encode(value):
            continue  # as nearly all are where a worker starts again
        if went_back(value, before):
            yield Unpublished(topic, key, None)
            before = None
        if differs(value, before):
            yield Unpublished(topic, key, value)


def doubt_of(site: str, source: str, held: Mapping[str, Mapping[str, bytes]]) -> str:
    """What a source did not believe when it last ran, as its markers in the topics say; "" without a doubt."""
    for records in held.values():
        marker = records.get(listed_key(site, source))
        if marker is not None and (doubt := _marker(marker).doubt):
            return doubt
    return ""


def _marker(data: bytes) -> Listed:
    try:
        return decode(data, Listed)
    except msgspec.MsgspecError:
        return Listed(epoch=0, count=0)


def is_collapse(gone: int, of: int, limit: float = SHRINK_LIMIT) -> bool:
    """Whether so many objects are gone at once that a fault is likelier than their deletion."""
    return gone > max(1.0, limit * of)


def _objects(held: Mapping[str, bytes]) -> dict[str, bytes]:
    """The held records that are objects: markers and foreign keys left out."""
    objects = {}
    for key, data in held.items():
        try:
            kind = parse_key(key).kind
        except ValueError:
            continue
        if kind != LISTED:
            objects[key] = data
    return objects
