"""What happens if: a plan of steps tried on a site.

In: a snapshot, options, steps. Out: a `WhatIf` document with what is said beside it. Nothing is written anywhere. The
same evaluator places and judges as everywhere else, before and after.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.schedule.progress import told
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.acts import take
from underhost.agents.whatif.outcome import Before, outcome, with_added
from underhost.agents.whatif.steps import Add, Step
from underhost.agents.whatif.world import World
from underhost.schemas.documents import WhatIf
from underhost.schemas.manifests import Manifest

NO_MANIFESTS: Mapping[str, Manifest] = {}


class Answer(NamedTuple):
    """A document, and what is said beside it.

    Attributes:
        nodes: how many there are at the end, for `0/N nodes are available`.
        first: pods that waited, and are placed before the plan begins. waiting: those that waited, and still do.
    """

    document: WhatIf
    nodes: int
    first: list[str]
    waiting: list[str]


def what_if(
    snapshot: Snapshot,
    options: Options,
    steps: Iterable[Step],
    others: Mapping[str, Manifest] = NO_MANIFESTS,
    evaluator: Evaluator | None = None,
) -> Answer:
    """What the steps, one after another, do to the site.

    `others` are the manifests of the input. `evaluator` has tried other plans before: the site is compiled already.
    Raises InputError for a step that names what is not there, BadObjectError for an object that the API server would
    not have let in.
    """
    world = World.at_rest(snapshot, evaluator or Evaluator(options), others)
    waited, first = set(world.waiting), world.placed_first
    before = Before(world.evaluator.update(world.snapshot), world.snapshot)
    taken = list(steps)
    for step in told("taking steps", taken):
        take(world, step)
    if any(isinstance(step, Add) for step in taken):
        before.not_judged = with_added(before.not_judged, world.snapshot)
    still = sorted(waited & world.waiting - world.origin.keys())
    return Answer(outcome(world, before), len(world.snapshot.nodes), first, still)
