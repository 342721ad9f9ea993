"""What a worker says of itself: at its start what it watches and whether it writes, then what it found.

In: settings, roles, a snapshot and its findings. Out: lines for the log.
"""

from collections import Counter
from collections.abc import Collection

from pydantic.alias_generators import to_camel

from underhost.agents.pipeline.roles import KUBERNETES, VSPHERE
from underhost.agents.sinks.registry import COMMANDS
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import WRITTEN
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import SEVERITIES
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.settings.model import Settings


def begin_lines(settings: Settings, roles: Collection[str]) -> list[str]:
    """What is connected, and what may be written; nothing of what this worker's roles have no part in."""
    kafka = settings.kafka
    said = [f"topics {f'on Kafka {kafka.bootstrap_servers}' if kafka.bootstrap_servers else f'in {kafka.embedded}'}"]
    said += [f"Kubernetes: {_cluster(settings.kubernetes)}"] if KUBERNETES in roles else []
    if settings.hosts.label:
        said.append(f"hosts: node label {settings.hosts.label}")
    elif VSPHERE in roles:
        said.append(f"vSphere: {_vsphere(settings.vsphere)}")
    return [", ".join(said), *_writes(settings, roles)]


def found_line(snapshot: Snapshot, found: Collection[FindingEvent]) -> str:
    """`pods 9, nodes 3, hosts 2; open findings 2 (1 physical, 1 drift)`."""
    counts = Counter(one.severity for one in found)
    graded = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity])
    seen = f"pods {len(snapshot.pods)}, nodes {len(snapshot.nodes)}, hosts {len(snapshot.hosts)}"
    return f"{seen}; open findings {len(found)}{f' ({graded})' if graded else ''}"


def _writes(settings: Settings, roles: Collection[str]) -> list[str]:
    """The sinks of these roles, by whether they may write."""
    here = [row.setting for row in WRITTEN.values() if COMMANDS[row.name].role in roles]
    if not here:
        return []
    enabled = [name for name in here if getattr(settings.sinks, name)]
    others = [name for name in here if name not in enabled]
    if not enabled:
        return [f"dry run: nothing is written to any cluster (sinks: {_settings(others)}; all are off)"]
    return [f"writes: {_settings(enabled)}" + (f"; dry run: {_settings(others)}" if others else "")]


def _settings(names: Collection[str]) -> str:
    """As the configuration file spells them."""
    return ", ".join(to_camel(name) for name in names)


def _cluster(settings: KubernetesSettings) -> str:
    if settings.simulated:
        return f"simulated ({settings.simulated})"
    if settings.files:
        return ", ".join(map(str, settings.files))
    context = f", context {settings.context}" if settings.context else ""
    return f"{settings.kubeconfig or 'the cluster that kubectl asks'}{context}"


def _vsphere(settings: VSphereSettings) -> str:
    if settings.simulated:
        return f"simulated ({settings.simulated})"
    return settings.watched or "none: shared hosts are not found"
