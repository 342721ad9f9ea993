"""What a worker does: the roles of `--agents`, the topics that each reads, and the name of the group it joins.

In: the names of roles. Out: topics and the Faust app id. A worker of all roles is the default; a subset keeps tables of
its own, of just the topics that it reads.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from underhost.agents.sinks import registry
from underhost.agents.sinks.ports import Writers
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas import commands, topics
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.schemas.topics import SOURCE_TOPICS, Topic
from underhost.streams.settings.model import UNNAMED, Settings

KUBERNETES, VSPHERE, EVALUATOR = topics.KUBERNETES, topics.VSPHERE, registry.EVALUATOR
ALERTS, WEB = "alerts", "web"
ALL = (KUBERNETES, VSPHERE, EVALUATOR, *dict.fromkeys(kind.role for kind in COMMANDS.values()), ALERTS, WEB)
WATCHERS = frozenset({KUBERNETES, VSPHERE})

_STATE: dict[str, tuple[Topic, ...]] = {
    EVALUATOR: SOURCE_TOPICS,
    **{kind.role: kind.state for kind in COMMANDS.values()},
}
_DERIVED: dict[str, tuple[Topic, ...]] = {
    EVALUATOR: (topics.NODE_HOSTS, topics.VIOLATIONS, topics.PLACEMENTS, topics.OUTCOMES),
    ALERTS: (topics.VIOLATIONS,),
    **{kind.role: kind.derived for kind in COMMANDS.values()},
}
_FOLLOWED: dict[str, tuple[Topic, ...]] = {
    KUBERNETES: (*topics.KUBERNETES_TOPICS, topics.ACTIONS),  # what they hold already, and the word to go on
    VSPHERE: (*topics.VSPHERE_TOPICS, topics.ACTIONS),
    COMMANDS[commands.BIND].role: (topics.PLACEMENTS,),
    WEB: tuple(topic for topic in topics.TOPICS if topic is not topics.DEAD_LETTERS),
}
"""What is read besides, without a table."""


def parse_roles(names: Collection[str] | None) -> frozenset[str]:
    """The roles, every one if none are named. Raises InputError for an unknown one."""
    unknown = sorted(set(names or ()) - set(ALL))
    if unknown:
        raise InputError(
            *(f"--agents: no agent {name!r}; there is: {', '.join(ALL)}{did_you_mean(name, ALL)}" for name in unknown)
        )
    return frozenset(names or ALL)


def state_topics(roles: Collection[str]) -> tuple[Topic, ...]:
    """The change topics that these roles keep tables of, in the order of the table of topics."""
    return _topics_of(roles, _STATE)


def derived_topics(roles: Collection[str]) -> tuple[Topic, ...]:
    """The derived topics that these roles keep tables of."""
    return _topics_of(roles, _DERIVED)


def read_topics(roles: Collection[str]) -> tuple[Topic, ...]:
    """All topics that these roles read, in the order of the table."""
    return _topics_of(roles, _STATE, _DERIVED, _FOLLOWED)


def _topics_of(roles: Collection[str], *parts: Mapping[str, tuple[Topic, ...]]) -> tuple[Topic, ...]:
    wanted = {topic for role in roles for part in parts for topic in part.get(role, ())}
    return tuple(topic for topic in topics.TOPICS if topic in wanted)


def written_topics(roles: Collection[str]) -> tuple[Topic, ...]:
    """All topics that these roles write, in the order of the table."""
    return tuple(topic for topic in topics.TOPICS if set(topic.writers) & set(roles))


@dataclass(frozen=True)
class Changelog(Topic):
    """The changelog of a table, which is Faust's and no part of the contract; `short` is its whole name."""

    @property
    def name(self) -> str:
        """The full name."""
        return self.short

    @property
    def config(self) -> dict[str, str]:
        """Compacted soon: a start reads one row of each object, and what has changed within some minutes.

        Faust leaves the broker's defaults: no file is compacted before it has 1 GB or is a week old, nor while less
        than half of all is new.
        """
        return {
            "cleanup.policy": "compact",
            "segment.ms": str(10 * 60_000),
            "segment.bytes": str(64 * 2**20),
            "min.cleanable.dirty.ratio": "0.2",
            "max.compaction.lag.ms": str(6 * 3_600_000),  # a table that hardly changes gets few files
        }


def changelog_topics(roles: Collection[str], site: str) -> tuple[Topic, ...]:
    """The changelogs of the tables of these roles.

    They are created before Faust starts: it would create them while its consumer already knows the topics that there
    are, assign partitions without them, and fail at the first row.
    """
    prefix = app_id(roles, site)
    kept = (*state_topics(roles), *derived_topics(roles))
    return tuple(
        Changelog(f"{prefix}-{topic.short}-changelog", "compact", topic.key, None, "tables", ("tables",), topic.doc)
        for topic in kept
    )


def consumes(roles: Collection[str]) -> bool:
    """Whether these roles read topics at all; a worker that only watches does not."""
    return bool(set(roles) - WATCHERS - {WEB})


def only_site(roles: Collection[str], site: str) -> str | None:
    """The site that a worker of these roles is limited to, of settings that name this one; None: it is of use to all.

    Roles that reach into a site's clusters are of use to that site. An evaluator judges by its settings: they count for
    the site that they name, and for all where they name none.
    """
    reaches = set(roles) - {EVALUATOR, ALERTS, WEB}
    return site if reaches or (EVALUATOR in roles and site != UNNAMED) else None


def leased(roles: Collection[str], settings: Settings, writers: Writers) -> list[str]:
    """The roles that take a lease: those that publish a source there is, and those whose sink writes."""
    sources = {KUBERNETES, VSPHERE} if settings.vsphere.configured else {KUBERNETES}
    writing = {COMMANDS[kind].role for kind in registry.kinds_of(roles, writers) if COMMANDS[kind].enabled(settings)}
    return [name for name in ALL if name in roles and name in sources | writing]


def publish_without_lease(roles: Collection[str], settings: Settings) -> frozenset[str]:
    """The roles that publish their source where the account has no right to leases: none of them writes to a cluster.

    An embedded log has one owner; on Kafka a consumer group gives the site to one process, and who reads nothing has no
    group.
    """
    return WATCHERS if consumes(roles) or settings.kafka.bootstrap_servers is None else frozenset()


def app_id(roles: Collection[str], site: str) -> str:
    """The Faust app's id, which is the consumer group and the prefix of the changelog topics.

    Workers of one group share the partitions, so they must be able to do the same work: workers of the same roles, and
    of the same site where they are limited to it. A site's name has no underscore.
    """
    wanted = set(roles) - {WEB}
    parts = [] if wanted == set(ALL) - {WEB} else [*sorted(wanted)]
    if only_site(roles, site) is not None:
        parts.append(site)
    return "underhost-" + "_".join(parts)
