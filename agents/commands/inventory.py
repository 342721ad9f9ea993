"""`underhost inventory`: hosts, VMs and clusters of a vCenter, as the file that `--inventory` reads.

In: flags, environment or a configuration file. Out: one document, sorted, the same bytes for the same inventory. Exit
0; 2 for bad usage, password or CA file; 3 where the vCenter is unreachable or refuses.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from underhost.agents.commands.connection import ConfigOption

if TYPE_CHECKING:
    from underhost.schemas.vsphere import Inventory

FORMATS = ("json", "yaml", "table")
HOSTS = ("HOST", "CLUSTER", "STATE", "VMS", "CPU", "MEMORY")
VMS = ("VM", "HOST", "POWER", "CPUS", "MEMORY", "UUID")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def inventory(
        url: Annotated[str | None, typer.Option(metavar="URL", help="The vCenter: https://HOST/sdk.")] = None,
        username: Annotated[str | None, typer.Option(metavar="NAME", help="Its user; read rights are enough.")] = None,
        password_file: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Holds the password; or UNDERHOST_VSPHERE__PASSWORD does."),
        ] = None,
        ca_file: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Certificates that the vCenter's is checked against.")
        ] = None,
        insecure: Annotated[bool, typer.Option("--insecure", help="Do not check the vCenter's certificate.")] = False,
        cluster: Annotated[
            list[str] | None, typer.Option(metavar="NAME", help="Only this vSphere cluster; repeatable.")
        ] = None,
        output: Annotated[str, typer.Option("--output", "-o", help="|".join(FORMATS))] = "json",
        config: ConfigOption = None,
    ) -> None:
        """Write the inventory file of a vCenter: its hosts, VMs, clusters and VM-VM rules."""
        from underhost.agents import logs
        from underhost.agents.commands.plain import document, one_of
        from underhost.streams.settings import load
        from underhost.streams.vsphere.inventory import read_inventory

        one_of("--output", output, FORMATS)
        given: dict[str, Any] = {
            "url": url,
            "username": username,
            "password_file": str(password_file) if password_file else None,
            "ca_file": str(ca_file) if ca_file else None,
            "insecure": insecure or None,
            "clusters": cluster or None,
        }
        settings = load(config, {"vsphere": {name: value for name, value in given.items() if value is not None}})
        logs.configure(0)  # what cannot be read (tags) is said on standard error
        vsphere = settings.vsphere
        if vsphere.tags is None:
            vsphere = vsphere.model_copy(update={"tags": True})
        found = asyncio.run(read_inventory(vsphere))
        typer.echo(_tables(found) if output == "table" else document("Inventory", fields_of(found), output), nl=False)


def fields_of(inventory: "Inventory") -> dict[str, Any]:
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


def _tables(inventory: "Inventory") -> str:
    """Hosts, then VMs, as people read them."""
    from underhost.agents.commands.plain import columns

    names = {host.ref: host.name for host in inventory.hosts}
    on: dict[str, int] = {}
    for vm in inventory.vms:
        on[vm.host] = on.get(vm.host, 0) + 1
    hosts = [
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
    vms = [
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
    return columns(HOSTS, hosts) + "\n" + columns(VMS, vms)
