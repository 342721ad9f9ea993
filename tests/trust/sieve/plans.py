"""Which plans there are: the numbered table of what is done to a worker in the middle of a story. Pure.

In: the writes of each story, as an undisturbed worker makes them. Out: `PLANS`, always in the same order, the three
kinds of faults and the stories mixed, so that any part of the table has some of each.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

UNDISTURBED, INTERMEDIATE, UNOBSERVED, STALE = "undisturbed", "intermediate", "unobserved", "stale"
BEFORE, AFTER = "before", "after"
VCENTER = "vcenter"


@dataclass(frozen=True)
class Kill:
    """`kill -9` before or after the `nth` time (from 1) that a worker makes a write.

    Attributes:
        times: so many workers in a row are killed there.
        frozen: the new worker's watches deliver nothing for a while.
        back: its lists show, for as long, the state before this step (0), or before the one before it (1); None: as it
            is.
        away: the new worker starts only once the next step has happened.
    """

    write: str
    nth: int
    when: str
    times: int = 1
    frozen: bool = False
    back: int | None = None
    away: bool = False


@dataclass(frozen=True)
class Lose:
    """The connection breaks before or after the `nth` time that the worker makes a write: it does not know which."""

    write: str
    nth: int
    when: str


@dataclass(frozen=True)
class Withhold:
    """What the worker is not shown of a step until it is over.

    Attributes:
        kinds: plurals of Kubernetes kinds, and `vcenter`.
        how: then it comes `late`, or never: the watch has `expired`, or the worker is killed and `restarted`; or the
            watch has expired, and lists show the `past`, the state before the step before this, for a while.
        since: not "": nothing is withheld before the worker makes this write in the step; so it does not see its own.
    """

    step: str
    kinds: tuple[str, ...]
    how: str
    since: str = ""


@dataclass(frozen=True)
class Plan:
    """One plan: at most one fault."""

    number: int
    regime: str
    story: str
    fault: Kill | Lose | Withhold | None = None

    @property
    def told(self) -> str:
        """What is done, in a line."""
        return f"{self.story}: {self.fault or 'nothing is done to it'}"


def _starting(nodes: int) -> tuple[tuple[str, int], ...]:
    return tuple((f"{what} n{number}", 1) for what in ("label", "taint") for number in range(1, nodes + 1))


WRITES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "conflict": (
        *_starting(5),
        *(("bind", 1), ("event", 1), ("bind", 2), ("event", 2), ("bind", 3), ("event", 3), ("rule add", 1)),
        *(("label n3", 2), ("evict", 1), ("bind", 4), ("event", 4), ("rule edit", 1)),
        ("label n3", 3),
    ),
    "again": (
        *_starting(4),
        *(("bind", 1), ("event", 1), ("bind", 2), ("event", 2), ("rule add", 1)),
        *(("bind", 3), ("event", 3)),
        *(("label n4", 2), ("taint n4", 2)),
        *(("bind", 4), ("event", 4), ("rule remove", 1)),
    ),
    "flap": (
        *_starting(3),
        *(("bind", 1), ("event", 1), ("bind", 2), ("event", 2), ("rule add", 1)),
        ("label n1", 2),
    ),
    "hasty": (("bind", 3), ("bind", 4)),
    "fight": (*(("evict", nth) for nth in (1, 2, 3)), *(("bind", nth) for nth in (3, 4, 5))),
    "tryout": (("label n1", 1), ("bind", 1), ("rule add", 1)),
}
"""The writes of each story at which something is done to it, with how often each was made by then. A write that depends
on how fast the worker is (to a label that is set back at once, say) is not named."""
LONG = ("conflict", "again", "flap")
"""The stories that every kind of fault is tried in."""
AWAY: Mapping[str, tuple[tuple[str, int, tuple[str, ...]], ...]] = {
    "again": (("bind", 3, (BEFORE, AFTER)), ("label n4", 2, (BEFORE, AFTER)), ("taint n4", 2, (BEFORE,))),
    "flap": (("bind", 2, (BEFORE, AFTER)), ("rule add", 1, (BEFORE,)), ("label n1", 2, (BEFORE, AFTER))),
    "passing": (("label n3", 2, (BEFORE, AFTER)), ("evict", 1, (BEFORE,))),
}
"""The writes at which a worker is killed whose successor comes only after the next step."""
UNSEEN: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "conflict": (
        *(("deploy", "bind", "pods"), ("vmotion", "label n3", "nodes"), ("vmotion", "evict", "pods")),
        *(("vmotion", "bind", "pods"), ("back", "label n3", "nodes")),
    ),
    "again": (
        *(("pod", "bind", "pods"), ("node", "label n4", "nodes"), ("node", "taint n4", "nodes")),
        ("scale", "bind", "pods"),
    ),
    "flap": (("deploy", "bind", "pods"), ("label", "label n1", "nodes")),
    "hasty": (("hasty", "bind", "pods"),),
}
"""The worker's own writes that it is not shown: the step, the write, and the kind whose watch would show it."""

