"""How the command line says what is wrong, and what is to be noted: one line each on standard error, never a traceback.

In: an error of ours. Out: the exit code that means it: 2 for bad usage, file or configuration, 3 for a backend.
"""

import os
import shutil
import sys
import textwrap

from underhost.agents.commands.output.columns import clean
from underhost.schemas.errors import BackendError, InputError, UnderhostError


def say(error: UnderhostError) -> int:
    """One line a fault; the exit code."""
    faults = error.faults if isinstance(error, InputError) else (str(error),)
    for fault in faults:
        print(f"error: {_one_line(fault)}", file=sys.stderr)
    return 3 if isinstance(error, BackendError) else 2


def leave(error: Exception) -> None:
    """Say what is wrong and end the process at once, whatever still runs in it. A bug has its traceback and code 1."""
    if isinstance(error, UnderhostError):
        code = say(error)
    else:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    sys.stderr.flush()
    os._exit(code)


def note(text: str) -> None:
    """What was read, or is meant, otherwise than it may look; on a terminal in lines that fit."""
    said = f"note: {_one_line(text)}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        said = textwrap.fill(said, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    print(said, file=sys.stderr)


def _one_line(text: str) -> str:
    """What cannot harm a terminal."""
    return clean(" ".join(text.split()))
