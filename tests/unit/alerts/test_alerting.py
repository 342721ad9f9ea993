"""Who is told of findings over HTTP, what they get, and what becomes of it where they do not take it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError
from support.fakes.receiver import Receiver
from support.processes.authority import Authority
from support.published import RESOLVED, SHARED

from underhost.agents.alerts import alertmanager, delivery, webhook
from underhost.agents.alerts.alerting import Alerting
from underhost.schemas.errors import InputError
from underhost.schemas.records import FindingEvent
from underhost.streams.settings.alerting import AlertingSettings, WebhookSettings

DRIFT = msgspec.structs.replace(SHARED, id="d1", severity="drift")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr(delivery, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE", 0.01)


class Results(Counter[tuple[str, str]]):
    """How often there was each (receiver, result)."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    def add(self, receiver: str, result: str) -> None:
        self[receiver, result] += 1
        self._changed.set()

    async def reached(self, receiver: str, result: str) -> None:
        """Wait for the first of these."""
        async with asyncio.timeout(30):
            while not self[receiver, result]:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def results() -> Results:
    return Results()


@asynccontextmanager
async def alerting(
    results: Results, *findings: FindingEvent, **settings: Any
) -> AsyncIterator[Callable[[FindingEvent], None]]:
    """Alerting that began with these open findings; yields what a live record is given to."""

    def fail(error: BaseException) -> None:
        raise error

    running = Alerting(AlertingSettings(**settings), results.add, fail, share=10_000)
    running.start(findings)

    def observe(event: FindingEvent) -> None:
        running.observe(event.site, event)
        running.deliver(event, lambda: lambda: None)

    yield observe
    await running.stop()


def many(count: int) -> list[FindingEvent]:
    return [msgspec.structs.replace(SHARED, id=f"f{number:04}") for number in range(count)]


def ids(body: Any) -> list[str]:
    return [one["labels"]["finding_id"] for one in body]


async def test_an_alertmanager_is_told_what_was_open_already(results: Results):
    async with (
        Receiver() as receiver,
        alerting(results, SHARED, alertmanagers=[receiver.url], link="https://u.example"),
    ):
        ((told,),) = await receiver.requested(1)
    assert told["labels"] == {
        "alertname": "UnderhostPhysical",
        "severity": "critical",
        "finding": "physical",
        "finding_id": "9f2c",
        "rule": "PhysicalHost",
        "site": "prod",
        "namespace": "shop",
        "pod": "db-0",
        "topology_key": "host",
        "topology_value": "esx-3",
    }
    assert told["annotations"] == {
        "summary": "db-0 and db-1 share esx-3.",
        "description": "replicas that must be apart share a host",
        "node": "n1",
        "peers": "shop/db-1",
        "remedy": "Move one of the VMs to another host, by hand or (in vSphere) by `sinks.drsRules`, or evict one "
        "of the pods.",
        "runbook_url": "docs/runbooks/UnderhostPhysical.md",
    }
    assert (told["startsAt"], told["generatorURL"]) == ("2026-11-21T03:00:00.000Z", "https://u.example/?finding=9f2c")
    assert told["endsAt"] > "2026-11-21T03:05"
    assert receiver.requests[0][0] == "/api/v2/alerts"


@pytest.mark.parametrize(
    ("severity", "level"),
    [
        pytest.param("unknown-node", "critical", id="the inventory has shrunk, nothing is written"),
        pytest.param("unknown-host", "warning", id="vSphere data is too old, some is not"),
    ],
)
async def test_that_writes_stop_is_told_to_everybody_whatever_they_asked_for(
    results: Results, severity: str, level: str
):
    stopped = msgspec.structs.replace(SHARED, id="s1", severity=severity, rule="Inventory", pod=None, node=None)
    async with (
        Receiver() as manager,
        Receiver() as hook,
        alerting(
            results,
            stopped,
            DRIFT,
            alertmanagers=[manager.url],
            severity="violation",
            webhooks=[WebhookSettings(url=hook.url, severity="violation")],
        ),
    ):
        ((told,),) = await manager.requested(1)
        await hook.requested(1)
    assert told["labels"]["alertname"] == "UnderhostWritesStopped"
    assert told["labels"]["severity"] == level
    assert told["annotations"]["runbook_url"] == "docs/runbooks/UnderhostWritesStopped.md"


async def test_an_alertmanager_that_knows_is_told_again_no_sooner_than_it_asked_for(results: Results):
    async with (
        Receiver(503) as manager,
        Receiver() as hook,
        alerting(
            results, SHARED, alertmanagers=[manager.url], repeat=600, webhooks=[WebhookSettings(url=hook.url)]
        ) as observe,
    ):
        await results.reached("alertmanager", "sent")
        for _ in range(20):
            observe(DRIFT)  # is not for the Alertmanager
        await hook.requested(21)
    assert len(manager.requests) == 2, "once in vain"


