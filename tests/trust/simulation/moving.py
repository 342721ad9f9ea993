"""The mover in one seed: whether it is there, how long a vMotion takes, plans as turns of the loop, vMotions that fail.

In: dice, faults. Out: what the settings say of it, a `VmMover` over the simulated vCenter, and what stands in the place
of the thread that makes plans.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trust.simulation.faults import Faults

from underhost.agents.sinks.moves import planning
from underhost.schemas.errors import Refused
from underhost.streams.ports import LiveVm
from underhost.streams.settings.sinks import MoveSettings
from underhost.streams.simulated.vsphere import SimulatedVSphere

ONE_IN = 3
"""Of so many seeds one has a mover."""
PER_HOST, PER_CLUSTER = 1, 2
FAILS = 0.05
"""The share of vMotions that vCenter begins, and that fail."""
THINKS, LONGEST = 0.3, 4.0
"""The share of plans that take time, and the most seconds that one takes."""


@dataclass(frozen=True)
class Moving:
    """What a seed has of it.

    Attributes:
        on: whether VMs are moved. drs_rules: whether DRS rules are written, too, so that DRS goes first.
        vmotion: seconds that a VM takes to move.
    """

    on: bool = False
    drs_rules: bool = True
    vmotion: float = 1.5
    settings: MoveSettings = field(default_factory=MoveSettings)


def moving(seed: int, dice: random.Random) -> Moving:
    """That of a seed."""
    if seed % ONE_IN != 1:
        return Moving()
    settings = MoveSettings(wait=2.0, per_host=PER_HOST, per_cluster=PER_CLUSTER, per_minute=60)
    return Moving(True, dice.random() < 0.3, dice.choice((1.5, 6.0, 20.0)), settings)


class FailingMover:
    """A `VmMover` whose vMotions fail now and then: the call is taken, and its task ends with an error."""

    def __init__(self, vsphere: SimulatedVSphere, faults: Faults) -> None:
        self._vsphere, self._faults = vsphere, faults
        self._failed = 0

    @property
    def version(self) -> object:
        """What a relocation changes at once."""
        return dict(self._vsphere.in_motion)

    async def live_vm(self, vm: str) -> LiveVm:
        """See `VmMover`."""
        return await self._vsphere.live_vm(vm)

    async def relocate(self, vm: str, host: str) -> str:
        """See `VmMover`."""
        if self._faults.strike("a vMotion fails", FAILS):
            self._failed += 1
            return f"failed-{self._failed}"
        return await self._vsphere.relocate(vm, host)

    async def is_done(self, task: str) -> bool:
        """See `VmMover`."""
        if task.startswith("failed-"):
            raise Refused("the vMotion has failed: simulated")
        return await self._vsphere.is_done(task)


def plan_in_turns(dice: random.Random) -> None:
    """Plans are made in the loop, after a moment that the dice choose."""

    class BesideInTurns:
        """In the place of `Beside`."""

        def __init__(self, name: str) -> None:
            self._done: asyncio.Future[Any] | None = None

        @property
        def is_busy(self) -> bool:
            return self._done is not None

        def begin(self, work: Callable[[], Any]) -> None:
            loop = asyncio.get_running_loop()
            done = self._done = loop.create_future()

            def think() -> None:
                try:
                    done.set_result(work())
                except Exception as error:  # noqa: BLE001 - whoever takes it is told
                    done.set_exception(error)

            loop.call_later(dice.random() * LONGEST if dice.random() < THINKS else 0.0, think)

        def take(self) -> Any:
            if self._done is None or not self._done.done():
                return None
            done, self._done = self._done, None
            return done.result()

        def forget(self) -> None:
            self._done = None

    planning.Beside = BesideInTurns  # type: ignore[assignment,misc]
