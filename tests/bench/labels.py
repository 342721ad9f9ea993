"""Fifty different nodes move every second: from each real vMotion to its label.

kube-apiserver and vcsim, `underhost run` on the embedded default in the middle. 600 nodes on ten hosts take turns, so
that no node moves twice within the ten seconds in which further changes are held back on purpose. Each move is a real
`RelocateVM_Task`, and counts from the moment before the call to the label in a watch of the API server; at the end each
label must be what vcsim itself says. vcsim is too slow a teller of fifty moves a second, so `bench.update_feed` tells
them in its place. Where the time goes in between is read from the times of the records in the topics. A machine that
has no processor to spare makes every stage wait, so the CPU of each process is measured, too. Prints `name<TAB>value`
lines.

Arguments: the folder of the real parts, seconds, moves a second.
"""

import asyncio
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml
from bench.update_feed import UpdateFeed
from bench.usage import cpu_of, machine
from pyVmomi import vim
from support.processes.kube import ADMIN_TOKEN, Kube, start_kube
from support.processes.kwok import HOST_LABEL
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.vcsim import PASSWORD, USERNAME, start_vcsim
from support.processes.world import KubeApi, VCenter, eventually

from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import ACTIONS, OUTCOMES, VMS
from underhost.streams.ports import Record
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings

NODES, HOSTS = 600, 10
LIMIT = 6000
"""Label writes a minute that the configuration allows: the default, twice of what fifty moves a second need."""
NEVER = float("inf")


class Move(NamedTuple):
    """A node that was sent to a host; `at` is seconds since 1970, before the call."""

    node: str
    vm: str
    host: str
    ref: str
    at: float


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
        feed = UpdateFeed(folder, vcsim.port)
        config = folder / "underhost.yaml"
        config.write_text(yaml.safe_dump(configuration(folder, kube, feed.url, feed.certificate)))
        with (folder / "underhost.log").open("wb") as log:
            process = subprocess.Popen([UNDERHOST, "run", "--config", str(config)], stdout=log, stderr=log)
        pids = {
            "underhost": [process.pid],
            "kube-apiserver and etcd": kube.pids(),
            "vcsim": [vcsim.process.pid],
            "this bench with its feed": [os.getpid()],
        }
        try:
            eventually("every node is labelled", lambda: process.poll() is not None or labelled(api), 300)
            assert process.poll() is None, (folder / "underhost.log").read_text()[-2000:]
            labels = Labels(kube)
            eventually("the watch shows every node", lambda: len(labels.times) == NODES)
            before, busy, begun = {who: cpu_of(*of) for who, of in pids.items()}, machine(), time.time()
            moves = storm(vcenter, vms, feed, seconds, rate)
            took = time.time() - begun
            labels.wait_for(moves, 30)
            used = {who: cpu_of(*of) - before[who] for who, of in pids.items()}
            now = machine()
            hosts = {f"node-{at:03}": vcenter.host_of(vm) for at, vm in enumerate(vms)}
            wrong = sum(hosts[node] != host for node, host in api.node_labels().items())
        finally:
            process.terminate()
            process.wait(20)
            feed.close()
            vcenter.close()
            vcsim.stop()
        records = asyncio.run(read(folder / "bench.db"))
    report(moves, labels, records, took)
    print(f"labels that are wrong at the end\t{wrong}")
    for who, cpu in used.items():
        print(f"CPU of {who}, ms a label\t{cpu / len(moves) * 1e3:.1f}")
    spent, there_was = now[0] - busy[0], now[1] - busy[1]
    others = (spent - sum(used.values())) / there_was
    print(f"processors\t{os.cpu_count()}")
    print(f"busy in all, of that with others\t{spent / there_was:.0%}, {others:.0%}")


def labelled(api: KubeApi) -> bool:
    """Whether every node is; looking costs what the others need."""
    time.sleep(0.5)
    return len(api.node_labels()) == NODES


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
        "limits": {"labels": LIMIT},
        "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
    }


def storm(vcenter: VCenter, vms: list[str], feed: UpdateFeed, seconds: int, rate: int) -> list[Move]:
    """Send one node after another to the next host, evenly."""
    hosts = sorted(vcenter.hosts)
    where = {vm: hosts.index(vcenter.host_of(vm)) for vm in vms}
    moves, begun = [], time.monotonic()
    for number in range(seconds * rate):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        at = number % len(vms)
        where[vms[at]] = (where[vms[at]] + 1) % len(hosts)
        host, vm = vcenter.hosts[hosts[where[vms[at]]]], vcenter.vms[vms[at]]
        moves.append(Move(f"node-{at:03}", vm._GetMoId(), hosts[where[vms[at]]], host._GetMoId(), time.time()))
        vm.RelocateVM_Task(vim.vm.RelocateSpec(host=host, pool=vcenter.cluster.resourcePool))
        feed.moved(moves[-1].vm, moves[-1].ref)
    return moves


