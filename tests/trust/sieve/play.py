"""One plan, played: a worker behind the views of its plan, the story's steps, the faults, and the oracle's verdict.

In: a plan, the shared parts and a lane. Out: a `Verdict`.
"""

import asyncio
import json
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from support.processes.kube import ADMIN_TOKEN
from support.processes.vcsim import PASSWORD, USERNAME
from trust.sieve import oracle, topics
from trust.sieve.apiserver import PLURALS, ApiServerView
from trust.sieve.forwarder import BEFORE, Cut
from trust.sieve.nursery import is_alive, kill
from trust.sieve.parts import Lane, Shared
from trust.sieve.plans import Kill, Plan, Withhold
from trust.sieve.scene import STARTING, Scene, State, until
from trust.sieve.stories import STORIES, TRIES, Step
from trust.sieve.vcenter import VCenterView

PATIENCE = 60.0
"""Seconds that a step may take, on a busy machine."""
DECEIVED = 0.7
"""Seconds that a worker is shown an old state, after it has listed it."""
UNSEEN = 1.5
"""Seconds for which the worker does not see what it has written: several times as long as its pauses here."""
QUIET = 1.0
"""Seconds for which nothing may happen at the end."""
KINDS = tuple(PLURALS.values())
VCENTER = "vcenter"


class Diverged(Exception):
    """The plan came to something else than the story says."""


@dataclass
class Verdict:
    """What came of a plan: nothing `wrong` is a plan that the product has survived.

    Attributes:
        fired: whether its fault has happened.
        late: what is wrong is only that something was not right in time.
        repeated: what was not right in time when it was played first, on a busy machine.
    """

    plan: int
    wrong: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    fired: bool = True
    seconds: float = 0.0
    late: bool = False
    repeated: list[str] = field(default_factory=list)


