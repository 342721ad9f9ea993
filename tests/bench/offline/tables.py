"""What does a question cost in polars, and what in numpy? Three questions, each answered by both; CPU times.

`bench.offline.tables [NODES PODS]`. Prints `name<TAB>value` lines; docs/decisions/0007-polars-and-numpy.md cites them.
The sweep asks about all pods at once. A step of the placement loop, and the evaluator after each change, ask about a
few rows, change one number, and ask again.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

APP = 20  # pods of a class
STEPS = 300
FREE, ALLOWED, SCORE, CLASS, NODE, DOMAIN = "free", "allowed", "score", "class", "node", "domain"


def main(nodes: int = 5_000, pods: int = 150_000) -> None:
    """Measure and print."""
    site = _Site(nodes, pods)
    questions = {
        "all pods: who meets its like": site.all_at_once,
        "a pod placed: the best node": site.one_placed,
        "a pod moved: who meets it": site.one_moved,
    }
    for name, question in questions.items():
        numpy_us, polars_us = question()
        print(f"{name}: numpy, µs\t{numpy_us:.0f}")
        print(f"{name}: polars, µs\t{polars_us:.0f}")
        print(f"{name}: polars / numpy\t{polars_us / numpy_us:.1f}")


class _Site:
    """Random pods on random nodes, ten nodes a domain."""

    def __init__(self, nodes: int, pods: int) -> None:
        pick = np.random.default_rng(7)
        self.free = pick.integers(1_000, 64_000, nodes)
        self.allowed = pick.random(nodes) < 0.8
        self.score = pick.integers(0, 100, nodes)
        self.class_of = np.arange(pods) // APP
        self.node_of = pick.integers(0, nodes, pods)
        self.domain_of = np.arange(nodes) // 10

    def all_at_once(self) -> tuple[float, float]:
        """The sweep: (class, domain) with more than one pod."""

        def by_numpy() -> int:
            cells = self.class_of * len(self.domain_of) + self.domain_of[self.node_of]
            _, counts = np.unique(cells, return_counts=True)
            return int((counts > 1).sum())

        def by_polars() -> int:
            placed = pl.DataFrame({CLASS: self.class_of, DOMAIN: self.domain_of[self.node_of]})
            return placed.group_by(CLASS, DOMAIN).len().filter(pl.col("len") > 1).height

        return _both(by_numpy, by_polars, 10)

    def one_placed(self) -> tuple[float, float]:
        """The loop: the best node with room, which has less room for the next pod."""
        free = self.free.copy()

        def by_numpy() -> int:
            fits = np.flatnonzero(self.allowed & (free >= 500))
            best = int(fits[self.score[fits].argmax()])
            free[best] -= 500
            return best

        held = pl.DataFrame({NODE: np.arange(len(free)), FREE: self.free, ALLOWED: self.allowed, SCORE: self.score})

        def by_polars() -> int:
            nonlocal held
            fits = held.filter(pl.col(ALLOWED) & (pl.col(FREE) >= 500))
            best = int(fits.item(fits[SCORE].arg_max(), NODE))
            held = held.with_columns(pl.when(pl.col(NODE) == best).then(pl.col(FREE) - 500).otherwise(FREE).alias(FREE))
            return best

        return _both(by_numpy, by_polars, STEPS)

    def one_moved(self) -> tuple[float, float]:
        """The resident evaluator: a pod is on another node, and its class is counted in the domain of that."""
        members = [np.flatnonzero(self.class_of == cls) for cls in range(3)]
        placed = pl.DataFrame({CLASS: self.class_of, NODE: self.node_of, DOMAIN: self.domain_of[self.node_of]})
        rows = placed.with_row_index("row").partition_by(CLASS, as_dict=True)
        mine = [rows[(cls,)] for cls in range(3)]
        at = [0, 0]

        def by_numpy() -> int:
            cls, node = at[0] % 3, at[0] * 7 % len(self.domain_of)
            pods, at[0] = members[cls], at[0] + 1
            self.node_of[pods[0]] = node
            return int((self.domain_of[self.node_of[pods]] == self.domain_of[node]).sum())

        def by_polars() -> int:
            cls, node = at[1] % 3, at[1] * 7 % len(self.domain_of)
            pods, at[1] = mine[cls], at[1] + 1
            first, domain = pods.item(0, "row"), int(self.domain_of[node])
            moved = pl.when(pl.col("row") == first).then(domain).otherwise(DOMAIN).alias(DOMAIN)
            mine[cls] = pods.with_columns(moved)
            return mine[cls].filter(pl.col(DOMAIN) == domain).height

        return _both(by_numpy, by_polars, STEPS)


def _both(by_numpy: Callable[[], int], by_polars: Callable[[], int], times: int) -> tuple[float, float]:
    """CPU microseconds of one call each; the answers of both are compared."""
    spent = [0.0, 0.0]
    for _ in range(times):
        begin = time.process_time()
        one = by_numpy()
        between = time.process_time()
        other = by_polars()
        spent[0] += between - begin
        spent[1] += time.process_time() - between
        assert one == other, (one, other)
    return spent[0] / times * 1e6, spent[1] / times * 1e6


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
