"""What a check leaves out, quorums among it.

In: a snapshot. Out: what its report says beside the findings (`notJudged`). Of a quorum whose members' hosts are not
known only the nodes are judged; of an annotation that cannot be read, nothing.
"""

from collections.abc import Callable

from underhost.agents.affinity.quorum import RULE, UNREADABLE, asked_by, quorums
from underhost.agents.site.not_judged import NO_INVENTORY, UNKNOWN, counted, not_judged
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.documents import NotJudged
from underhost.schemas.kubernetes import QUORUM_ANNOTATION


def left_out_of(snapshot: Snapshot, has: Callable[[str], bool] | None = None) -> list[NotJudged]:
    """As `not_judged`, and what of the quorums. Raises BadObjectError."""
    found = not_judged(snapshot, has)
    nodes = {member.node for one in quorums(snapshot) if one.spare > 0 for member in one.members}
    unknown = sum(name not in snapshot.node_hosts or not snapshot.node_hosts[name].host for name in nodes)
    if unknown:
        found.append(
            NotJudged(
                f"{RULE} on the hosts of {counted(unknown, 'node')}", UNKNOWN if snapshot.vsphere else NO_INVENTORY
            )
        )
    annotated = [
        one.metadata
        for objects in (snapshot.nodes, snapshot.workloads, snapshot.annotated)
        for one in objects.values()
        if one.metadata.annotations is not None
    ]
    unreadable = sum(asked_by(one) == UNREADABLE for one in annotated)
    if unreadable:
        found.append(
            NotJudged(f"{RULE} of {counted(unreadable, 'object')}", f"annotation {QUORUM_ANNOTATION} is not readable")
        )
    return found
