"""`make bench`: every comparison within one run, figures printed as they come. Arguments choose benches by name.

Absolute times depend on the machine and say little; ratios, memory and what is compared with what are what counts.
Real parts are used where they are built (`make parts`); a bench that needs missing ones says so and is left out.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

from support.processes.kafka import KafkaProcess
from support.processes.parts import built_parts


def pipeline() -> None:
    """Changes per second from topic to evaluated finding, latency and memory: 1,000 nodes, 10,000 pods."""
    _show("embedded default", "pipeline", "embedded")
    parts, why = built_parts()
    if parts is None:
        print(f"  Apache Kafka: left out, {why}")
        return
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaProcess(Path(folder), parts)
        broker.start()
        try:
            _show("Apache Kafka", "pipeline", broker.address)
        finally:
            broker.kill()


def check() -> None:
    """A check of 7 nodes beside an import of polars; a check of 5,000 nodes with 150,000 pods on 512 hosts."""
    _show("underhost check", "check")


def schedule() -> None:
    """A whole `underhost schedule` beside the placement loop of the upstream scheduler alone; equal placements."""
    if shutil.which("go") is None:
        print("  left out, the upstream scheduler's plugins need Go to be built")
        return
    for nodes in ("1000", "5000"):
        _show(f"{nodes} nodes", "schedule", nodes)


def labels() -> None:
    """Fifty different nodes move every second, for 30 s: from each real vMotion to its label."""
    parts, why = built_parts()
    if parts is None:
        print(f"  left out, {why}")
        return
    _show("embedded default", "labels", str(parts), "30", "50")


def label() -> None:
    """From a real vMotion to the label on the Node: kube-apiserver, vcsim, and either transport."""
    parts, why = built_parts()
    if parts is None:
        print(f"  left out, {why}")
        return
    _show("embedded default", "label", str(parts), "embedded", "28")
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaProcess(Path(folder), parts)
        broker.start()
        try:
            _show("Apache Kafka", "label", str(parts), broker.address, "28")
        finally:
            broker.kill()


def _show(title: str, script: str, *arguments: str) -> None:
    print(f"  {title}", flush=True)
    done = subprocess.run([sys.executable, "-m", f"bench.{script}", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{script} failed:\n{done.stderr[-3000:]}")
    for line in done.stdout.splitlines():
        name, _, value = line.partition("\t")
        print(f"    {name:<36} {value:>10}")


def resident() -> None:
    """The resident evaluator: one change, and bursts of 200 pods, judged and decided; CPU times."""
    _show("one change, 5,000 nodes with 150,000 pods on 512 hosts", "resident")
    _show("bursts, 1,000 nodes with 3,000 pods", "burst", "1000", "150")
    _show("bursts, 5,000 nodes with 150,000 pods", "burst", "5000", "7500")


def drs() -> None:
    """What DRS rules cost beside the evaluation of one change; CPU times."""
    _show("5,000 nodes with 150,000 pods on 512 hosts", "drs")


def extender() -> None:
    """Answers to kube-scheduler over HTTP, by node name: 5,000 nodes and 50,000 pods that change meanwhile."""
    for title, rate in (("50 other changes a second", "50"), ("no other changes", "0")):
        _show(title, "extender", "5000", "50000", "500", rate)


def page() -> None:
    """The page in Chromium with 1,000 nodes and 20,000 pods: the first map, a search, a scroll."""
    if shutil.which("chromium") is None:
        print("  left out, there is no Chromium")
        return
    _show("1,000 nodes, 20,000 pods", "page")


def first_finding() -> None:
    """From a fresh clone, with a warm package cache, to the first finding on the page."""
    if shutil.which("chromium") is None:
        print("  left out, there is no Chromium")
        return
    _show("git clone, make run, a browser", "first_finding")


def whatif() -> None:
    """A plan beside a check of the same files: 5,000 nodes with 150,000 pods on 512 hosts; every host failing alone."""
    _show("what-if", "whatif")


def repair() -> None:
    """The fewest moves: 12 planted findings on 200 VMs of 50 hosts, 300 on 5,000 VMs of 1,250 hosts."""
    _show("repair", "repair")


def tables() -> None:
    """The same questions in polars and in numpy, for all pods and for one: 5,000 nodes, 150,000 pods."""
    _show("5,000 nodes, 150,000 pods", "tables")


def binder() -> None:
    """Pods bound a second beside the real kube-scheduler, on one real API server: 1,000 nodes, 3,000 pods."""
    parts, why = built_parts()
    if parts is None:
        print(f"  left out, {why}")
        return
    _show("kube-scheduler 1.36, then underhost", "binder", str(parts))


BENCHES: dict[str, Callable[[], None]] = {
    "pipeline": pipeline,
    "check": check,
    "schedule": schedule,
    "label": label,
    "labels": labels,
    "resident": resident,
    "drs": drs,
    "binder": binder,
    "extender": extender,
    "page": page,
    "whatif": whatif,
    "repair": repair,
    "tables": tables,
    "first-finding": first_finding,
}


def _compile() -> None:
    """Bytecode of all that is imported, as installing it makes: without it a command takes a second more to start."""
    sources = Path(__file__).parents[2]
    folders = [sysconfig.get_path("purelib"), *(str(sources / name) for name in ("schemas", "streams", "agents"))]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "compileall", "-q", *folders]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)  # some packages hold Python 2


def main() -> None:
    """Run the named benches, all by default."""
    _compile()
    names = sys.argv[1:] or list(BENCHES)
    for name in names:
        if name not in BENCHES:
            sys.exit(f"no bench {name!r}; there is: {', '.join(BENCHES)}")
        print(f"{name}: {BENCHES[name].__doc__}")
        BENCHES[name]()


if __name__ == "__main__":
    main()
