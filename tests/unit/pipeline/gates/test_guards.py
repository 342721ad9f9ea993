"""When nothing may be written, and how that is said."""

import pytest

from underhost.agents.pipeline.gates.guards import Guards, Standstill
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.supervisor import Watchers
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.registry import host_based
from underhost.schemas.keys import listed_key, parse_key
from underhost.schemas.records import Domain, Finding, Listed
from underhost.schemas.topics import HOSTS, NODES, Topic
from underhost.streams.ports import Outgoing
from underhost.streams.settings.model import Settings

KINDS = ("label", "drs-rule", "evict", "bind")
NOW = 1_800_000_000.0


class Nobody:
    """A publisher and reader that no test asks."""

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""

    async def state(self, topic: Topic, site: str) -> dict[str, bytes]:
        """See `ports.TopicReader`."""
        return {}


def a_world(physical_host: str = "preferred") -> tuple[Sites, Guards]:
    """A site `prod` that this worker holds and does not watch itself."""
    settings = Settings.model_validate(
        {"site": "prod", "physicalHost": physical_host, "vsphere": {"url": "https://vc", "pollInterval": 30}}
    )
    sites = Sites((NODES, HOSTS), (), partition_of=lambda site: 0, sources=lambda state: frozenset())
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
    return sites, Guards(settings, sites, watchers, wall=lambda: NOW)


def mark(sites: Sites, source: str, topic: Topic, *, doubt: str = "", seen: float = 0.0) -> None:
    marker = Listed(5, 1, doubt, int(seen * 1000))
    sites.apply(topic, parse_key(listed_key("prod", source)), marker, 0.0)


def forbidden(guards: Guards) -> dict[str, str]:
    still = guards.standstill("prod")
    return {kind: why for kind in KINDS if (why := still.forbids(kind))}


def test_where_all_is_well_everything_may_be_written() -> None:
    sites, guards = a_world()
    mark(sites, "kubernetes", NODES)
    mark(sites, "vsphere", HOSTS, seen=NOW - 89)
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


@pytest.mark.parametrize(
    ("physical_host", "kinds"),
    [
        pytest.param("preferred", ("label", "drs-rule", "evict"), id="a preference is no reason to leave pods waiting"),
        pytest.param("required", KINDS, id="a requirement cannot be judged from old data"),
    ],
)
def test_silence_of_a_watcher_elsewhere_stops_what_rests_on_hosts(physical_host: str, kinds: tuple[str, ...]) -> None:
    sites, guards = a_world(physical_host)
    mark(sites, "vsphere", HOSTS, seen=NOW - 90)
    assert forbidden(guards) == dict.fromkeys(kinds, "nothing has been heard of vCenter for over 90 s")
    mark(sites, "vsphere", HOSTS, seen=NOW)
    assert forbidden(guards) == {}


def test_a_source_that_says_nothing_of_its_server_is_never_stale() -> None:
    sites, guards = a_world()
    mark(sites, "vsphere", HOSTS)
    assert forbidden(guards) == {}


def test_each_source_has_one_finding_whose_id_does_not_change_with_the_words() -> None:
    sites, guards = a_world()
    mark(sites, "kubernetes", NODES, doubt="nodes: 3 of 5 are missing")
    mark(sites, "vsphere", HOSTS, doubt="hosts: 4 of 7 are missing", seen=NOW - 90)
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
    mark(sites, "vsphere", HOSTS, doubt="hosts: 5 of 7 are missing", seen=NOW - 90)
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
