"""The options of `underhost violations`; `handlers/violations.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import FollowOption, Topics, grouped, one_of, output_option
from underhost.schemas.severities import SEVERITIES

FORMATS = ("table", "wide", "json", "yaml", "name")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    @grouped
    def violations(
        *,
        follow: FollowOption = False,
        site: Annotated[
            str | None, typer.Option(metavar="NAME", help="Only this site; all of them when absent.")
        ] = None,
        severity: Annotated[
            list[str] | None,
            typer.Option(metavar="SEVERITY", help="Only these (repeatable).", autocompletion=values.severities),
        ] = None,
        output: Annotated[str, output_option(FORMATS)] = "table",
        where: Topics,
    ) -> None:
        """Show the open findings of the running pipeline."""
        one_of("--output", output, FORMATS)
        for each in severity or ():
            one_of("--severity", each, SEVERITIES)
        from underhost.agents.commands.handlers.violations import handle  # heavy: only what runs needs it

        handle(follow, site, severity, output, where)
