"""The demo's story on a cluster without vSphere: a controller of the test's own writes each host into a node label."""

from pathlib import Path
from typing import Any

from support.simulation.operated import OperatedSite
from support.workers.pipeline import Running, running

from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.decide.evaluator import LazyEvaluator
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.sinks.ports import Writers
from underhost.schemas.severities import GRAVE
from underhost.schemas.topics import NODE_HOSTS, VIOLATIONS
from underhost.schemas.vsphere import Vm
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.labels import HostsSettings
from underhost.streams.settings.model import Settings
from underhost.streams.settings.sinks import SinkSettings
from underhost.streams.simulated.objects import labels_of, raw, with_metadata
from underhost.streams.simulated.store import Change

KEY = "example.com/hypervisor"


class CloudController:
    """Keeps a label of each node in step with the host of its VM, as a cloud controller does that follows moves."""

    def __init__(self, site: OperatedSite) -> None:
        self._site = site
        for vm in site.vsphere.vms().values():
            self._write(vm)
        site.vsphere.store.listen(self._saw)

    def _saw(self, change: Change) -> None:
        if isinstance(change.value, Vm):
            self._write(change.value)

    def _write(self, vm: Vm) -> None:
        node = self._site.kubernetes.node(vm.name)
        labels = labels_of(node.metadata) | {KEY: self._site.vsphere.host_of(vm.name)}
        self._site.kubernetes.update(with_metadata(node, labels=raw(labels)))


def by_label(folder: Path) -> tuple[Settings, OperatedSite, Connections]:
    """A worker that has no vSphere, in no setting and no source."""
    site = OperatedSite("kubevirt", drs_interval=3600.0)  # so that nobody else moves a VM
    CloudController(site)

    def sources(name: str, publisher: Publisher, reader: TopicReader) -> list[Source]:
        return [source for source in site.sources(name, publisher, reader) if source.name == "kubernetes"]

    settings = Settings(
        kafka=KafkaSettings(embedded=folder / "log.db"),
        hosts=HostsSettings(label=KEY),
        sinks=SinkSettings(bindings=True),
    )
    return settings, site, Connections(sources, Writers(kubernetes=site.kubernetes))


def by_vsphere(folder: Path) -> tuple[Settings, OperatedSite, Connections]:
    site = OperatedSite("kubevirt", drs_interval=3600.0)
    settings = Settings(
        kafka=KafkaSettings(embedded=folder / "log.db"),
        vsphere=VSphereSettings(simulated="kubevirt"),
        sinks=SinkSettings(bindings=True),
    )
    return settings, site, Connections(site.sources, Writers(site.kubernetes, site.vsphere))


async def story(made: tuple[Settings, OperatedSite, Connections]) -> tuple[list[tuple[Any, ...]], Running]:
    """Pods are bound; an operator's vMotion breaks a rule, and another one mends it: the changes of findings."""
    settings, site, connections = made
    vm, host = site.scenario.operator_move
    async with running(settings, connections, evaluator=LazyEvaluator(options_of(settings))) as worker:  # type: ignore[arg-type]
        pods = site.kubernetes.pods
        await worker.until(lambda: all(pod.spec.node_name for pod in pods().values()))
        home = site.vsphere.host_of(vm)
        before = len(worker.records(VIOLATIONS))
        site.move_vm(vm, host)
        await worker.until(lambda: "opened" in states(worker, before))
        site.move_vm(vm, home)
        await worker.until(lambda: "resolved" in states(worker, before))
    told = [value for _, value in worker.records(VIOLATIONS)[before:] if value is not None]
    return [changed(value) for value in told if value["severity"] in GRAVE], worker


def states(worker: Running, since: int) -> list[str]:
    told = [value for _, value in worker.records(VIOLATIONS)[since:] if value is not None]
    return [value["state"] for value in told if value["severity"] in GRAVE]


def changed(value: dict[str, Any]) -> tuple[Any, ...]:
    """What is said of a finding but for its id and times."""
    return tuple(value.get(key) for key in ("state", "severity", "rule", "node", "pod", "peers", "domain"))


async def test_the_demos_story_is_told_by_a_label_as_it_is_by_vsphere(tmp_path: Path) -> None:
    for name in ("label", "vsphere"):
        (tmp_path / name).mkdir()
    told, worker = await story(by_label(tmp_path / "label"))
    known, _ = await story(by_vsphere(tmp_path / "vsphere"))
    assert told == known
    assert [state for state, *_ in told] == ["opened", "resolved"]
    assert told[0][1:3] == ("physical", "PhysicalHost")
    assert told[0][-1] == {"key": "host", "value": "esx-1"}
    rows = {value["node"]: value for _, value in worker.records(NODE_HOSTS) if value is not None}
    moved = rows["kni-worker6"]
    assert (moved["vm"], moved["host"], moved["hostName"], moved["joinedBy"]) == ("", "esx-3", "esx-3", "label")
