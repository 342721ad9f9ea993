"""The taint that keeps pods off a new node until it carries its labels: when it may go, and taking it away.

In: the live node's labels, as they are after the label sink's write. Out: (result, reason) for the sink's outcome. The
kubelet sets the taint (`--register-with-taints`), and nobody else removes it.
"""

from collections.abc import Mapping

import msgspec

from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED
from underhost.agents.sinks.ports import KubernetesWriter
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.schemas.errors import Conflict

ATTEMPTS = 5
"""How often the taints are read again because somebody else has changed them meanwhile: the list is atomic."""


class Lifting(msgspec.Struct):
    """The taint's key, and the labels that the node must carry before it goes."""

    key: str
    needs: list[str]


def carries(raw: bytes, key: str) -> bool:
    """Whether a node with these taints has the one with the key; one that cannot be read is said elsewhere."""
    try:
        return any(taint.key == key for taint in terms.taints(raw))
    except Fault:
        return False


async def lift(
    writer: KubernetesWriter, node: str, uid: str, wanted: Lifting, labels: Mapping[str, str], *, enabled: bool
) -> tuple[str, str]:
    """Remove the taint if the labels are there. Raises what the writer raises, but for conflicts."""
    missing = [key for key in wanted.needs if not labels.get(key)]
    if missing:
        return REFUSED, f"taint {wanted.key} stays: label {', '.join(missing)} is missing"
    for _ in range(ATTEMPTS):
        now, before = await writer.node_taints(node)
        if now != uid:
            return REFUSED, f"node {node} is another one now (uid {now})"
        after = [taint for taint in before if taint.get("key") != wanted.key]
        if len(after) == len(before):
            return NOOP, f"taint {wanted.key} is not there"
        if not enabled:
            return DRY_RUN, f"would remove taint {wanted.key}"
        try:
            await writer.replace_taints(node, uid, before, after)
        except Conflict:
            continue
        return APPLIED, f"removed taint {wanted.key}"
    return FAILED, f"taint {wanted.key} stays: the node's taints change all the time"
