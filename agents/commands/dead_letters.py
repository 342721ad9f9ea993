"""The options of `underhost dead-letters`; `handlers/dead_letters.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import FollowOption, Topics, grouped, one_of, output_option

FORMATS = ("table", "json", "yaml")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("dead-letters")
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
