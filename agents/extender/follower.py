"""Keeps a compiled picture of one site in step with the tables, for the scheduler extender, who must answer at once.

In: the site's state, which notes what changes, and the hosts of its nodes as last decided. Out: `HostPicture`, and what
is being placed (`Assumptions`). The first question compiles the site, in a thread; from then on changes are taken in as
they come, a few at a time, so that the loop is never held for long. A change that the picture cannot follow compiles it
again.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from underhost.agents.extender.assumed import Assumptions
from underhost.agents.extender.picture import HostPicture, Outdated
from underhost.agents.site.objects import Changes, SiteState
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import topics
from underhost.schemas.errors import BadObjectError, Unready
from underhost.schemas.kubernetes import Pod
from underhost.schemas.topics import Topic

log = logging.getLogger(__name__)

FOLLOWED = (topics.NODES, topics.PODS, topics.NAMESPACES)
PAUSE = 0.005
"""Seconds after a change before it is taken in: what comes in one batch is taken in together."""
SLICE = 64
"""Pods that are taken in at a time, some 2 ms."""


class Ground(Protocol):
    """What the picture is made of: the pipeline that runs now."""

    def unsure(self, site: str) -> str | None:
        """Why nothing may be said of the site now; None when its picture is complete and trusted."""

    def state(self, site: str) -> SiteState:
        """The rows of the site, where `unsure` had nothing to say."""

    def located(self, site: str) -> Snapshot:
        """The newest snapshot of the site with the hosts of its nodes, where `unsure` had nothing to say."""


class HostFollower:
    """The picture of one site. `ground` gives the pipeline, None while there is none; `pool` compiles.

    Attributes:
        assumed: the pods that are being placed; they outlive a pipeline that is started again.
        compiled: how often the whole site was compiled.
    """

    def __init__(self, site: str, options: Options, ground: Callable[[], Ground | None], pool: Executor) -> None:
        self._site, self._options, self._ground, self._pool = site, options, ground, pool
        self.assumed = Assumptions()
        self.compiled = 0
        self._picture: HostPicture | None = None
        self._state: SiteState | None = None
        self._changes = Changes(())
        self._compiling = asyncio.Lock()
        self._due: asyncio.TimerHandle | None = None
        self._again: asyncio.Task[None] | None = None
        self._fault: Unready | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def ground(self) -> Ground:
        """The pipeline. Raises Unready."""
        ground = self._ground()
        if ground is None:
            raise Unready("the worker is starting")
        why = ground.unsure(self._site)
        if why is not None:
            raise Unready(why)
        return ground

    def rows(self, topic: Topic) -> Mapping[str, Any]:
        """The objects of the site, of nodes or pods. Raises Unready."""
        return self.ground().state(self._site).rows(topic)

    async def picture(self, more: Mapping[str, Pod] | None = None) -> HostPicture:
        """The site as it is now. With `more`, compiled anew so that it has a class for these pods, too.

        Raises Unready.
        """
        state = self.ground().state(self._site)
        if more is None and self._picture is not None and self._state is state:
            self._take_in()
        if more is None and self._picture is not None and self._state is state:
            return self._picture
        async with self._compiling:
            if more is None and self._picture is not None and self._state is state:
                return self._picture
            return await self._compile(more or {})

    async def moved(self, seconds: float) -> bool:
        """Wait until something has changed, this long at most; whether it has."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        done, _ = await asyncio.wait([waiting], timeout=seconds)
        return bool(done)

    def tell(self) -> None:
        """Something has changed that somebody may wait for."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def wake(self) -> None:
        """There is something to take in, soon."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(PAUSE, self._in_background)

    def prepare(self) -> None:
        """Compile before somebody asks, where that is needed and not under way."""
        if self._picture is None and not self._compiling.locked() and (self._again is None or self._again.done()):
            self._again = asyncio.get_running_loop().create_task(self._renew())

    def close(self) -> None:
        """Follow no more."""
        for pending in (self._due, self._again):
            if pending is not None:
                pending.cancel()
        if self._state is not None:
            self._state.unfollow(self._changes)
        self._picture, self._state = None, None

    # ------------------------------------------------------------------------------------------------------ compiling
    async def _compile(self, more: Mapping[str, Pod]) -> HostPicture:
        if self._fault is not None and not len(self._changes) and not self._changes.whole:
            raise self._fault  # nothing has changed since
        self._fault = None
        while True:
            ground = self.ground()
            state, located = ground.state(self._site), ground.located(self._site)
            self._follow_from_now(state)
            snapshot = state.snapshot(vsphere=located.vsphere, offsets={})
            snapshot = replace(snapshot, node_hosts=located.node_hosts)
            asked = {**self.assumed.pods(), **more}
            working = asyncio.get_running_loop().run_in_executor(
                self._pool, HostPicture, snapshot, self._options, asked
            )
            try:
                picture = await working
                self.compiled += 1
                self._show(picture, snapshot.pods)
            except BadObjectError as error:
                self._fault = Unready(f"the site cannot be judged: {error}")
                raise self._fault from error
            except Outdated:
                continue  # a pod that was answered meanwhile is of a kind of its own
            self._picture = picture
            self._take_in()
            return picture

    def _follow_from_now(self, state: SiteState) -> None:
        if self._state is not None:
            self._state.unfollow(self._changes)
        self._changes = Changes(FOLLOWED, self.wake)
        state.follow(self._changes)
        self._state, self._picture = state, None

    def _show(self, picture: HostPicture, pods: Mapping[str, Pod]) -> None:
        """A picture of everything: what is being placed is looked up in it."""
        self.assumed.align(picture)
        for key in self.assumed.pods():
            self.assumed.see(key, pods.get(key), picture.positions)

    # ------------------------------------------------------------------------------------------------------ following
    def _in_background(self) -> None:
        self._due = None
        if self._picture is None or self._compiling.locked():
            return
        try:
            self._take_in()
        except Unready:
            return  # what has changed stays noted
        self.prepare()

    async def _renew(self) -> None:
        """Compile before somebody asks."""
        with suppress(Unready):
            await self.picture()

    def _take_in(self) -> None:
        """Take in what has changed, of many pods only the first; where that is impossible the picture is gone."""
        ground, picture, changes = self.ground(), self._picture, self._changes
        state = ground.state(self._site)
        if picture is None or state is not self._state or changes.whole:
            self._picture = None
            return
        try:
            self._follow(picture, state, ground.located(self._site), changes)
        except (Outdated, BadObjectError) as error:
            log.info("site %s: the extender's picture is compiled anew: %s", self._site, error or "something new")
            self._picture = None
            return
        if len(changes):
            self.wake()
        self.tell()

    def _follow(self, picture: HostPicture, state: SiteState, located: Snapshot, changes: Changes) -> None:
        for name in changes.take(topics.NAMESPACES):
            picture.follower.follow_namespace(name, state.rows(topics.NAMESPACES).get(name))
        pods = state.rows(topics.PODS)
        now = Snapshot(
            nodes=state.rows(topics.NODES), hosts=state.rows(topics.HOSTS), node_hosts=located.node_hosts, pods=pods
        )
        picture.follower.follow_nodes(now, changes.take(topics.NODES), pods)
        self.assumed.align(picture)
        changed = changes.take(topics.PODS, SLICE)
        picture.follow_pods(now, changed)
        for key in changed:
            self.assumed.see(key, pods.get(key), picture.positions)
        if topics.PODS.short in changes.listed and not len(changes):
            changes.listed.clear()
            self.assumed.keep(pods)
