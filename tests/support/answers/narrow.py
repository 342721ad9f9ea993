"""What a command draws on a terminal of 80 columns, held against what it draws on a broad one."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.processes.terminal import Terminal

from underhost.agents.commands.output.progress import CLEAR as DRAWN_ANEW

PROGRAM = Path(sys.executable).parent / "underhost"
NARROW, BROAD = 80, 2000
_CLEAR = DRAWN_ANEW.replace("\r", "")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


class Misfits(NamedTuple):
    """What does not fit.

    Attributes:
        lines: those of more than 80 columns. words: those of the broad answer that the narrow one breaks or lacks.
    """

    lines: Sequence[str] = ()
    words: Sequence[str] = ()


def misfits(command: Sequence[str], folder: Path) -> Misfits:
    """What of the command's answer does not fit 80 columns; run twice, in `folder`."""
    narrow, broad = drawn(command, folder, NARROW), drawn(command, folder, BROAD)
    lines = [line for line in narrow.splitlines() if len(line) > NARROW]
    return Misfits(tuple(lines), tuple(sorted(_words(broad) - _whole(narrow))))


def drawn(command: Sequence[str], folder: Path, columns: int) -> str:
    """What is on the screen at the end."""
    with Terminal([PROGRAM, *command], folder, {"COLUMNS": str(columns), "LINES": "50"}) as screen:
        shown = screen.rest().replace("\r", "")
    last = [line.rpartition(_CLEAR)[2] for line in shown.split("\n")]  # without the line of progress before it
    return _STYLE.sub("", "\n".join(last))


def _words(shown: str) -> set[str]:
    """Its words, but for the names of columns: what is below its row needs none."""
    return {word for word in shown.split() if not word.isupper()}


def _whole(shown: str) -> set[str]:
    """Its words; those of a path that had to be cut are joined again."""
    return set(re.sub(r"(?<=[.,/])\s*\n\s+", "", shown).split()) | set(shown.split())