async def read(path: Path) -> list[Record]:
    """What the pipeline wrote of VMs and labels."""
    reader = open_reader(KafkaSettings(embedded=path))
    try:
        return [record async for record in reader.history([VMS, ACTIONS, OUTCOMES])]
    finally:
        await reader.close()


def report(moves: list[Move], labels: "Labels", records: list[Record], took: float) -> None:
    """Print how long it took, in all and stage by stage."""
    waits = [labels.times.get((move.node, move.host), NEVER) - move.at for move in moves]
    print(f"moves\t{len(moves)}")
    print(f"moves a second\t{len(moves) / took:.0f}")
    print(f"label writes a minute, at most\t{LIMIT}")
    print(f"moves whose label never came\t{sum(wait == NEVER for wait in waits)}")
    print(f"move to label p50, ms\t{part(waits, 0.5)}")
    print(f"move to label p99, ms\t{part(waits, 0.99)}")
    print(f"move to label worst, ms\t{part(waits, 1.0)}")
    stages = [stages_of(move, times, labels) for times in [times_of(records)] for move in moves]
    for at, name in enumerate(("move to topic", "topic to order", "order to label", "order to outcome")):
        taken = [stage[at] for stage in stages]
        print(f"{name} p50 and p99, ms\t{part(taken, 0.5)}, {part(taken, 0.99)}")


class Times(NamedTuple):
    """Seconds since 1970 of each VM's record by (moref, host's moref), order by (node, host), outcome by order's id."""

    topic: dict[tuple[str, str], list[float]]
    order: dict[tuple[str, str], list[tuple[float, str]]]
    outcome: dict[str, float]


def times_of(records: Iterable[Record]) -> Times:
    """When each record was written."""
    times = Times({}, {}, {})
    for record in records:
        at, value = record.timestamp / 1e3, record.value or b""
        if record.topic == VMS.name and b"/vm/" in (record.key or b""):
            vm = msgspec.json.decode(value)
            times.topic.setdefault((vm["id"], vm["host"]), []).append(at)
        elif record.topic == ACTIONS.name:
            action = msgspec.json.decode(value, type=Action)
            host = action.desired["labels"][HOST_LABEL]  # type: ignore[index]
            times.order.setdefault((action.target.removeprefix("node/"), host), []).append((at, action.id))
        elif record.topic == OUTCOMES.name:
            times.outcome.setdefault(msgspec.json.decode(value, type=Outcome).id, at)
    return times


def stages_of(move: Move, times: Times, labels: "Labels") -> tuple[float, float, float, float]:
    """Seconds of each stage; a record's time is a millisecond's, and a stage that was not reached lasts for ever."""
    topic = min((at for at in times.topic.get((move.vm, move.ref), ()) if at >= move.at - 0.001), default=NEVER)
    order, action = min(
        (each for each in times.order.get((move.node, move.host), ()) if each[0] >= topic), default=(NEVER, "")
    )
    label = labels.times.get((move.node, move.host), NEVER)
    return (
        topic - move.at,
        order - topic if order < NEVER else NEVER,
        label - order if label < NEVER else NEVER,
        times.outcome.get(action, NEVER) - order if order < NEVER else NEVER,
    )


def part(seconds: Iterable[float], share: float) -> str:
    """Milliseconds that this share of them take at most."""
    ordered = sorted(seconds)
    return f"{ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3:.0f}"


class Labels:
    """When each (node, host) was first seen as a label, by a watch of the API server; seconds since 1970."""

    def __init__(self, kube: Kube) -> None:
        self.times: dict[tuple[str, str], float] = {}
        self._kube = kube
        threading.Thread(target=self._watch, daemon=True).start()

    def wait_for(self, moves: list[Move], within: float) -> None:
        """Until the last move's label is there, or the time is over: one that was overtaken never comes."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and not all((move.node, move.host) in self.times for move in moves):
            time.sleep(0.1)

    def _watch(self) -> None:
        address = urlsplit(self._kube.server)
        tls = ssl.create_default_context(cafile=str(self._kube.ca))
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=tls)
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        connection.request("GET", "/api/v1/nodes?watch=1", headers=headers)
        answer = connection.getresponse()
        while line := answer.readline():
            at, metadata = time.time(), json.loads(line)["object"]["metadata"]
            host = metadata.get("labels", {}).get(HOST_LABEL)
            if host is not None:
                self.times.setdefault((metadata["name"], host), at)


if __name__ == "__main__":
    main()
