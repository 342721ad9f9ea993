"""`underhost fail node/N|host/H…`: what the loss of nodes or ESXi hosts does; `--each host` tries each alone (N+1).

In: dumps and an inventory. Out: a WhatIf, or with `--each` a WhatIfList, the worst first.
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
    faults_named,
    read_site,
)
from underhost.agents.commands.plans import (
    PHYSICAL,
    FailOnOption,
    NoHaOption,
    OutputOption,
    answer,
    answer_each,
    check_options,
)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def fail(
        targets: Annotated[
            list[str] | None, typer.Argument(metavar="[node/NODE|host/HOST]...", help="They fail at the same time.")
        ] = None,
        each: Annotated[
            str | None, typer.Option("--each", metavar="host|node", help="Every one alone, the worst first.")
        ] = None,
        no_ha: NoHaOption = False,
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
        """Try the failure of nodes and ESXi hosts: what HA restarts where, which pods move or wait, what breaks."""
        from underhost.agents.commands.plain import one_of
        from underhost.agents.commands.sources import From
        from underhost.agents.engine.whatif_steps import HOST, NODE, Fail, target
        from underhost.schemas.errors import InputError

        check_options(output, fail_on)
        if bool(targets) == (each is not None):
            raise InputError("fail: name what fails as node/NODE or host/HOST, or try all with --each host|node")
        if each is not None:
            one_of("--each", each, (HOST, NODE))
        named = tuple(dict.fromkeys(target(one) for one in targets or ()))
        picture = read_site(
            From(files, inventory, kubeconfig, context, server, site, config),
            manifests=True,
            host_keys=host_key,
            physical_host=physical_host,
            scheduler_names=scheduler_name,
        )
        if each is None:
            answer(picture, [Fail(named, not no_ha)], output, fail_on)
            return
        from underhost.agents.engine.whatif import each as every

        with faults_named(picture.objects):
            found = every(picture.snapshot, picture.options, each, ha=not no_ha, others=picture.objects.others)
        answer_each(found, each, output, fail_on)
