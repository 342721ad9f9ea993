"""How the command line says what is wrong: one line a fault on standard error, never a traceback.

In: an error of ours. Out: the exit code that means it: 2 for bad usage, file or configuration, 3 for a backend.
"""

import os
import sys

from underhost.agents.commands.output.columns import clean
from underhost.schemas.errors import BackendError, InputError, UnderhostError


def say(error: UnderhostError) -> int:
    """One line a fault; the exit code."""
    faults = error.faults if isinstance(error, InputError) else (str(error),)
    for fault in faults:
        print(f"error: {clean(' '.join(fault.split()))}", file=sys.stderr)
    return 3 if isinstance(error, BackendError) else 2


def leave(error: UnderhostError) -> None:
    """Say what is wrong and end the process at once, whatever still runs in it."""
    code = say(error)
    sys.stderr.flush()
    os._exit(code)