async def test_the_end_of_a_finding_is_told_with_its_time(results: Results):
    async with Receiver() as receiver, alerting(results, SHARED, alertmanagers=[receiver.url]) as observe:
        await results.reached("alertmanager", "sent")
        observe(RESOLVED)
        told = (await receiver.requested(2))[1]
    assert [one["endsAt"] for one in told] == ["2026-11-21T03:05:00.000Z"]


async def test_what_an_alertmanager_did_not_take_is_told_again(results: Results):
    async with Receiver(503, 500, 429) as receiver, alerting(results, SHARED, alertmanagers=[receiver.url]):
        bodies = await receiver.requested(4)
        assert [[one["labels"]["finding_id"] for one in body] for body in bodies] == [["9f2c"]] * 4
    assert results["alertmanager", "failed"] == 3


async def test_a_finding_that_came_and_went_while_the_alertmanager_was_away_is_told(results: Results):
    receiver = Receiver()
    await receiver.open()
    await receiver.close()
    async with alerting(results, alertmanagers=[receiver.url], repeat=0.05) as observe:
        observe(SHARED)
        await results.reached("alertmanager", "failed")
        observe(RESOLVED)
        await receiver.open()
        while not any(one["endsAt"] == RESOLVED.updated_at for body in await receiver.requested(1) for one in body):
            await receiver.requested(len(receiver.requests) + 1)
    assert receiver.requests[0][2][0]["endsAt"] > RESOLVED.updated_at, "it fires before it ends"
    await receiver.close()


async def test_one_alertmanager_that_is_away_does_not_keep_another_from_being_told(
    results: Results,
):
    async with Receiver() as receiver, alerting(results, SHARED, alertmanagers=["http://127.0.0.1:1", receiver.url]):
        assert len(await receiver.requested(1)) == 1


async def test_alerts_of_another_severity_than_asked_for_are_not_told(results: Results):
    async with Receiver() as receiver, alerting(results, DRIFT, SHARED, alertmanagers=[receiver.url]):
        (told,) = await receiver.requested(1)
    assert [one["labels"]["finding_id"] for one in told] == ["9f2c"]


async def test_many_findings_are_told_in_messages_of_a_bounded_size(results: Results):
    async with Receiver() as receiver, alerting(results, *many(1200), alertmanagers=[receiver.url]):
        assert [len(body) for body in await receiver.requested(3)] == [500, 500, 200]


async def test_a_message_that_is_refused_does_not_keep_the_others_from_being_told(results: Results):
    async with Receiver(403) as receiver, alerting(results, *many(600), alertmanagers=[receiver.url]):
        bodies = await receiver.requested(2)
        await results.reached("alertmanager", "refused")
    assert [len(body) for body in bodies] == [500, 100]
    assert results == {("alertmanager", "refused"): 1}


