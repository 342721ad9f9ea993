"""`underhost fail node/N|host/H…`: what the loss of nodes or ESXi hosts does; `--each host` tries each alone (N+1).

In: dumps and an inventory. Out: a WhatIf, or with `--each` a WhatIfList, the worst first.
"""

from typing import Annotated

import typer

from underhost.agents.commands.input import names, values
from underhost.agents.commands.input.offline import faults_named, read_site
from underhost.agents.commands.input.options import Judged, grouped
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.plans import (
    FailOnOption,
    NoHaOption,
    OutputOption,
    answer,
    answer_each,
    check_options,
)
from underhost.schemas.severities import PHYSICAL


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Try the failure of nodes and ESXi hosts.")
    @grouped
    def fail(
        *,
        targets: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="node/NODE|host/HOST", help="They fail at the same time.", autocompletion=names.targets
            ),
        ] = None,
        each: Annotated[
            str | None,
            typer.Option(
                "--each",
                metavar="host|node",
                help="Every one alone, the worst first.",
                autocompletion=values.one_of(("host", "node")),
            ),
        ] = None,
        no_ha: NoHaOption = False,
        source: From,
        output: OutputOption = "table",
        fail_on: FailOnOption = PHYSICAL,
        judged: Judged,
    ) -> None:
        """Try the failure of nodes and ESXi hosts: what HA restarts where, which pods move or wait, what breaks."""
        from underhost.agents.commands.output.columns import one_of
        from underhost.agents.whatif.steps import HOST, NODE, Fail, target
        from underhost.schemas.errors import InputError

        check_options(output, fail_on)
        if bool(targets) == (each is not None):
            raise InputError("fail: name what fails as node/NODE or host/HOST, or try all with --each host|node")
        if each is not None:
            one_of("--each", each, (HOST, NODE))
        named = tuple(dict.fromkeys(target(one) for one in targets or ()))
        picture = read_site(source, judged, manifests=True)
        if each is None:
            answer(picture, [Fail(named, not no_ha)], output, fail_on)
            return
        from underhost.agents.whatif.each import each as every

        with faults_named(picture.objects):
            found = every(picture.snapshot, picture.options, each, ha=not no_ha, others=picture.objects.others)
        answer_each(found, each, output, fail_on)
