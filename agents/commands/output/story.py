"""How the demo speaks: sentences with the seconds since its start, in colour only where somebody looks.

In: a headline and the lines below it. Out: text on standard output, at once.
"""

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence

import typer

from underhost.agents.commands.output.columns import clean

INDENT = " " * 10
TONES: dict[str, dict[str, object]] = {
    "": {"bold": True},
    "bad": {"fg": "red", "bold": True},
    "good": {"fg": "green", "bold": True},
    "quiet": {"dim": True},
}


class Teller:
    """Prints what is told. Its clock starts when it is made."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._terminal = sys.stdout.isatty()
        self._colour = False if os.environ.get("NO_COLOR") else None

    def say(self, lines: Sequence[str], tone: str = "", commands: Sequence[str] = ()) -> None:
        """A headline, with the time, and the lines below it; `commands` are never broken: they are copied."""
        stamp = f"{time.monotonic() - self._begin:7.1f}s  "
        headline, *below = [self._wrapped(clean(line)) for line in lines]
        for begin, part in zip([stamp, *[INDENT] * len(headline)], headline, strict=False):
            typer.echo(begin + typer.style(part, **TONES[tone]), color=self._colour)  # type: ignore[arg-type]
        for part in (part for line in below for part in line):
            typer.echo(INDENT + part, color=self._colour)
        for command in commands:
            typer.echo(INDENT + clean(command), color=self._colour)
        sys.stdout.flush()

    def _wrapped(self, line: str) -> list[str]:
        """Lines that fit the terminal; elsewhere a line stays one, for whoever searches it."""
        if not self._terminal:
            return [line]
        width = max(40, shutil.get_terminal_size().columns - len(INDENT))
        return textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
