from typing import Any

import pytest
from support.answers.rules import refused
from support.build import a_node, a_pod, a_site

from underhost.agents.rules.node_unschedulable import NAME, REASON_UNSCHEDULABLE

KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], {"n1": [REASON_UNSCHEDULABLE]}, id="a pod without tolerations is refused by the cordoned n1"),
        pytest.param([{"key": KEY, "operator": "Exists"}], {}, id="a toleration of the cordon's taint lets it in"),
        pytest.param([{"operator": "Exists"}], {}, id="a toleration of everything lets it in"),
        pytest.param(
            [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}],
            {"n1": [REASON_UNSCHEDULABLE]},
            id="a toleration of another effect does not",
        ),
        pytest.param(
            [{"key": KEY, "operator": "Equal", "value": "x"}],
            {"n1": [REASON_UNSCHEDULABLE]},
            id="a toleration of another value does not",
        ),
    ],
)
def test_a_cordoned_node(tolerations: list[dict[str, Any]], expected: dict[str, list[str]]) -> None:
    snapshot = a_site(a_node("n1").cordoned(), a_node("n2"), a_pod("web").tolerates(*tolerations))
    assert refused(snapshot, "web", NAME) == expected
