"""The command line's table of contents: every command registers itself here, heavy imports wait until one runs.

Exit codes: 0 as the command's answer, 1 as its answer too (findings, pods left pending), 2 for bad usage, file or
configuration, 3 for a backend that is unreachable or refuses. Errors are one line on standard error, never a traceback.
"""

import gc
import os
import sys
from typing import Annotated

import typer

from underhost.schemas.errors import BackendError, InputError, UnderhostError

_GC = (50_000, 20, 20)


def build(only: str = "") -> typer.Typer:
    """The application with every command, in the order of the help page; with one alone, where `only` names it."""
    from underhost.agents.commands import registers

    app = typer.Typer(
        name="underhost",
        help="Keeps Kubernetes replicas apart on the hardware underneath.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def version(
        show: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    ) -> None:
        if show:
            from importlib.metadata import version as installed

            typer.echo(f"underhost {installed('underhost')}")
            raise typer.Exit

    for register in registers(only):
        register(app)
    return app


def main() -> None:
    """Run the command line; the exit code is the process's."""
    gc.set_threshold(*_GC)  # what is read and imported is no garbage, and every collection would visit it
    try:
        build(sys.argv[1] if len(sys.argv) > 1 else "")()
    except UnderhostError as error:
        sys.exit(_say(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): nothing is left to say, and flushing at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def leave(error: UnderhostError) -> None:
    """Say what is wrong and end the process at once, whatever still runs in it."""
    code = _say(error)
    sys.stderr.flush()
    os._exit(code)


def _say(error: UnderhostError) -> int:
    """One line a fault on standard error; the exit code."""
    faults = error.faults if isinstance(error, InputError) else (str(error),)
    for fault in faults:
        print(f"error: {' '.join(fault.split())}", file=sys.stderr)
    return 3 if isinstance(error, BackendError) else 2
