"""A program at a terminal of its own: what it draws can be waited for, and read."""

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

WITHIN = 60.0
"""Seconds in which something is expected on the screen."""


class Terminal:
    """Runs a program with this terminal as its screen."""

    def __init__(self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] = {}) -> None:
        self._screen, inside = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, cwd=cwd,
            env={"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8", "HOME": "/nowhere", **env},
            start_new_session=True,
        )  # fmt: skip
        os.close(inside)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        """As if somebody typed it."""
        os.write(self._screen, text.encode())

    def until(self, text: str) -> str:
        """Everything that is drawn, up to and with this text."""
        seen = ""
        while text not in seen:
            assert select.select([self._screen], [], [], WITHIN)[0], f"{text!r} did not come after {seen!r}"
            seen += os.read(self._screen, 4096).decode(errors="replace").replace("\r\n", "\n")
        return seen

    def rest(self) -> str:
        """Everything until the program has ended."""
        seen = b""
        while True:
            try:
                found = os.read(self._screen, 4096)
            except OSError:  # Linux says so at the end of a terminal
                found = b""
            if not found:
                self.process.wait(WITHIN)
                return seen.decode(errors="replace").replace("\r\n", "\n")
            seen += found
