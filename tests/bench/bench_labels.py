"""Fifty different nodes move every second: from each real vMotion to its label. Called by `run.py`.

kube-apiserver and vcsim, `underhost run` on the embedded default in the middle. 600 nodes on ten hosts take turns, so
that no node moves twice within the ten seconds in which further changes are held back on purpose. Prints
`name<TAB>value` lines. Arguments: the folder of the real parts, seconds, moves a second.
"""

import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "real"))

from kafka_process import free_ports
from kube_process import ADMIN_TOKEN, Kube, start_kube
from pyVmomi import vim
from vcsim_process import PASSWORD, USERNAME, start_vcsim
from world import HOST_LABEL, KubeApi, VCenter, eventually

UNDERHOST = str(Path(sys.executable).parent / "underhost")
NODES, HOSTS = 600, 10


def main() -> None:
    """Measure and print."""
    parts, seconds, rate = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as name, start_kube(Path(name) / "kube", parts) as kube:
        folder, api = Path(name), KubeApi(kube)
        vcsim = start_vcsim(parts, HOSTS, NODES)
        vcenter = VCenter(vcsim)
        vms = list(vcenter.vms)
        with ThreadPoolExecutor(8) as pool:
            uuids = [vcenter.uuid_of(vm) for vm in vms]
            list(pool.map(lambda pair: api.add_node(f"node-{pair[0]:03}", pair[1]), enumerate(uuids)))
        config = folder / "underhost.yaml"
        config.write_text(yaml.safe_dump(configuration(folder, kube, vcsim.url, vcsim.certificate)))
        seen = Labels(kube)
        with (folder / "underhost.log").open("wb") as log:
            process = subprocess.Popen([UNDERHOST, "run", "--config", str(config)], stdout=log, stderr=log)
        try:
            eventually("every node is labelled", lambda: len(api.node_labels()) == NODES, 180)
            waits = storm(vcenter, vms, seen, seconds, rate)
        finally:
            process.terminate()
            process.wait(20)
            vcenter.close()
            vcsim.stop()
    waits.sort()
    print(f"moves\t{len(waits)}")
    print(f"moves a second\t{len(waits) / seconds:.0f}")
    print(f"moves whose label never came\t{sum(wait == float('inf') for wait in waits)}")
    for name, part in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        print(f"move to label {name}, ms\t{waits[min(len(waits) - 1, int(len(waits) * part))] * 1e3:.0f}")


def configuration(folder: Path, kube: Kube, url: str, certificate: str) -> dict[str, object]:
    """Labels alone, all else as it is by default."""
    (folder / "password").write_text(PASSWORD)
    (folder / "vcenter.pem").write_text(certificate)
    return {
        "apiVersion": "underhost/v1",
        "kind": "Config",
        "site": "storm",
        "kafka": {"embedded": str(folder / "bench.db")},
        "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
        "vsphere": {
            "url": url,
            "username": USERNAME,
            "passwordFile": str(folder / "password"),
            "caFile": str(folder / "vcenter.pem"),
        },
        "sinks": {"labels": True},
        "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
    }


def storm(vcenter: VCenter, vms: list[str], seen: "Labels", seconds: int, rate: int) -> list[float]:
    """Seconds from the call for each vMotion to its label, as a watch of the API server shows it."""
    hosts = sorted(vcenter.hosts)
    where = {vm: hosts.index(vcenter.host_of(vm)) for vm in vms}
    asked: dict[tuple[str, str], float] = {}
    begun = time.monotonic()
    for number in range(seconds * rate):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        at = number % len(vms)
        where[vms[at]] = (where[vms[at]] + 1) % len(hosts)
        target = hosts[where[vms[at]]]
        asked[f"node-{at:03}", target] = time.monotonic()
        spec = vim.vm.RelocateSpec(host=vcenter.hosts[target], pool=vcenter.cluster.resourcePool)
        vcenter.vms[vms[at]].RelocateVM_Task(spec)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not all(place in seen.times for place in asked):
        time.sleep(0.1)
    # A move that the next one overtook before its label came never shows: as late as can be.
    return [seen.times.get(place, float("inf")) - at for place, at in asked.items()]


class Labels:
    """When each (node, host) was first seen as a label, by a watch of the API server."""

    def __init__(self, kube: Kube) -> None:
        self.times: dict[tuple[str, str], float] = {}
        self._kube = kube
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        address = urlsplit(self._kube.server)
        tls = ssl.create_default_context(cafile=str(self._kube.ca))
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=tls)
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        connection.request("GET", "/api/v1/nodes?watch=1", headers=headers)
        answer = connection.getresponse()
        while line := answer.readline():
            metadata = json.loads(line)["object"]["metadata"]
            host = metadata.get("labels", {}).get(HOST_LABEL)
            if host is not None:
                self.times[metadata["name"], host] = time.monotonic()


if __name__ == "__main__":
    main()
