"""The steps of a plan, taken: what kubectl, the controllers, a node's loss or vSphere would do to the site.

In: a world and a step. Out: the world changed, everything that waits placed as far as it goes. An eviction asks the
budgets; a deletion, a taint or a lost node does not.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec.structs import replace

from underhost.agents.site.join import located
from underhost.agents.site.owners import pinned
from underhost.agents.whatif import nodes as marks
from underhost.agents.whatif import steps as s
from underhost.agents.whatif.additions import add
from underhost.agents.whatif.budgets import Allowances
from underhost.agents.whatif.hosts import Moves
from underhost.agents.whatif.pods import (
    BOUND,
    DAEMON_SET,
    HELD,
    NO_DAEMON,
    STATEFUL_SET,
    is_replaced_already,
    leaves_after,
    owner_kind,
    patience_of,
)
from underhost.agents.whatif.world import World
from underhost.schemas.documents import Move, VmMove
from underhost.schemas.kubernetes import Node
from underhost.schemas.vsphere import DISCONNECTED, MAINTENANCE


def take(world: World, step: s.Step) -> None:
    """Take one step of a plan. Raises InputError for what is not there, BadObjectError."""
    _ACTS[type(step)](world, step)
    for node in list(world.draining):
        _evict(world, node)


# ---------------------------------------------------------------------------------------------------------------- pods
def _delete(world: World, step: s.Delete) -> None:
    world.step += 1
    key = world.pod(step.pod)
    if key in world.stuck:
        world.release([key])  # by force: its owner may replace it now
    elif owner_kind(pod := world.snapshot.pods[key]) != DAEMON_SET and pinned(pod):
        node = pod.spec.node_name
        world.moves.append(Move(world.step, key, node, node, "delete"))  # a mirror pod: its kubelet makes it again
    else:
        world.displace([key])
    world.settle("delete")


def _add(world: World, step: s.Add) -> None:
    world.step += 1
    before = world.snapshot.nodes
    add(world, step)
    _leave_tainted(world, [name for name in step.objects.nodes if name in before], before, "add")


# --------------------------------------------------------------------------------------------------------------- nodes
def _drain(world: World, step: s.Drain) -> None:
    names = [world.node(name) for name in step.nodes]
    for name in names:
        world.mark(name, marks.cordoned, closed=True)
    for name in names:
        world.step += 1
        _evict(world, name)


def _evict(world: World, node: str) -> None:
    """Evict as far as the budgets allow, place what comes back, and go on while that gets anywhere."""
    left = [key for key in world.pods_on([node]) if not pinned(world.snapshot.pods[key])]
    allowances = Allowances(world.snapshot, world.coverage.of(world.snapshot))
    for key in left:
        world.used.update(dict.fromkeys(allowances.covering(key, world.snapshot.pods[key]), 0))
    blocked: dict[str, list[str]] = {}
    while left:
        going, blocked = [], {}
        for key in left:
            pod = world.snapshot.pods[key]
            if budgets := allowances.refusals(key, pod):
                blocked[key] = budgets
            else:
                allowances.evicted(key, pod)
                going.append(key)
        if not going:
            break
        world.displace(going)
        for key in {*going, *world.settle("drain")}:
            allowances.change(key, world.snapshot.pods.get(key))
        left = list(blocked)
    world.used.update(allowances.used)
    if blocked:
        world.draining[node] = blocked
    else:
        world.draining.pop(node, None)


def _cordon(world: World, step: s.Cordon) -> None:
    world.step += 1
    world.mark(world.node(step.node), marks.cordoned, step.closed)
    if not step.closed:
        world.draining.pop(step.node, None)
    world.settle("cordon" if step.closed else "uncordon")


def _taint(world: World, step: s.TaintNode) -> None:
    world.step += 1
    name, before = world.node(step.node), world.snapshot.nodes
    if step.remove:
        world.mark(name, marks.untainted, step.key, step.effect)
    else:
        world.mark(name, marks.tainted, step.key, step.value, step.effect)
    _leave_tainted(world, [name], before, "taint")


def _label(world: World, step: s.Label) -> None:
    world.step += 1
    world.mark(world.node(step.node), marks.labelled, step.key, step.value)
    if step.key == world.snapshot.joining.label:
        world.snapshot = located(world.snapshot)
    world.settle("label")


def _leave_tainted(world: World, names: Collection[str], before: Mapping[str, Node], reason: str) -> None:
    """The pods that the NoExecute taints of these nodes evict, where the taints are other ones than before."""
    taints = {name: marks.taints_of(world.snapshot.nodes[name]) for name in names}
    changed = [name for name in names if marks.taints_of(before[name]) != taints[name]]
    after: defaultdict[int, list[str]] = defaultdict(list)
    daemons: list[str] = []
    for key in world.pods_on(changed):
        pod = world.snapshot.pods[key]
        daemon = owner_kind(pod) == DAEMON_SET
        if pinned(pod) and not daemon:
            continue  # a static pod tolerates every NoExecute taint
        seconds = leaves_after(pod, key, taints[pod.spec.node_name])
        if seconds is not None:
            leaving = after[seconds]
            (daemons if daemon else leaving).append(key)
    for key in daemons:
        world.lose(key, NO_DAEMON)
    world.drop(daemons)
    _leave(world, after, reason)


def _leave(world: World, after: Mapping[int, list[str]], reason: str) -> None:
    """Pods leave after some seconds each; who leaves first is placed first, and what waited is tried again."""
    for _, keys in sorted(after.items()) or [(0, [])]:
        world.displace(keys)
        world.settle(reason)


# -------------------------------------------------------------------------------------------------- failures and hosts
def _fail(world: World, step: s.Fail) -> None:
    world.step += 1
    named = [world.target(one).partition("/") for one in step.targets]
    lost = {world.node(name) for kind, _, name in named if kind == s.NODE}
    dead = list(dict.fromkeys(world.host(name) for kind, _, name in named if kind == s.HOST))
    world.set_hosts(dead, DISCONNECTED)
    hosts = world.fleet.hosts(world.snapshot)
    moves = hosts.restart(dead) if step.ha else [(vm, None) for ref in dead for vm in hosts.on[ref]]
    stopped = {vm.ref: replace(vm, power="off") for vm, target in moves if target is None}
    nodes = world.fleet.nodes_of(world.snapshot)
    lost |= {name for ref in stopped for name in nodes.get(ref, ())}
    if world.snapshot.joining.label:  # nothing says what starts again where
        lost |= {name for name, joined in world.snapshot.node_hosts.items() if joined.host in dead}
    _move(world, [move for move in moves if move[1] is not None])
    if stopped:
        world.change(vms={**world.snapshot.vms, **stopped})
    _lose_nodes(world, lost - world.lost)


def _lose_nodes(world: World, names: Collection[str]) -> None:
    """Nodes that nobody hears of any more: what their pods tolerate decides when they are placed anew."""
    for name in sorted(names):
        world.mark(name, marks.lost)
        world.draining.pop(name, None)
    world.lost.update(names)
    gone: list[str] = []
    after: defaultdict[int, list[str]] = defaultdict(list)
    for key in world.pods_on(names):
        pod = world.snapshot.pods[key]
        seconds = patience_of(pod, key)
        if pinned(pod) or is_replaced_already(pod):
            gone.append(key)
        elif owner_kind(pod) == STATEFUL_SET or seconds is None:
            gone.append(key)
            world.lose(key, HELD if owner_kind(pod) == STATEFUL_SET else BOUND, pod)
        else:
            after[seconds].append(key)
    world.drop(gone)
    _leave(world, after, "fail")


def _maintain(world: World, step: s.Maintain) -> None:
    world.step += 1
    ref = world.host(step.host)
    world.require_vms(f"maintain host/{step.host}")
    moves = world.fleet.hosts(world.snapshot).evacuate(ref)
    _move(world, moves)
    if all(target is not None for _, target in moves):
        world.set_hosts([ref], MAINTENANCE)
    world.settle("maintain")


def _move(world: World, moves: Moves) -> None:
    """VMs are on other hosts from now on; those that nobody takes stay, and are told of."""
    if not moves:
        return
    known, hosts = world.snapshot.hosts, world.fleet.hosts(world.snapshot)
    told = [
        VmMove(
            world.step,
            vm.name,
            known[hosts.ref(vm.host) or vm.host].name,
            None if target is None else known[target].name,
        )
        for vm, target in moves
    ]
    world.vm_moves += sorted(told, key=lambda move: (move.vm, move.from_))
    world.move_vms({vm.ref: target for vm, target in moves if target is not None})


_ACTS: Mapping[Any, Callable[[World, Any], None]] = {
    s.Delete: _delete,
    s.Drain: _drain,
    s.Fail: _fail,
    s.Maintain: _maintain,
    s.Cordon: _cordon,
    s.TaintNode: _taint,
    s.Label: _label,
    s.Add: _add,
}
