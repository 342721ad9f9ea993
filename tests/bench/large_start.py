"""The first start of a worker over a large site, and its restart after a `kill -9`: CPU, seconds and memory.

`bench.large_start PARTS SERVER [NODES APPS [CHANGES]]`. Prints `name<TAB>value` lines. A real API server has 5,000
nodes and 150,000 pods of 5.8 KB (`support.sites.real_size`), the topics are on an Apache Kafka, the VMs in an
inventory. A worker of all agents runs until `/readyz` says that it is: everything is listed, on its topics, in its
tables, and judged. With CHANGES it is restarted once more, after a day of so many changes (`bench.history`).
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from bench.history import add_history
from bench.usage import cpu_of
from support.processes.crowd import fill
from support.processes.kube import Kube, start_kube
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite
from support.sites.real_size import real_node, real_pod

from underhost.streams.settings.kafka import KafkaSettings

SITE = "large"
LOOK, PATIENCE = 0.25, 600.0


def objects(site: LargeSite) -> Iterator[dict[str, Any]]:
    """Namespaces, nodes and pods as they are stored."""
    names = [f"team-{number}" for number in range(40)]
    spaces = ({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "uid": name}} for name in names)
    stored = (real_pod(one) if one["kind"] == "Pod" else real_node(one) for one in site.objects())
    return chain(spaces, stored)


def config(folder: Path, kube: Kube, server: str, site: LargeSite, web: int) -> Path:
    """The worker's configuration; every sink is a dry run."""
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
    return path


def start(command: list[str], log: Path, web: int) -> tuple["subprocess.Popen[bytes]", dict[str, float]]:
    """The worker once it is ready, and what that took."""
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


def main() -> None:
    """Measure and print."""
    parts, server = Path(sys.argv[1]), sys.argv[2]
    site = LargeSite(*map(int, sys.argv[3:5])) if sys.argv[3:] else LargeSite()
    changes = int(sys.argv[5]) if sys.argv[5:] else 0
    with tempfile.TemporaryDirectory() as name, start_kube(Path(name) / "kube", parts) as kube:
        folder, [web] = Path(name), free_ports(1)
        kube.kill()
        size = fill(kube.etcd, objects(site))
        kube.restart()
        print(f"a large site: its objects, MB\t{size / 1e6:.0f}")
        command = [UNDERHOST, "run", "--config", str(config(folder, kube, server, site, web))]

        def measure(title: str) -> None:
            worker, figures = start(command, folder / "worker.log", web)
            worker.kill()
            worker.wait()
            for what, value in figures.items():
                print(f"a large site: {title}, {what}\t{value:.1f}", flush=True)

        measure("first start")
        measure("restart")
        if changes:
            history = add_history(server, SITE, KafkaSettings().partitions, changes)
            print(f"a day: changes\t{history.changes}")
            print(f"a day: records of the changelog then\t{history.changelog}", flush=True)
            measure("restart after a day")


if __name__ == "__main__":
    main()
