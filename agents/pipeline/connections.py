"""The connections of one site, as the settings name them: sources to watch, writers for the sinks.

In: settings and roles. Out: `Connections`, open where a writer or a lease needs it. Clients are imported once
a setting asks for them: they take longer to import than all else that a worker without them needs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.leases.identity import identify
from underhost.agents.pipeline.leases.roles import LeaseOrigin
from underhost.agents.pipeline.supervisor import SourceFactory
from underhost.agents.sinks.ports import Writers
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.errors import InputError
from underhost.schemas.topics import KUBERNETES, VSPHERE
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.clusters import SOURCES, KubernetesSettings, VSphereSettings
from underhost.streams.settings.model import Settings

if TYPE_CHECKING:
    from underhost.streams.kubernetes.client import KubernetesClient
    from underhost.streams.simulated.site import SimulatedSite


log = logging.getLogger(__name__)

KUBERNETES_WRITERS = frozenset({"kubernetes", "events", "reports"})
"""The writers that reach into Kubernetes."""


@dataclass
class Connections:
    """What a worker has of its clusters. `closing` are awaited, last first, when the worker ends.

    Attributes:
        leases: None where there is no live Kubernetes whose leases could say who acts.
        insecure: why others may read or answer what is asked of a server, by its side (`kubernetes`, `vsphere`).
    """

    sources: SourceFactory
    writers: Writers = field(default_factory=Writers)
    leases: LeaseOrigin | None = None
    insecure: dict[str, str] = field(default_factory=dict)
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def close(self) -> None:
        """Let go of every connection."""
        while self.closing:
            await self.closing.pop()()


async def connect(settings: Settings, roles: Collection[str]) -> Connections:
    """What the settings name. Raises InputError, and BackendError where a backend does not answer or refuses."""
    simulated = _simulated(settings)
    made = Connections(_sources(settings, simulated))
    if settings.vsphere.url and settings.vsphere.insecure:
        made.insecure[VSPHERE] = f"the certificate of {settings.vsphere.url} is not checked (vsphere.insecure)"
    wanted = {kind.writer for kind in COMMANDS.values() if kind.role in roles}
    if simulated is not None:
        kubernetes, vsphere = settings.kubernetes.simulated, settings.vsphere.simulated
        made.writers = Writers(
            kubernetes=simulated.kubernetes if kubernetes else None,
            drs=simulated.vsphere if vsphere else None,
            events=simulated.events if kubernetes else None,
            moves=simulated.vsphere if vsphere else None,
            maintenance=simulated.vsphere if vsphere else None,
        )
    if settings.vsphere.url and "drs" in wanted:
        from underhost.agents.sinks.drs.writer import VSphereDrsWriter

        writer = VSphereDrsWriter(settings.vsphere, settings.site)
        made.closing.append(writer.close)
        made.writers = replace(made.writers, drs=writer)
    if settings.vsphere.url and "moves" in wanted:
        from underhost.agents.sinks.moves.writer import VSphereVmMover

        mover = VSphereVmMover(settings.vsphere)
        made.closing.append(mover.close)
        made.writers = replace(made.writers, moves=mover)
    if settings.vsphere.url and "maintenance" in wanted:
        from underhost.agents.sinks.maintenance.writer import VSphereHostMaintainer

        maintainer = VSphereHostMaintainer(settings.vsphere)
        made.closing.append(maintainer.close)
        made.writers = replace(made.writers, maintenance=maintainer)
    if settings.kubernetes.files or settings.kubernetes.simulated:
        return made
    client = None
    if wanted & KUBERNETES_WRITERS or role.leased(roles, settings, made.writers):
        client = await _client(settings, optional=not (wanted & KUBERNETES_WRITERS or role.KUBERNETES in roles))
    if client is not None:
        made.closing.append(client.close)
        if client.insecure:
            made.insecure[KUBERNETES] = client.insecure
        if wanted & KUBERNETES_WRITERS:
            from underhost.agents.sinks.events.writer import KubernetesEvents
            from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter

            api, events = KubernetesApiWriter(client), KubernetesEvents(client)
            made.writers = replace(made.writers, kubernetes=api, events=events)
        if settings.sinks.reports and "reports" in wanted:
            from underhost.agents.sinks.reports.writer import KubernetesReports

            made.writers = replace(made.writers, reports=KubernetesReports(client))
        made.leases = await _leases(settings, client, made)
    return made


async def _client(settings: Settings, *, optional: bool) -> "KubernetesClient | None":
    """The client of writers and leases.

    A worker that only watches vSphere, or writes DRS rules, needs no Kubernetes (`optional`): where none is configured
    it acts without a lease, and says so.
    """
    from underhost.streams.kubernetes.client import connect as connect_kubernetes
    from underhost.streams.kubernetes.kubeconfig import NotConfigured

    try:
        return await connect_kubernetes(settings.kubernetes)
    except NotConfigured as error:
        if not optional:
            raise
        log.warning("no lease says which worker acts, only the consumer group: %s", error)
        return None


async def _leases(settings: Settings, client: "KubernetesClient", made: Connections) -> LeaseOrigin:
    from underhost.streams.kubernetes.kubeconfig import namespace
    from underhost.streams.kubernetes.leases import Leases

    place = settings.lease.namespace
    if place is None:
        place = await asyncio.to_thread(namespace, client.origin)
    worker = identify(_job(settings))

    async def forget() -> None:
        worker.close()

    made.closing.append(forget)
    log.info("leases of namespace %s say which worker acts; this one is %s", place, worker.name)
    return LeaseOrigin(Leases(client, place, deadline=settings.lease.seconds / 3), worker.name)


def _job(settings: Settings) -> str:
    """The site and the log that a worker works on."""
    kafka = settings.kafka
    return f"{settings.site} {kafka.bootstrap_servers or Path(kafka.embedded).absolute()}"


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
