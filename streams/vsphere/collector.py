"""The inventory by PropertyCollector: a Session in, `changes` out.

Reads narrow paths only. What vCenter does not announce reliably (rules, cluster flags, maintenance mode) is read by
`poll`. vCenter sends unchanged values, too; comparing is left to the caller.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from pyVmomi import vim, vmodl
from pyVmomi.VmomiSupport import ManagedObject

from underhost.schemas.errors import Gone, UnderhostError
from underhost.schemas.vsphere import DISABLED, FULLY_AUTOMATED, Admission
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.changes import (
    CLUSTER,
    HOST,
    MODIFY,
    PASSTHROUGH,
    VM,
    ClusterState,
    ObjectChange,
    Page,
    Poll,
)
from underhost.streams.vsphere.client import LOGOUT_TIMEOUT, Session, SessionLost, connect
from underhost.streams.vsphere.rules import rule_of
from underhost.streams.vsphere.tags import TagReader

WAIT_SECONDS = 4
"""Seconds that the server holds a wait without changes: each answer proves that session and server are alive."""

PATHS: Mapping[str, tuple[str, ...]] = {
    VM: (
        "name",
        "config.template",
        "config.uuid",
        "config.hardware.numCPU",
        "config.hardware.memoryMB",
        PASSTHROUGH,
        "resourceConfig.memoryAllocation.reservation",
        "datastore",
        "network",
        "runtime.host",
        "runtime.powerState",
        "guest.hostName",
    ),
    HOST: (
        "name",
        "parent",
        "runtime.connectionState",
        "runtime.inMaintenanceMode",
        "summary.hardware.numCpuCores",
        "summary.hardware.cpuMhz",
        "summary.hardware.memorySize",
        "customValue",
        "datastore",
        "network",
    ),
    CLUSTER: ("name",),
}
POLLED_HOST_PATHS = ("runtime.connectionState", "runtime.inMaintenanceMode")

Lineage = Mapping[str, list[tuple[str, str]]]
"""(moref, type) of each cluster and what lies above it, nearest first, by the cluster's moref."""

_PC = vmodl.query.PropertyCollector
_TYPES = {VM: vim.VirtualMachine, HOST: vim.HostSystem, CLUSTER: vim.ClusterComputeResource}


async def open_collector(settings: VSphereSettings) -> "PropertyFilterCollector":
    """Log in and set up the filter. Raises InputError, Refused or Unreachable."""
    session = await connect(settings)
    try:
        tags = TagReader(settings) if settings.tags else None
        return await session.call(PropertyFilterCollector, session, tags)
    except UnderhostError:
        await session.close()
        raise


