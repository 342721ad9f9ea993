"""When nothing may be written, and how that is said."""

import asyncio

import pytest

from underhost.agents.pipeline.gates.guards import Guards, InventoryGate, Standstill
from underhost.agents.pipeline.gates.may_write import refusal
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.signs import Signs
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.orders import order, outcome
from underhost.agents.sinks.registry import host_based
from underhost.agents.site.objects import shared_parts
from underhost.schemas.keys import listed_key, parse_key
from underhost.schemas.records import Domain, Finding, Listed
from underhost.schemas.topics import HOSTS, NODES, Topic
from underhost.streams.ports import Outgoing, Publisher, Source
from underhost.streams.settings.model import Settings

KINDS = ("label", "drs-rule", "evict", "bind")
NOW = 1_800_000_000.0


class Clocks:
    """The clocks of a worker: seconds that pass, and a wall clock that may be set to another time."""

    def __init__(self) -> None:
        self.passed, self.ahead = 0.0, 0.0

    def monotonic(self) -> float:
        return self.passed

    def wall(self) -> float:
        return NOW + self.passed + self.ahead


class Nobody:
    """A publisher and reader that no test asks."""

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """See `ports.TopicReader`."""
        return {}


def a_world(physical_host: str = "preferred", clocks: Clocks | None = None) -> tuple[Sites, Guards]:
    """A site `prod` that this worker holds and does not watch itself."""
    settings = Settings.model_validate(
        {"site": "prod", "physicalHost": physical_host, "vsphere": {"url": "https://vc", "pollInterval": 30}}
    )
    clocks = clocks or Clocks()
    sites = Sites((NODES, HOSTS), (), partition_of=lambda site: 0, sources=lambda state: frozenset())
    sites.signs = Signs(clocks.monotonic, clocks.wall)
    sites.resume({0}, {}, {})
    reader = Nobody()
    watchers = Watchers(
        "prod",
        lambda *_: [],
        lambda name: reader,
        reader,  # type: ignore[arg-type]
        sites,
        failed=lambda error: None,
        metrics=Metrics(),
    )
    return sites, Guards(settings, sites, watchers)


def mark(sites: Sites, source: str, topic: Topic, *, doubt: str = "", seen: float = 0.0, epoch: int = 5) -> None:
    marker = Listed(epoch, 1, doubt, int(seen * 1000))
    sites.apply(topic, parse_key(listed_key("prod", source)), marker, 0.0)


def forbidden(guards: Guards) -> dict[str, str]:
    still = guards.standstill("prod")
    return {kind: why for kind in KINDS if (why := still.forbids(kind))}


def test_where_all_is_well_everything_may_be_written() -> None:
    sites, guards = a_world()
    mark(sites, "kubernetes", NODES)
    mark(sites, "vsphere", HOSTS, seen=NOW)
    assert forbidden(guards) == {}
    assert guards.standstill("prod") == Standstill(kinds=host_based(Settings()))
    assert guards.standstill("prod").findings("prod") == []


def test_a_doubt_in_a_marker_stops_every_write_until_a_marker_without_it() -> None:
    sites, guards = a_world()
    mark(sites, "vsphere", HOSTS, doubt="hosts: 4 of 7 are missing")
    assert forbidden(guards) == dict.fromkeys(KINDS, "hosts: 4 of 7 are missing")
    assert guards.standstill("another").everything == ""
    mark(sites, "vsphere", HOSTS)
    assert forbidden(guards) == {}


def test_a_command_for_a_site_that_stands_still_fails_and_the_outcome_says_why() -> None:
    sites, guards = a_world()
    mark(sites, "kubernetes", NODES)
    mark(sites, "vsphere", HOSTS, doubt="hosts: 4 of 7 are missing")
    command = order("label", "node/n1", {}, "", {})
    refused = InventoryGate(guards, "prod").refuses(command)
    assert refused == outcome(command, "failed", "writes stop: hosts: 4 of 7 are missing")


