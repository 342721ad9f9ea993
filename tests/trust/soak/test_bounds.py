"""What a worker remembers of pods that have gone has a bound, and under the soak's load the bound is soon reached."""

import pytest
from trust.soak.load import NEW, QUESTIONS, RATE

from underhost.agents.extender import assumed
from underhost.agents.http import activity
from underhost.agents.pipeline.decide import placements
from underhost.agents.pipeline.gates import wanted
from underhost.agents.sinks import bindings
from underhost.agents.sinks.events import sink as events

SOON = 15 * 60.0
"""Seconds; the soak compares from a third of an hour on."""
PODS = RATE * NEW / (1 + NEW)
"""Pods that are new, a second."""


@pytest.mark.parametrize(
    ("bound", "a_second"),
    [
        pytest.param(activity.MOST, PODS, id="objects in the page's history"),
        pytest.param(activity.TOGETHER, 3 * PODS, id="its entries: a decision, an order and a binding of each pod"),
        pytest.param(bindings.REMEMBERED, PODS, id="pods that the binder has bound"),
        pytest.param(wanted.REMEMBERED, PODS, id="commands that have their outcome"),
        pytest.param(placements.REMEMBERED, PODS, id="pods seen bound, where nobody tells Events"),
        pytest.param(events.REMEMBERED, PODS, id="Events that are there"),
        pytest.param(assumed._MOST, QUESTIONS, id="pods that the extender was asked about and that never came"),
    ],
)
def test_what_is_remembered_of_pods_that_have_gone_grows_for_a_quarter_of_an_hour(bound: int, a_second: float) -> None:
    assert bound / a_second <= SOON
