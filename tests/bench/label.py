"""From a real vMotion to the node's label: kube-apiserver and vcsim, `underhost run` in the middle.

Prints `name<TAB>value` lines. Arguments: the folder of the real parts, `embedded` or a bootstrap server, moves.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import NODES, World, eventually, world


def main() -> None:
    """Measure and print."""
    parts, transport, moves = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder, world(Path(folder), parts) as here:
        kafka = {"embedded": f"{folder}/bench.db"} if transport == "embedded" else {"bootstrapServers": transport}
        config = here.config(kafka, free_ports(1)[0])
        with (Path(folder) / "underhost.log").open("wb") as log:
            process = subprocess.Popen([UNDERHOST, "run", "--config", str(config)], stdout=log, stderr=log)
        try:
            eventually("every node is labelled", lambda: len(here.api.node_labels()) == len(NODES))
            waits = sorted(_move(here, number) for number in range(moves))
        finally:
            process.terminate()
            process.wait(20)
    print(f"moves\t{moves}")
    print(f"move to label p50, ms\t{waits[len(waits) // 2] * 1e3:.0f}")
    print(f"move to label, worst, ms\t{waits[-1] * 1e3:.0f}")


def _move(here: World, number: int) -> float:
    """Seconds from the end of the vMotion's task to the label; every move is another node's."""
    node = NODES[number % len(NODES)]
    hosts = sorted(here.vcenter.hosts)
    now = here.vcenter.host_of(here.vm_of[node])
    target = hosts[(hosts.index(now) + 1) % len(hosts)]
    # A further change of one node within ten seconds is held back on purpose: that is not what is measured.
    if number >= len(NODES) and number % len(NODES) == 0:
        time.sleep(11)
    here.vcenter.move(here.vm_of[node], target)
    begin = time.perf_counter()
    eventually("the label follows", lambda: here.api.node_labels()[node] == target)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