LOST = "hosts: 4 of 7 are missing"


@pytest.mark.parametrize(
    ("runs", "lifted"),
    [
        pytest.param([(5, LOST), (5, "")], True, id="by the run that said it, once a person has accepted it"),
        pytest.param([(5, LOST), (6, LOST), (6, "")], True, id="by the next run, which has read it"),
        pytest.param([(5, LOST), (6, "")], True, id="by a run that began after it was settled"),
        pytest.param([(6, ""), (5, LOST), (6, "")], False, id="not by a run beside it that sees everything"),
        pytest.param([(4, ""), (5, ""), (5, LOST), (4, "")], False, id="not by a late marker of the run before"),
        pytest.param([(6, ""), (5, LOST), (6, ""), (6, ""), (5, "")], True, id="by its own run after all"),
    ],
)
def test_a_doubt_is_lifted_by_who_said_it_or_has_read_it(runs: list[tuple[int, str]], lifted: bool) -> None:
    sites, guards = a_world()
    for second, (epoch, doubt) in enumerate(runs):
        mark(sites, "vsphere", HOSTS, doubt=doubt, epoch=epoch, seen=NOW + second)
    assert forbidden(guards) == ({} if lifted else dict.fromkeys(KINDS, LOST))


@pytest.mark.parametrize(
    ("physical_host", "kinds"),
    [
        pytest.param("preferred", ("label", "drs-rule", "evict"), id="a preference is no reason to leave pods waiting"),
        pytest.param("required", KINDS, id="a requirement cannot be judged from old data"),
    ],
)
def test_silence_of_a_watcher_elsewhere_stops_what_rests_on_hosts(physical_host: str, kinds: tuple[str, ...]) -> None:
    clocks = Clocks()
    sites, guards = a_world(physical_host, clocks)
    mark(sites, "vsphere", HOSTS, seen=NOW)
    clocks.passed = 89.9
    assert forbidden(guards) == {}
    clocks.passed = 90.0
    assert forbidden(guards) == dict.fromkeys(kinds, "nothing has been heard of vSphere for over 90 s")
    mark(sites, "vsphere", HOSTS, seen=NOW)  # the very same marker again, from its table, say
    assert set(forbidden(guards)) == set(kinds)
    mark(sites, "vsphere", HOSTS, seen=NOW + 90)
    assert forbidden(guards) == {}


def test_silence_of_kubernetes_stops_every_write() -> None:
    clocks = Clocks()
    sites, guards = a_world(clocks=clocks)
    mark(sites, "kubernetes", NODES, seen=NOW)
    clocks.passed = 90.0
    assert forbidden(guards) == dict.fromkeys(KINDS, "nothing has been heard of Kubernetes for over 90 s")
    assert guards.stopped(["prod"]) == {
        "site prod": "writes stop: nothing has been heard of Kubernetes for over 90 s",
    }
    [found] = guards.standstill("prod").findings("prod")
    assert (found.severity, found.rule, found.reason) == ("unknown-node", "Inventory", "Kubernetes data is too old")
    assert found.message == (
        "nothing has been heard of Kubernetes for over 90 s: until it is heard of again, site prod gets no write."
    )
    mark(sites, "kubernetes", NODES, seen=NOW + 90)
    assert (forbidden(guards), guards.standstill("prod").findings("prod")) == ({}, [])


HOUR = 3600.0


@pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["an hour ahead", "an hour behind"])
def test_a_clock_that_differs_neither_stops_writes_nor_hides_a_silence(skew: float) -> None:
    clocks = Clocks()
    sites, guards = a_world(clocks=clocks)
    for second in range(0, 300, 30):
        clocks.passed = float(second)
        mark(sites, "kubernetes", NODES, seen=NOW + skew + second)
        assert forbidden(guards) == {}
    clocks.passed += 90.0
    assert set(forbidden(guards)) == set(KINDS)
    where = "ahead of" if skew > 0 else "behind"
    assert guards.skewed(["prod"]) == {"clock of source kubernetes of site prod": f"3600 s {where} this worker's"}


