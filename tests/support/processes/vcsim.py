"""A vCenter simulator of one's own: started on a free port of loopback, ended by its pid."""

import base64
import json
import re
import ssl
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple

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


def hang_up(service: Any) -> None:
    """Close an operator's connections without a logout: vcsim never answers one behind updates that nobody takes."""
    service._GetStub().DropConnections()


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


class Tagging:
    """What people do with tags, by plain HTTP."""

    def __init__(self, vcsim: Vcsim) -> None:
        self._base, self._tls = f"https://127.0.0.1:{vcsim.port}/rest/com/vmware/cis", ssl.create_default_context()
        self._tls.load_verify_locations(cadata=vcsim.certificate)
        basic = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        self._headers = {"vmware-api-session-id": self._ask("POST", "/session", None, Authorization=f"Basic {basic}")}

    def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {**getattr(self, "_headers", {}), "Content-Type": "application/json", **headers}
        request = urllib.request.Request(self._base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10, context=self._tls) as answer:
            return json.loads(answer.read() or b"{}").get("value")

    def category(self, name: str) -> str:
        spec = {"name": name, "description": "", "cardinality": "SINGLE", "associable_types": []}
        return str(self._ask("POST", "/tagging/category", {"create_spec": spec}))

    def tag(self, category: str, name: str) -> str:
        spec = {"name": name, "description": "", "category_id": category}
        return str(self._ask("POST", "/tagging/tag", {"create_spec": spec}))

    def attach(self, tag: str, type_: str, ref: str) -> None:
        path = f"/tagging/tag-association/id:{tag}?~action=attach"
        self._ask("POST", path, {"object_id": {"type": type_, "id": ref}})
