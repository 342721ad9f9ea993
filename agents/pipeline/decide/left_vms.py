"""VMs that the mover leaves to a person: findings of rule `Move`, as long as something on them is broken.

In: outcomes in which the sink says so, and what is judged of the site. Out: findings. What was said stands until the VM
is moved after all, or its nodes are gone.
"""

from collections.abc import Iterable

from underhost.agents.evaluate.findings import finding_id
from underhost.agents.sinks.moves.sink import LEFT
from underhost.agents.sinks.orders import DONE, REFUSED
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.commands import MOVE
from underhost.schemas.records import Finding, Outcome, pods_named
from underhost.schemas.severities import GRAVE, UNSATISFIABLE

RULE = "Move"
REASON = "a VM is left to a person"


class LeftVms:
    """Of one site."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._said: dict[str, str] = {}

    def observe(self, outcome: Outcome) -> None:
        """What became of a command."""
        vm = outcome.target.partition("/")[2]
        if outcome.kind == MOVE and outcome.result == REFUSED and outcome.reason.endswith(LEFT):
            self._said[vm] = outcome.reason
        elif outcome.kind == MOVE and outcome.result in DONE:
            self._said.pop(vm, None)

    def findings(self, snapshot: Snapshot, found: Iterable[Finding]) -> list[Finding]:
        """The VMs that are left to a person, and on which a finding stands that moving them might end."""
        if not self._said:
            return []
        broken = _nodes_of(snapshot, found)
        nodes = {row.vm: name for name, row in sorted(snapshot.node_hosts.items()) if name in broken}
        return [self._finding(vm, snapshot.vms[vm].name, nodes[vm]) for vm in sorted(self._said) if vm in nodes]

    def _finding(self, vm: str, name: str, node: str) -> Finding:
        return Finding(
            id=finding_id(self._site, UNSATISFIABLE, RULE, "vm", vm, ""),
            severity=UNSATISFIABLE,
            rule=RULE,
            reason=REASON,
            message=f"VM {name}: {self._said[vm]}.",
            node=node,
            object=f"VirtualMachine/{name}",
        )


def _nodes_of(snapshot: Snapshot, found: Iterable[Finding]) -> set[str]:
    """The nodes of what a grave finding is about."""
    grave = [one for one in found if one.severity in GRAVE]
    pods = {pod for one in grave for pod in pods_named(one)}
    nodes = {snapshot.pods[pod].spec.node_name for pod in pods if pod in snapshot.pods}
    return nodes | {one.node for one in grave if one.node is not None}