@pytest.mark.parametrize("status", [pytest.param(400, id="not as it must be"), pytest.param(422, id="not valid")])
async def test_an_alert_that_is_refused_costs_no_other_one_and_is_named(
    results: Results, caplog: pytest.LogCaptureFixture, status: int
):
    def judge(body: Any) -> int:
        return status if "f0300" in ids(body) else 200

    async with Receiver(judge=judge) as receiver, alerting(results, *many(600), alertmanagers=[receiver.url]):
        await results.reached("alertmanager", "refused")
    told = [id_ for _, _, body in receiver.requests if judge(body) == 200 for id_ in ids(body)]
    assert sorted(told) == [event.id for event in many(600) if event.id != "f0300"]
    assert results == {("alertmanager", "refused"): 1}
    (line,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith("1 of 600 alerts were refused, first that of finding f0300: http://127.0.0.1:")


async def test_a_message_that_is_too_large_is_told_in_parts(results: Results):
    def judge(body: Any) -> int:
        return 413 if len(body) > 150 else 200

    async with Receiver(judge=judge) as receiver, alerting(results, *many(600), alertmanagers=[receiver.url]):
        await results.reached("alertmanager", "sent")
    assert [len(body) for _, _, body in receiver.requests] == [500, 100, 250, 250, 125, 125, 125, 125]
    assert results == {("alertmanager", "sent"): 1}


async def test_where_nothing_is_taken_not_every_alert_is_tried(results: Results, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(alertmanager, "HALVED", 3)
    async with (
        Receiver(judge=lambda body: 400) as receiver,
        alerting(results, *many(600), alertmanagers=[receiver.url]),
    ):
        await results.reached("alertmanager", "refused")
    assert [len(body) for _, _, body in receiver.requests] == [500, 100, 250, 250, 50, 50, 125, 125]


async def test_where_an_alertmanager_goes_away_in_the_middle_all_is_told_again(results: Results):
    async with Receiver(403, 503) as receiver, alerting(results, *many(600), alertmanagers=[receiver.url]):
        await results.reached("alertmanager", "sent")
    assert [len(body) for _, _, body in receiver.requests] == [500, 100, 500, 100]
    assert results == {("alertmanager", "failed"): 1, ("alertmanager", "sent"): 1}


async def test_a_webhook_is_told_each_change_in_order_as_a_cloud_event(results: Results):
    async with (
        Receiver() as receiver,
        alerting(results, webhooks=[WebhookSettings(url=f"{receiver.url}/hook")]) as observe,
    ):
        observe(SHARED)
        observe(RESOLVED)
        first, second = await receiver.requested(2)
    assert [first["data"]["state"], second["data"]["state"]] == ["opened", "resolved"]
    assert {name: first[name] for name in ("specversion", "source", "type", "time", "subject")} == {
        "specversion": "1.0",
        "source": "/sites/prod",
        "type": "underhost.violations.v1",
        "time": "2026-11-21T03:00:00.000Z",
        "subject": "9f2c",
    }
    assert first["id"] != second["id"]
    path, headers, _ = receiver.requests[0]
    assert (path, headers["Content-Type"]) == ("/hook", "application/cloudevents+json; charset=utf-8")


async def test_a_webhook_that_fails_is_called_again_and_one_that_refuses_is_not(results: Results):
    async with (
        Receiver(502, 400) as receiver,
        alerting(results, webhooks=[WebhookSettings(url=receiver.url)]) as observe,
    ):
        observe(SHARED)
        observe(RESOLVED)
        bodies = await receiver.requested(3)
    assert [body["data"]["state"] for body in bodies] == ["opened", "opened", "resolved"]
    assert (results["webhook", "failed"], results["webhook", "refused"]) == (1, 1)


async def test_a_receiver_that_says_why_in_no_text_is_told_again(results: Results, caplog: pytest.LogCaptureFixture):
    async with (
        Receiver(502, why=b"\xff why\n\nnot") as receiver,
        alerting(results, SHARED, webhooks=[WebhookSettings(url=receiver.url)]),
    ):
        await results.reached("webhook", "sent")
    (line,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert line == f"a webhook is called again in 0 s: {receiver.url}: 502 Bad Gateway: \ufffd why not"


async def test_a_webhook_asks_for_its_own_severity(results: Results):
    async with (
        Receiver() as receiver,
        alerting(results, webhooks=[WebhookSettings(url=receiver.url, severity="physical")]) as observe,
    ):
        observe(DRIFT)
        observe(SHARED)
        (body,) = await receiver.requested(1)
    assert body["subject"] == "9f2c"


async def test_the_oldest_events_for_a_webhook_that_is_away_are_dropped_and_counted(
    results: Results, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhook, "MOST", 2)
    async with Receiver() as receiver:
        await receiver.close()
        async with alerting(results, webhooks=[WebhookSettings(url=receiver.url)]) as observe:
            for event in many(3):
                observe(event)
            await receiver.open()
            bodies = await receiver.requested(2)
    assert [body["subject"] for body in bodies] == ["f0001", "f0002"]
    assert results["webhook", "dropped"] == 1


async def test_what_is_dropped_while_it_is_sent_costs_no_other_event(results: Results, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(webhook, "MOST", 1)
    first, *more = many(2)

    def judge(body: Any) -> int:
        while more:
            observe(more.pop())
        return 200

    async with (
        Receiver(judge=judge) as receiver,
        alerting(results, first, webhooks=[WebhookSettings(url=receiver.url)]) as observe,
    ):
        bodies = await receiver.requested(2)
    assert [body["subject"] for body in bodies] == ["f0000", "f0001"]


async def test_a_webhook_that_fails_is_left_alone_for_a_while(results: Results, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delivery, "FIRST_PAUSE", 600.0)
    async with (
        Receiver(judge=lambda body: 502) as away,
        Receiver() as there,
        alerting(results, *many(20), webhooks=[WebhookSettings(url=one.url) for one in (away, there)]),
    ):
        await there.requested(20)
    assert [body["subject"] for _, _, body in away.requests] == ["f0000"]


async def test_a_record_that_waits_for_its_turn_at_a_webhook_is_not_held_for_it(results: Results):
    held: list[str] = []
    first, second = many(2)
    running = Alerting(
        AlertingSettings(webhooks=[WebhookSettings(url="http://127.0.0.1:1")]), results.add, failed=print, share=1
    )
    running.start([])
    for event in (first, second):
        held.append(event.id)
        running.deliver(event, lambda id_=event.id: lambda: held.remove(id_))
    await running.stop()
    assert held == ["f0000"]


async def test_a_bug_in_telling_is_told_to_whoever_started_it():
    errors: asyncio.Queue[BaseException] = asyncio.Queue()

    def count(receiver: str, result: str) -> None:
        raise ValueError("a bug")

    async with Receiver() as receiver:
        running = Alerting(AlertingSettings(alertmanagers=[receiver.url]), count, errors.put_nowait, share=1)
        running.start([SHARED])
        async with asyncio.timeout(30):
            assert str(await errors.get()) == "a bug"
        await running.stop()


async def test_headers_come_from_a_file_that_is_read_each_time(results: Results, tmp_path: Path):
    secret = tmp_path / "headers"
    secret.write_text("Authorization: Bearer one\n")
    async with (
        Receiver() as receiver,
        alerting(results, SHARED, alertmanagers=[receiver.url], headers_file=secret, plain_secrets=True) as observe,
    ):
        await results.reached("alertmanager", "sent")
        secret.write_text("Authorization: Bearer two\n")
        observe(RESOLVED)
        await receiver.requested(2)
    assert [headers["Authorization"] for _, headers, _ in receiver.requests] == ["Bearer one", "Bearer two"]


TOKEN, PLAIN, TLS = {"headersFile": "token"}, "http://chat.example/T0/secret", "https://chat.example/T0/secret"
WITH_PASSWORD = "http://bot:pw@chat.example"
WOULD = "would travel in the clear: take https, or set plainSecrets: true"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"webhooks": [{"url": TLS, **TOKEN}]}, "", id="a webhook over TLS"),
        pytest.param({"webhooks": [{"url": PLAIN}]}, "", id="a webhook without a secret"),
        pytest.param({"webhooks": [{"url": PLAIN, **TOKEN, "plainSecrets": True}]}, "", id="somebody insists"),
        pytest.param(
            {"webhooks": [{"url": PLAIN, **TOKEN}]}, f"http://chat.example/…: headersFile {WOULD}", id="webhook"
        ),
        pytest.param(
            {"webhooks": [{"url": WITH_PASSWORD}]}, f"http://chat.example: the password in it {WOULD}", id="a password"
        ),
        pytest.param({"alertmanagers": [TLS], **TOKEN}, "", id="an Alertmanager over TLS"),
        pytest.param(
            {"alertmanagers": [TLS, "http://am.example"], **TOKEN},
            f"http://am.example: headersFile {WOULD}",
            id="one of two Alertmanagers",
        ),
        pytest.param({"alertmanagers": ["http://am.example"], **TOKEN, "plainSecrets": True}, "", id="insisted, too"),
    ],
)
def test_a_secret_is_sent_over_plain_http_only_where_somebody_insists(given: dict[str, Any], said: str):
    try:
        AlertingSettings.model_validate(given)
    except ValidationError as error:
        assert [fault["msg"] for fault in error.errors()] == [f"Value error, {said}"]
        assert "pw" not in said
    else:
        assert said == ""


