"""The outside world of one site, as the settings name it: sources to watch, writers for the sinks.

In: settings and roles. Out: `Outside`, connected where a writer needs it, and the sinks over its writers. Clients are
imported once a setting asks for them.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.supervisor import SourceFactory
from underhost.agents.sinks.ports import DrsWriter, EventWriter, KubernetesWriter, Sink
from underhost.schemas.errors import InputError
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.model import Settings

if TYPE_CHECKING:
    from underhost.streams.simulated.site import SimulatedSite


@dataclass
class Outside:
    """What the worker has of the outside. A missing writer means that its decider and sink do not run here.

    `closing` are awaited, last first, when the worker ends.
    """

    sources: SourceFactory
    kubernetes: KubernetesWriter | None = None
    drs: DrsWriter | None = None
    events: EventWriter | None = None
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def close(self) -> None:
        """Let go of every connection."""
        while self.closing:
            await self.closing.pop()()


async def connect(settings: Settings, roles: Collection[str]) -> Outside:
    """What the settings name. Raises InputError, and BackendError where a backend does not answer or refuses."""
    simulated = _simulated(settings)
    outside = Outside(_sources(settings, simulated))
    if simulated is not None:
        outside.kubernetes = simulated.kubernetes if settings.kubernetes.simulated else None
        outside.drs = simulated.vsphere if settings.vsphere.simulated else None
        outside.events = simulated.events if settings.kubernetes.simulated else None
    live = not (settings.kubernetes.files or settings.kubernetes.simulated)
    if live and {role.LABELLER, role.BINDER, role.EVICTOR, role.EVENTS} & set(roles):
        from underhost.agents.sinks.events.writer import KubernetesEvents
        from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
        from underhost.streams.kubernetes.client import connect as connect_kubernetes

        client = await connect_kubernetes(settings.kubernetes)
        outside.closing.append(client.close)
        outside.kubernetes, outside.events = KubernetesApiWriter(client), KubernetesEvents(client)
    if settings.vsphere.url and role.DRS in roles:
        from underhost.agents.sinks.drs.writer import VSphereDrsWriter

        writer = VSphereDrsWriter(settings.vsphere, settings.site)
        outside.closing.append(writer.close)
        outside.drs = writer
    return outside


def _simulated(settings: Settings) -> "SimulatedSite | None":
    names = {settings.kubernetes.simulated, settings.vsphere.simulated} - {None}
    if len(names) > 1:
        raise InputError("kubernetes.simulated and vsphere.simulated name two sites: they must be the same")
    if not names:
        return None
    from underhost.streams.simulated.site import SimulatedSite

    return SimulatedSite(next(name for name in names if name))


def _sources(settings: Settings, simulated: "SimulatedSite | None") -> SourceFactory:
    def make(site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
        kubernetes, vsphere = settings.kubernetes, settings.vsphere
        sources: list[Source] = []
        if simulated is not None:
            wanted = {"kubernetes"} if kubernetes.simulated else set()
            wanted |= {"vsphere"} if vsphere.simulated else set()
            sources += [source for source in simulated.sources(site, publisher, reader) if source.name in wanted]
        if kubernetes.files:
            from underhost.streams.files.source import dump_source

            sources.append(dump_source(site, kubernetes.files, publisher, reader))
        elif not kubernetes.simulated:
            from underhost.streams.kubernetes.watcher import KubernetesSource

            sources.append(KubernetesSource(site, kubernetes, publisher, reader))
        if vsphere.inventory is not None:
            from underhost.streams.files.source import inventory_source

            sources.append(inventory_source(site, vsphere.inventory, publisher, reader))
        elif vsphere.url:
            from underhost.streams.vsphere.watcher import VSphereSource

            sources.append(VSphereSource(site, _with_tags(settings), publisher, reader))
        return sources

    return make


def _with_tags(settings: Settings) -> VSphereSettings:
    """The vCenter's settings; its tags are read where a label is derived from one, unless they say otherwise."""
    if settings.vsphere.tags is not None:
        return settings.vsphere
    asked = any(derived.source.startswith("tag:") for derived in settings.host_label.derived)
    return settings.vsphere.model_copy(update={"tags": asked})


def sinks_of(
    settings: Settings,
    roles: Collection[str],
    outside: Outside,
    refresh: Callable[[], None],
    is_node: Callable[[str], bool],
    labels_of: Callable[[str], Mapping[str, str] | None] = lambda node: None,
) -> list[Sink]:
    """The sinks of these roles that have a writer; each is a dry run unless it is enabled by name.

    `refresh` makes the watchers read again what vCenter does not announce; `is_node` tells whether a node is known,
    `labels_of` which labels it carries as far as is known here.
    """
    sinks: list[Sink] = []
    if role.LABELLER in roles and outside.kubernetes is not None:
        from underhost.agents.sinks.labels.node_labels import LabelSink

        sinks.append(LabelSink(outside.kubernetes, settings.host_label, enabled=settings.sinks.labels, seen=labels_of))
    if role.BINDER in roles and outside.kubernetes is not None:
        from underhost.agents.sinks.bindings import BindSink

        sinks.append(BindSink(outside.kubernetes, enabled=settings.sinks.bindings, is_node=is_node))
    if role.EVENTS in roles and outside.events is not None:
        from underhost.agents.sinks.events.sink import EventSink

        scheduling = settings.sinks.events or settings.sinks.bindings
        sinks.append(EventSink(outside.events, settings.site, enabled=settings.sinks.events, scheduling=scheduling))
    if role.EVICTOR in roles and outside.kubernetes is not None:
        from underhost.agents.sinks.evictions.sink import EvictionSink

        sinks.append(EvictionSink(outside.kubernetes, enabled=settings.sinks.evictions))
    if role.DRS in roles and outside.drs is not None:
        from underhost.agents.sinks.drs.rules import DrsSink

        sinks.append(DrsSink(outside.drs, settings.site, enabled=settings.sinks.drs_rules, refresh=refresh))
    return sinks


def limits_of(settings: Settings) -> dict[str, int]:
    """Writes a minute, by the kind of command, of the sinks that write at all."""
    sinks, limits = settings.sinks, settings.limits
    of_kind = {
        "label": (sinks.labels, limits.labels),
        "bind": (sinks.bindings, limits.bindings),
        "event": (sinks.events or sinks.bindings, limits.events),
        "drs-rule": (sinks.drs_rules, limits.drs_rules),
        "evict": (sinks.evictions, limits.evictions),
    }
    return {kind: limit for kind, (enabled, limit) in of_kind.items() if enabled}