def test_a_clock_that_is_set_while_all_is_well_stops_no_write() -> None:
    clocks = Clocks()
    sites, guards = a_world(clocks=clocks)
    mark(sites, "kubernetes", NODES, seen=NOW)
    clocks.passed, clocks.ahead = 30.0, HOUR
    assert forbidden(guards) == {}
    mark(sites, "kubernetes", NODES, seen=NOW + 30 - HOUR)  # the watcher's clock is set back as well
    clocks.passed = 119.0
    assert forbidden(guards) == {}


@pytest.mark.parametrize(
    ("seen", "stops"),
    [
        pytest.param(NOW - 89, False, id="it is fresh as far as the clocks tell"),
        pytest.param(NOW - HOUR, True, id="it is an hour old, or its clock is behind"),
        pytest.param(NOW + HOUR, True, id="it is of the future: how old it is nobody knows"),
    ],
)
def test_what_a_start_finds_counts_until_the_first_sign_of_life(seen: float, stops: bool) -> None:
    sites, guards = a_world()
    marker = Listed(5, 1, "", int(seen * 1000))
    rows = [(parse_key(listed_key("prod", "kubernetes")), marker)]
    sites.state("prod").replace(NODES, rows, shared_parts())
    assert bool(forbidden(guards)) == stops
    mark(sites, "kubernetes", NODES, seen=seen + 30)
    assert forbidden(guards) == {}


def test_records_that_come_late_are_no_difference_of_clocks() -> None:
    clocks = Clocks()
    sites, guards = a_world(clocks=clocks)
    for second, late in ((0, 60), (30, 40), (60, 1), (90, 50)):
        clocks.passed = float(second + late)
        mark(sites, "kubernetes", NODES, seen=NOW + second)
    assert sites.signs.skew("prod", "kubernetes") == 1.0
    assert guards.skewed(["prod"]) == {}


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        pytest.param(NOW - 16, {}, id="behind ours: perhaps it ends a list that took so long"),
        pytest.param(
            NOW + 16,
            {"clock of source kubernetes of site prod": "16 s ahead of this worker's"},
            id="ahead of ours: nothing is heard of before it is said",
        ),
    ],
)
def test_one_sign_of_life_alone_tells_only_of_a_clock_that_is_ahead(seen: float, told: dict[str, str]) -> None:
    sites, guards = a_world()
    mark(sites, "kubernetes", NODES, seen=seen)
    assert guards.skewed(["prod"]) == told


def test_a_source_that_says_nothing_of_its_server_is_never_stale() -> None:
    sites, guards = a_world()
    mark(sites, "vsphere", HOSTS)
    assert forbidden(guards) == {}


def test_each_source_has_one_finding_whose_id_does_not_change_with_the_words() -> None:
    clocks = Clocks()
    sites, guards = a_world(clocks=clocks)
    mark(sites, "kubernetes", NODES, doubt="nodes: 3 of 5 are missing")
    mark(sites, "vsphere", HOSTS, doubt="hosts: 4 of 7 are missing", seen=NOW)
    clocks.passed = 90.0
    before = guards.standstill("prod").findings("prod")
    assert [(found.severity, found.rule, found.domain, found.reason) for found in before] == [
        (
            "unknown-node",
            "Inventory",
            Domain("source", "kubernetes"),
            "the inventory is empty or has shrunk by more than 40 %",
        ),
        (
            "unknown-node",
            "Inventory",
            Domain("source", "vsphere"),
            "the inventory is empty or has shrunk by more than 40 %",
        ),
        ("unknown-host", "Inventory", Domain("source", "vsphere"), "vSphere data is too old"),
    ]
    mark(sites, "vsphere", HOSTS, doubt="hosts: 5 of 7 are missing", seen=NOW)
    after = guards.standstill("prod").findings("prod")
    assert ids(after) == ids(before)
    assert len(set(ids(before))) == 3
    assert after[1].message == (
        "hosts: 5 of 7 are missing. Site prod gets no write at all until somebody looks and says: underhost resume prod"
    )


