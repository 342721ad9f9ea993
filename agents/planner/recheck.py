"""A vMotion that was planned a while ago, judged on the site as it is now.

In: the newest snapshot, its evaluator, moves of a plan. Out: why one is not taken now; "" where the VM is where it was,
and may leave, the host has room, and no rule of vSphere's or of pods' is broken.
"""

from underhost.agents.evaluate.evaluator import SiteEvaluator
from underhost.agents.planner.fleet import Loads, Room, VmCluster, fleets_of
from underhost.agents.planner.order import PlannedMove, VMotion
from underhost.agents.planner.replay import Replay
from underhost.agents.site.snapshot import Snapshot


class Recheck:
    """Of one snapshot. What it has let pass counts as under way: it takes its room on both hosts."""

    def __init__(self, snapshot: Snapshot, evaluator: SiteEvaluator, room: Room) -> None:
        self._replay = Replay(snapshot, evaluator)
        self._snapshot = self._replay.start
        fleets = fleets_of(self._snapshot, evaluator.state(self._snapshot).model, room)
        self._fleets = {fleet.name: fleet for fleet in fleets}
        self._loads: dict[str, Loads] = {}

    def why_not(self, move: PlannedMove) -> str:
        """Why the move is not taken now; "" where it is. Raises BadObjectError."""
        fleet = self._fleets.get(move.cluster)
        hosts = {} if fleet is None else {host.ref: at for at, host in enumerate(fleet.hosts)}
        if fleet is None or move.vm not in fleet.number or move.to not in hosts or move.from_ not in hosts:
            return f"VM {move.name}, or a host, is not there any more"
        vm, to = fleet.number[move.vm], hosts[move.to]
        loads = self._loads.setdefault(fleet.name, Loads(fleet, fleet.at))
        if fleet.hosts[fleet.at[vm]].ref != move.from_:
            return f"VM {move.name} is not on host {move.from_name} any more"
        if not fleet.may_move(vm):
            return fleet.pinned[vm]
        if not loads.fits(vm, to):
            return f"host {move.to_name} cannot take VM {move.name} any more"
        return self._broken(fleet, VMotion(vm, fleet.at[vm], to)) or self._take(loads, vm, to)

    def _broken(self, fleet: VmCluster, step: VMotion) -> str:
        tried = self._replay.of(self._snapshot, fleet, [step])
        if tried.broken is not None:
            return f"VM {fleet.vms[step.vm].name} would break a rule on host {fleet.hosts[step.to].name} by now"
        self._snapshot = tried.snapshot
        return ""

    def _take(self, loads: Loads, vm: int, to: int) -> str:
        loads.add(vm, to, 1)
        return ""
