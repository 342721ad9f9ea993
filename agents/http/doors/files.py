"""Files that a door is made of, looked at whenever somebody comes, so that rotated ones are used without a restart.

In: paths, and how what they hold is read. Out: what was read last; a file that has become unreadable changes nothing
but the log, as half of a rotation must not shut the door.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from underhost.schemas.errors import InputError

log = logging.getLogger(__name__)

T = TypeVar("T")
Signature = tuple[tuple[int, int, int], ...]


class KeptFresh(Generic[T]):
    """What `read` makes of the files, made anew once they have changed. Raises InputError where that fails at first."""

    def __init__(self, paths: Sequence[Path], read: Callable[[], T]) -> None:
        self._paths, self._read = tuple(paths), read
        self._signature = self._look()
        self._held = read()

    def current(self) -> T:
        """What the files hold now, or held when they could be read last."""
        if (signature := self._look()) != self._signature:
            self._signature = signature
            try:
                self._held = self._read()
                log.info("%s: read again", ", ".join(map(str, self._paths)))
            except InputError as error:
                log.error("what was read before stays in use: %s", error)
        return self._held

    def _look(self) -> Signature | None:
        try:
            return tuple((at.st_mtime_ns, at.st_size, at.st_ino) for at in (path.stat() for path in self._paths))
        except OSError:
            return None  # reading says why
