"""What all who ask may hold in memory together, beside what grows with the site.

That is its picture, what a plan or an explanation makes of it, and its records of the past (`history.BUDGET`).
"""

from underhost.agents.http import extender, feed, history, plans
from underhost.agents.http.budgets import bodies, connections

MIB = 1 << 20
SLACK = 9 / 8
"""Of a body that grows: an eighth more than it has."""
HEADERS_MADE = 2
"""What is made of the bytes of a request that does not end."""
THING = 24
"""Bytes of a value of a question that is looked at before it is read."""


def test_the_budgets_together_are_less_than_a_worker_may_grow_by() -> None:
    held = {
        "bodies": bodies.TOGETHER * SLACK,
        "requests that do not end": connections.BEGUN * HEADERS_MADE,
        "answers that nobody reads": connections.UNREAD + connections.ANSWERED,
        "moments of the past": history.KEPT_BYTES,
        "events": feed.KEPT_BYTES,
        "plans": plans.PODS_SIZE + plans.WAITING * bodies.BODY,
        "values of one question": extender.VALUES / 2 * THING,
    }
    assert {what: round(size / MIB) for what, size in held.items()} == {
        "bodies": 81,
        "requests that do not end": 32,
        "answers that nobody reads": 33,
        "moments of the past": 32,
        "events": 4,
        "plans": 12,
        "values of one question": 23,
    }
    assert sum(held.values()) < 250 * MIB
