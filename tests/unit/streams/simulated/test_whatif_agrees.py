"""A drain that is tried says what the simulated cluster then does: the same pods stay, and no budget is undershot.

The simulated cluster evicts, terminates, re-creates and starts pods with the clock, as the real one does, and its
budgets are figured by its own disruption controller. The scheduler of the application's pods is played by `schedule`.
"""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.simulation.operated import OperatedSite, a_site

from underhost.agents.schedule.pending import schedule
from underhost.agents.site.join import join
from underhost.agents.site.owners import pinned
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.steps import Drain
from underhost.schemas import kubernetes as k8s
from underhost.streams.simulated.objects import is_ready, labels_of, plain, raw, selects

APPLICATION = "customapp"
TIERS = ({"kubevirt.io/domain": "mssql2016"}, {"app": "cache"}, {"kubevirt.io/domain": "blackbox"})


def picture(site: OperatedSite) -> Snapshot:
    """The site as the watchers would publish it."""
    store = site.kubernetes.store

    def named(kind: str) -> dict[str, Any]:
        return {f"{key.namespace}/{key.name}": value for key, value in store.of_kind(kind)}

    workloads = [
        value
        for kind in ("replicaset", "deployment", "virtualmachineinstancereplicaset")
        for _, value in store.of_kind(kind)
    ]
    vms, hosts = site.vsphere.vms(), site.vsphere.hosts()
    return Snapshot(
        nodes=site.kubernetes.nodes(),
        pods=site.kubernetes.pods(),
        services=named("service"),
        workloads={f"{one.kind}/{one.metadata.namespace}/{one.metadata.name}": one for one in workloads},
        budgets=named("poddisruptionbudget"),
        vms=vms,
        hosts=hosts,
        node_hosts=join(site.kubernetes.nodes().values(), vms.values(), hosts.values()),
        vsphere=True,
    )


async def bind(site: OperatedSite) -> None:
    """What our binder would do now."""
    snapshot = picture(site)
    for name, node in schedule(snapshot, Options(scheduler_names=("underhost",))).placements.items():
        if node is not None:
            namespace, _, pod = name.partition("/")
            await site.kubernetes.bind_pod(namespace, pod, snapshot.pods[name].metadata.uid, node)


async def passing(site: OperatedSite, seconds: float, floors: dict[str, int] | None = None) -> None:
    """Time passes in small steps; budgets that were kept must stay kept."""
    for _ in range(round(seconds / 0.5)):
        site.advance(0.5)
        await bind(site)
        for name, least in (floors or {}).items():
            assert healthy(site)[name] >= least, (name, healthy(site)[name], least)


def healthy(site: OperatedSite) -> dict[str, int]:
    """Ready pods of each budget, counted from the pods alone."""
    return {
        f"{budget.metadata.namespace}/{budget.metadata.name}": sum(
            is_ready(pod) and selects(plain(budget.spec.selector), labels_of(pod.metadata))
            for pod in site.kubernetes.pods().values()
            if pod.metadata.namespace == budget.metadata.namespace
        )
        for budget in site.kubernetes.budgets()
    }


def set_budgets(site: OperatedSite, dice: random.Random) -> None:
    """Others in the place of the scenario's: at random, some of them never to be kept, sometimes two for one tier."""
    for budget in site.kubernetes.budgets():
        site.kubernetes.delete(budget)
    for number, labels in enumerate((*TIERS, dice.choice(TIERS))):
        if number < 3 or dice.random() < 0.3:
            figure = dice.choice(({"min_available": dice.randint(1, 3)}, {"max_unavailable": dice.randint(0, 2)}))
            spec = k8s.BudgetSpec(selector=raw({"matchLabels": labels}), **figure)
            site.kubernetes.create(k8s.Budget(k8s.Metadata(name=f"b{number}", namespace=APPLICATION), spec=spec))


def on(site: OperatedSite, node: str) -> set[str]:
    """The pods of a node that a drain would evict."""
    return {name for name, pod in site.kubernetes.pods().items() if pod.spec.node_name == node and not pinned(pod)}


@given(st.integers(0, 2**32), st.sampled_from(["kni-worker", "kni-worker2", "kni-worker3", "kni-worker6"]))
@settings(max_examples=10)
async def test_the_same_pods_stay_and_no_budget_is_undershot(seed: int, node: str) -> None:
    site, dice = a_site(seed=seed), random.Random(seed)
    await bind(site)
    await passing(site, 5)
    for other in dice.sample(sorted(site.kubernetes.nodes()), dice.randrange(3)):
        site.cordon(other)
    set_budgets(site, dice)
    await passing(site, 1)
    tried = what_if(picture(site), Options(), [Drain((node,))]).document
    before = on(site, node)
    budgets = {
        f"{one.metadata.namespace}/{one.metadata.name}": one.status.desired_healthy for one in site.kubernetes.budgets()
    }
    floors = {name: min(least, healthy(site)[name]) for name, least in budgets.items()}
    site.drain(node)
    await passing(site, 25, floors)
    assert {one.pod for one in tried.blocked} == on(site, node)
    assert {one.pod for one in tried.moves} | tried.pending.keys() == before - on(site, node)
    waiting = [name for name, pod in site.kubernetes.pods().items() if not pod.spec.node_name]
    assert len(tried.pending) == len(waiting)
