"""Who this worker is to a lease: the same after a restart, and never the same as another worker that lives.

In: what it works on, and a folder for a lock. Out: a name that begins with the host's, which in a pod is the pod's.
Host names are not unique (copied machines, pods in the host's network, two workers on one host), so the name also
stands for a file that this process alone has locked: the kernel lets go of the lock when the process ends, however it
ends, and not before. Workers on other sites or logs have other files: none that starts takes what a killed one left.
"""

import fcntl
import hashlib
import os
import socket
import stat
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SLOTS = 16
"""Workers of one user on one host and on one log whose leases outlast a restart."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class WorkerIdentity:
    """A name, and the lock that makes it ours; without a lock it is new at each start."""

    name: str
    lock: int | None = None

    def close(self) -> None:
        """Let go of the lock."""
        if self.lock is not None:
            os.close(self.lock)


def identify(job: str, folder: Path | None = None) -> WorkerIdentity:
    """The first identity of this host and user that no live process has; `job` names the site and the log."""
    place = folder or Path(tempfile.gettempdir()) / f"underhost-{os.getuid()}"
    with suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        if _is_ours(place):
            for slot in range(SLOTS):
                if (lock := _locked(place / f"{_digest(job)}-{slot}.lock")) is not None:
                    return WorkerIdentity(_name(_file(lock)), lock)
    return WorkerIdentity(_name(uuid.uuid4().hex))


def _is_ours(place: Path) -> bool:
    """Whether nobody else can put a file there: the folder for temporary files is everybody's."""
    found = place.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _locked(path: Path) -> int | None:
    """The open file, locked; None where another process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _file(lock: int) -> str:
    """The very file, on the very kernel: a copied machine or another pod has another one."""
    found = os.fstat(lock)
    boot = BOOT.read_text().strip() if BOOT.exists() else ""
    return f"{boot}/{found.st_dev}/{found.st_ino}"


def _name(of: str) -> str:
    return f"{socket.gethostname()}_{_digest(of)}"


def _digest(of: str) -> str:
    return hashlib.blake2b(of.encode(), digest_size=5).hexdigest()
