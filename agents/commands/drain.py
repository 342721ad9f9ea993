"""`underhost drain NODE…`: where the pods of nodes go that are cordoned and drained, and what keeps them.

In: dumps and an inventory. Out: a WhatIf. As `kubectl drain --ignore-daemonsets --force --delete-emptydir-data`, tried.
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
    def drain(
        nodes: Annotated[
            list[str], typer.Argument(metavar="NODE...", help="Cordoned all, then drained in this order.")
        ],
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
        """Try to drain nodes: where their pods go, which stay pending, which budgets block, what is violated after."""
        from underhost.agents.commands.sources import From
        from underhost.agents.engine.whatif_steps import Drain, node_name

        check_options(output, fail_on)
        steps = [Drain(tuple(dict.fromkeys(node_name(name) for name in nodes)))]
        picture = read_site(
            From(files, inventory, kubeconfig, context, server, site, config),
            manifests=True,
            host_keys=host_key,
            physical_host=physical_host,
            scheduler_names=scheduler_name,
        )
        answer(picture, steps, output, fail_on)
