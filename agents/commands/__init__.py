"""The command line, one module a group of commands; COMMANDS is the only list of them."""

from collections.abc import Callable

import typer

COMMANDS: tuple[Callable[[typer.Typer], None], ...] = ()
