"""The options of `underhost violations`; `handlers/violations.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import FollowOption, Topics, grouped, one_of, output_option
from underhost.agents.commands.input.origin import Worker
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.severities import SEVERITIES

FORMATS = ("table", "wide", "json", "yaml", "name")
EXAMPLES = """
# What is open now
underhost violations
# What opens, changes and is resolved, until Ctrl-C
underhost violations --follow
# Only the gravest, of one site, from Kafka
underhost violations --severity physical --site prod-a \\
  --bootstrap-servers kafka-1:9092
# Of a running worker
underhost violations --server http://127.0.0.1:8080
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Show the open findings of the running pipeline.")
    @grouped
    def violations(
        *,
        follow: FollowOption = False,
        site: Annotated[
            str | None, typer.Option(metavar="NAME", help="Only this site; all of them when absent.")
        ] = None,
        severity: Annotated[
            list[str] | None,
            typer.Option(
                metavar="SEVERITY",
                help=f"Only these (repeatable): {', '.join(SEVERITIES)}.",
                autocompletion=values.one_of(SEVERITIES),
            ),
        ] = None,
        output: Annotated[str, output_option(FORMATS)] = "table",
        worker: Worker,
        where: Topics,
    ) -> None:
        """Show the open findings of the running pipeline, from its topics or a worker."""
        one_of("--output", output, FORMATS)
        for each in severity or ():
            one_of("--severity", each, SEVERITIES)
        from underhost.agents.commands.handlers.violations import handle  # heavy: only what runs needs it

        handle(follow, site, severity, output, worker, where)