class PropertyFilterCollector:
    """A property collector of our own with one filter over a view of the whole inventory; a `Collector`.

    The constructor blocks: `open_collector` makes it in a thread.
    """

    def __init__(self, session: Session, tags: TagReader | None = None) -> None:
        content = session.content
        self._session, self._tags = session, tags
        self._collector = content.propertyCollector.CreatePropertyCollector()
        self._view = content.viewManager.CreateContainerView(content.rootFolder, list(_TYPES.values()), True)
        self._tree = content.viewManager.CreateContainerView(content.rootFolder, [vim.Datacenter, vim.Folder], True)
        self._collector.CreateFilter(_filter(self._view, {_TYPES[kind]: PATHS[kind] for kind in PATHS}), False)
        self._options = _PC.WaitOptions(maxWaitSeconds=WAIT_SECONDS)

    async def wait(self, version: str) -> Page | None:
        """See `Collector.wait`."""
        found = await self._session.call(self._collector.WaitForUpdatesEx, version, self._options)
        return page_of(found) if found is not None else None

    async def poll(self) -> Poll:
        """See `Collector.poll`."""
        try:
            poll, lineage = await self._session.call(self._poll)
        except Gone as error:
            # The view belongs to the session: without the one the other is not known.
            raise SessionLost(f"vCenter {self._session.address}: the session has ended") from error
        if self._tags is None:
            return poll
        objects = {change.ref: "HostSystem" for change in poll.host_changes}
        objects.update({ref: type_ for above in lineage.values() for ref, type_ in above})
        tags = await self._tags.read(objects)
        return poll._replace(tags=None if tags is None else inherited(tags, lineage))

    async def close(self) -> None:
        """See `Collector.close`."""
        if self._tags is not None:
            await self._tags.close()
        with suppress(UnderhostError, TimeoutError):  # a lost session or server has nothing to free
            async with asyncio.timeout(LOGOUT_TIMEOUT):
                await self._session.call(self._collector.CancelWaitForUpdates)
                await self._session.call(self._collector.DestroyPropertyCollector)
        await self._session.close()

    def _poll(self) -> tuple[Poll, Lineage]:
        found = self._retrieve(
            self._view,
            {
                vim.ClusterComputeResource: ("name", "parent", "host", "configurationEx"),
                vim.HostSystem: POLLED_HOST_PATHS,
            },
        )
        above = self._retrieve(self._tree, dict.fromkeys((vim.Datacenter, vim.Folder), ("name", "parent")))
        tree = {content.obj._GetMoId(): (type(content.obj), _properties(content.propSet)) for content in above}
        clusters, hosts, placement, lineage = [], [], {}, {}
        for content in found:
            ref = content.obj._GetMoId()
            missing = missing_of(content.missingSet)
            if isinstance(content.obj, vim.HostSystem):
                hosts.append(ObjectChange(MODIFY, HOST, ref, _properties(content.propSet), missing))
                continue
            properties = {prop.name: prop.val for prop in content.propSet}
            configuration, members = properties.get("configurationEx"), properties.get("host") or ()
            refs = [host._GetMoId() for host in members]
            clusters.append(cluster_of(ref, properties.get("name") or ref, configuration, refs))
            lineage[ref] = [(ref, "ClusterComputeResource")]
            if (parent := properties.get("parent")) is not None:
                placement[ref] = _placement(parent._GetMoId(), tree)
                lineage[ref] += _above(parent._GetMoId(), tree)
        return Poll(tuple(clusters), tuple(hosts), self._attribute_names(), placement), lineage

    def _attribute_names(self) -> dict[int, str]:
        """Names of the custom attributes, by key; none where we have no right to read them."""
        manager = self._session.content.customFieldsManager
        if manager is None:
            return {}
        try:
            return {field.key: field.name for field in manager.field}
        except vim.fault.NotAuthenticated:
            raise
        except vim.fault.NoPermission:
            return {}

    def _retrieve(self, view: Any, paths: Mapping[Any, tuple[str, ...]]) -> Iterable[Any]:
        collector = self._session.content.propertyCollector
        result = collector.RetrievePropertiesEx([_filter(view, paths)], _PC.RetrieveOptions())
        while result is not None:
            yield from result.objects
            result = collector.ContinueRetrievePropertiesEx(result.token) if result.token else None


def page_of(found: Any) -> Page:
    """An UpdateSet as a page. Raises SessionLost where values are withheld for want of a login."""
    changes = []
    for filter_update in found.filterSet:
        for update in filter_update.objectSet:
            kind = _type_of(update.obj)
            if kind is None:
                continue
            properties = _properties(update.changeSet)
            missing = missing_of(update.missingSet)
            changes.append(ObjectChange(str(update.kind), kind, update.obj._GetMoId(), properties, missing))
    return Page(found.version, bool(found.truncated), tuple(changes))


def missing_of(missing_set: Iterable[Any]) -> dict[str, str]:
    """Paths that are withheld, with the fault's name.

    Raises SessionLost for NotAuthenticated: an expired session may answer with objects that have lost every value.
    """
    missing = {}
    for item in missing_set:
        if isinstance(item.fault, vim.fault.NotAuthenticated):
            raise SessionLost("vCenter withholds values: the session has ended")
        missing[item.path] = type(item.fault).__name__.rpartition(".")[2]
    return missing


def cluster_of(ref: str, name: str, configuration: Any, hosts: Iterable[str] = ()) -> ClusterState:
    """A cluster of these hosts from its ClusterConfigInfoEx, None where we may not read it."""
    if configuration is None:
        return ClusterState(ref, name, drs=False, ha=False, rules=None)
    drs, ha, refs = configuration.drsConfig, configuration.dasConfig, list(hosts)
    return ClusterState(
        ref,
        name,
        drs=bool(drs is not None and drs.enabled),
        ha=bool(ha is not None and ha.enabled),
        rules=tuple(rule_of(name, info, configuration.group, refs) for info in configuration.rule),
        automation=str(getattr(drs, "defaultVmBehavior", None) or FULLY_AUTOMATED),
        overrides={one.key._GetMoId(): _override(one) for one in configuration.drsVmConfig if _override(one)},
        admission=_admission(ha),
    )


