"""The evictor over the whole pipeline and the simulated site: an operator's vMotion, a shared host, one eviction."""

from pathlib import Path
from typing import Any

import pytest
from support.simulation.operated import OperatedSite
from support.workers.pipeline import Running, running, settings_in

from underhost.agents.pipeline.connections import Connections
from underhost.agents.pipeline.decide.evaluator import LazyEvaluator
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.sinks.ports import Writers
from underhost.schemas.kubernetes import Budget, BudgetSpec, Container, Metadata, Namespace, PodSpec
from underhost.schemas.topics import OUTCOMES, VIOLATIONS
from underhost.streams.settings.model import Settings
from underhost.streams.settings.sinks import EvictionSettings, SinkSettings
from underhost.streams.simulated.controllers import Owner
from underhost.streams.simulated.kubevirt import admitted
from underhost.streams.simulated.objects import is_ready, labels_of, raw
from underhost.streams.simulated.store import Change

LABELS = {"app": "till"}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}
        ]
    }
}


class Shop:
    """The KubeVirt site with one more application: three tills, never two on a node, two of which must be ready.

    Attributes:
        fewest: the smallest number of ready tills since all three were.
    """

    def __init__(self) -> None:
        self.site = OperatedSite("kubevirt", drs_interval=3600.0)  # so that nobody else moves a VM
        kubernetes = self.site.kubernetes
        kubernetes.create(Namespace(Metadata("shop")))
        kubernetes.create(
            Budget(Metadata("till", namespace="shop"), spec=BudgetSpec(2, selector=raw({"matchLabels": LABELS})))
        )
        spec = admitted(PodSpec(scheduler_name="underhost", containers=[Container("main")], affinity=raw(APART)))
        self.site.controllers.add_owner(Owner("ReplicaSet", "shop", "till", LABELS, spec, 3))
        self.fewest = 3
        self._complete = False
        kubernetes.store.listen(self._saw)

    def _saw(self, change: Change) -> None:
        if change.key.kind == "pod" and change.key.namespace == "shop":
            ready = sum(is_ready(pod) for pod in self.tills())
            self._complete = self._complete or ready == 3
            self.fewest = min(self.fewest, ready) if self._complete else 3

    def tills(self) -> list[Any]:
        pods = self.site.kubernetes.pods().values()
        return [pod for pod in pods if labels_of(pod.metadata).get("app") == "till"]

    def hosts(self) -> list[str]:
        """The hosts of the ready tills."""
        return sorted(self.site.vsphere.host_of(pod.spec.node_name) for pod in self.tills() if is_ready(pod))

    def connections(self) -> Connections:
        return Connections(self.site.sources, Writers(self.site.kubernetes, self.site.vsphere))


def settings(folder: Path, *, evictions: bool) -> Settings:
    sinks = SinkSettings(bindings=True, evictions=evictions)
    limits = EvictionSettings(wait=0)
    return settings_in(folder).model_copy(update={"sinks": sinks, "evictions": limits})


def evictions(worker: Running) -> list[tuple[str, str]]:
    """(target, result) of each outcome of an eviction of a till."""
    return [
        (value["target"], value["result"])
        for _, value in worker.records(OUTCOMES)
        if value["kind"] == "evict" and value["target"].startswith("pod/shop/")
    ]


def states(worker: Running) -> list[str]:
    """What became of the findings about tills."""
    records = (value for _, value in worker.records(VIOLATIONS) if value is not None)
    return [value["state"] for value in records if (value.get("pod") or "").startswith("shop/")]


@pytest.mark.parametrize("enabled", [True, False], ids=["enabled", "dry run"])
async def test_a_host_that_is_shared_after_a_vmotion_is_left_by_one_eviction(enabled: bool, tmp_path: Path) -> None:
    shop, set_up = Shop(), settings(tmp_path, evictions=enabled)
    evaluator: Any = LazyEvaluator(options_of(set_up))
    async with running(set_up, shop.connections(), evaluator=evaluator) as worker:
        await worker.until(lambda: len(shop.hosts()) == 3)
        assert len(set(shop.hosts())) == 3, "the binder keeps the hosts apart"
        one, other = (pod.spec.node_name for pod in shop.tills()[:2])
        before = {pod.metadata.name for pod in shop.tills()}
        shop.site.move_vm(other, shop.site.vsphere.host_of(one))
        if enabled:
            await worker.until(lambda: "resolved" in states(worker) and len(shop.hosts()) == 3)
        else:
            await worker.until(lambda: bool(evictions(worker)))
    [(target, result)] = evictions(worker)
    assert target.removeprefix("pod/shop/") in before
    if enabled:
        assert result == "applied"
        assert len(set(shop.hosts())) == 3
        assert len(before - {pod.metadata.name for pod in shop.tills()}) == 1
        assert (shop.fewest, states(worker)) == (2, ["opened", "resolved"])
    else:
        assert result == "dry-run"
        assert {pod.metadata.name for pod in shop.tills()} == before
        assert shop.fewest == 3
