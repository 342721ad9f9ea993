"""When the decide cycle evaluates: after quiet, never starved, again for what changed meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
from support.fakes.pipeline import FakeCluster, FakeEvaluator

from underhost.agents.pipeline.decide import cycle
from underhost.agents.pipeline.decide.cycle import SiteCycle, begins_by
from underhost.agents.pipeline.decide.evaluation import Evaluation, SiteMemory
from underhost.agents.pipeline.decide.label_stale import StaleLabels, StalePods
from underhost.agents.pipeline.decide.left_vms import LeftVms
from underhost.agents.pipeline.decide.open_findings import PublishedFindings
from underhost.agents.pipeline.decide.own_writes import OwnWrites
from underhost.agents.pipeline.decide.placements import BindingQueue
from underhost.agents.pipeline.decide.tenants import Tenants
from underhost.agents.pipeline.decide.unfinished import UnfinishedCommands
from underhost.agents.pipeline.decisions import Decisions
from underhost.agents.pipeline.gates.guards import Guards, Standstill
from underhost.agents.pipeline.gates.wanted import WantedCommands
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.metrics import Metrics
from underhost.agents.pipeline.state import RunState
from underhost.agents.pipeline.tables.node_hosts import NodeHosts
from underhost.agents.pipeline.tables.sites import Sites
from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.sinks.ports import Decider
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.errors import BadObjectError, Unreachable
from underhost.schemas.keys import parse_key
from underhost.schemas.records import Action, Outcome
from underhost.schemas.shares import Capped
from underhost.schemas.topics import PODS, SOURCE_TOPICS
from underhost.streams.faust.membership import Membership
from underhost.streams.ports import Outgoing
from underhost.streams.settings.labels import HostLabelSettings
from underhost.streams.settings.model import Settings

SITE = "prod"


class FlakyPublisher:
    """Fails as often as it is told, then keeps what it was given."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.records: list[Outgoing] = []
        self.at = 0.0
        """When it was asked to publish something, in monotonic seconds."""

    async def publish(self, *records: Outgoing) -> None:
        """See `ports.Publisher`."""
        if self.failures:
            self.failures -= 1
            raise Unreachable("Kafka does not answer")
        self.at = self.at or time.monotonic()
        self.records += records


class Shouts(Decider):
    """A decider that orders one thing, or raises."""

    def __init__(self, kind: str, error: Exception | None = None) -> None:
        self.kind, self.due, self._error = kind, 7.0, error
        self.told: list[str] = []

    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """See `ports.Decider`."""
        if self._error is not None:
            raise self._error
        return [Action(f"{self.kind}-1", self.kind, f"{self.kind}/x", {}, "", {})]

    def observe(self, outcome: Outcome, now: float) -> None:
        """See `ports.Decider`."""

    def stand_still(self, why: str, now: float) -> None:
        """See `ports.Decider`."""
        self.told.append(why)


class Run(RunState):
    """A run of no worker: its decisions go to the site."""

    def __init__(self, site: "Site") -> None:
        super().__init__(
            Settings(site="another"),
            frozenset(),
            True,
            site.sites,
            Membership(),
            Metrics(),
            LatestDecisions(),
            WantedCommands(()),
        )
        self._site = site

    def decided(self, site: str, decisions: Decisions, seconds: float) -> None:
        """See `RunState`."""
        self._site.took = seconds
        self._site.decided.put_nowait(decisions)


class Site:
    """A site without topics: changes go straight into its state, and its cycle runs."""

    def __init__(self, evaluator: FakeEvaluator, publisher: FlakyPublisher) -> None:
        self.evaluator, self.publisher = evaluator, publisher
        self.deciders: list[Decider] = []
        self.took = 0.0
        self.cluster = FakeCluster(site=SITE)
        self.cluster.node("n1")
        self.sites = Sites(SOURCE_TOPICS, (), partition_of=lambda site: 0, sources=lambda state: frozenset())
        self.sites.resume({0}, {}, {})
        self.decided: asyncio.Queue[Decisions] = asyncio.Queue()
        self.pool = ThreadPoolExecutor(1)
        run = Run(self)
        self.cycle = SiteCycle(SITE, run, self._begin, Guards(run.settings, self.sites), publisher, self.pool)
        self.sites.on_change = lambda site: self.cycle.poke()

    def _begin(self, site: str = SITE) -> Evaluation:
        memory = SiteMemory(
            NodeHosts(SITE, []),
            UnfinishedCommands(SITE, [], [], 0.0),
            PublishedFindings(SITE, []),
            BindingQueue(SITE, []),
            BindingLabels(HostLabelSettings()),
            Tenants(SITE),
            LeftVms(SITE),
            StaleLabels(Options()),
            StalePods(Options()),
            OwnWrites(SITE),
            self.deciders,
        )
        return Evaluation(SITE, self.evaluator, memory, lambda: 0.0)

    def pod(self, name: str) -> None:
        """One more pod runs."""
        self.cluster.pod(name, "n1")
        key = f"{SITE}/pod/shop/{name}"
        self.sites.apply(PODS, parse_key(key), self.cluster.objects["kubernetes"][key][1], 1.0)

    async def next(self) -> Decisions:
        """The next evaluation that is published."""
        return await asyncio.wait_for(self.decided.get(), 30)


