"""The command line, one module a command; COMMANDS is the only list of them.

A module is imported when its command is asked for: importing all of them, and preparing all of their options, would
take as long as a small check.
"""

from collections.abc import Callable
from importlib import import_module

import typer

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
    "inventory",
    "violations",
    "replay",
    "topics",
    "dead-letters",
    "resume",
    "config",
    "completion",
)


def registers(only: str = "") -> list[Callable[[typer.Typer], None]]:
    """What adds each command to the application: of one command, or of all where `only` names none."""
    names = (only,) if only in COMMANDS else COMMANDS
    return [import_module(f"{__name__}.{name.replace('-', '_')}").register for name in names]
