"""The options of `underhost check`; `handlers/check.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import (
    Among,
    FailOnOption,
    HostKeyOption,
    WatchOption,
    grouped,
    one_of,
    output_option,
)
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.formats import NEVER, REPORT_FORMATS, refuse_terminal
from underhost.agents.commands.output.help import HelpedCommand
from underhost.schemas.severities import QUORUM, SEVERITIES

EXAMPLES = """
# The cluster that kubectl asks
underhost check
# A dump, with the hosts below its nodes
underhost check -f dump.json --inventory inventory.json
# Only one namespace, and only what breaks a rule is exit code 1
underhost check -n shop -f dump.json --fail-on violation
# Ask kubectl for the pods that findings are about
underhost check -f dump.json -o name | xargs -L1 kubectl get
# For code scanning
underhost check -f dump.json --inventory inventory.json -o sarif
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Find what is wrong with the running pods.")
    @grouped
    def check(
        *,
        source: From,
        among: Among,
        output: Annotated[str, output_option(REPORT_FORMATS)] = "table",
        fail_on: FailOnOption = QUORUM,
        drift: Annotated[bool, typer.Option("--drift", help="Also preferences that another node would meet.")] = False,
        host_key: HostKeyOption = None,
        watch: WatchOption = False,
    ) -> None:
        """Find violations, shared hosts, blocked budgets and drift among the running pods."""
        one_of("--output", output, REPORT_FORMATS)
        refuse_terminal(output, watch=watch)
        one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))
        from underhost.agents.commands.handlers.check import handle  # heavy: only what runs needs it

        handle(source, among, output, fail_on, drift, host_key, watch)
