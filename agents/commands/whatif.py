"""`underhost whatif`: any steps, tried one after another in the order in which they are given.

In: dumps, an inventory, steps as options. Out: a WhatIf. The parser hands over the values of each option by itself;
`InOrder` keeps the order between options, which is the order of the plan.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from underhost.agents.commands.input import names, values
from underhost.agents.commands.input.offline import read_site
from underhost.agents.commands.input.options import Judged, grouped
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.plans import (
    FailOnOption,
    NoHaOption,
    OutputOption,
    answer,
    check_options,
)
from underhost.schemas.severities import PHYSICAL

if TYPE_CHECKING:
    from underhost.agents.whatif.steps import Step
    from underhost.streams.files.objects import Objects

_GIVEN = "underhost.given"


class InOrder(TyperCommand):
    """A command that remembers in which order its repeatable options were given, as (name, value)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever; beside it, in `ctx.meta`, what came one after another."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        left = {name: list(given) for name, given in values.items() if isinstance(given, list)}
        ctx.meta[_GIVEN] = [(one.name, left[one.name].pop(0)) for one in order if left.get(one.name)]
        return super().parse_args(ctx, args)


def _step(metavar: str, text: str, offer: values.Offer | None = None) -> Any:
    return typer.Option(metavar=metavar, help=text, autocompletion=offer)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=InOrder, short_help="Try steps, one after another.")
    @grouped
    def whatif(
        *,
        ctx: typer.Context,
        delete: Annotated[
            list[str] | None, _step("POD", "Delete a pod (NAMESPACE/NAME, or NAME with -n).", names.pods)
        ] = None,
        drain: Annotated[list[str] | None, _step("NODE", "Cordon a node and evict its pods.", names.nodes)] = None,
        fail: Annotated[
            list[str] | None, _step("node/N|host/H", "A node or an ESXi host fails.", names.targets)
        ] = None,
        maintain: Annotated[
            list[str] | None, _step("host/H", "An ESXi host enters maintenance mode.", names.hosts)
        ] = None,
        cordon: Annotated[list[str] | None, _step("NODE", "Close a node for new pods.", names.nodes)] = None,
        uncordon: Annotated[list[str] | None, _step("NODE", "Open it again.", names.nodes)] = None,
        taint: Annotated[list[str] | None, _step("NODE=K=V:EFFECT", "Taint a node; NODE=K:EFFECT- removes.")] = None,
        label: Annotated[list[str] | None, _step("NODE=K=V", "Label a node; NODE=K- removes.")] = None,
        add: Annotated[list[str] | None, _step("FILE", "Add objects: nodes, manifests, hosts and VMs.")] = None,
        no_ha: NoHaOption = False,
        source: From,
        namespace: Annotated[
            str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Of pods named without one.")
        ] = None,
        output: OutputOption = "table",
        fail_on: FailOnOption = PHYSICAL,
        judged: Judged,
    ) -> None:
        """Try steps one after another, in the order given: what moves, what stays pending, what is violated after."""

        check_options(output, fail_on)
        steps, added = _steps(ctx.meta[_GIVEN], namespace, not no_ha)
        picture = read_site(source, judged, manifests=True)
        answer(picture, steps, output, fail_on, added)


def _steps(given: list[tuple[str, str]], namespace: str | None, ha: bool) -> "tuple[list[Step], list[Objects]]":
    """The steps in their order, and what the files of `--add` hold. Raises InputError."""
    from underhost.agents.commands.input.offline import full_name
    from underhost.agents.snapshots.load import added_of
    from underhost.agents.whatif.steps import STEPS, Add, parse
    from underhost.schemas.errors import InputError
    from underhost.streams.files.reader import load_files

    steps: list[Step] = []
    added: list[Objects] = []
    faults: list[str] = []
    for name, text in given:
        if name not in STEPS:
            continue
        try:
            if name == "add":
                added.append(load_files([text]))
                steps.append(Add(added_of(added[-1])))
            else:
                steps.append(parse(name, full_name(text, namespace) if name == "delete" else text, ha=ha))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return steps, added
