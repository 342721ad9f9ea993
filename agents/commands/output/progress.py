"""The line that says what a long command is doing: on standard error, only where it is a terminal, only while it lasts.

In: what is being done, and how far it is. Out: one line that is drawn again and again, and is gone when the answer
comes. It begins after half a second: what is quick shows none. What else is written to standard error goes above it.
"""

import os
import shutil
import sys
import threading
import time
from typing import Any, TextIO

from underhost.agents.commands.output.columns import clean

AFTER, EVERY = 0.5, 0.1
WIDTH = 24
CLEAR = "\r\x1b[K"


class Line:
    """One line on a terminal, drawn by a thread of its own: the work need not know of it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._begun = stream, time.monotonic()
        self._full, self._empty = "━─" if "utf" in (stream.encoding or "").lower() else "#-"
        self._lock, self._ended, self._drawn = threading.RLock(), threading.Event(), False
        self._above_is_whole = True
        self._what, self._done, self._total = "", 0, 0
        self._thread = threading.Thread(target=self._draw_on, name="progress", daemon=True)
        self._thread.start()

    def show(self, what: str, done: int = 0, total: int = 0) -> None:
        """What is being done now; of how many, where that is known."""
        self._what, self._done, self._total = clean(what), done, total

    def end(self) -> None:
        """The line is gone, and does not come back."""
        self._ended.set()
        self._thread.join()
        with self._lock:
            self._clear()

    def write_above(self, text: str) -> int:
        """Something else for the terminal."""
        with self._lock:
            self._clear()
            if text:
                self._above_is_whole = text.endswith("\n")
            return self._stream.write(text)

    def _draw_on(self) -> None:
        wait = AFTER
        while not self._ended.wait(wait):
            wait = EVERY
            with self._lock:
                if not self._above_is_whole:
                    continue  # `print` writes the end of its line by itself: it would be drawn over
                self._stream.write(CLEAR + self._text()[: shutil.get_terminal_size().columns - 1])
                self._stream.flush()
                self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            self._stream.write(CLEAR)
            self._stream.flush()
            self._drawn = False

    def _text(self) -> str:
        seconds = f"{time.monotonic() - self._begun:.0f} s"
        if not self._total:
            return f"{self._what} … {seconds}"
        full = WIDTH * self._done // self._total
        return (
            f"{self._what} {self._full * full}{self._empty * (WIDTH - full)} {self._done:,}/{self._total:,}  {seconds}"
        )


class _Above:
    """Standard error while there is a line: what is written to it does not run into the line."""

    def __init__(self, line: Line, stream: TextIO) -> None:
        self._line, self._stream = line, stream

    def write(self, text: str) -> int:
        return self._line.write_above(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_current: list[tuple[Line, TextIO]] = []


def say(what: str, done: int = 0, total: int = 0) -> None:
    """This is being done now; "" is what was said last. Nothing happens where nobody looks."""
    if not what:
        return
    if not _current:
        stream = sys.stderr
        if not stream.isatty() or os.environ.get("TERM") == "dumb":
            return
        line = Line(stream)
        _current.append((line, stream))
        sys.stderr = _Above(line, stream)
    _current[0][0].show(what, done, total)


def end() -> None:
    """The answer comes: the line makes room for it."""
    while _current:
        line, stream = _current.pop()
        line.end()
        sys.stderr = stream
