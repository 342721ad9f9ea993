"""`underhost maintain host/H…`: where the VMs of ESXi hosts go that enter maintenance mode, and what that breaks.

In: dumps and an inventory. Out: a WhatIf. VMs move by DRS, no pod does.
"""

from typing import Annotated

import typer

from underhost.agents.commands.input import names
from underhost.agents.commands.input.offline import read_site
from underhost.agents.commands.input.options import Judged, grouped
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.plans import FailOnOption, OutputOption, answer, check_options
from underhost.schemas.severities import PHYSICAL


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Try maintenance mode of ESXi hosts.")
    @grouped
    def maintain(
        *,
        hosts: Annotated[
            list[str],
            typer.Argument(metavar="host/HOST", help="One after another, in this order.", autocompletion=names.hosts),
        ],
        source: From,
        output: OutputOption = "table",
        fail_on: FailOnOption = PHYSICAL,
        judged: Judged,
    ) -> None:
        """Try maintenance mode of ESXi hosts: where DRS moves their VMs, which cannot move, what is violated after."""
        from underhost.agents.whatif.steps import Maintain, host_name

        check_options(output, fail_on)
        steps = [Maintain(name) for name in dict.fromkeys(host_name(host) for host in hosts)]
        picture = read_site(source, judged, manifests=True)
        answer(picture, steps, output, fail_on)
