"""What the write of each kind of command looks like in a picture of the site.

In: a command, and the picture that it was ordered from. Out: a test of later pictures: does this one show the write,
or that its object is gone? Where a command writes several things, one of them will do: the others may not have been
ours to write. How long that is waited for is left to `pipeline/decide/own_writes.py`. Pure.
"""

from collections.abc import Callable, Mapping

import msgspec

from underhost.agents.sinks.labels.startup_taint import carries as carries_taint
from underhost.agents.site import terms
from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Node, Pod
from underhost.schemas.records import Action
from underhost.schemas.vsphere import MAINTENANCE

Shown = Callable[[Snapshot], bool]


class _Written(msgspec.Struct):
    """What of `Action.desired` tells a written object from others, for every kind."""

    uid: str = ""
    labels: dict[str, str | None] = {}
    taint: dict[str, object] | None = None

    owner: str = ""
    to: str = ""
    mode: str = ""
    vms: list[str] = []
    mandatory: bool = False


def labels_shown(action: Action, picture: Snapshot) -> Shown:
    """One of the labels that differed is as it was written, or the start-up taint is gone."""
    name, wanted = action.target.partition("/")[2], _written(action)
    due = _differing(wanted, picture.nodes.get(name))
    taint = None if wanted.taint is None else str(wanted.taint.get("key"))

    def shown(now: Snapshot) -> bool:
        node = now.nodes.get(name)
        if node is None or node.metadata.uid != wanted.uid or not (due or taint):
            return True
        carries = _labels(node)
        return any(carries.get(key) == value for key, value in due.items()) or (
            taint is not None and not carries_taint(bytes(node.spec.taints), taint)
        )

    return shown


def pod_labels_shown(action: Action, picture: Snapshot) -> Shown:
    """One of the labels that differed is as it was written."""
    name, wanted = action.target.partition("/")[2], _written(action)
    due = _differing(wanted, picture.pods.get(name))

    def shown(now: Snapshot) -> bool:
        pod = now.pods.get(name)
        if pod is None or pod.metadata.uid != wanted.uid or not due:
            return True
        carries = _labels(pod)
        return any(carries.get(key) == value for key, value in due.items())

    return shown


def binding_shown(action: Action, picture: Snapshot) -> Shown:
    """The pod has a node."""
    name, uid = action.target.partition("/")[2], _written(action).uid

    def shown(now: Snapshot) -> bool:
        pod = now.pods.get(name)
        return pod is None or pod.metadata.uid != uid or bool(pod.spec.node_name)

    return shown


def eviction_shown(action: Action, picture: Snapshot) -> Shown:
    """The pod is being deleted. That of a virtual machine is not: it migrates first, for minutes."""
    name, wanted = action.target.partition("/")[2], _written(action)
    uid, migrates = wanted.uid, wanted.owner.startswith("VirtualMachineInstance")

    def shown(now: Snapshot) -> bool:
        pod = now.pods.get(name)
        return migrates or pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None

    return shown


def rule_shown(action: Action, picture: Snapshot) -> Shown:
    """The rule has these members, or is not there any more where that was asked for."""
    cluster, _, name = action.target.partition("/")[2].rpartition("/")
    wanted = _written(action)

    def shown(now: Snapshot) -> bool:
        rule = now.rules.get((cluster, name))
        if rule is None or not wanted.vms:
            return rule is None and not wanted.vms
        return (sorted(rule.vms), rule.mandatory) == (sorted(wanted.vms), wanted.mandatory)

    return shown


def move_shown(action: Action, picture: Snapshot) -> Shown:
    """The VM is on the host that it was sent to."""
    ref, to = action.target.partition("/")[2], _written(action).to

    def shown(now: Snapshot) -> bool:
        vm = now.vms.get(ref)
        return vm is None or vm.host == to

    return shown


def maintenance_shown(action: Action, picture: Snapshot) -> Shown:
    """The host is in the mode that was asked for."""
    ref, enter = action.target.partition("/")[2], _written(action).mode != "exit"

    def shown(now: Snapshot) -> bool:
        host = now.hosts.get(ref)
        return host is None or (host.state == MAINTENANCE) == enter

    return shown


def _written(action: Action) -> _Written:
    return msgspec.convert(action.desired, _Written)


def _differing(wanted: _Written, one: Node | Pod | None) -> dict[str, str | None]:
    """What of the labels an object does not carry as they are wanted."""
    carried = _labels(one)
    return {key: value for key, value in wanted.labels.items() if carried.get(key) != value}


def _labels(one: Node | Pod | None) -> Mapping[str, str]:
    return terms.readable_labels(one.metadata.labels) if one is not None else {}