@asynccontextmanager
async def a_site(
    evaluator: FakeEvaluator | None = None, publisher: FlakyPublisher | None = None
) -> AsyncIterator[Site]:
    site = Site(evaluator or FakeEvaluator(), publisher or FlakyPublisher())
    running = asyncio.create_task(site.cycle.run())
    try:
        yield site
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        site.pool.shutdown()


async def test_a_storm_of_changes_is_one_evaluation() -> None:
    async with a_site() as site:
        for number in range(1000):
            site.pod(f"p-{number}")
        decided = await site.next()
        assert len(decided.snapshot.pods) == 1000
        assert site.evaluator.calls == 1
        assert site.decided.empty()


async def test_changes_that_never_pause_do_not_starve_the_evaluation() -> None:
    async with a_site() as site:

        async def without_a_pause() -> None:
            while True:
                site.pod("p")
                await asyncio.sleep(0.001)

        storm = asyncio.create_task(without_a_pause())
        try:
            assert "shop/p" in (await site.next()).snapshot.pods
        finally:
            storm.cancel()


@pytest.mark.parametrize(
    ("ended", "cost", "begins"),
    [
        pytest.param(9.99, 0.004, 10.02, id="cheap: after the quiet time"),
        pytest.param(9.99, 0.03, 10.11, id="dearer: four times as long after its end as it took"),
        pytest.param(9.9, 1.5, 10.1, id="never longer than 200 ms after its end"),
        pytest.param(10.1, 1.5, 10.2, id="nor longer than 200 ms after the first change"),
        pytest.param(9.0, 1.5, 10.02, id="dear but over for 200 ms: after the quiet time"),
    ],
)
def test_changes_without_a_pause_wait_for_a_rest_after_an_evaluation(ended: float, cost: float, begins: float) -> None:
    assert begins_by(10.0, ended, cost) == pytest.approx(begins)


async def test_a_rest_is_after_what_evaluating_took_not_after_the_brokers_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rested: list[tuple[float, float]] = []

    def spy(first: float, ended: float, cost: float) -> float:
        rested.append((ended, cost))
        return begins_by(first, ended, cost)

    monkeypatch.setattr(cycle, "begins_by", spy)
    publisher = FlakyPublisher()
    async with a_site(publisher=publisher) as site:
        site.cluster.pod("waits")
        key = f"{SITE}/pod/shop/waits"
        site.sites.apply(PODS, parse_key(key), site.cluster.objects["kubernetes"][key][1], 1.0)
        await site.next()
        took = site.took
        site.pod("second")
        await site.next()
    assert [cost for _, cost in rested] == [0.0, took]
    assert 0.0 < rested[1][0] <= publisher.at


async def test_a_change_during_an_evaluation_leads_to_the_next_one() -> None:
    loop = asyncio.get_running_loop()
    meanwhile: list[Callable[[], None]] = []

    def during() -> None:
        while meanwhile:
            done = asyncio.run_coroutine_threadsafe(call(meanwhile.pop()), loop)
            done.result(30)

    async def call(function: Callable[[], None]) -> None:
        function()

    async with a_site(FakeEvaluator(during)) as site:
        meanwhile.append(lambda: site.pod("second"))
        site.pod("first")
        assert set((await site.next()).snapshot.pods) == {"shop/first"}
        assert set((await site.next()).snapshot.pods) == {"shop/first", "shop/second"}


