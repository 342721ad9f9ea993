"""The options of `underhost replay`; `handlers/replay.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import FailOnOption, Topics, grouped, one_of, output_option
from underhost.agents.commands.output.formats import NEVER
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.severities import QUORUM, SEVERITIES

FORMATS = ("table", "wide", "json", "yaml")
EXAMPLES = """
# As it was ten minutes ago
underhost replay --at 10m
# Why a pod waited at a time
underhost replay --at 2026-11-21T03:00:00Z --pod shop/db-2 \\
  --config underhost.yaml
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Judge a site as it was at a time.")
    @grouped
    def replay(
        *,
        at: Annotated[str, typer.Option("--at", metavar="TIME", help="2026-11-21T03:00:00Z, or 10m: so long ago.")],
        pod: Annotated[list[str] | None, typer.Option(metavar="NS/NAME", help="Explain this pod (repeatable).")] = None,
        site: Annotated[str | None, typer.Option(metavar="NAME", help="The site; absent: the configuration's.")] = None,
        output: Annotated[str, output_option(FORMATS)] = "table",
        fail_on: FailOnOption = QUORUM,
        where: Topics,
    ) -> None:
        """Judge a site as it was at a time of the last day, from what the topics hold."""
        one_of("--output", output, FORMATS)
        one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))
        from underhost.agents.commands.handlers.replay import handle  # heavy: only what runs needs it

        handle(at, pod, site, output, fail_on, where)
