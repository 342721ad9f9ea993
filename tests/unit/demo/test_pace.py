"""What is wrong stays for people to see: told the time, the pace of the demo needs no clock."""

import pytest

from underhost.agents.demo.pace import Pace

VISIT, REST, ENTER = "visit", "rest", "enter"


@pytest.mark.parametrize(
    ("happened", "now", "left"),
    [
        pytest.param([(REST, 10)], 70, None, id="nobody has come for a minute: it stays"),
        pytest.param([(REST, 10)], 86_410, None, id="nobody has come for a day: it stays"),
        pytest.param([(REST, 10), (VISIT, 70)], 70, 45, id="opened after a minute: there is time to read"),
        pytest.param([(REST, 10), (VISIT, 70)], 114, 1, id="still there before the time is over"),
        pytest.param([(REST, 10), (VISIT, 70)], 115, 0, id="the time is over"),
        pytest.param([(VISIT, 2), (REST, 10)], 30, 25, id="opened before it broke: the time begins as it breaks"),
        pytest.param([(VISIT, 2), (REST, 10), (VISIT, 50)], 55, 0, id="a second visitor holds nothing up"),
        pytest.param([(REST, 10), (ENTER, 12)], 12, 0, id="Enter"),
        pytest.param([(REST, 10), (ENTER, 12), (REST, 20)], 21, None, id="Enter ends one rest only"),
    ],
)
def test_how_long_it_stays(happened: list[tuple[str, float]], now: float, left: float | None) -> None:
    pace = Pace()
    for what, at in happened:
        {VISIT: pace.visit, REST: pace.rest, ENTER: lambda at: pace.go_on()}[what](at)
    assert pace.left(now) == left
