"""The VMs that the nodes of a site run on: no other VM is moved, put into a rule of ours, or waited for.

In: a snapshot, or what a sink is given to ask. Out: references of VMs, and refusals for all others.
"""

from collections.abc import Callable, Collection, Iterable

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.errors import Refused, Unreachable

VmsAsked = Callable[[], Collection[str] | None]
"""Gives the VMs that the nodes of the site run on, None where that is not known yet."""


def own_vms(snapshot: Snapshot) -> frozenset[str]:
    """The VMs that nodes of the site run on."""
    return frozenset(row.vm for row in snapshot.node_hosts.values() if row.vm)


def known(vms: VmsAsked) -> Collection[str]:
    """What they are. Raises Unreachable while nobody knows."""
    own = vms()
    if own is None:
        raise Unreachable("which VMs the nodes run on is not known yet")
    return own


def require_own(vms: VmsAsked, wanted: Iterable[str], site: str) -> None:
    """Raises Refused for a wanted VM that no node of the site runs on, Unreachable while nobody knows."""
    own = known(vms)
    if others := [vm for vm in wanted if vm not in own]:
        raise Refused(f"no node of site {site} runs on VM {', '.join(others)}")
