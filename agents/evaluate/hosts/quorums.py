"""Places whose failure takes a quorum: `quorum` findings.

In: a case, and what changes in it. Out: one finding for each quorum and host (or node whose host is unknown) that holds
more of its members than may be lost. Who is a member and how many may be lost is decided by `affinity/quorum.py`.
"""

from collections.abc import Iterable

from underhost.agents.affinity.quorum import CONTROL_PLANE, ETCD, RULE, Member, Quorum, Quorums
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.case import Case
from underhost.agents.evaluate.store import FindingStore
from underhost.agents.site.owners import Application
from underhost.agents.site.places import SamePlace, place_of
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Domain, Finding
from underhost.schemas.severities import QUORUM

REASON = "one failure takes too many members of a quorum"


class QuorumFindings:
    """The findings about the quorums of a site; `members` is told of changes before they are judged."""

    def __init__(self, store: FindingStore) -> None:
        self._store = store
        self.members = Quorums()

    def judge_all(self, case: Case) -> None:
        """Look at every quorum."""
        self.members.use(case.snapshot)
        self.judge(case)

    def judge(self, case: Case) -> None:
        """Look at the quorums that changed or moved."""
        for at in sorted(self.members.take_changed()):
            self._put(case.snapshot, at)

    def _put(self, snapshot: Snapshot, at: Application) -> None:
        quorum = self.members.of(snapshot, at)
        broken = quorum.broken(lambda node: place_of(snapshot, node)) if quorum is not None else {}
        found = [_finding(snapshot, quorum, place, members) for place, members in broken.items()] if quorum else []
        self._store.put((QUORUM, at), found)


def _finding(snapshot: Snapshot, quorum: Quorum, place: SamePlace, members: list[Member]) -> Finding:
    """Too many members of a quorum in one place."""
    pods, first = sorted(member.pod for member in members if member.pod), members[0]
    if pods:
        first = next(member for member in members if member.pod == pods[0])
        uid = f.uid_of(first.pod, snapshot.pods.get(first.pod))
    else:
        node = snapshot.nodes.get(first.node)
        uid = (node.metadata.uid if node is not None else "") or first.node
    left = quorum.size - len(members)
    message = (
        f"{len(members)} of the {quorum.size} members of {quorum.name} ({f.listing(_named(members))}) run on {place}: "
        f"its failure leaves {left}, and {quorum.stay} must stay."
    )
    of_nodes = quorum.id in (ETCD, CONTROL_PLANE)
    return Finding(
        id=f.finding_id(snapshot.site, QUORUM, RULE, "/".join((*quorum.id, place.kind)), place.id, uid),
        severity=QUORUM,
        rule=RULE,
        reason=REASON,
        message=message,
        pod=pods[0] if pods else None,
        node=first.node,
        peers=pods[1:],
        domain=Domain(key=place.kind, value=place.name),
        object=None if of_nodes else "/".join(quorum.id),
    )


def _named(members: Iterable[Member]) -> list[str]:
    """Members as findings name them: pods with their nodes, or nodes."""
    return [f"{pod} (node {node})" if pod else f"node {node}" for pod, node in members]
