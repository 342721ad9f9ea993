"""What all pods of a site ask of one another, as far as it is followed where VMs are moved.

In: a compiled site. Out: what must be apart and what together. A tenant who names pods of others moves none of their
VMs, and keeps none where it is (`reach.py`).
"""

from typing import NamedTuple

from underhost.agents.affinity.gathering import Gathering, gatherings
from underhost.agents.affinity.reach import TermReach
from underhost.agents.affinity.separation import Separation, separations
from underhost.agents.compiled.model import Model


class Followed(NamedTuple):
    """What must be apart, and what must be together on a host; both sorted."""

    apart: list[Separation]
    near: list[Gathering]


def asked_of(model: Model) -> Followed:
    """All that is asked, followed or not."""
    return Followed(separations(model.selectors), gatherings(model.classes, model.options.host_keys))


def followed(model: Model, asked: Followed) -> Followed:
    """What of all that is asked is followed, as the site's options say."""
    reach = TermReach(model.classes, model.options)
    return Followed(reach.separations(asked.apart), reach.gatherings(asked.near))
