"""The options of `underhost config`: the settings that a worker would run with, and the schema of the file."""

import typer

from underhost.agents.commands.input.options import Topics, grouped


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Show the configuration and its schema.", no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(group, name="config")

    @group.command("print")
    @grouped
    def print_settings(*, where: Topics) -> None:
        """Print the settings that file, environment and flags make, defaults included."""
        from underhost.agents.commands.handlers.config import print_settings as handle  # heavy: only what runs needs it

        handle(where)

    @group.command("schema")
    def schema() -> None:
        """Print the JSON Schema of the configuration file."""
        from underhost.agents.commands.handlers.config import print_schema  # heavy: only what runs needs it

        print_schema()
