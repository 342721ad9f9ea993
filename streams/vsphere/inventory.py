"""A vCenter's inventory, once or as it changes: the document that `--inventory` reads.

In: settings. Out: an Inventory, sorted, without uids and versions, which only the topics need.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from msgspec.structs import replace

from underhost.schemas.errors import Refused
from underhost.schemas.vsphere import OTHER, Cluster, Host, Inventory, Vm
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere.cache import InventoryCache
from underhost.streams.vsphere.changes import Collector
from underhost.streams.vsphere.collector import open_collector

T = TypeVar("T", Host, Vm, Cluster)
Connect = Callable[[VSphereSettings], Awaitable[Collector]]


async def read_inventory(settings: VSphereSettings, *, connect: Connect = open_collector) -> Inventory:
    """Log in, read everything once, log out.

    Raises InputError (settings, password or CA file), Refused (also for an unknown cluster) or Unreachable.
    """
    async with aclosing(follow_inventory(settings, connect=connect)) as found:
        return await anext(found)


async def follow_inventory(
    settings: VSphereSettings, *, connect: Connect = open_collector
) -> AsyncGenerator[Inventory, None]:
    """The inventory, and again after each change that vCenter announces, in one session.

    Rules are looked at when nothing has changed for a while. Raises as `read_inventory`; Gone where the session ends.
    """
    collector = await connect(settings)
    try:
        cache = InventoryCache("", settings.clusters)
        version, listed = "", False
        while True:
            page = await collector.wait(version)
            if page is not None:
                cache.apply(page.changes)
                version = page.version
                if page.truncated:
                    continue
            if page is None or not listed:
                cache.apply_poll(await collector.poll())
            if not listed and (reason := cache.missing_clusters()):
                raise Refused(reason)
            listed = True
            yield _document(cache)
    finally:
        await collector.close()


def _document(cache: InventoryCache) -> Inventory:
    known = cache.inventory()
    return Inventory(
        hosts=sorted(map(_bare, known.hosts), key=lambda host: (host.name, host.id)),
        vms=sorted(map(_bare, known.vms), key=lambda vm: (vm.name, vm.id)),
        clusters=[_bare_cluster(cluster) for cluster in known.clusters],
    )


def _bare(record: T) -> T:
    return replace(record, uid="", resource_version="")


def _bare_cluster(cluster: Cluster) -> Cluster:
    """Without rules of kinds that nobody reads."""
    rules = [replace(rule, cluster="", key=0) for rule in cluster.rules if rule.type != OTHER]
    return replace(_bare(cluster), rules=rules)