def _admission(ha: Any) -> Admission | None:
    """What admission control keeps free by a ClusterDasConfigInfo; None where it is off, or says no policy."""
    policy = ha.admissionControlPolicy if ha is not None and ha.enabled and ha.admissionControlEnabled else None
    if isinstance(policy, vim.cluster.FailoverResourcesAdmissionControlPolicy):
        return Admission(
            memory_percent=policy.memoryFailoverResourcesPercent, cpu_percent=policy.cpuFailoverResourcesPercent
        )
    if isinstance(policy, vim.cluster.FailoverHostAdmissionControlPolicy):
        return Admission(failover_hosts=sorted(host._GetMoId() for host in policy.failoverHosts))
    return Admission(hosts=policy.failoverLevel) if policy is not None else None


def _override(one: Any) -> str:
    """What DRS may do with one VM; "" where it is what the cluster says."""
    return DISABLED if one.enabled is False else str(one.behavior or "")


def _filter(view: Any, paths: Mapping[Any, tuple[str, ...]]) -> Any:
    return _PC.FilterSpec(
        objectSet=[
            _PC.ObjectSpec(
                obj=view,
                skip=True,
                selectSet=[_PC.TraversalSpec(name="view", type=type(view), path="view", skip=False)],
            )
        ],
        propSet=[_PC.PropertySpec(type=kind, pathSet=list(names), all=False) for kind, names in paths.items()],
    )


def _type_of(obj: Any) -> str | None:
    return next((kind for kind, cls in _TYPES.items() if isinstance(obj, cls)), None)


def _properties(prop_set: Iterable[Any]) -> dict[str, Any]:
    return {prop.name: _plain(prop.val) for prop in prop_set}


def _plain(value: Any) -> Any:
    """A value without pyVmomi's types.

    A reference is a moref, references are morefs, sorted; custom attributes {key: value}; a device is its name; an enum
    is text.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, ManagedObject):
        return value._GetMoId()
    if isinstance(value, vim.vm.device.VirtualDevice):
        return str(getattr(value.deviceInfo, "label", "") or type(value).__name__.rpartition(".")[2])
    if isinstance(value, list) and issubclass(getattr(value, "Item", object), ManagedObject):
        return sorted(item._GetMoId() for item in value)
    if isinstance(value, list):
        return {item.key: item.value for item in value if isinstance(item, vim.CustomFieldsManager.StringValue)}
    return str(value)


def inherited(tags: Mapping[str, Mapping[str, str]], lineage: Lineage) -> dict[str, dict[str, str]]:
    """The tags of each object; a cluster has those of what lies above it, too, the nearest of a category."""
    found = {ref: dict(own) for ref, own in tags.items()}
    for cluster, above in lineage.items():
        merged: dict[str, str] = {}
        for ref, _ in reversed(above):
            merged.update(tags.get(ref, {}))
        found[cluster] = merged
    return found


def _above(ref: str, tree: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """Folders and datacenter from here up, with their types."""
    found = []
    while ref in tree:
        kind, properties = tree[ref]
        found.append((ref, "Datacenter" if issubclass(kind, vim.Datacenter) else "Folder"))
        ref = properties.get("parent") or ""
    return found


def _placement(ref: str, tree: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> dict[str, str]:
    """Datacenter and innermost folder above a cluster, but not the datacenter's own root folder."""
    labels: dict[str, str] = {}
    while ref in tree:
        kind, properties = tree[ref]
        name, parent = properties.get("name") or "", properties.get("parent") or ""
        if issubclass(kind, vim.Datacenter):
            labels["datacenter"] = name
            break
        under_datacenter = parent in tree and issubclass(tree[parent][0], vim.Datacenter)
        if "folder" not in labels and not under_datacenter:
            labels["folder"] = name
        ref = parent
    return labels
