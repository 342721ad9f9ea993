"""Random days of a simulated site: whatever is done to it, some things always hold."""

import random
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes.topics import FakeTopics
from support.simulation.operated import OperatedSite, a_site
from support.sites.simulated import turns, watched

from underhost.schemas.errors import Conflict, Gone, Refused, Retry
from underhost.schemas.keys import LISTED, object_key, parse_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.topics import SOURCE_TOPICS
from underhost.schemas.vsphere import DrsRule
from underhost.streams.simulated.objects import is_ready, labels_of

REPLICAS = {"mssql2016": 3, "blackbox": 3, "cache": 3}


async def act(site: OperatedSite, dice: random.Random) -> None:
    """One thing that an operator, a sink or fate may do; refusals are part of the day."""
    node = dice.choice(sorted(site.kubernetes.nodes()))
    host = f"esx-{dice.randint(1, 4)}"
    pods = sorted(site.kubernetes.pods().values(), key=lambda pod: pod.metadata.name)
    pod = dice.choice(pods).metadata
    try:
        match dice.randrange(9):
            case 0:
                site.move_vm(node, host)
            case 1:
                site.drain(node)
            case 2:
                site.uncordon(node)
            case 3:
                site.delete_pod(pod.namespace, pod.name)
            case 4:
                site.kubernetes.evict_pod(pod.namespace, pod.name)
            case 5:
                site.fail_host(host)
            case 6:
                site.restore_host(host)
            case 7:
                rule = DrsRule(f"rule-{dice.randrange(5)}", "anti-affinity", ["vm-103", "vm-107"])
                await site.vsphere.add_rule("iberia", rule)
            case 8:
                await site.kubernetes.bind_pod(pod.namespace, pod.name, pod.uid, node)
    except (Conflict, Gone, Refused, Retry):
        return


def application(site: OperatedSite) -> dict[str, list[str]]:
    """The pods of each tier that are not being deleted."""
    tiers: dict[str, list[str]] = {tier: [] for tier in REPLICAS}
    for name, pod in site.kubernetes.pods().items():
        labels = labels_of(pod.metadata)
        tier = labels.get("app") or labels.get("kubevirt.io/domain")
        if tier in tiers and pod.metadata.deletion_timestamp is None:
            tiers[tier].append(name)
    return tiers


@given(st.integers(0, 2**32))
@settings(max_examples=25)
async def test_topics_hold_what_the_site_holds_and_owners_keep_their_replicas(seed: int) -> None:
    site, topics, dice = a_site(seed=seed), FakeTopics(), random.Random(seed)
    async with watched(site, topics):
        for _ in range(25):
            await act(site, dice)
            site.advance(dice.choice((0, 0.5, 3, 20)))
        await turns()
    assert {tier: len(pods) for tier, pods in application(site).items()} == REPLICAS
    held = {
        key: value
        for topic in SOURCE_TOPICS
        for key, value in (await topics.state(topic, "demo")).items()
        if parse_key(key).kind != LISTED
    }
    there = {
        object_key("demo", key.kind, key.name, key.namespace): encode(value)
        for store in (site.kubernetes.store, site.vsphere.store)
        for (key, value, _) in store.watch()[0]
    }
    assert held == there


@given(st.integers(0, 2**32))
@settings(max_examples=25)
async def test_evictions_alone_never_leave_a_tier_with_fewer_than_its_budget_wants(seed: int) -> None:
    site, dice = a_site(seed=seed), random.Random(seed)
    for tier in application(site).values():
        for name, node in zip(tier, ("kni-worker", "kni-worker3", "kni-worker5"), strict=True):
            pod = site.kubernetes.pods()[name]
            await site.kubernetes.bind_pod("customapp", pod.metadata.name, pod.metadata.uid, node)
    site.advance(5)
    for _ in range(40):
        pods = [pod for pod in site.kubernetes.pods().values() if pod.metadata.namespace == "customapp"]
        victim = dice.choice(pods).metadata
        with suppress(Retry):
            site.kubernetes.evict_pod("customapp", victim.name)
        if dice.random() < 0.7:
            site.advance(dice.choice((0, 0.3, 2)))
        for pod in list(site.kubernetes.pods().values()):  # what a scheduler would do, now and then
            if not pod.spec.node_name and not pod.metadata.deletion_timestamp and dice.random() < 0.5:
                await site.kubernetes.bind_pod("customapp", pod.metadata.name, pod.metadata.uid, "kni-worker")
        ready = {
            tier: sum(is_ready(site.kubernetes.pods()[name]) for name in names)
            for tier, names in application(site).items()
        }
        assert min(ready.values()) >= 2, ready
