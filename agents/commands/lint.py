"""The options of `underhost lint`; `handlers/lint.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import FailOnOption, HostKeyOption, grouped, one_of, output_option
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.formats import NEVER, REPORT_FORMATS, refuse_terminal
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.severities import SEVERITIES, UNSATISFIABLE

EXAMPLES = """
# Manifests alone
underhost lint -f manifests/
# Manifests beside the cluster that they are for
underhost lint -f manifests/ -f dump.json
# Also preferences that do nothing are exit code 1
underhost lint -f manifests/ --fail-on drift
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Find rules that can never work.")
    @grouped
    def lint(
        *,
        source: From,
        output: Annotated[str, output_option(REPORT_FORMATS)] = "table",
        fail_on: FailOnOption = UNSATISFIABLE,
        host_key: HostKeyOption = None,
    ) -> None:
        """Find rules that can never work, or do nothing, in manifests and dumps."""
        one_of("--output", output, REPORT_FORMATS)
        refuse_terminal(output)
        one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))
        from underhost.agents.commands.handlers.lint import handle  # heavy: only what runs needs it

        handle(source, output, fail_on, host_key)
