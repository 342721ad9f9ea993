"""The options of `underhost resume SITE`; `handlers/resume.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import Topics, grouped
from underhost.agents.commands.output.help import HelpedCommand

EXAMPLES = """
# The cluster, or the vCenter, is really that small now
underhost resume prod-a --config underhost.yaml
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(cls=HelpedCommand, epilog=EXAMPLES, short_help="Accept an inventory that shrank.")
    @grouped
    def resume(
        *,
        site: Annotated[str, typer.Argument(metavar="SITE", help="The site, as `site` in its configuration.")],
        where: Topics,
    ) -> None:
        """Accept an inventory that shrank by more than 40 %, and let the site's writes go on."""
        from underhost.agents.commands.handlers.resume import handle  # heavy: only what runs needs it

        handle(site, where)
