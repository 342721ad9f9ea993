"""What a check of `lint` is.

A check is a row of a table: a name, a severity, why it matters, where that is written, what it looks at one by one, and
a pure function from one of these to complaints. Each module of checks has a table `CHECKS`; `report.py` runs them all.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from underhost.agents.lint.subjects import Complaint, PodRule, Subject
from underhost.agents.lint.view import View


class Check(NamedTuple):
    """One row. `name` is what findings give as their source, `why` what they give as their reason.

    `source` is where the behaviour is defined: a path in kubernetes/kubernetes, or a design rule of ours. `find` is
    asked about each item that `each` gives, or once about the view where `each` is None.
    """

    name: str
    severity: str
    why: str
    source: str
    each: Callable[[View], Iterable[Any]] | None
    find: Callable[..., Iterator[Complaint]]

    def complaints(self, view: View) -> Iterator[Complaint]:
        """All that it finds."""
        if self.each is None:
            yield from self.find(view)
            return
        for item in self.each(view):
            yield from self.find(view, item)


def subjects(view: View) -> Iterable[Subject]:
    """Every subject."""
    return view.subjects


def rules(view: View) -> Iterable[PodRule]:
    """Every rule between pods."""
    return view.rules


def required_rules(view: View) -> Iterable[PodRule]:
    """The rules between pods that can refuse a node."""
    return (rule for rule in view.rules if rule.required)


def preferences(view: View) -> Iterable[PodRule]:
    """The rules between pods that only score nodes."""
    return (rule for rule in view.rules if not rule.required)


def plural(number: int, one: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{number} {one if number == 1 else one + 's'}"
