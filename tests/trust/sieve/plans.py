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
    """

    write: str
    nth: int
    when: str
    times: int = 1
    frozen: bool = False
    back: int | None = None


@dataclass(frozen=True)
class Withhold:
    """What the worker is not shown of a step until it is over.

    Attributes:
        kinds: plurals of Kubernetes kinds, and `vcenter`.
        how: then it comes `late`, or never: the watch has `expired`, or the worker is killed and `restarted`.
    """

    step: str
    kinds: tuple[str, ...]
    how: str


@dataclass(frozen=True)
class Plan:
    """One plan: at most one fault."""

    number: int
    regime: str
    story: str
    kill: Kill | None = None
    withhold: Withhold | None = None

    @property
    def told(self) -> str:
        """What is done, in a line."""
        return f"{self.story}: {self.kill or self.withhold or 'nothing is done to it'}"


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
}
"""The writes of each story, with how often each was made by then. A write that depends on how fast the worker is (to a
label that is set back at once, say) is not named."""

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
            for when in (BEFORE, AFTER):
                yield Plan(0, INTERMEDIATE, story, Kill(write, nth, when))
    for story, writes in WRITES.items():
        for write, nth in writes:
            if not write.startswith("event"):
                yield Plan(0, INTERMEDIATE, story, Kill(write, nth, BEFORE, times=2))


def _stale() -> Iterator[Plan]:
    for back, frozen in ((None, True), (0, True), (1, True), (0, False)):
        for story, writes in WRITES.items():
            for write, nth in writes:
                if write.startswith("event") or (nth == 1 and write.startswith(("label", "taint")) and write[-1] > "2"):
                    continue  # the nodes are alike at the start: two of them will do
                yield Plan(0, STALE, story, Kill(write, nth, AFTER, frozen=frozen, back=back))


def _withheld() -> Iterator[Plan]:
    for how in ("expired", "late", "restarted"):
        for story, steps in STEPS.items():
            for step, kinds in steps.items():
                for some in kinds:
                    yield Plan(0, UNOBSERVED, story, withhold=Withhold(step, some, how))


def _numbered() -> Iterator[Plan]:
    """The undisturbed runs, then all others in an order that mixes kinds and stories and never changes."""
    disturbed = [*_kills(), *_withheld(), *_stale()]
    random.Random(12).shuffle(disturbed)
    for number, plan in enumerate([*(Plan(0, UNDISTURBED, story) for story in WRITES), *disturbed]):
        yield replace(plan, number=number)


PLANS = tuple(_numbered())
