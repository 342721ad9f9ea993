"""What may come next on a command line: the answer to `underhost __complete WORD…`, which the shells' scripts ask.

In: the words after the program, the last of them unfinished. Out: a candidate a line, with what it is for behind a tab,
then a line `:0` (files may follow) or `:4` (they may not). This is how kubectl's own completion asks, and its plugins':
the scripts of `commands/completion.py`, and kubectl itself by `kubectl_complete-underhost`, all get the same answer.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from underhost.agents.commands.application import build

FILES, NO_FILES = 0, 4
WITHIN = 8
"""Seconds after which nothing is offered: a cluster that does not answer must not hold the shell."""
_PLACES = {"FILE", "PATH"}


def tell(words: list[str]) -> None:
    """Print the lines, and end the process: without any, where it takes too long. Nothing else is ever said."""

    def give_up(*_: object) -> None:
        print(f":{NO_FILES}", flush=True)
        os._exit(0)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(WITHIN)
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        lines = answer(words)
    signal.alarm(0)
    print(lines, end="")


def answer(words: list[str]) -> str:
    """The lines."""
    candidates, files = _candidates(_joined(words))
    lines = [f"{value}\t{about}" if about else value for value, about in candidates]
    return "".join(f"{line}\n" for line in (*lines, f":{FILES if files else NO_FILES}"))


def _joined(words: list[str]) -> list[str]:
    """bash takes `--output=js` for three words: here it is `--output js`."""
    kept = [word for word in words[:-1] if word != "="]
    return [*kept, "" if words[-1] == "=" else words[-1]] if words else [""]


def _candidates(words: list[str]) -> tuple[list[tuple[str, str]], bool]:
    command: Any = typer.main.get_command(build(words[0] if len(words) > 1 else ""))
    before, last, name = words[:-1], words[-1], "underhost"
    while hasattr(command, "commands") and before and before[0] in command.commands:
        name, *before = before
        command = command.commands[name]
    if hasattr(command, "commands") and any(not word.startswith("-") for word in before):
        return [], False  # no such command
    if hasattr(command, "commands"):
        inner = command.commands
        found = [(name, inner[name].get_short_help_str(80)) for name in inner if not inner[name].hidden]
        return _beginning(_options(command, before) if last.startswith("-") else found, last), False
    context = command.make_context(name, list(before), resilient_parsing=True)
    option, equals, begun = last.partition("=")
    takes = _taking(command, option) if equals else _taking(command, before[-1]) if before else None
    if takes is not None:
        values, files = _values(takes, context, begun if equals else last)
        joined = [(f"{option}={value}", about) for value, about in values] if equals else values
        return _beginning(joined, last), files
    if last.startswith("-") and "--" not in before:
        return _beginning(_options(command, before), last), False
    for argument in _arguments(command, context):
        values, files = _values(argument, context, last)
        return _beginning([(value, about) for value, about in values if value not in before], last), files
    return [], False


def _options(command: Any, before: list[str]) -> list[tuple[str, str]]:
    """The options that may still be given, by their long names."""
    return [
        (max(one.opts, key=len), one.help or "")
        for one in command.params
        if one.param_type_name == "option" and (one.multiple or not set(one.opts) & set(before))
    ] + [("--help", "Show this message and exit.")]


def _taking(command: Any, word: str) -> Any:
    """The option of this name, if a value comes behind it."""
    for one in command.params:
        if one.param_type_name == "option" and word in one.opts:
            return None if one.is_flag or one.count else one
    return None


def _arguments(command: Any, context: Any) -> Iterator[Any]:
    """The argument that the word would be of."""
    for one in command.params:
        if one.param_type_name == "argument" and (one.nargs == -1 or not context.params.get(one.name)):
            yield one


def _values(parameter: Any, context: Any, begun: str) -> tuple[list[tuple[str, str]], bool]:
    """What the option or argument offers; whether it takes a file."""
    items = parameter.shell_complete(context, begun)
    return [(item.value, item.help or "") for item in items], (parameter.metavar or "") in _PLACES


def _beginning(found: list[tuple[str, str]], with_: str) -> list[tuple[str, str]]:
    """Those that begin so, sorted but for options and commands, which keep the order of the help page."""
    kept = [one for one in found if one[0].startswith(with_)]
    return kept if any(about for _, about in kept) else sorted(kept)
