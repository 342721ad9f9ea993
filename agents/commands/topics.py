"""The options of `underhost topics`; `handlers/topics.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import Topics, grouped, one_of, output_option

ASYNCAPI = "asyncapi"
FORMATS = ("table", "json", "yaml", "name", ASYNCAPI)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    @grouped
    def topics(
        *,
        name: Annotated[
            str | None,
            typer.Argument(
                metavar="TOPIC",
                help="Describe this topic (`underhost.` may be left out); absent: list all.",
                autocompletion=values.topics,
            ),
        ] = None,
        output: Annotated[str, output_option(FORMATS)] = "table",
        where: Topics,
    ) -> None:
        """List the topics as they are now, or describe one."""
        one_of("--output", output, FORMATS)
        if output == ASYNCAPI:
            from underhost.agents.commands.handlers.asyncapi import asyncapi_text  # heavy: only what runs needs it

            typer.echo(asyncapi_text(name), nl=False)
            return
        from underhost.agents.commands.handlers.topics import handle  # heavy: only what runs needs it

        handle(name, output, where)
