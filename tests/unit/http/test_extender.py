"""The extender's room: what kube-scheduler sends and reads on the wire, and what it is told otherwise."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from support.answers.http import an_error
from support.build import HOST, a_pod, app, term
from support.fakes.pipeline import FakeCluster
from support.sites.doors import TOKEN, basic, bearer
from support.sites.extender import SITE, FakeSite, built
from support.workers.pipeline import Running, running, settings_in

from underhost.agents.http import extender as room
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.token import TokenFile
from underhost.agents.http.routes import HttpRoutes
from underhost.agents.http.server import start_server
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.rules.physical_host import REASON_SHARED_HOST
from underhost.agents.site.snapshot import Options
from underhost.schemas.kubernetes import encode
from underhost.schemas.topics import OUTCOMES
from underhost.streams.settings.labels import HostLabelSettings
from underhost.streams.settings.model import WebSettings

HOSTS = {"n1": "h1", "n2": "h1", "n3": "h2"}
NEW = a_pod("db-9").labels(app="db").apart(term(HOST, app("db")))
POD = json.loads(encode(built(NEW)))
NAMES = {"Pod": POD, "Nodes": None, "NodeNames": ["n1", "n2", "n3"]}
SAID = f"{REASON_SHARED_HOST}: db-0 is on esx-h1"


@dataclass
class Scheduler:
    """kube-scheduler's side of the wire."""

    site: FakeSite
    registry: CollectorRegistry
    address: str
    client: aiohttp.ClientSession
    shows: dict[str, str] = field(default_factory=bearer)

    async def post(self, verb: str, body: Any) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **self.shows}
        async with self.client.post(f"{self.address}extender/{verb}", data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    return file


@pytest.fixture
async def scheduler(token_file: Path) -> AsyncIterator[Scheduler]:
    site, registry = FakeSite(HOSTS), CollectorRegistry()
    site.put(a_pod("db-0").labels(app="db").on("n1"))
    site.put(NEW)
    options, labels = Options(physical_host="required"), HostLabelSettings()
    made = room.ExtenderRoutes(SITE, options, lambda: site, LatestDecisions(), registry, labels)
    routes, door = HttpRoutes([*made.routes(), *made.probes()], [made.running], []), Door(TokenFile(token_file))
    server = await start_server(
        "127.0.0.1:0", unready=dict, registry=registry, refresh=lambda: None, routes=routes, door=door
    )
    async with aiohttp.ClientSession() as client:
        yield Scheduler(site, registry, server.address, client)
    await server.close()


async def test_the_verbs_speak_go_names(scheduler: Scheduler) -> None:
    assert await scheduler.post("filter", NAMES) == (
        200,
        {
            "Nodes": None,
            "NodeNames": ["n1", "n3"],
            "FailedNodes": {"n2": SAID},
            "FailedAndUnresolvableNodes": {"n2": SAID},
            "Error": "",
        },
    )
    assert await scheduler.post("prioritize", {**NAMES, "NodeNames": ["n2", "n3"]}) == (
        200,
        [{"Host": "n2", "Score": 0}, {"Host": "n3", "Score": 10}],
    )
    victims = {"Pods": [{"UID": "u1"}], "NumPDBViolations": 1}
    preemption = {"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": {"n2": victims, "n3": victims}}
    assert await scheduler.post("preempt", preemption) == (200, {"NodeNameToMetaVictims": {"n3": victims}})
    binding = {"PodName": "db-9", "PodNamespace": "shop", "PodUID": "uid-shop-db-9", "Node": "n3"}
    assert await scheduler.post("bind", binding) == (200, {"Error": ""})
    assert await scheduler.post("bind", {**binding, "Node": "n2"}) == (
        200,
        {"Error": f"refused: {SAID}"},
    )


async def test_whole_nodes_are_answered_with_whole_nodes(scheduler: Scheduler) -> None:
    nodes = {"metadata": {}, "items": [{"metadata": {"name": name, "x": [1]}, "spec": {}} for name in HOSTS]}
    status, answer = await scheduler.post("filter", {"Pod": POD, "Nodes": nodes, "NodeNames": None})
    assert (status, answer["NodeNames"]) == (200, None)
    assert answer["Nodes"] == {"items": [nodes["items"][0], nodes["items"][2]]}


@pytest.mark.parametrize(
    ("verb", "body", "why"),
    [
        pytest.param("filter", b"{", "not ExtenderArgs: Input data was truncated", id="half a body"),
        pytest.param("filter", b"", "not ExtenderArgs: Input data was truncated", id="no body"),
        pytest.param("filter", b'{"Pod": "\xff"}', "not ExtenderArgs: ", id="no text"),
        pytest.param("filter", {"Nodes": None}, "not ExtenderArgs: Object missing required field `Pod`", id="no pod"),
        pytest.param(
            "prioritize",
            {**NAMES, "NodeNames": [1]},
            "not ExtenderArgs: Expected `str`, got `int` - at `$.NodeNames[0]`",
            id="a number for a name",
        ),
        pytest.param(
            "prioritize", {"Pod": POD}, "NodeNames (nodeCacheCapable) or Nodes is expected", id="no nodes at all"
        ),
        pytest.param(
            "bind",
            {"PodName": "db-9"},
            "not ExtenderBindingArgs: Object missing required field `PodNamespace`",
            id="half a binding",
        ),
        pytest.param(
            "preempt",
            {"Pod": POD},
            "NodeNameToMetaVictims (nodeCacheCapable) or NodeNameToVictims is expected",
            id="no victims",
        ),
    ],
)
async def test_a_body_that_makes_no_sense_is_400_with_one_line(
    scheduler: Scheduler, verb: str, body: Any, why: str
) -> None:
    status, answer = await scheduler.post(verb, body)
    assert status == 400
    assert answer["error"].startswith(why) and "\n" not in answer["error"]
    assert scheduler.count("underhost_extender_requests_total", verb=verb, code="400") == 1


async def test_what_cannot_be_answered_now_is_503_and_the_connection_ends(scheduler: Scheduler) -> None:
    scheduler.site.unsure_of = "the site's partition is not held"
    for verb, body in (
        ("filter", NAMES),
        ("prioritize", NAMES),
        ("bind", {"PodName": "a", "PodNamespace": "b", "Node": "c"}),
    ):
        assert await scheduler.post(verb, body) == (503, an_error("the site's partition is not held"))
    async with scheduler.client.get(f"{scheduler.address}extender/readyz") as answer:
        assert (answer.status, answer.headers["Connection"]) == (503, "close")
    scheduler.site.unsure_of = None
    async with scheduler.client.get(f"{scheduler.address}extender/readyz") as answer:
        assert (answer.status, await answer.json()) == (
            200,
            {"apiVersion": "underhost/v1", "kind": "Readiness", "status": "ok"},
        )
    assert (await scheduler.post("filter", NAMES))[0] == 200


@pytest.mark.parametrize(
    ("verb", "body", "why"),
    [
        pytest.param("filter", NAMES, "the site's partition is not held", id="filter cannot be answered now"),
        pytest.param("filter", {"Nodes": None}, "not ExtenderArgs: Object missing required field `Pod`", id="no pod"),
        pytest.param(
            "bind",
            {"PodName": "a", "PodNamespace": "b", "Node": "c"},
            "the site's partition is not held",
            id="bind cannot be answered now",
        ),
    ],
)
async def test_a_password_is_in_no_event_as_its_sender_is_told_in_the_answer_what_is_wrong(
    scheduler: Scheduler, verb: str, body: Any, why: str
) -> None:
    """kube-scheduler puts its whole urlPrefix into the error of any answer but 200."""
    scheduler.site.unsure_of, scheduler.shows = "the site's partition is not held", basic()
    assert await scheduler.post(verb, body) == (200, {"Error": why})
    scheduler.shows = basic("another-password-of-somebody")
    assert (await scheduler.post(verb, body))[0] == 403


@pytest.mark.parametrize("password", [TOKEN, "the-token-of-another-site"])
async def test_what_is_refused_before_the_password_is_looked_at_publishes_none_either(
    scheduler: Scheduler, password: str
) -> None:
    scheduler.shows = {**basic(password), "Host": "underhost.example"}
    told = {"Error": "this host name is not served; name it in web.hosts"}
    assert await scheduler.post("filter", NAMES) == (200, told)
    scheduler.shows = {**bearer(password), "Host": "underhost.example"}
    assert (await scheduler.post("filter", NAMES))[0] == 421


BIND = {"PodName": "a", "PodNamespace": "b", "Node": "c"}


@pytest.mark.parametrize(("verb", "body"), [("filter", NAMES), ("bind", BIND)], ids=["filter", "bind"])
async def test_a_defect_of_ours_publishes_no_password_and_is_in_our_log(
    scheduler: Scheduler, verb: str, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.site.defect, scheduler.shows = RuntimeError("nobody thought of this"), basic()
    assert await scheduler.post(verb, body) == (200, {"Error": "a defect of underhost, whose log says more"})
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [scheduler.site.defect]
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("verb", ["prioritize", "preempt"])
@pytest.mark.parametrize("defect", [None, RuntimeError("nobody thought of this")], ids=["a refusal", "a defect"])
async def test_where_the_answer_has_no_place_for_an_error_its_senders_connection_ends(
    scheduler: Scheduler, verb: str, defect: Exception | None
) -> None:
    scheduler.site.unsure_of, scheduler.shows = "the site's partition is not held", basic()
    scheduler.site.defect = defect
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await scheduler.post(verb, {**NAMES, "NodeNameToMetaVictims": {}})


async def test_a_question_may_be_larger_than_other_rooms_allow_but_not_endless(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    padding = " " * (3 << 20)
    assert (await scheduler.post("filter", (json.dumps(NAMES) + padding).encode()))[0] == 200
    monkeypatch.setattr(room, "LIMIT", 2 << 20)
    assert await scheduler.post("filter", (json.dumps(NAMES) + padding).encode()) == (
        413,
        an_error("a question may have 2048 KiB; set nodeCacheCapable: true"),
    )


def whole(*nodes: str, pod: str = json.dumps(POD)) -> bytes:
    return b'{"Pod":%s,"NodeNames":null,"Nodes":{"items":[%s]}}' % (pod.encode(), ",".join(nodes).encode())


def preempting(victim: bytes, count: int) -> bytes:
    """A question about so many victims on one node, whole or by uid."""
    field_ = b"NodeNameToMetaVictims" if b"UID" in victim else b"NodeNameToVictims"
    return b'{"Pod":%s,"%s":{"n1":{"Pods":[%s]}}}' % (json.dumps(POD).encode(), field_, b",".join([victim] * count))


@pytest.mark.parametrize(
    ("verb", "body", "status", "why"),
    [
        pytest.param("filter", whole(*["{}"] * 1_000_000), 400, "more than 2000000 values", id="nodes of nothing"),
        pytest.param("filter", whole(*["{}"] * 100_000), 400, "more than 20000 nodes", id="100,000 nodes"),
        pytest.param("filter", whole(*["1"] * 400_000), 400, "Expected `object`, got `int`", id="numbers for nodes"),
        pytest.param(
            "filter",
            b'{"Pod":%s,"NodeNames":[%s""]}' % (json.dumps(POD).encode(), b'"",' * 100_000),
            400,
            "more than 20000 nodes",
            id="100,000 names",
        ),
        pytest.param(
            "filter",
            whole(pod='{"metadata":{"name":"a","namespace":"b"},"spec":{"containers":[%s{}]}}' % ("{}," * 200_000)),
            400,
            "more than 50000 values",
            id="200,000 containers",
        ),
        pytest.param(
            "filter", whole(pod='{"x":"%s"}' % ("x" * (2 << 20))), 400, "Pod: more than 2 MiB", id="a large pod"
        ),
        pytest.param(
            "preempt", preempting(b'{"metadata":{}}', 200_000), 400, "victims have more than 500000", id="victims"
        ),
        pytest.param("preempt", preempting(b'{"UID":"u"}', 300_000), 400, "victims have more than 500000", id="uids"),
        pytest.param("preempt", whole("[" * 300_000), 400, "not ExtenderPreemptionArgs", id="300,000 levels"),
        pytest.param("bind", b" " * (64 << 10) + b"{}", 413, "a question may have 64 KiB", id="a large binding"),
    ],
)
async def test_a_question_that_is_small_but_means_much_is_refused(
    scheduler: Scheduler, verb: str, body: bytes, status: int, why: str
) -> None:
    found, answer = await scheduler.post(verb, body)
    assert found == status
    assert why in answer["error"]


async def test_answers_refusals_and_pods_on_their_way_are_counted(scheduler: Scheduler) -> None:
    await scheduler.post("filter", NAMES)
    await scheduler.post("filter", {**NAMES, "NodeNames": ["n2"]})
    await scheduler.post("filter", NAMES)
    scheduler.site.result = ("dry-run", "would bind to n3")
    binding = {"PodName": "db-7", "PodNamespace": "shop", "PodUID": "u", "Node": "n3"}
    assert await scheduler.post("bind", binding) == (
        200,
        {"Error": "dry-run: would bind to n3; sinks.bindings is not enabled"},
    )
    assert scheduler.count("underhost_extender_requests_total", verb="filter", code="200") == 3
    assert scheduler.count("underhost_extender_seconds_count", verb="filter") == 3
    assert scheduler.count("underhost_extender_refused_nodes_total", reason=REASON_SHARED_HOST) == 3
    assert scheduler.count("underhost_extender_refused_bindings_total", result="dry-run") == 1
    assert scheduler.count("underhost_extender_assumed_pods") == 1


# --------------------------------------------------------------------------------------------------- in a whole worker
def a_cluster() -> FakeCluster:
    cluster = FakeCluster()
    for node, host in HOSTS.items():
        cluster.node(node, host)
    cluster.pod("db-0", "n1", app="db")
    cluster.pod("db-9", app="db", scheduler="default-scheduler", uid="uid-shop-db-9")
    return cluster


@pytest.mark.parametrize("enabled", [True, False], ids=["bindings enabled", "a dry run"])
async def test_a_worker_answers_for_its_site_and_binds_where_bindings_are_enabled(
    tmp_path: Path, token_file: Path, enabled: bool
) -> None:
    cluster, listening = a_cluster(), asyncio.Queue[str]()
    web = WebSettings(listen="127.0.0.1:0", token_file=token_file)
    settings = settings_in(tmp_path, sinks=enabled).model_copy(update={"web": web})
    latest = LatestDecisions()
    async with (
        running(settings, cluster, latest=latest, on_listening=listening.put_nowait) as worker,
        aiohttp.ClientSession() as client,
    ):
        scheduler = Scheduler(FakeSite({}), CollectorRegistry(), await listening.get(), client)
        assert (await scheduler.post("filter", NAMES))[0] == 503
        await worker.until(lambda: latest.of("default") is not None)
        apart = json.loads(encode(built(NEW.apart(term("alpha.cna.vmware.com/host", app("db"))))))
        status, answer = await scheduler.post("filter", {**NAMES, "Pod": apart})
        assert (status, answer["NodeNames"], sorted(answer["FailedNodes"])) == (200, ["n3"], ["n1", "n2"])
        binding = {"PodName": "db-9", "PodNamespace": "shop", "PodUID": "uid-shop-db-9", "Node": "n3"}
        error = "" if enabled else "dry-run: would bind to n3; sinks.bindings is not enabled"
        for _ in range(5):
            assert await scheduler.post("bind", binding) == (200, {"Error": error})
        assert cluster.bound == ([("db-9", "n3")] if enabled else [])
        results = ["applied", "noop", "noop", "noop", "noop"] if enabled else ["dry-run"] * 5
        await worker.until(lambda: len(bindings(worker)) == 5)
        assert bindings(worker) == results


def bindings(worker: Running) -> list[str]:
    """What became of the binding of db-9, each time."""
    return [value["result"] for key, value in worker.records(OUTCOMES) if key == "default/pod/shop/db-9"]
