"""A process that carries out command lines, each in a copy of itself: half a second of imports is paid once.

In: JSON lines of words on standard input. Out: a JSON line for each, of what became of it. The evaluator is imported
and never asked here: its threads would not live on in the copies.
"""

import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time

import polars  # noqa: F401 - what commands import is no memory of an input; its threads begin when it is first asked
import pydantic  # noqa: F401 - as above
import typer  # noqa: F401 - as above

from underhost.agents import cli
from underhost.agents.commands import check as _check  # noqa: F401 - as above
from underhost.agents.commands.handlers import check, explain, lint, plans, schedule  # noqa: F401 - in the copies
from underhost.streams.files import yaml  # noqa: F401 - as above

PATIENCE = 60.0
"""Seconds of the clock until a command hangs: on a busy machine its 5 s of a processor take longer."""


def main() -> None:
    """Carry out what comes, until there is no more."""
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(tried(json.loads(line))), flush=True)


def tried(words: list[str]) -> dict[str, object]:
    """The exit code (-1: hung, or killed), what was said, seconds of a processor, and MiB above the start."""
    with tempfile.TemporaryFile() as said:
        begin, process = time.monotonic(), os.fork()
        if process == 0:
            carry_out(words, said.fileno())
        watched = os.pidfd_open(process)
        if not select.select([watched], [], [], PATIENCE)[0]:
            os.kill(process, signal.SIGKILL)
        os.close(watched)
        _, status, used = os.wait4(process, 0)
        said.seek(0)
        text = said.read().decode(errors="replace")
    begun, _, told = text.partition("\n")
    return {
        "code": os.waitstatus_to_exitcode(status) if time.monotonic() - begin < PATIENCE else -1,
        "said": told[-2000:],
        "seconds": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss / 1024 - float(begun or 0),
    }


def carry_out(words: list[str], said: int) -> None:
    """The command, as if it had been started alone; never returns. First it says how many MiB it begins with."""
    signal.alarm(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.dup2(said, 2)
    os.write(2, f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}\n".encode())
    sys.argv = ["underhost", *words]
    code = 70
    try:
        cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:  # noqa: BLE001 - what Python would print is the defect that is looked for
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
