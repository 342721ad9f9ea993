from typing import Any

import pytest
from support.answers.rules import refused, scores
from support.build import a_node, a_pod, a_site

from underhost.agents.rules.taint_toleration import NAME, REASON_UNTOLERATED

REFUSED = {"n1": [REASON_UNTOLERATED]}


@pytest.mark.parametrize(
    ("taint", "tolerations", "expected"),
    [
        pytest.param("gpu=yes:NoSchedule", [], REFUSED, id="n1 refuses a pod that does not tolerate NoSchedule"),
        pytest.param("gpu=yes:NoExecute", [], REFUSED, id="n1 refuses a pod that does not tolerate NoExecute"),
        pytest.param("gpu=yes:PreferNoSchedule", [], {}, id="PreferNoSchedule refuses nothing"),
        pytest.param(
            "gpu=yes:NoSchedule",
            [{"key": "gpu", "value": "yes"}],
            {},
            id="no operator means Equal, no effect all effects",
        ),
        pytest.param(
            "gpu=yes:NoSchedule",
            [{"key": "gpu", "operator": "Equal", "value": "no"}],
            REFUSED,
            id="another value is no help",
        ),
        pytest.param("gpu=yes:NoSchedule", [{"key": "gpu", "operator": "Exists"}], {}, id="Exists takes every value"),
        pytest.param(
            "gpu=yes:NoSchedule", [{"operator": "Exists"}], {}, id="an empty key with Exists takes every taint"
        ),
        pytest.param(
            "gpu=yes:NoSchedule",
            [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}],
            REFUSED,
            id="a toleration of NoExecute is none of NoSchedule",
        ),
        pytest.param(
            "gpu=5:NoSchedule",
            [{"key": "gpu", "operator": "Gt", "value": "4"}],
            REFUSED,
            id="Gt tolerates nothing while its gate is off",
        ),
    ],
)
def test_a_taint_on_n1(taint: str, tolerations: list[dict[str, Any]], expected: dict[str, list[str]]) -> None:
    snapshot = a_site(a_node("n1").tainted(taint), a_node("n2"), a_pod("web").tolerates(*tolerations))
    assert refused(snapshot, "web", NAME) == expected


def test_one_untolerated_taint_of_two_is_enough_to_refuse() -> None:
    snapshot = a_site(
        a_node("n1").tainted("a=1:NoSchedule", "b=1:NoSchedule"),
        a_pod("web").tolerates({"key": "a", "operator": "Exists"}),
    )
    assert refused(snapshot, "web", NAME) == REFUSED


def test_untolerated_preferences_are_counted_against_the_worst_node() -> None:
    snapshot = a_site(
        a_node("n1"),
        a_node("n2").tainted("a=1:PreferNoSchedule"),
        a_node("n3").tainted("a=1:PreferNoSchedule", "b=1:PreferNoSchedule", "c=1:PreferNoSchedule"),
        a_pod("web"),
    )
    assert scores(snapshot, "web", NAME) == {"n1": 100, "n2": 67, "n3": 0}


def test_without_any_preference_every_node_has_100() -> None:
    assert scores(a_site(a_node("n1"), a_node("n2"), a_pod("web")), "web", NAME) == {"n1": 100, "n2": 100}
