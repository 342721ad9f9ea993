"""The outside world of one site, as the settings name it: sources to watch, writers for the sinks.

In: settings and roles. Out: `Outside`, connected where a writer needs it. Called by `worker.py`; tests and demo make
their own. Imports of clients wait until a setting asks for them.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from underhost.agents import roles as role
from underhost.agents.ports import DrsWriter, KubernetesWriter, Sink
from underhost.agents.supervise import SourceFactory
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings import Settings


@dataclass
class Outside:
    """What the worker has of the outside. A missing writer means that its sink cannot run here.

    `closing` are awaited, last first, when the worker ends.
    """

    sources: SourceFactory
    kubernetes: KubernetesWriter | None = None
    drs: DrsWriter | None = None
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def close(self) -> None:
        """Let go of every connection."""
        while self.closing:
            await self.closing.pop()()


async def connect(settings: Settings, roles: Collection[str]) -> Outside:
    """What the settings name. Raises InputError, and BackendError where a backend does not answer or refuses."""
    outside = Outside(_sources(settings))
    live = not settings.kubernetes.files
    if live and {role.LABELLER, role.BINDER} & set(roles):
        from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
        from underhost.streams.kubernetes.client import connect as connect_kubernetes

        client = await connect_kubernetes(settings.kubernetes)
        outside.closing.append(client.close)
        outside.kubernetes = KubernetesApiWriter(client)
    if settings.vsphere.url and role.DRS in roles:
        from underhost.agents.sinks.drs import own_prefix
        from underhost.agents.sinks.drs_writer import VSphereDrsWriter

        writer = VSphereDrsWriter(settings.vsphere, own_prefix(settings.site))
        outside.closing.append(writer.close)
        outside.drs = writer
    return outside


def _sources(settings: Settings) -> SourceFactory:
    def make(site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
        return [*_kubernetes(settings, site, publisher, reader), *_vsphere(settings, site, publisher, reader)]

    return make


def _kubernetes(settings: Settings, site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
    from underhost.streams.kubernetes.watcher import KubernetesSource

    return [KubernetesSource(site, settings.kubernetes, publisher, reader)]


def _vsphere(settings: Settings, site: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
    if settings.vsphere.url is None:
        return []
    from underhost.streams.vsphere.watcher import VSphereSource

    return [VSphereSource(site, settings.vsphere, publisher, reader)]


def sinks_of(settings: Settings, roles: Collection[str], outside: Outside, refresh: Callable[[], None]) -> list[Sink]:
    """The sinks of these roles that have a writer; each is a dry run unless it is enabled by name.

    `refresh` makes the watchers read again what vCenter does not announce.
    """
    sinks: list[Sink] = []
    if role.LABELLER in roles and outside.kubernetes is not None:
        from underhost.agents.sinks.labels import LabelSink

        sinks.append(LabelSink(outside.kubernetes, settings.host_label, enabled=settings.sinks.labels))
    if role.BINDER in roles and outside.kubernetes is not None:
        from underhost.agents.sinks.bindings import BindSink

        sinks.append(BindSink(outside.kubernetes, enabled=settings.sinks.bindings))
    if role.DRS in roles and outside.drs is not None:
        from underhost.agents.sinks.drs import DrsSink

        sinks.append(DrsSink(settings.site, outside.drs, settings.sinks.drs_rules, refresh))
    return sinks
