"""A real kube-apiserver over etcd, on free loopback ports, in a folder of its own; ended by pid."""

import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from support.processes.ports import free_ports

START_TIMEOUT = 120.0
AUDIT_LOG_SIZE = 100_000
"""MB. The server would turn its log of writes over after 100, and whoever reads it on would miss what came before."""
ADMIN_TOKEN = "admintoken"
NOBODY_TOKEN = "nobodytoken"
"""The token of a user without any rights: what it asks for is answered 403."""
USER_TOKENS = {name: f"{name}token" for name in ("watcher", "actor")}
"""Tokens of users that have the rights a test gives them."""
ADMINS = {f"worker-{number}": f"worker-{number}-token" for number in (1, 2, 3)}
"""Tokens of cluster admins that the audit log can tell apart."""

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}", certificate-authority: {ca}}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
"""


@dataclass(frozen=True)
class Kube:
    """A running API server: `kubeconfig` is a cluster admin's, `server` its address, `ca` its certificate.

    `kill` ends the server as a crash does, etcd stays; `restart` starts it again at the same address and waits for it.
    `pids` are the processes of the server and of etcd.
    """

    folder: Path
    server: str
    kubeconfig: Path
    ca: Path
    etcd: str
    kill: Callable[[], None]
    restart: Callable[[], None]
    pids: Callable[[], list[int]] = list

    def kubeconfig_of(
        self, token: str, *, ca: Path | None = None, server: str = "", folder: Path | None = None
    ) -> Path:
        """A kubeconfig with another token, CA or address, in this folder."""
        text = KUBECONFIG.format(server=server or self.server, ca=ca or self.ca, token=token)
        folder = folder or self.folder
        path = folder / f"kubeconfig-{len(list(folder.glob('kubeconfig*')))}"
        path.write_text(text)
        return path


@contextmanager
def start_kube(folder: Path, parts: Path, *flags: str) -> Iterator[Kube]:
    """etcd and kube-apiserver from the built parts; `flags` are more flags of kube-apiserver."""
    folder.mkdir(parents=True, exist_ok=True)
    client, peer, api = free_ports(3)
    etcd, server = f"http://127.0.0.1:{client}", f"https://127.0.0.1:{api}"
    (folder / "pki").mkdir()
    key = folder / "pki" / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    tokens = folder / "tokens.csv"
    users = "".join(f"{token},{name},{name}\n" for name, token in USER_TOKENS.items())
    users += "".join(f"{token},{name},{name},system:masters\n" for name, token in ADMINS.items())
    tokens.write_text(f"{ADMIN_TOKEN},admin,admin,system:masters\n{NOBODY_TOKEN},nobody,nobody\n{users}")
    started: dict[str, subprocess.Popen[bytes]] = {}
    ca = folder / "pki" / "apiserver.crt"
    arguments = {
        "etcd": _etcd_flags(folder, etcd, peer),
        "kube-apiserver": [*_api_flags(folder, etcd, api, key, tokens), *flags],
    }

    def start(name: str) -> None:
        with (folder / f"{name}.log").open("ab") as out:
            started[name] = subprocess.Popen([str(parts / name), *arguments[name]], stdout=out, stderr=out, cwd=folder)

    def kill(name: str = "kube-apiserver") -> None:
        started[name].kill()  # the state is thrown away, and a clean stop would wait for watches to end
        started[name].wait()

    def restart() -> None:
        start("kube-apiserver")
        _wait(server, ca, started, folder)

    try:
        start("etcd")
        restart()
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(server=server, ca=ca, token=ADMIN_TOKEN))
        yield Kube(folder, server, kubeconfig, ca, etcd, kill, restart, lambda: [one.pid for one in started.values()])
    finally:
        for name in reversed(started):
            kill(name)


def _etcd_flags(folder: Path, url: str, peer: int) -> list[str]:
    return [
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
    ]


def _api_flags(folder: Path, etcd: str, port: int, key: Path, tokens: Path) -> list[str]:
    return [
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'pki'}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--disable-admission-plugins=ServiceAccount",
        f"--audit-log-maxsize={AUDIT_LOG_SIZE}",
    ]


def _wait(server: str, ca: Path, processes: Mapping[str, subprocess.Popen[bytes]], folder: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        for name, process in processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended: {(folder / f'{name}.log').read_text()[-2000:]}")
        with suppress(OSError, urllib.error.URLError, ssl.SSLError):
            request = urllib.request.Request(f"{server}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            context = ssl.create_default_context(cafile=str(ca))
            with urllib.request.urlopen(request, timeout=2, context=context) as answer:
                if answer.read() == b"ok":
                    return
        time.sleep(0.2)
    raise RuntimeError(f"kube-apiserver is not ready after {START_TIMEOUT} s, see {folder}")
