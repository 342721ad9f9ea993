"""Why no eviction ends a finding: all of it for who reads the topics, their part for who reads the pod's namespace."""

import pytest

from underhost.agents.sinks.evictions.refusals import refusal
from underhost.schemas.records import Finding

VOLUME, NODES = "it has an emptyDir, whose content would be lost", "it belongs to its node"


@pytest.mark.parametrize(
    ("reasons", "whole", "of_shop"),
    [
        pytest.param(
            {"shop/a": VOLUME, "shop/b": VOLUME},
            f"shop/a and shop/b: {VOLUME}",
            f"shop/a and shop/b: {VOLUME}",
            id="of one namespace",
        ),
        pytest.param(
            {"shop/a": VOLUME, "pay/vault": NODES},
            f"pay/vault: {NODES}; shop/a: {VOLUME}",
            f"shop/a: {VOLUME}; of 1 pod of another namespace nothing is said here",
            id="another tenant's pod and why it stays",
        ),
        pytest.param(
            {"pay/vault": NODES, "ops/log": NODES},
            f"ops/log and pay/vault: {NODES}",
            "of 2 pods of other namespaces nothing is said here",
            id="others' alone",
        ),
    ],
)
def test_a_refusal_tells_a_namespace_of_its_own_pods(reasons: dict[str, str], whole: str, of_shop: str) -> None:
    finding = Finding("f1", "physical", "PhysicalHost", "r", "m", pod="shop/a")
    said = refusal(finding, reasons)
    assert (said.finding, said.pod, said.reason, said.tell) == (finding, "shop/a", whole, of_shop)
