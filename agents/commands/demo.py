"""The options of `underhost demo`; `handlers/demo.py` does it."""

import math
from pathlib import Path
from typing import Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import ServersOption
from underhost.agents.commands.output.help import TOPICS, HelpedCommand
from underhost.schemas.errors import InputError

STEP_SECONDS = 90.0
"""How long a step is waited for: longer than a minute, in which the DRS sink makes two edits at most."""
EXAMPLES = """
# A simulated site, its story, and the page at http://127.0.0.1:8080
underhost demo
# End after the story
underhost demo --once
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Run the pipeline over a simulated site.")
    def demo(
        scenario: Annotated[
            str, typer.Argument(metavar="SCENARIO", help="The simulated site.", autocompletion=values.scenarios)
        ] = "kubevirt",
        once: Annotated[bool, typer.Option("--once", help="End after the story instead of running on.")] = False,
        embedded: Annotated[
            Path | None,
            typer.Option(
                "--embedded",
                metavar="FILE",
                help="File of the embedded log; absent: a temporary one.",
                rich_help_panel=TOPICS,
            ),
        ] = None,
        bootstrap_servers: ServersOption = None,
        listen: Annotated[
            str | None,
            typer.Option(
                "--listen", "--web", metavar="HOST:PORT", help="The page; absent: 127.0.0.1:8080 or a free port."
            ),
        ] = None,
        seed: Annotated[
            int | None, typer.Option(metavar="NUMBER", help="Decides the generated names; absent: others each time.")
        ] = None,
        step_timeout: Annotated[
            float, typer.Option(metavar="SECONDS", help="How long a step of the story may take.")
        ] = STEP_SECONDS,
    ) -> None:
        """Run the pipeline over a simulated site and tell its story."""
        if not 0 < step_timeout < math.inf:
            raise InputError(f"--step-timeout {step_timeout:g}: more than 0 seconds are expected")
        from underhost.agents.commands.handlers.demo import handle  # heavy: only what runs needs it

        handle(scenario, once, embedded, bootstrap_servers, listen, seed, step_timeout)
