"""Several runs of a bench over one set-up: how they are printed apart, and read.

A server with 150,000 pods takes a minute to fill; three runs over it need not fill three. A bench that is asked for so
many rounds tells all of them at its end.
"""

import re
from collections.abc import Iterable, Mapping

BEGIN = "run"
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


def tell(runs: Iterable[Mapping[str, float]]) -> None:
    """Print the values of each run, `name<TAB>value`; what was printed before is of every run."""
    for run in runs:
        print(BEGIN)
        for what, value in run.items():
            print(f"{what}\t{value:.4f}")  # as `read` reads it: no exponent


def read(printed: str) -> list[dict[str, float]]:
    """The values of each run by the name of their line."""
    runs: list[dict[str, float]] = [{}]
    for line in printed.splitlines():
        what, _, said = line.partition("\t")
        if line == BEGIN:
            runs.append(dict(runs[0]))
        elif (found := _NUMBER.match(said.strip())) is not None:
            runs[-1][what] = float(found[0].replace(",", ""))
    return runs[1:] or runs
