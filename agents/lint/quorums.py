"""Checks of quorums: those that no placement can keep, and annotations that say nothing.

In: a view. Out: complaints; `CHECKS` is the table. Who is a member is decided by `affinity/quorum.py`. A control plane
of one or two nodes is only advice: nobody asked for more.
"""

from collections.abc import Iterator

from underhost.agents.affinity.quorum import CONTROL_PLANE, ETCD, RULE, UNREADABLE, Quorum, asked_by, quorums
from underhost.agents.lint.checks import Check, plural
from underhost.agents.lint.subjects import Complaint
from underhost.agents.lint.view import View
from underhost.agents.site.places import HOST, place_of
from underhost.schemas.kubernetes import QUORUM_ANNOTATION, Metadata
from underhost.schemas.severities import DRIFT, UNSATISFIABLE
from underhost.schemas.vsphere import CONNECTED

_AT = f"metadata.annotations[{QUORUM_ANNOTATION}]"


def _of_nodes(one: Quorum) -> bool:
    return one.id in (ETCD, CONTROL_PLANE)


def asked(view: View) -> Iterator[Quorum]:
    """The quorums of workloads."""
    return (one for one in quorums(view.snapshot) if not _of_nodes(one))


def detected(view: View) -> Iterator[Quorum]:
    """etcd and the control plane."""
    return (one for one in quorums(view.snapshot) if _of_nodes(one))


def never(view: View, one: Quorum) -> Iterator[Complaint]:
    """A quorum of which no member may be lost."""
    if one.spare < 1:
        says = (
            f"Of the {plural(one.size, 'member')} of {one.name} {one.stay} must stay: "
            f"whatever host fails takes too many; {_remedy(one)}."
        )
        yield _complaint(one, says)


def _remedy(one: Quorum) -> str:
    more = f"run {max(3, one.stay + 1)} members"
    return more if _of_nodes(one) else f"{more}, or say in {QUORUM_ANNOTATION} how many must stay"


def exceeds_hosts(view: View, one: Quorum) -> Iterator[Complaint]:
    """More members than the hosts can hold, each of them no more than may be lost."""
    if one.spare < 1:
        return
    places = {place_of(view.snapshot, node) for node in view.snapshot.nodes}
    known = all(place.kind == HOST for place in places)
    closed = {ref for ref, host in view.snapshot.hosts.items() if host.state != CONNECTED}
    hosts = ({place.id for place in places} | view.snapshot.hosts.keys()) - closed
    needed = -(-one.size // one.spare)
    if places and known and len(hosts) < needed:
        says = (
            f"Of the {plural(one.size, 'member')} of {one.name} a host may hold {one.spare}: that takes "
            f"{needed} hosts, and there are {len(hosts)}; add a host."
        )
        yield _complaint(one, says)


def _complaint(one: Quorum, says: str) -> Complaint:
    if _of_nodes(one):
        return Complaint(f"Node/{one.members[0].node}", "metadata.labels", says, RULE, one.name)
    return Complaint("/".join(one.id), _AT, says, RULE)


def unreadable(view: View) -> Iterator[Complaint]:
    """An annotation that is neither true, false nor a number above 0."""
    site = view.snapshot
    named: list[tuple[str, Metadata]] = [
        *((f"Node/{name}", node.metadata) for name, node in site.nodes.items()),
        *((name, workload.metadata) for name, workload in site.workloads.items()),
        *((f"Pod/{key}", pod.metadata) for key, pod in site.pods.items()),
    ]
    for name, metadata in named:
        if metadata.annotations is not None and asked_by(metadata) == UNREADABLE:
            subject = view.subject_of.get(name.removeprefix("Pod/"))
            whose, said = name if subject is None else subject.object, f"{metadata.annotations.quorum!r:.60}"
            says = f"{whose} says {said} in {QUORUM_ANNOTATION}: say true, false, or how many members must stay."
            yield Complaint(whose, _AT, says, RULE)


_OURS = "docs/findings.md (quorums)"
_RAFT = "etcd's FAQ: a cluster of n members needs n/2+1"
CHECKS = (
    Check("quorum-never-kept", UNSATISFIABLE, "no member of the quorum may be lost", _OURS, asked, never),
    Check("quorum-exceeds-hosts", UNSATISFIABLE, "the hosts are too few for the quorum", _OURS, asked, exceeds_hosts),
    Check("control-plane-never-kept", DRIFT, "no member of the control plane may be lost", _RAFT, detected, never),
    Check("control-plane-exceeds-hosts", UNSATISFIABLE, "the hosts are too few for the control plane",
        _RAFT, detected, exceeds_hosts),
    Check("quorum-unreadable", UNSATISFIABLE, "the annotation asks for nothing that is known", _OURS, None, unreadable),
)  # fmt: skip
