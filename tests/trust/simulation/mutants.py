"""Old defects, brought back one at a time: a simulation that does not find them again looks at the wrong things.

In: nothing. Out: a table of mutations, each of which replaces what mended a defect of CHANGELOG by what was there
before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One defect. `bring_back` replaces functions of the product in this process."""

    defect: str
    bring_back: Callable[[], None]


MUTANTS: Mapping[str, Mutant] = {}