async def test_a_receivers_certificate_is_checked_against_the_file_that_is_named(results: Results, tmp_path: Path):
    certificate = Authority(tmp_path, "ca").certificate("receiver", "IP:127.0.0.1")
    trusting = {"ca_file": tmp_path / "ca.pem"}
    async with Receiver(certificate=certificate.both) as receiver:
        hooks = [WebhookSettings(url=receiver.url, **trusting)]
        async with alerting(results, SHARED, alertmanagers=[receiver.url], webhooks=hooks, **trusting):
            await results.reached("alertmanager", "sent")
            await results.reached("webhook", "sent")
        async with alerting(results, SHARED, webhooks=[WebhookSettings(url=receiver.url)]):
            await results.reached("webhook", "failed")
    assert (results["alertmanager", "sent"], results["webhook", "sent"]) == (1, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"ca_file": "there"}, "alerting.caFile: {path}: no PEM certificate in it", id="no certificate"),
        pytest.param({"ca_file": "gone"}, "alerting.caFile: {path}: No such file or directory", id="no file"),
        pytest.param(
            {"webhooks": [{"url": TLS}, {"url": TLS, "caFile": "gone"}]},
            "alerting.webhooks.1.caFile: {path}: No such file or directory",
            id="of a webhook",
        ),
    ],
)
def test_a_file_of_authorities_that_is_of_no_use_is_said_with_its_setting(
    given: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("no certificate")
    with pytest.raises(InputError) as raised:
        Alerting(AlertingSettings.model_validate(given), lambda who, what: None, lambda error: None, share=1)
    assert str(raised.value) == said.format(path="there" if "there" in given.values() else "gone")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, "No such file or directory", id="no file"),
        pytest.param("Bearer", "lines of `Name: value` are expected", id="no name"),
    ],
)
def test_a_file_of_headers_that_cannot_be_read_is_said(text: str | None, said: str, tmp_path: Path):
    path = tmp_path / "headers"
    if text is not None:
        path.write_text(text)
    with pytest.raises(delivery.Unreachable, match=said):
        delivery.read_headers(path)