class Play:
    """One plan at work."""

    def __init__(self, shared: Shared, lane: Lane, plan: Plan, mutant: str = "") -> None:
        self._shared, self._lane, self._plan, self._mutant = shared, lane, plan, mutant
        self._story = STORIES[plan.story]
        self._scope = f"s{plan.number:04d}-{time.time_ns() // 1000 % 10**9:x}"
        self._folder = shared.folder / self._scope
        self._log = self._folder / "underhost.db"
        self._scene = Scene(shared, lane, self._scope, self._log)
        self._made: Counter[str] = Counter()
        self._writes: list[str] = []
        self._left = plan.fault.times if isinstance(plan.fault, Kill) else int(plan.fault is not None)
        self._pid = self._killed = 0
        self._restarts: set[asyncio.Task[None]] = set()
        self._versions: list[str] = []
        self._dry, self._away, self._step = False, False, ""

    async def run(self) -> Verdict:
        """The verdict. Raises what only a fault of the harness, or of a real part, can raise."""
        began, verdict = time.monotonic(), Verdict(self._plan.number)
        offset = self._shared.audit.log.stat().st_size
        self._folder.mkdir()
        await self._scene.set_up(self._story.nodes, tainted=self._story.tainted)
        try:
            async with AsyncExitStack() as stack:
                await self._open(stack)
                try:
                    await self._tell()
                    verdict.wrong += await self._judge(offset)
                except TimeoutError as error:
                    verdict.wrong, verdict.late = str(error).splitlines(), True
                except Diverged as error:
                    verdict.wrong = [str(error)]
                finally:
                    for task in self._restarts:
                        task.cancel()
                    kill(self._pid)
        finally:
            await self._scene.tear_down()
        verdict.writes, verdict.fired = self._writes, not self._left
        verdict.seconds = round(time.monotonic() - began, 2)
        return verdict

    # ----------------------------------------------------------------------------------------------------- the worker
    async def _open(self, stack: AsyncExitStack) -> None:
        shared, vcsim = self._shared, self._lane.vcsim
        trusts_vcenter = ssl.create_default_context(cadata=vcsim.certificate)
        self._api = ApiServerView(shared.kube.server, shared.trusts_kube, self._on_write, self._scope)
        self._vcenter = VCenterView(f"https://127.0.0.1:{vcsim.port}", trusts_vcenter, self._on_write, self._scope)
        api = await stack.enter_async_context(self._api.serving(shared.tls))
        vcenter = await stack.enter_async_context(self._vcenter.serving(shared.tls))
        kubeconfig = shared.kube.kubeconfig_of(ADMIN_TOKEN, ca=shared.authority.cert, server=api, folder=self._folder)
        (self._folder / "password").write_text(PASSWORD)
        self._config: dict[str, Any] = {
            "apiVersion": "underhost/v1",
            "kind": "Config",
            "site": self._scope,
            "kafka": {"embedded": str(self._log)},
            "kubernetes": {"kubeconfig": str(kubeconfig)},
            "vsphere": {
                "url": f"{vcenter}/sdk",
                "username": USERNAME,
                "passwordFile": str(self._folder / "password"),
                "caFile": str(shared.authority.cert),
                "pollInterval": 1,
            },
            "hostLabel": {"startupTaint": STARTING},
            "evictions": {"wait": 0, "perMinute": 1000, "tries": TRIES, "pause": 1},
            "drsRules": {"editsPerMinute": 1000},
        }

    async def _start_worker(self) -> None:
        folder = self._folder
        sinks = dict.fromkeys(("labels", "bindings", "events", "drsRules", "evictions"), not self._dry)
        (folder / "underhost.yaml").write_text(json.dumps({**self._config, "sinks": sinks}))
        # A kill takes its time on a busy machine, and until then the log is locked.
        await until("the killed worker has gone", self._is_gone, PATIENCE)
        self._pid = await self._shared.nursery.worker(folder / "underhost.yaml", folder / "worker.log", self._mutant)

    def _kill_worker(self) -> None:
        kill(self._pid)
        self._killed, self._pid = self._pid, 0

    async def _is_gone(self) -> bool:
        return not self._killed or not is_alive(self._killed)

    async def _on_write(self, when: str, write: str) -> None:
        """A worker is about to write, or has written. Raises Cut where that was its last act."""
        if not self._pid:
            raise Cut
        if when == BEFORE:
            self._made[write] += 1
            self._writes.append(write)
        planned = self._plan.fault
        if planned is None or not self._left:
            return
        if isinstance(planned, Withhold):
            if (self._step, write, when) == (planned.step, planned.since, BEFORE):
                self._left -= 1
                self._api.hold(*planned.kinds)
        elif (write, when) == (planned.write, planned.when) and self._made[write] >= planned.nth:
            self._left -= 1
            if isinstance(planned, Kill):
                self._kill_worker()
                self._away = planned.away
                if not self._away:
                    self._restarts.add(asyncio.ensure_future(self._start_again(planned)))
            raise Cut

    async def _start_again(self, planned: Kill) -> None:
        """The next worker, which is shown what the plan says."""
        if planned.frozen:
            self._api.hold(*KINDS)
        if planned.back is not None:
            self._api.listed_at = self._version(planned.back)
        before = dict(self._api.lists)
        await self._start_worker()
        if planned.frozen or planned.back is not None:
            await self._deceive(before, "pods")
            self._api.release(*KINDS)

    def _version(self, back: int) -> str:
        """The resourceVersion before so many steps and this one."""
        return self._versions[max(0, len(self._versions) - 1 - back)]

    async def _deceive(self, before: Mapping[str, int], kind: str) -> None:
        """Lists show what they show until the worker has taken one, and a little longer."""

        async def listed() -> bool:
            return self._api.lists[kind] > before.get(kind, 0)

        await until("the worker has listed", listed, PATIENCE)
        await asyncio.sleep(DECEIVED)
        self._api.listed_at = ""

    # ------------------------------------------------------------------------------------------------------ the story
    async def _tell(self) -> None:
        for step in self._story.steps:
            self._step = step.name
            self._versions.append(await self._shared.admin.version())
            if step.dry != self._dry:
                self._dry = step.dry
                self._kill_worker()
            away = self._away
            if not self._pid and not self._restarts and not away:
                await self._start_worker()
            fault = self._plan.fault
            if isinstance(fault, Withhold) and fault.step == step.name:
                await self._unseen(step, fault)
            else:
                await step.act(self._scene)
            if away:
                self._away = False
                await self._start_worker()
            await self._reached(step)
            if step is self._story.steps[0]:
                await until("the worker has seen its nodes without the taint", self._has_seen_its_nodes, PATIENCE)

    async def _unseen(self, step: Step, withheld: Withhold) -> None:
        """A step of which the worker sees nothing before it is over, or not what it does in it itself."""
        kinds = [kind for kind in withheld.kinds if kind != VCENTER]
        if withheld.since:
            await step.act(self._scene)
            await until(f"the worker makes the write {withheld.since}", self._has_fired, PATIENCE)
            await asyncio.sleep(UNSEEN)
        else:
            self._left -= 1
            self._api.hold(*kinds)
            if VCENTER in withheld.kinds:
                self._vcenter.hold()
            await step.act(self._scene)
        if withheld.how == "restarted":
            self._kill_worker()
        late = withheld.how == "late"
        before = dict(self._api.lists)
        self._api.listed_at = self._version(back=1) if withheld.how == "past" else ""
        (self._api.release if late else self._api.expire)(*kinds)
        if VCENTER in withheld.kinds:
            (self._vcenter.release if late else self._vcenter.expire)()
        if withheld.how == "restarted":
            await self._start_worker()
        if withheld.how == "past":
            await self._deceive(before, kinds[0])

    async def _has_fired(self) -> bool:
        return not self._left

    async def _reached(self, step: Step) -> None:
        """Until the world stands as the step says, or the worker is away."""
        last: State | None = None
        right = step.right
        if right is None:
            return

        async def true() -> bool:
            nonlocal last
            for task in self._restarts:
                if task.done():
                    task.result()
            last = await self._scene.state()
            self._must_live()
            return last in right or self._away

        try:
            await until(step.name, true, PATIENCE)
        except TimeoutError:
            raise TimeoutError(f"after {step.name}: {_difference(last, right)}") from None

    async def _has_seen_its_nodes(self) -> bool:
        """Before that the worker would rightly take the first node that it sees without the taint."""
        return not await asyncio.to_thread(topics.still_says, self._log, "underhost.nodes", STARTING)

    def _must_live(self) -> None:
        if self._pid and not is_alive(self._pid):
            said = (self._folder / "worker.log").read_text()[-600:]
            raise Diverged(f"the worker has ended: {said}")

    async def _judge(self, offset: int) -> list[str]:
        """What is wrong at the end, once nothing more happens."""
        wrong: list[str] = []
        await asyncio.gather(*self._restarts)

        async def right() -> bool:
            made = len(self._writes)
            await asyncio.sleep(QUIET)
            uids, state = await self._scene.uids(), await self._scene.state()
            last = self._story.steps[-1].right or ()
            told = await asyncio.to_thread(topics.told, self._log, self._scope, uids)
            wrong[:] = told if state in last else [f"at the end: {_difference(state, last)}", *told]
            return not wrong and made == len(self._writes)

        try:
            await until("all is as it should be, and stays so", right, PATIENCE)
        except TimeoutError as error:
            raise TimeoutError("\n".join(wrong) or str(error)) from None
        writes = await asyncio.to_thread(oracle.written, self._shared.audit.log, offset, self._scope)
        return oracle.forbidden(writes, self._scope, self._story, self._scene.visited)


def _difference(now: State | None, right: tuple[State, ...]) -> str:
    """What differs from the outcome that is nearest, in a line."""
    found: dict[str, Any] = asdict(now) if now is not None else {}
    differing = [{name: value for name, value in asdict(one).items() if found.get(name) != value} for one in right]
    nearest = min(differing, key=len, default={})
    return "; ".join(f"{name}: {found.get(name)} instead of {value}" for name, value in nearest.items())
