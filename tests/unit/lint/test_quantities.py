"""Lint of amounts: what the API server refuses, `schedule` refuses too."""

from typing import Any

import pytest
from support.answers.lint import report_of
from support.build import a_manifest

CPU = "not a quantity: {} (a number and a suffix: n u m k M G T P E, Ki to Ei, or e3)"


@pytest.mark.parametrize(
    ("resources", "field", "fault"),
    [
        pytest.param(
            {"requests": {"memory": "1.5GB"}}, "requests[memory]", CPU.format("'1.5GB'"), id="a unit of disks"
        ),
        pytest.param({"requests": {"cpu": "abc"}}, "requests[cpu]", CPU.format("'abc'"), id="a word"),
        pytest.param({"limits": {"cpu": "abc"}}, "requests[cpu]", CPU.format("'abc'"), id="a limit becomes a request"),
        pytest.param(
            {"requests": {"memory": "1Gi", "cpu": [1]}},
            "requests[cpu]",
            "expected a number or a string, got a list",
            id="a list",
        ),
    ],
)
def test_an_amount_that_is_none_is_found_once(resources: Any, field: str, fault: str) -> None:
    manifest = a_manifest().spec(containers=[{"name": "c", "resources": resources}])
    (found,) = report_of([manifest]).findings
    assert (found.source, found.severity, found.object) == (
        "quantity-unreadable",
        "unsatisfiable",
        "Deployment/shop/db",
    )
    assert found.field == f"spec.template.spec.containers[0].resources.{field}"
    assert found.message == f"Deployment shop/db asks for what the API server refuses: {fault}: correct the amount."


def test_amounts_of_every_kind_are_right() -> None:
    amounts = {"cpu": "500m", "memory": 1000, "ephemeral-storage": "1.5Gi", "example.com/gpu": "1e3"}
    manifest = a_manifest().spec(containers=[{"name": "c", "resources": {"requests": amounts}}])
    assert report_of([manifest]).findings == []