def ids(findings: list[Finding]) -> list[str]:
    return [found.id for found in findings]


def test_a_sign_of_life_is_no_change_of_the_picture() -> None:
    sites, _ = a_world()
    changes: list[str] = []
    sites.on_change = changes.append
    mark(sites, "vsphere", HOSTS, seen=NOW)
    mark(sites, "vsphere", HOSTS, seen=NOW + 30)
    assert changes == ["prod"]
    mark(sites, "vsphere", HOSTS, doubt="hosts: none", seen=NOW + 60)
    assert changes == ["prod", "prod"]


class Held(Source):
    """A source that lists once it may."""

    epoch = 7

    def __init__(self, name: str, publisher: Publisher, may_list: asyncio.Event) -> None:
        self.name, self._publisher, self._may_list = name, publisher, may_list

    async def run(self) -> None:
        """See `ports.Source`."""
        await self._may_list.wait()
        await self._publisher.publish(Outgoing(NODES, listed_key("prod", self.name), b"{}", "1"))


class Doubting(Held):
    """A source that does not believe what it has listed, and has not said so in a marker yet."""

    @property
    def shrunk(self) -> list[str]:
        """See `ports.Source`."""
        return ["hosts: none"]


async def test_what_a_source_of_this_process_doubts_stops_writes_before_any_marker() -> None:
    nobody = Nobody()
    sites, settings = a_world()[0], Settings.model_validate({"site": "prod"})
    watchers = Watchers(
        "prod",
        lambda site, publisher, reader: [Doubting("vsphere", publisher, asyncio.Event())],
        lambda name: nobody,
        nobody,  # type: ignore[arg-type]
        sites,
        failed=lambda error: None,
        metrics=Metrics(),
    )
    guards = Guards(settings, sites, watchers)
    watchers.start()
    assert (forbidden(guards), guards.standstill("another").everything) == (dict.fromkeys(KINDS, "hosts: none"), "")
    await watchers.stop()


@pytest.mark.parametrize(
    ("source", "kind", "waits"),
    [
        pytest.param("kubernetes", "event", True, id="an Event for Kubernetes"),
        pytest.param("kubernetes", "label", True, id="a label for Kubernetes"),
        pytest.param("vsphere", "label", True, id="a label for vSphere"),
        pytest.param("vsphere", "event", False, id="an Event not for vSphere"),
    ],
)
async def test_a_command_waits_for_the_first_list_that_it_rests_on(source: str, kind: str, waits: bool) -> None:
    settings = Settings.model_validate({"site": "prod", "vsphere": {"url": "https://vc"}})
    sites = Sites((NODES, HOSTS), (), partition_of=lambda site: 0, sources=lambda state: frozenset())
    sites.resume({0}, {}, {})
    mark(sites, "kubernetes", NODES, seen=NOW)
    nobody, may_list = Nobody(), asyncio.Event()
    watchers = Watchers(
        "prod",
        lambda site, publisher, reader: [Held(source, publisher, may_list)],
        lambda name: nobody,
        nobody,  # type: ignore[arg-type]
        sites,
        failed=lambda error: None,
        metrics=Metrics(),
    )
    gate = InventoryGate(Guards(settings, sites, watchers), "prod")
    watchers.start()
    asking = asyncio.ensure_future(refusal([gate], order(kind, "node/n1", {}, "", {})))
    for _ in range(10):
        await asyncio.sleep(0)
    assert asking.done() != waits
    may_list.set()
    assert await asking is None
    await watchers.stop()
