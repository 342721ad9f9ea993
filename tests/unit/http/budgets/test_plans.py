"""What one plan may cost: values, steps, objects, pods of all workloads together, and time."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from support.build import a_node, a_pod, a_site
from support.sites.shown import ShownSite

from underhost.agents.http import trials
from underhost.streams.files import yaml

SITE = a_site(*(a_node(f"n{number}") for number in range(9)), a_pod("db-0").on("n1"), site="prod")


class Asked:
    """A worker that shows the site, and a client."""

    def __init__(self, base: str, client: aiohttp.ClientSession) -> None:
        self._base, self._client = base, client

    async def post(self, body: bytes) -> tuple[int, Any]:
        """Status and document of a plan."""
        headers = {"Content-Type": "application/json"}
        async with self._client.post(f"{self._base}api/v1/whatif", data=body, headers=headers) as response:
            return response.status, await response.json()


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    with ShownSite() as shown:
        shown.put(SITE)
        async with aiohttp.ClientSession() as client:
            yield Asked(shown.address, client)


def adding(*objects: Any) -> bytes:
    return json.dumps({"steps": [{"add": [each]} for each in objects]}).encode()


def workload(name: str, replicas: int = 1, kind: str = "Deployment", **more: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}], **more}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
HUGE = b'{"steps":[{"add":[{"name":1e999},' + b",".join([b"{}"] * 330_000) + b"]}]}"
DEEP = b'{"steps":[{"add":' + b"[" * 400_000 + b"]" * 400_000 + b"}]}"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(HUGE, "the body has more than 100000 values", id="990 kB of empty objects"),
        pytest.param(DEEP, "the body has more than 100000 values", id="400,000 levels"),
        pytest.param(b"[" * 99_999, "the body nests deeper than 64 levels", id="99,999 levels"),
        pytest.param(b'{"steps":[{"add":[{"name":1e999}]}]}', "steps[0].add: not valid JSON", id="a number too large"),
        pytest.param(b'{"steps":[{"add":[{a: 1}]}]}', "JSON is malformed", id="YAML in braces"),
        pytest.param(b"steps:\n- drain: n1\n", "JSON is malformed", id="YAML"),
        pytest.param(json.dumps({"steps": [{"drain": "n1"}] * 201}).encode(), "steps: more than 200", id="steps"),
        pytest.param(adding(*[{}] * 150, *[{}] * 60), "steps: more than 200", id="steps that add"),
        pytest.param(
            json.dumps({"steps": [{"add": [SHOP] * 1500}, {"add": [SHOP] * 501}]}).encode(),
            "steps[1].add: more than 2000 objects in all",
            id="objects of several steps",
        ),
        pytest.param(
            json.dumps({"steps": [{"drain": "n" * 2000}]}).encode(), "more than 1024 characters", id="a long name"
        ),
        pytest.param(
            adding(workload("web", 5_001)), "the workloads make more than 5000 pods together", id="one workload"
        ),
        pytest.param(
            adding(*(workload(f"web-{number}", 2000) for number in range(3))),
            "the workloads make more than 5000 pods together",
            id="three workloads",
        ),
        pytest.param(
            adding(*(workload(f"agent-{number}", kind="DaemonSet") for number in range(5)), workload("web", 4_960)),
            "the workloads make more than 5000 pods together",
            id="DaemonSets count on every node",
        ),
        pytest.param(
            adding(workload("web", 200, affinity={"why": "x" * 100_000})),
            "take more than 8 MiB together",
            id="pods of a large template",
        ),
    ],
)
async def test_a_plan_that_would_cost_too_much_is_refused(asked: Asked, body: bytes, why: str) -> None:
    assert len(body) < 1 << 20
    status, found = await asked.post(body)
    assert status == 422
    assert why in found["error"]


async def test_json_that_fails_is_not_tried_as_yaml(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "documents")
    status, found = await asked.post(b'{"steps":[{"add":[{"name":1e999}]}]}')
    assert (status, "not valid JSON" in found["error"]) == (422, True)


async def test_a_plan_of_many_pods_within_the_bounds_is_tried(asked: Asked) -> None:
    status, found = await asked.post(adding(workload("web", 500), workload("db", 500)))
    assert (status, found["kind"]) == (200, "WhatIf")
    assert len(found["moves"]) + len(found["pending"]) == 1000


async def test_a_refusal_does_not_repeat_what_was_sent(asked: Asked) -> None:
    status, found = await asked.post(b'{"' + b"x" * 900_000 + b'":1}')
    assert (status, len(found["error"])) == (422, 1001)


@pytest.mark.parametrize("body", [b'{"each":"node"}', b'{"steps":[{"drain":"n1"}]}'], ids=["each node", "steps"])
async def test_a_plan_has_its_time(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.0)
    with ShownSite() as shown:
        shown.put(SITE)
        async with aiohttp.ClientSession() as client:
            status, found = await Asked(shown.address, client).post(body)
    assert status == 422
    assert found["error"].startswith("it takes longer than 0 s; the command line tries it without a bound")
