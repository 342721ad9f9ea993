"""The OpenAPI document tells every route, and a whole worker answers as it tells, whatever it is asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from prometheus_client import CollectorRegistry
from schemathesis import GenerationMode, checks
from support.requests.told import DOCUMENT, QUESTIONS, as_told
from support.sites.shown import LiveDemo

from underhost.agents.http.doors import session
from underhost.agents.http.doors.door import Door
from underhost.agents.http.openapi import OPERATIONS
from underhost.agents.http.routes import http_routes
from underhost.agents.http.server import probes
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings

TOLD = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
QUICK = settings(
    max_examples=15,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_route_of_a_worker_is_told_and_no_other(tmp_path: Path) -> None:
    given_settings = Settings(site="a", kafka=KafkaSettings(embedded=tmp_path / "log.db"))
    registry = CollectorRegistry()
    made = http_routes(given_settings, LatestDecisions(), dict, lambda: None, registry)
    routes = [*made.routes, *made.questions, *session.routes(Door())]
    routes += probes(dict, registry, lambda: None, dict, dict, dict)
    there = sorted((route.method.lower(), route.path.replace(":.+", "")) for route in routes)
    assert there == sorted((one.method, one.path) for one in OPERATIONS)


def test_every_reference_leads_somewhere_and_every_name_is_unique() -> None:
    found = list(references(DOCUMENT))
    assert len(found) > 100
    assert {name.rpartition("/")[2] for name in found} <= DOCUMENT["components"]["schemas"].keys()
    names = [each["operationId"] for path in DOCUMENT["paths"].values() for each in path.values()]
    assert len(set(names)) == len(names)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (value[key] for key in value if key == "$ref")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(inner)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LiveDemo(tmp_path_factory.mktemp("fuzz")) as demo:
        yield demo.address


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        pytest.param(one, mode, id=f"{one.method} {one.path}{', wrongly' if mode is GenerationMode.NEGATIVE else ''}")
        for one, mode in QUESTIONS
    ],
)
def test_a_worker_answers_as_it_is_told(worker: str, operation: Any, mode: GenerationMode) -> None:
    @QUICK
    @given(as_told(operation, mode))
    def ask(case: schemathesis.Case) -> None:
        answer = case.call(base_url=worker, timeout=60)
        case.validate_response(answer, checks=TOLD)
        assert answer.status_code < 500 or answer.status_code == 503

    ask()
