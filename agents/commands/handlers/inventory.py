"""`underhost inventory`: hosts, VMs and clusters of a vCenter, as the file that `--inventory` reads.

In: flags, environment or a configuration file. Out: one document, sorted, the same bytes for the same inventory. Exit
0; 2 for bad usage, password or CA file; 3 where the vCenter is unreachable or refuses.
"""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import typer

from underhost.agents.commands.output.columns import columns
from underhost.agents.commands.output.documents import versioned
from underhost.agents.pipeline import logs
from underhost.schemas.errors import InputError
from underhost.schemas.vsphere import Inventory
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.load import load
from underhost.streams.vsphere.inventory import follow_inventory

HOSTS = ("HOST", "CLUSTER", "STATE", "VMS", "CPU", "MEMORY")
VMS = ("VM", "HOST", "POWER", "CPUS", "MEMORY", "UUID")


def handle(
    url: str | None,
    username: str | None,
    password_file: Path | None,
    ca_file: Path | None,
    insecure: bool,
    cluster: list[str] | None,
    output: str,
    config: Path | None,
    watch: bool,
) -> None:
    """Write the inventory file of a vCenter: its hosts, VMs, clusters and VM-VM rules."""
    given: dict[str, Any] = {
        "url": url,
        "username": username,
        "password_file": str(password_file) if password_file else None,
        "ca_file": str(ca_file) if ca_file else None,
        "insecure": insecure or None,
        "clusters": cluster or None,
    }
    settings = load(config, {"vsphere": {name: value for name, value in given.items() if value is not None}})
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
            typer.echo(render(found, last, output), nl=False)
            if not watch:
                return
            last = found


def render(found: Inventory, last: Inventory | None, output: str) -> str:
    """An inventory; after another one (`last`) what is different: a table's rows, or the document again."""
    if output != "table":
        return "" if found == last else versioned("Inventory", fields_of(found), output)
    hosts, vms = _rows(found)
    if last is None:
        return columns(HOSTS, hosts) + "\n" + columns(VMS, vms)
    before = _rows(last)
    changed = [[row for row in rows if row not in known] for rows, known in zip((hosts, vms), before, strict=True)]
    gone = [
        f"{row[0]} is gone\n"
        for rows, known in zip((hosts, vms), before, strict=True)
        for row in known
        if row[0] not in {now[0] for now in rows}
    ]
    tables = [columns(header, rows) for header, rows in zip((HOSTS, VMS), changed, strict=True) if rows]
    return "".join(["\n"] * bool(tables or gone) + tables + gone)


def fields_of(inventory: Inventory) -> dict[str, Any]:
    """The document's fields, defaults included: a reader need not know ours."""
    return {
        "hosts": [
            {
                "id": host.id,
                "name": host.name,
                "cluster": host.cluster,
                "state": host.state,
                "cpuMhz": host.cpu_mhz,
                "memoryMiB": host.memory_mib,
                "labels": host.labels,
            }
            for host in inventory.hosts
        ],
        "vms": [
            {
                "id": vm.id,
                "name": vm.name,
                "uuid": vm.uuid,
                "host": vm.host,
                "hostname": vm.hostname,
                "cpus": vm.cpus,
                "memoryMiB": vm.memory_mib,
                "power": vm.power,
            }
            for vm in inventory.vms
        ],
        "clusters": [
            {
                "name": cluster.name,
                "drs": cluster.drs,
                "ha": cluster.ha,
                "rules": [
                    {
                        "name": rule.name,
                        "type": rule.type,
                        "vms": rule.vms,
                        "enabled": rule.enabled,
                        "mandatory": rule.mandatory,
                    }
                    for rule in cluster.rules
                ],
            }
            for cluster in inventory.clusters
        ],
    }


def _rows(inventory: Inventory) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Hosts, then VMs, as people read them."""
    names = {host.ref: host.name for host in inventory.hosts}
    on: dict[str, int] = {}
    for vm in inventory.vms:
        on[vm.host] = on.get(vm.host, 0) + 1
    hosts: list[tuple[str, ...]] = [
        (
            host.name,
            host.cluster,
            host.state,
            str(on.get(host.ref, 0)),
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
