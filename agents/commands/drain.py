"""`underhost drain NODE…`: where the pods of nodes go that are cordoned and drained, and what keeps them.

In: dumps and an inventory. Out: a WhatIf. As `kubectl drain --ignore-daemonsets --force --delete-emptydir-data`, tried.
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

    @app.command(short_help="Try to drain nodes.")
    @grouped
    def drain(
        *,
        nodes: Annotated[
            list[str],
            typer.Argument(
                metavar="NODE", help="Cordoned all, then drained in this order.", autocompletion=names.nodes
            ),
        ],
        source: From,
        output: OutputOption = "table",
        fail_on: FailOnOption = PHYSICAL,
        judged: Judged,
    ) -> None:
        """Try to drain nodes: where their pods go, which stay pending, which budgets block, what is violated after."""
        from underhost.agents.whatif.steps import Drain, node_name

        check_options(output, fail_on)
        steps = [Drain(tuple(dict.fromkeys(node_name(name) for name in nodes)))]
        picture = read_site(source, judged, manifests=True)
        answer(picture, steps, output, fail_on)
