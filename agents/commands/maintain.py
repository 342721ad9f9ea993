"""`underhost maintain host/H…`: where the VMs of ESXi hosts go that enter maintenance mode, and what that breaks.

In: dumps and an inventory. Out: a WhatIf. VMs move by DRS, no pod does.
"""

from typing import Annotated

import typer

from underhost.agents.commands.offline import (
    ConfigOption,
    ContextOption,
    FilesOption,
    HostKeyOption,
    InventoryOption,
    KubeconfigOption,
    PhysicalHostOption,
    SchedulerOption,
    ServerOption,
    SiteOption,
    read_site,
)
from underhost.agents.commands.plans import PHYSICAL, FailOnOption, OutputOption, answer, check_options


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def maintain(
        hosts: Annotated[list[str], typer.Argument(metavar="host/HOST...", help="One after another, in this order.")],
        files: FilesOption = None,
        inventory: InventoryOption = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        site: SiteOption = None,
        config: ConfigOption = None,
        output: OutputOption = "table",
        fail_on: FailOnOption = PHYSICAL,
        host_key: HostKeyOption = None,
        physical_host: PhysicalHostOption = None,
        scheduler_name: SchedulerOption = None,
    ) -> None:
        """Try maintenance mode of ESXi hosts: where DRS moves their VMs, which cannot move, what is violated after."""
        from underhost.agents.commands.sources import From
        from underhost.agents.engine.whatif_steps import Maintain, host_name

        check_options(output, fail_on)
        steps = [Maintain(name) for name in dict.fromkeys(host_name(host) for host in hosts)]
        picture = read_site(
            From(files, inventory, kubeconfig, context, server, site, config),
            manifests=True,
            host_keys=host_key,
            physical_host=physical_host,
            scheduler_names=scheduler_name,
        )
        answer(picture, steps, output, fail_on)
