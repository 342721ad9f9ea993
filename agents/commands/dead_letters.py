"""The options of `underhost dead-letters`; `handlers/dead_letters.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import FollowOption, Topics, grouped, one_of, output_option
from underhost.agents.commands.output.help import HelpedCommand

FORMATS = ("table", "json", "yaml")
EXAMPLES = """
# What could not be processed, and why
underhost dead-letters
# What comes, until Ctrl-C
underhost dead-letters --follow --config underhost.yaml
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("dead-letters", cls=HelpedCommand, epilog=EXAMPLES)
    @grouped
    def dead_letters(
        *,
        follow: FollowOption = False,
        output: Annotated[str, output_option(FORMATS)] = "table",
        where: Topics,
    ) -> None:
        """Show the records that could not be processed."""
        one_of("--output", output, FORMATS)
        from underhost.agents.commands.handlers.dead_letters import handle  # heavy: only what runs needs it

        handle(follow, output, where)
