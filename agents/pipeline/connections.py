"""The connections of one site, as the settings name them: sources to watch, writers for the sinks.

In: settings and roles. Out: `Connections`, open where a writer needs it. Clients are imported once a setting asks for
them: they take longer to import than all else that a worker without them needs.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from underhost.agents.pipeline.supervisor import SourceFactory
from underhost.agents.pipeline.tables.sites import KUBERNETES, VSPHERE
from underhost.agents.sinks.ports import Writers
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.errors import InputError
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.clusters import SOURCES, KubernetesSettings, VSphereSettings
from underhost.streams.settings.model import Settings

if TYPE_CHECKING:
    from underhost.streams.simulated.site import SimulatedSite


@dataclass
class Connections:
    """What a worker has of its clusters. `closing` are awaited, last first, when the worker ends."""

    sources: SourceFactory
    writers: Writers = field(default_factory=Writers)
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def close(self) -> None:
        """Let go of every connection."""
        while self.closing:
            await self.closing.pop()()


async def connect(settings: Settings, roles: Collection[str]) -> Connections:
    """What the settings name. Raises InputError, and BackendError where a backend does not answer or refuses."""
    simulated = _simulated(settings)
    made = Connections(_sources(settings, simulated))
    wanted = {kind.writer for kind in COMMANDS.values() if kind.role in roles}
    if simulated is not None:
        kubernetes, vsphere = settings.kubernetes.simulated, settings.vsphere.simulated
        made.writers = Writers(
            kubernetes=simulated.kubernetes if kubernetes else None,
            drs=simulated.vsphere if vsphere else None,
            events=simulated.events if kubernetes else None,
        )
    live = not (settings.kubernetes.files or settings.kubernetes.simulated)
    if live and wanted & {"kubernetes", "events"}:
        from underhost.agents.sinks.events.writer import KubernetesEvents
        from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
        from underhost.streams.kubernetes.client import connect as connect_kubernetes

        client = await connect_kubernetes(settings.kubernetes)
        made.closing.append(client.close)
        made.writers = replace(made.writers, kubernetes=KubernetesApiWriter(client), events=KubernetesEvents(client))
    if settings.vsphere.url and "drs" in wanted:
        from underhost.agents.sinks.drs.writer import VSphereDrsWriter

        writer = VSphereDrsWriter(settings.vsphere, settings.site)
        made.closing.append(writer.close)
        made.writers = replace(made.writers, drs=writer)
    return made


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
        sides: dict[str, KubernetesSettings | VSphereSettings]
        sides = {KUBERNETES: settings.kubernetes, VSPHERE: _with_tags(settings)}
        made = simulated.sources(site, publisher, reader) if simulated is not None else []
        sources = [source for source in made if sides[source.name].simulated]
        for side, group in sides.items():
            rows = [row for row in SOURCES if row.side == side and (not row.setting or getattr(group, row.setting))]
            if rows and not group.simulated:
                sources.append(resolve_name(rows[0].factory)(site, group, publisher, reader))
        return sources

    return make


def _with_tags(settings: Settings) -> VSphereSettings:
    """The vCenter's settings; its tags are read where a label is derived from one, unless they say otherwise."""
    if settings.vsphere.tags is not None:
        return settings.vsphere
    asked = any(derived.source.startswith("tag:") for derived in settings.host_label.derived)
    return settings.vsphere.model_copy(update={"tags": asked})