STEPS: Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "conflict": {
        "deploy": (("pods",), ("statefulsets", "poddisruptionbudgets"), ("nodes",)),
        "vmotion": (("nodes",), ("pods",), (VCENTER,), ("nodes", "pods"), ("poddisruptionbudgets",)),
        "back": (("nodes",), ("pods",), (VCENTER,), ("nodes", VCENTER)),
    },
    "again": {
        "deploy": (("pods",), ("statefulsets",), ("nodes",)),
        "pod": (("pods",), ("pods", "nodes"), ("statefulsets",), ("pods", "poddisruptionbudgets")),
        "node": (("nodes",), ("pods",), (VCENTER,), ("nodes", "pods")),
        "scale": (("pods",), ("statefulsets",), ("pods", "statefulsets"), ("nodes",)),
        "down": (("pods",), ("pods", "statefulsets")),
    },
    "flap": {
        "deploy": (("pods",), ("nodes",)),
        "label": (("nodes",), ("pods",), ("nodes", VCENTER)),
        "vmotion": ((VCENTER,), ("nodes",), (VCENTER, "nodes")),
        "cordon": (("nodes",), ("pods",), ("nodes", "pods")),
    },
}
"""What can be withheld of each step of a story."""


def _kills() -> Iterator[Plan]:
    for story, writes in WRITES.items():
        for write, nth in writes:
            if _is_start(write, nth) and story in ("again", "flap"):
                continue  # they begin as the first one does
            lasting = story in LONG and not write.startswith("event") and not _is_alike(write, nth)
            for when in (BEFORE, AFTER):
                yield Plan(0, INTERMEDIATE, story, Kill(write, nth, when))
                if lasting:
                    yield Plan(0, INTERMEDIATE, story, Lose(write, nth, when))
            if lasting:
                yield Plan(0, INTERMEDIATE, story, Kill(write, nth, BEFORE, times=2))
    for story, kills in AWAY.items():
        for write, nth, whens in kills:
            for when in whens:
                yield Plan(0, INTERMEDIATE, story, Kill(write, nth, when, away=True))


def _stale() -> Iterator[Plan]:
    for back, frozen in ((None, True), (0, True), (1, True), (0, False)):
        for story in LONG:
            for write, nth in WRITES[story]:
                alike = _is_alike(write, nth) or (_is_start(write, nth) and story != "flap")
                if not write.startswith("event") and not alike:
                    yield Plan(0, STALE, story, Kill(write, nth, AFTER, frozen=frozen, back=back))


def _is_start(write: str, nth: int) -> bool:
    """Whether it is a write with which each story begins."""
    return nth == 1 and write.startswith(("label", "taint"))


def _is_alike(write: str, nth: int) -> bool:
    """Whether it is one of those that others are like: the nodes are all alike then, and two of them will do."""
    return _is_start(write, nth) and write[-1] > "2"


def _withheld() -> Iterator[Plan]:
    for how in ("expired", "late", "restarted"):
        for story, steps in STEPS.items():
            for step, kinds in steps.items():
                for some in kinds:
                    yield Plan(0, UNOBSERVED, story, Withhold(step, some, how))
        for story, writes in UNSEEN.items():
            for step, write, kind in writes:
                yield Plan(0, UNOBSERVED, story, Withhold(step, (kind,), how, since=write))
    for story, steps in STEPS.items():
        for step, kinds in steps.items():
            for some in kinds:
                if len(some) == 1 and some != (VCENTER,):
                    yield Plan(0, STALE, story, Withhold(step, some, "past"))


def _numbered() -> Iterator[Plan]:
    """The undisturbed runs, then all others in an order that mixes kinds and stories and never changes."""
    disturbed = [*_kills(), *_withheld(), *_stale()]
    random.Random(12).shuffle(disturbed)
    for number, plan in enumerate([*(Plan(0, UNDISTURBED, story) for story in WRITES), *disturbed]):
        yield replace(plan, number=number)


PLANS = tuple(_numbered())