async def test_nothing_is_evaluated_while_the_site_is_not_ready() -> None:
    async with a_site() as site:
        site.sites.resume({0}, {("pods", 0): 4}, {("pods", 0): 6})
        site.pod("first")
        site.sites.advance(PODS, 0, 4)
        await asyncio.sleep(0)
        assert site.evaluator.calls == 0
        site.sites.advance(PODS, 0, 5)
        decided = await site.next()
        assert decided.snapshot.offsets == {"pods": 5}
        assert site.evaluator.calls == 1


async def test_decisions_that_cannot_be_published_are_published_later() -> None:
    publisher = FlakyPublisher(failures=2)
    async with a_site(publisher=publisher) as site:
        site.cluster.pod("waits")
        key = f"{SITE}/pod/shop/waits"
        site.sites.apply(PODS, parse_key(key), site.cluster.objects["kubernetes"][key][1], 1.0)
        await site.next()
    assert [record.key for record in publisher.records] == [key]


async def test_an_evaluation_that_fails_ends_nothing_and_the_next_change_is_a_new_attempt() -> None:
    broken = [ZeroDivisionError("a bug"), BadObjectError("not a quantity", object_="Pod/shop/first")]

    def during() -> None:
        if broken:
            raise broken.pop(0)

    async with a_site(FakeEvaluator(during)) as site:
        failures: list[str | None] = []
        for name in ("first", "second", "third"):
            site.pod(name)
            decided = await site.next()
            failures.append(site.cycle.failure)
        assert failures == [
            "not evaluated: ZeroDivisionError: a bug",
            "not evaluated: BadObjectError: Pod/shop/first: not a quantity",
            None,
        ]
        assert decided.report is not None


async def test_what_one_decider_cannot_do_is_no_reason_for_the_others() -> None:
    async with a_site() as site:
        site.deciders += [Shouts("drs-rule", BadObjectError("a selector that is none")), Shouts("label")]
        site.pod("p")
        decided = await site.next()
        assert [action.kind for action in decided.actions] == ["label"]
        assert site.cycle.failure == "not evaluated: BadObjectError: a selector that is none"


async def test_a_decider_that_may_not_order_is_not_waited_for() -> None:
    site = Site(FakeEvaluator(), FlakyPublisher())
    site.deciders += [Shouts("label"), Shouts("bind")]
    evaluation = site._begin()
    assert evaluation.order_at(Standstill()) == 7.0
    assert evaluation.order_at(Standstill(stale={"vsphere": "of an hour ago"}, kinds=frozenset({"label"}))) == 7.0
    assert evaluation.order_at(Standstill({"vsphere": "half of it is missing"})) is None
    assert evaluation.evaluate_at() is None


async def test_a_decider_that_may_not_order_is_told_why() -> None:
    site = Site(FakeEvaluator(), FlakyPublisher())
    stopped, other = Shouts("label"), Shouts("bind")
    site.deciders += [stopped, other]
    still = Standstill(stale={"vsphere": "of an hour ago"}, kinds=frozenset({"label"}))
    site._begin().evaluate(Snapshot(site=SITE), "2026-01-01T00:00:00Z", [], still, changed=True)
    assert (stopped.told, other.told) == (["of an hour ago"], [])
    everything = Standstill({"vsphere": "half of it is missing"})
    site._begin().evaluate(Snapshot(site=SITE), "2026-01-01T00:00:00Z", [], everything, changed=True)
    assert (stopped.told[1:], other.told) == (["half of it is missing"], ["half of it is missing"])


async def test_what_was_due_is_not_due_for_ever_where_nothing_can_be_judged() -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    evaluation = Site(FakeEvaluator(fail), FlakyPublisher())._begin()
    said = Outcome(
        "a", "drs-rule", "drs-rule/C0/r", "refused", str(Capped("drsRules", "evil", "", "the first are made"))
    )
    evaluation.evaluate(Snapshot(site=SITE), "2026-01-01T00:00:00Z", [said], Standstill(), changed=True)
    assert (evaluation.failure, evaluation.evaluate_at()) == ("not evaluated: ZeroDivisionError: a bug", None)


async def test_what_only_deciders_read_asks_them_and_evaluates_nothing() -> None:
    async with a_site() as site:
        site.deciders = [Shouts("label")]
        site.pod("a")
        assert (await site.next()).findings is not None
        site.cycle.nudge()
        asked = await site.next()
        assert ([action.kind for action in asked.actions], asked.findings) == (["label"], None)
