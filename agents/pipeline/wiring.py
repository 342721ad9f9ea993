"""The two ends of a run that are made of settings alone: the sites that it keeps tables of, and the watchers it runs.

In: settings, roles, and what the run has. Out: `Sites`, and what is known of them; `Watchers`.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.site.objects import SiteState
from underhost.schemas.topics import NODES
from underhost.streams.partition import partition_of
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.model import Settings


class Reach:
    """The sites of the topics that these roles read (of one site, where they reach into its clusters)."""

    def __init__(self, settings: Settings, roles: Collection[str]) -> None:
        self._settings = settings
        self.sites = Sites(
            role.state_topics(roles),
            role.derived_topics(roles),
            partition_of=lambda site: partition_of(site, settings.kafka.partitions),
            sources=self._sources,
            only=frozenset({settings.site}) if role.tied_to_a_site(roles) else None,
        )

    def has_vsphere(self, site: str) -> bool:
        """Whether the site has a vSphere side: our own as configured, another as its topics say."""
        if site == self._settings.site:
            return self._settings.vsphere.configured
        return site in self.sites.states and self.sites.states[site].has_marker("vsphere")

    def is_node(self, name: str) -> bool:
        """Whether our own site has this node."""
        state = self.sites.states.get(self._settings.site)
        return state is not None and state.has(NODES, name)

    def labels_of(self, name: str) -> dict[str, str] | None:
        """The labels of a node of our own site, as the watch has shown them last; None for an unknown node."""
        state = self.sites.states.get(self._settings.site)
        node = state.rows(NODES).get(name) if state is not None else None
        return None if node is None else msgspec.json.decode(node.metadata.labels, type=dict[str, str] | None) or {}

    def _sources(self, state: SiteState) -> frozenset[str]:
        return frozenset({"kubernetes", "vsphere"} if self.has_vsphere(state.site) else {"kubernetes"})


def make_watchers(
    settings: Settings,
    roles: Collection[str],
    connections: Connections,
    publisher: Publisher,
    reader: TopicReader,
    sites: Sites | None,
    metrics: Metrics,
    failed: Callable[[BaseException], None],
) -> Watchers:
    """The watchers of these roles; `sites` is None where there is no consumer, and so no partition to hold."""

    def make(site: str, publisher: Publisher, reader: TopicReader) -> Sequence[Source]:
        return [source for source in connections.sources(site, publisher, reader) if source.name in roles]

    return Watchers(
        settings.site,
        make,
        publisher,
        reader,
        sites,
        failed=failed,
        counted=lambda source, records: metrics.sources.labels(source).inc(records),
        restarted=lambda source: metrics.restarts.labels(source).inc(),
    )
