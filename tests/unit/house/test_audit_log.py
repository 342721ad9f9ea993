"""How tests read the API server's audit log: what a write has done can be seen before the log has its end."""

import json
from pathlib import Path

import pytest
from support.processes import world
from support.processes.world import Audit

WRITE = ("create", "/api/v1/namespaces/shop/pods/db-0/binding")


def line(stage: str, audit_id: str, agent: str = "underhost", code: int = 201) -> str:
    verb, path = WRITE
    status = {"responseStatus": {"code": code}} if stage == "ResponseComplete" else {}
    event = {"stage": stage, "auditID": audit_id, "userAgent": agent, "verb": verb, "requestURI": f"{path}?x=y"}
    return json.dumps({**event, **status}) + "\n"


def test_what_has_begun_is_waited_for_and_what_begins_meanwhile_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "audit.log"
    log.write_text(line("RequestReceived", "a"))
    waits = []

    def a_moment(seconds: float) -> None:
        waits.append(seconds)
        with log.open("a") as file:
            file.write(line("ResponseComplete", "a") + line("RequestReceived", "b"))

    monkeypatch.setattr(world.time, "sleep", a_moment)
    assert Audit(log).product_writes() == [(*WRITE, 201)]
    assert len(waits) == 1


def test_half_a_line_is_left_for_the_next_reading(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(line("ResponseComplete", "a") + line("ResponseComplete", "b")[:40])
    assert Audit(log).product_writes() == [(*WRITE, 201)]


def test_what_kubernetes_and_people_write_is_not_the_products(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text("".join(line("ResponseComplete", agent, agent) for agent in ("kube-scheduler/v1.36", "kubectl")))
    assert Audit(log).product_writes() == []
