"""The options of `underhost whatif`, which tries any steps, one after another in the order in which they are given.

The parser hands over the values of each option by itself; `InOrder` keeps the order between options.
"""

from typing import Annotated, Any

import typer

from underhost.agents.commands.input import names, values
from underhost.agents.commands.input.options import Answered, Judged, NoHaOption, grouped
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.help import HelpedCommand

_GIVEN = "underhost.given"


class InOrder(HelpedCommand):
    """A command that remembers in which order its repeatable options were given, as (name, value)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as ever; beside it, in `ctx.meta`, what came one after another."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        left = {name: list(given) for name, given in values.items() if isinstance(given, list)}
        ctx.meta[_GIVEN] = [(one.name, left[one.name].pop(0)) for one in order if one.name and left.get(one.name)]
        return super().parse_args(ctx, args)


def _step(metavar: str, text: str, offer: values.Offer | None = None) -> Any:
    return typer.Option(metavar=metavar, help=text, autocompletion=offer, rich_help_panel="Steps")


EXAMPLES = """
# A node more, then a drain
underhost whatif --add node.yaml --drain worker-1 -f dump.json
# A node that is closed and opened again, and a host that fails between
underhost whatif --cordon worker-2 --fail host/esx-1 --uncordon worker-2 \\
  -f dump.json --inventory inventory.json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=InOrder, short_help="Simulate steps, one after another.", epilog=EXAMPLES)
    @grouped
    def whatif(
        *,
        ctx: typer.Context,
        delete: Annotated[
            list[str] | None, _step("POD", "Delete a pod (NAMESPACE/NAME, or NAME with -n).", names.pods)
        ] = None,
        drain: Annotated[list[str] | None, _step("NODE", "Cordon a node and evict its pods.", names.nodes)] = None,
        fail: Annotated[list[str] | None, _step("node/N|host/H", "A node or a host fails.", names.targets)] = None,
        maintain: Annotated[
            list[str] | None, _step("host/H", "An ESXi host enters maintenance mode.", names.hosts)
        ] = None,
        cordon: Annotated[list[str] | None, _step("NODE", "Close a node for new pods.", names.nodes)] = None,
        uncordon: Annotated[list[str] | None, _step("NODE", "Open it again.", names.nodes)] = None,
        taint: Annotated[list[str] | None, _step("NODE=K=V:EFFECT", "Taint a node; NODE=K:EFFECT- removes.")] = None,
        label: Annotated[list[str] | None, _step("NODE=K=V", "Label a node; NODE=K- removes.")] = None,
        add: Annotated[list[str] | None, _step("FILE", "Add nodes, manifests, hosts and VMs; - for stdin.")] = None,
        no_ha: NoHaOption = False,
        source: From,
        namespace: Annotated[
            str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Of pods named without one.")
        ] = None,
        answered: Answered,
        judged: Judged,
    ) -> None:
        """Simulate steps one after another, in the order given; nothing is changed.

        Says what moves, what stays pending, and what is violated after.
        """
        answered.check()
        from underhost.agents.commands.handlers.plans import whatif as handle  # heavy: only what runs needs it

        handle(ctx.meta[_GIVEN], namespace, not no_ha, source, answered, judged)
