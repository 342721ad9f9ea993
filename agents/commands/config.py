"""The options of `underhost config`: the settings that a worker would run with, and the schema of the file."""

import typer

from underhost.agents.commands.input.options import Topics, grouped
from underhost.agents.commands.output.help import HelpedCommand, HelpedGroup

PRINT_EXAMPLES = """
# What a worker would run with
underhost config print --config underhost.yaml
# All defaults
underhost config print
"""
SCHEMA_EXAMPLES = """
# For an editor that completes and checks the file
underhost config schema > underhost.schema.json
"""


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        cls=HelpedGroup,
        help="Show the configuration and its schema.",
        epilog=PRINT_EXAMPLES,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(group, name="config")

    @group.command("print", cls=HelpedCommand, epilog=PRINT_EXAMPLES)
    @grouped
    def print_settings(*, where: Topics) -> None:
        """Print the settings that file, environment and flags make, defaults included."""
        from underhost.agents.commands.handlers.config import print_settings as handle  # heavy: only what runs needs it

        handle(where)

    @group.command("schema", cls=HelpedCommand, epilog=SCHEMA_EXAMPLES)
    def schema() -> None:
        """Print the JSON Schema of the configuration file."""
        from underhost.agents.commands.handlers.config import print_schema  # heavy: only what runs needs it

        print_schema()
