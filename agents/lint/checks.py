"""What a check of `lint` is, and what it says.

A check is a row of a table: a name, a severity, why it matters, where that is written, and a pure function from the
view to complaints. The tables are in `lint_terms.py`, `lint_nodes.py`, `lint_budgets.py` and `lint_hosts.py`; `lint.py`
runs them all.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from underhost.agents.lint.view import View


class Complaint(NamedTuple):
    """Something wrong at `field` of `object`. `value` tells apart what one field may hold twice; part of the id."""

    object: str
    field: str
    message: str
    rule: str
    value: str = ""


class Check(NamedTuple):
    """One row. `name` is what findings give as their source, `why` what they give as their reason.

    `source` is where the behaviour is defined: a path in kubernetes/kubernetes, or a design rule of ours.
    """

    name: str
    severity: str
    why: str
    source: str
    find: Callable[[View], Iterator[Complaint]]


def plural(number: int, one: str, many: str = "") -> str:
    """`1 node`, `3 nodes`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def workload(object_: str) -> str:
    """An object as a sentence names it: `Deployment shop/db`."""
    return object_.replace("/", " ", 1)
