"""The simulated cluster takes Events and conditions as the real one does: told by the product's own sink."""

import pytest
from support.simulation.clock import LogicalClock
from support.simulation.operated import OperatedSite

from underhost.agents.sinks.events.sink import EventSink, PodCondition, Regarding, Told, event
from underhost.schemas.records import Action

NODE = Regarding("Node", "kni-worker")
WAITS = PodCondition("PodScheduled", "False", "Unschedulable")


@pytest.fixture
def site() -> OperatedSite:
    return OperatedSite("kubevirt", clock=LogicalClock())


def tell(about: Regarding, note: str, at: int, condition: PodCondition | None = None) -> Action:
    return event(Told(about, "Warning", "HostShared", note, "Checking", condition), "", {"pods": at})


async def test_an_event_is_made_once_and_counts_over_restarts_of_whoever_tells(site: OperatedSite) -> None:
    results = []
    for note, at in (("first", 1), ("first", 1), ("second", 2)):
        sink = EventSink(site.events, "demo", enabled=True, binds=True)
        results.append((await sink.apply(tell(NODE, note, at))).result)
    assert results == ["applied", "noop", "applied"]
    [((namespace, _), held)] = site.events.held.items()
    assert (namespace, held["note"], held["series"]["count"]) == ("default", "second", 2)
    assert held["regarding"]["uid"] == site.kubernetes.node("kni-worker").metadata.uid


@pytest.mark.parametrize(
    "about", [Regarding("Node", "no-such-node"), Regarding("Pod", "no-such-pod", "default")], ids=["node", "pod"]
)
async def test_of_what_is_not_there_nothing_is_told(site: OperatedSite, about: Regarding) -> None:
    outcome = await EventSink(site.events, "demo", enabled=True, binds=True).apply(tell(about, "?", 1))
    assert (outcome.result, outcome.reason, site.events.held) == (
        "refused",
        f'{about.kind.lower()}s "{about.name}" not found',
        {},
    )


async def test_a_pod_that_waits_says_so_until_it_is_bound(site: OperatedSite) -> None:
    key, pod = next((key, pod) for key, pod in site.kubernetes.pods().items() if not pod.spec.node_name)
    about = Regarding("Pod", pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)
    sink = EventSink(site.events, "demo", enabled=True, binds=True)
    assert (await sink.apply(tell(about, "no node", 1, WAITS))).result == "applied"
    held = site.kubernetes.pods()[key].status.conditions or ()
    assert [(one.type, one.status, one.reason) for one in held if one.type == "PodScheduled"] == [
        ("PodScheduled", "False", "Unschedulable")
    ]
    await site.kubernetes.bind_pod(about.namespace, about.name, about.uid, "kni-worker")
    late = await sink.apply(tell(about, "late", 2, WAITS))
    assert (late.result, late.reason) == ("noop", "bound to kni-worker by now")
