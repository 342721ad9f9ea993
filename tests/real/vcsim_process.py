"""A vCenter simulator of one's own: started on a free port of loopback, ended by its pid."""

import re
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import NamedTuple

USERNAME, PASSWORD = "user", "pass"


class Vcsim(NamedTuple):
    """A running simulator: `url` is what a client takes, `port` where it listens."""

    process: subprocess.Popen[str]
    url: str
    port: int

    @property
    def certificate(self) -> str:
        """The server's certificate (PEM), to be trusted by who asks for it; it names 127.0.0.1 and not localhost."""
        return ssl.get_server_certificate(("127.0.0.1", self.port))

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(5)


def start_vcsim(parts: Path, hosts: int = 7, vms: int = 7, *options: str, port: int = 0) -> Vcsim:
    """One cluster DC0_C0 with so many hosts and running VMs; port 0 takes a free one. Raises RuntimeError."""
    command = [str(parts / "vcsim"), "-l", f"127.0.0.1:{port}", "-host", str(hosts), "-vm", str(vms), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said: Queue[str] = Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:  # read for ever: a full pipe would stop the simulator
            said.put(line)
        said.put("")

    Thread(target=read, daemon=True).start()
    lines = []
    while True:
        try:
            line = said.get(timeout=30)
        except Empty:
            line = ""
        if not line:
            process.kill()
            raise RuntimeError(f"vcsim did not start: {''.join(lines)}")
        lines.append(line)
        if found := re.search(r"@127\.0\.0\.1:(\d+)/sdk", line):
            return Vcsim(process, f"https://127.0.0.1:{found[1]}/sdk", int(found[1]))
