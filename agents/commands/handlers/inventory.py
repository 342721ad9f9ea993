"""`underhost inventory`: hosts, VMs and clusters of a vCenter, as the file that `--inventory` reads.

In: flags, environment or a configuration file. Out: one document, sorted, the same bytes for the same inventory. Exit
0; 2 for bad usage, password or CA file; 3 where the vCenter is unreachable or refuses.
"""

import asyncio
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any

import typer
from msgspec import Struct

from underhost.agents.commands.output.columns import Table, clean, columns
from underhost.agents.commands.output.documents import show_tables, versioned
from underhost.agents.pipeline import logs
from underhost.schemas.errors import InputError
from underhost.schemas.vsphere import Inventory
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.load import load
from underhost.streams.vsphere.inventory import follow_inventory

HOSTS = ("HOST", "CLUSTER", "STATE", "VMS", "CPU", "MEMORY")
VMS = ("VM", "HOST", "POWER", "CPUS", "MEMORY", "UUID")


def handle(given: dict[str, Any], output: str, config: Path | None, watch: bool) -> None:
    """Write the inventory file of a vCenter, as the file and the flags `given` name it."""
    settings = load(config, {"vsphere": given})
    if settings.vsphere.url is None:
        raise InputError(
            "inventory: name the vCenter, with --url https://HOST/sdk or a --config FILE that has vsphere.url"
        )
    logs.configure(0)  # what cannot be read (tags) is said on standard error
    vsphere = settings.vsphere
    if vsphere.tags is None:
        vsphere = vsphere.model_copy(update={"tags": True})
    asyncio.run(_show(vsphere, output, watch))


async def _show(settings: VSphereSettings, output: str, watch: bool) -> None:
    async with aclosing(follow_inventory(settings)) as inventories:
        last: Inventory | None = None
        async for found in inventories:
            if last is None and output == "table":
                show_tables([Table(header, rows) for header, rows in zip((HOSTS, VMS), _rows(found), strict=True)])
            else:
                typer.echo(render(found, last, output), nl=False)
            if not watch:
                return
            last = found


def render(found: Inventory, last: Inventory | None, output: str) -> str:
    """An inventory; after another one (`last`) what is different: a table's rows, or the document again."""
    if output != "table":
        return "" if found == last else versioned("Inventory", fields_of(found), output)
    (hosts, vms), before = _rows(found), ([], []) if last is None else _rows(last)
    changed = [[row for row in rows if row not in known] for rows, known in zip((hosts, vms), before, strict=True)]
    gone = [
        f"{clean(row[0])} is gone\n"
        for rows, known in zip((hosts, vms), before, strict=True)
        for row in known
        if row[0] not in {now[0] for now in rows}
    ]
    tables = [columns(header, rows) for header, rows in zip((HOSTS, VMS), changed, strict=True) if rows]
    return "".join(["\n"] * bool(tables or gone) + tables + gone)


def fields_of(inventory: Inventory) -> dict[str, Any]:
    """The document's fields, defaults included: a reader need not know ours."""
    return {
        "hosts": [_fields(host) for host in inventory.hosts],
        "vms": [_fields(vm) for vm in inventory.vms],
        "clusters": [
            {**_fields(cluster, "id"), "rules": [_fields(rule, "cluster", "key") for rule in cluster.rules]}
            for cluster in inventory.clusters
        ],
    }


def _fields(one: Struct, *but: str) -> dict[str, Any]:
    """The fields of an object by their names in the file, but for these and those that only the topics need."""
    left_out = {"uid", "resource_version", *but}
    names = zip(one.__struct_fields__, one.__struct_encode_fields__, strict=True)
    return {encoded: getattr(one, name) for name, encoded in names if name not in left_out}


def _rows(inventory: Inventory) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Hosts, then VMs, as people read them."""
    names = {host.ref: host.name for host in inventory.hosts}
    on = Counter(vm.host for vm in inventory.vms)
    hosts: list[tuple[str, ...]] = [
        (
            host.name,
            host.cluster,
            host.state,
            str(on[host.ref]),
            f"{host.cpu_mhz / 1000:.1f}GHz",
            f"{host.memory_mib / 1024:.0f}Gi",
        )
        for host in inventory.hosts
    ]
    vms: list[tuple[str, ...]] = [
        (
            vm.name,
            names.get(vm.host, vm.host or "<unknown>"),
            vm.power,
            str(vm.cpus),
            f"{vm.memory_mib / 1024:.1f}Gi",
            vm.uuid,
        )
        for vm in inventory.vms
    ]
    return hosts, vms
