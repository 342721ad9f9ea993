"""The command line's table of contents: every command registers itself here, heavy imports wait until one runs.

Exit codes: 0 as the command's answer, 1 as its answer too (findings, pods left pending), 2 for bad usage, file or
configuration, 3 for a backend that is unreachable or refuses; 130 after Ctrl-C, 141 where nobody reads what is
printed. Errors are one line on standard error, never a traceback.
As `kubectl-underhost` on PATH it is kubectl's plugin, and calls itself `kubectl underhost`.
"""

import errno
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import typer
    from typer.exceptions import TyperException

    from underhost.agents.commands.application import NAME, build
    from underhost.agents.commands.input.completing import tell
    from underhost.agents.commands.output import progress
    from underhost.agents.commands.output.errors import say
    from underhost.schemas.errors import InputError, UnderhostError
    from underhost.schemas.frames import use_one_thread
    from underhost.schemas.near import did_you_mean
except KeyboardInterrupt:  # half a second of imports, before `main` can say that it has ended
    sys.exit(130)

PLUGIN = "kubectl underhost"
COMPLETE = "__complete"
"""Asks what may come next, as kubectl's own completion does: `underhost __complete drain ku`."""
READER_GONE = 141
"""As of any program in a pipe: 0 or 1 would be an answer that nobody has read to its end."""
_GC = (200_000, 20, 20)
"""Objects that are made between two collections: more than a command imports, all of which each would visit."""
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""What writing to standard output can fail with; an error of a file names the file."""


def main() -> None:
    """Run the command line; the exit code is the process's."""
    use_one_thread()
    gc.set_threshold(*_GC)
    words = sys.argv[1:]
    if words[:1] == [COMPLETE]:
        complete(words[1:])
        return
    if sys.stdout is None:  # closed by whoever started us (`>&-`): the exit code is all they ask for
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process
    name = PLUGIN if Path(sys.argv[0]).name.startswith("kubectl") else NAME
    try:
        command = typer.main.get_command(build(words[0] if words else ""))
        if name == PLUGIN:
            _speak_as_plugin(command)
        code = _run(command, name, words)
        progress.end()
        sys.stdout.flush()
    except UnderhostError as error:
        code = say(error)
    except TyperException as error:
        code = _say_usage(error)
    except (typer.Abort, KeyboardInterrupt, EOFError):
        code = 130
    except BrokenPipeError:  # the reader of our output is gone (`| head`): nothing is left to say
        code = READER_GONE
        _drop_output()
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        code = say(InputError(f"standard output: {error.strerror}: it is not whole"))
        _drop_output()
    finally:
        progress.end()
    sys.exit(code)


def _run(command: Any, name: str, words: Sequence[str]) -> int:
    """Run a command; the exit code. Typer's own `main` ends with 1 where the reader of our output is gone."""
    try:
        with command.make_context(name, list(words)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def program() -> None:
    """`main` as a process of its own. Where a whole site was read it ends at once: nobody needs that taken apart."""
    try:
        main()
    except SystemExit as end:
        if gc.get_freeze_count() and isinstance(end.code, int):
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:  # closed by whoever started us
                    stream.flush()
            os._exit(end.code)
        raise


def complete(words: list[str] | None = None) -> None:
    """Print what may stand in the place of the last word; kubectl runs it as `kubectl_complete-underhost`."""
    tell(sys.argv[1:] if words is None else words)


def _drop_output() -> None:
    """Let what is still buffered for standard output go nowhere: writing it at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_usage(error: TyperException) -> int:
    """What cannot be parsed, with the option or command that was probably meant, in one line; the exit code.

    A group of commands that is named alone tells its help instead.
    """
    context: Any = getattr(error, "ctx", None)
    if context is not None and error.message == context.get_help():
        print(error.message, file=sys.stderr)
        return error.exit_code
    said = error.format_message().partition(" (Possible")[0].partition(". Did you mean")[0].rstrip(".")
    said = said[:1].lower() + said[1:]
    if context is not None:
        option = getattr(error, "option_name", None)
        names = [name for one in context.command.params for name in one.opts if name.startswith("-")]
        if option is not None:
            said += did_you_mean(option, names)
        elif hasattr(context.command, "commands"):
            said += did_you_mean(said.partition("'")[2].rstrip("'"), context.command.commands)
        said = f"{context.command_path}: {said} (see {context.command_path} --help)"
    print(f"error: {said}", file=sys.stderr)
    return error.exit_code


def _speak_as_plugin(command: Any) -> None:
    """Help texts name commands as whoever reads them types them."""
    for one in (command, *command.params):
        if one.help:
            one.help = one.help.replace(f"{NAME} ", f"{PLUGIN} ")
    if command.epilog:
        command.epilog = command.epilog.replace(f"{NAME} ", f"{PLUGIN} ")
    for inner in getattr(command, "commands", {}).values():
        _speak_as_plugin(inner)
