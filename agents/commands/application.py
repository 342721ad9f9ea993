"""The application: every command, in the order of the help page. COMMANDS is the only list of them.

In: nothing, or the command that a line names. Out: what typer runs. A command's module is imported when it is asked
for: importing all of them, and preparing all of their options, would take as long as a small check.
"""

from importlib import import_module
from typing import Annotated

import typer

from underhost.agents.commands.output.help import HelpedGroup

NAME = "underhost"
EXAMPLES = """
# The pipeline over a simulated site, with its page
underhost demo
# What is wrong in the cluster that kubectl asks
underhost check
# Why does a pod wait, and where would it go?
underhost explain shop/db-2 -f dump.json
# What would break if a host failed?
underhost fail --each host -f dump.json --inventory inventory.json
"""
COMMANDS = (
    "run",
    "demo",
    "check",
    "explain",
    "schedule",
    "lint",
    "drain",
    "fail",
    "maintain",
    "whatif",
    "repair",
    "inventory",
    "violations",
    "replay",
    "topics",
    "dead-letters",
    "resume",
    "config",
    "completion",
)


def build(only: str = "") -> typer.Typer:
    """The application with every command, in the order of the help page; with one alone, where `only` names it."""
    app = typer.Typer(
        name=NAME,
        cls=HelpedGroup,
        epilog=EXAMPLES,
        help="Keeps Kubernetes replicas apart on the hardware underneath.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def version(
        show: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    ) -> None:
        if show:
            from importlib.metadata import version as installed  # 10 ms, which only this needs

            typer.echo(f"underhost {installed('underhost')}")
            raise typer.Exit

    for command in (only,) if only in COMMANDS else COMMANDS:
        import_module(f"{__package__}.{command.replace('-', '_')}").register(app)
    return app
