"""A worker of all agents over a real API server with many pods of real size, its topics on an Apache Kafka.

In: a site and a broker. Out: the server, filled; the worker's configuration; and the worker once `/readyz` says that
everything is listed, on its topics, in its tables, and judged. The VMs are in an inventory.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from bench.usage import cpu_of
from support.processes.crowd import fill
from support.processes.kube import Kube, start_kube
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite
from support.sites.real_size import real_node, real_pod

SITE = "large"
LOOK, PATIENCE = 0.25, 600.0


@contextmanager
def server_with(folder: Path, parts: Path, stored: Iterable[dict[str, Any]]) -> Iterator[tuple[Kube, int]]:
    """A real API server that holds these objects, and their bytes."""
    with start_kube(folder / "kube", parts) as kube:
        kube.kill()
        size = fill(kube.etcd, stored)
        kube.restart()
        yield kube, size


def objects(site: LargeSite) -> Iterator[dict[str, Any]]:
    """Namespaces, nodes and pods as they are stored."""
    names = [f"team-{number}" for number in range(40)]
    spaces = ({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "uid": name}} for name in names)
    stored = (real_pod(one) if one["kind"] == "Pod" else real_node(one) for one in site.objects())
    return chain(spaces, stored)


def command(folder: Path, kube: Kube, server: str, site: LargeSite, web: int) -> list[str]:
    """What starts the worker; every sink is a dry run."""
    inventory, path = folder / "inventory.json", folder / "underhost.yaml"
    inventory.write_text(json.dumps(site.inventory()))
    tree = {
        "apiVersion": "underhost/v1",
        "kind": "Config",
        "site": SITE,
        "kafka": {"bootstrapServers": server},
        "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
        "vsphere": {"inventory": str(inventory)},
        "web": {"listen": f"127.0.0.1:{web}"},
    }
    path.write_text(json.dumps(tree))
    return [UNDERHOST, "run", "--config", str(path)]


def start(command: list[str], log: Path, web: int) -> tuple["subprocess.Popen[bytes]", dict[str, float]]:
    """The worker once it is ready, and what that took: seconds, CPU, memory."""
    began = time.perf_counter()
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    while not is_ready(web):
        if process.poll() is not None or time.perf_counter() > began + PATIENCE:
            process.kill()
            sys.exit(f"the worker is not ready: {log.read_text()[-2000:]}")
        time.sleep(LOOK)
    status = Path(f"/proc/{process.pid}/status").read_text()
    memory = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return process, {"s": time.perf_counter() - began, "CPU s": cpu_of(process.pid), "memory, MiB": memory}


def is_ready(web: int) -> bool:
    """Whether the worker says so."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
