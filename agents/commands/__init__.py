"""The command line, one module a group of commands; COMMANDS is the only list of them."""

from collections.abc import Callable

import typer

from underhost.agents.commands import (
    check,
    config,
    dead_letters,
    demo,
    explain,
    inventory,
    lint,
    run,
    schedule,
    topics,
    violations,
)

COMMANDS: tuple[Callable[[typer.Typer], None], ...] = (
    run.register,
    demo.register,
    check.register,
    explain.register,
    schedule.register,
    lint.register,
    inventory.register,
    violations.register,
    topics.register,
    dead_letters.register,
    config.register,
)
