"""The options of `underhost resume SITE`; `handlers/resume.py` does it."""

from typing import Annotated

import typer

from underhost.agents.commands.input.options import Topics, grouped


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Accept an inventory that shrank.")
    @grouped
    def resume(
        *,
        site: Annotated[str, typer.Argument(metavar="SITE", help="The site, as `site` in its configuration.")],
        where: Topics,
    ) -> None:
        """Accept an inventory that shrank by more than 40 %, and let the site's writes go on."""
        from underhost.agents.commands.handlers.resume import handle  # heavy: only what runs needs it

        handle(site, where)
