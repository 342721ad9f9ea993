"""Another worker that contends for the leases, as far as the API server sees it; and the leases' API with its faults.

In: faults, dice. Out: leases for the worker under test, of which the rival takes some that are free, keeps them for a
while, then gives them back or lets them end; what is wrong with a write that is made meanwhile. It has topics of its
own, and neither publishes nor writes anything that is seen here: who holds a lease and does nothing is the best that a
test can have, as whatever is written then was written by the wrong one.
"""

import asyncio
import random
from collections.abc import Collection

from support.fakes.leases import FakeLeases
from trust.simulation.faults import Faults

from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.leases.roles import LeaseOrigin, lease_name
from underhost.schemas.errors import Unreachable
from underhost.streams.kubernetes.leases import Lease
from underhost.streams.settings.model import LeaseSettings

ONE_IN = 4
"""Of so many seeds one has a rival."""
RIVAL, TAKEN = "rival", "lease taken by a rival"
SECONDS = LeaseSettings().seconds
FAILED = 0.01
"""The shares of calls that fail before, and after, they took effect."""
TAKES, MOST = 0.1, 30
"""The share of looks at a free lease that it takes, before the seed's mood, and how many it takes at most: who never
holds its leases gets nowhere."""
LOOKS, HOLDS, ENDS = 2.0, 40.0, 0.5
"""Seconds between two looks, and for which it holds a lease at most; the share of holds that it lets end."""
EVENTS = "events"
ROLES = {
    "apply_node_labels": "labeller",
    "merge_pod_labels": "pod-labeller",
    "bind_pod": "binder",
    "request_eviction": "evictor",
    **dict.fromkeys(("relocate", "enter_maintenance", "exit_maintenance"), "mover"),
    **dict.fromkeys(("add_rule", "edit_rule", "remove_rule"), "drs"),
}
"""The role that makes a request to a cluster; that of Events where it is none of these."""


class Rival:
    """The other worker, which contends for the leases of a site.

    Attributes:
        leases: those of the API server. This is the API of them (`LeaseApi`), too.
        origin: of the leases of the worker under test.
    """

    def __init__(self, site: str, faults: Faults, dice: random.Random) -> None:
        self._site, self._faults, self._dice = site, faults, dice
        self.leases, self.origin = FakeLeases(), LeaseOrigin(self, "worker")
        roles = (role.KUBERNETES, role.VSPHERE, *sorted({*ROLES.values(), EVENTS}))
        self._names = [lease_name(site, each) for each in roles]
        self._seen: dict[str, tuple[Lease, float]] = {}
        self._until: dict[str, float] = {}

    # ---------------------------------------------------------------------------------------- for the worker under test
    async def get(self, name: str) -> Lease | None:
        """See `LeaseApi`."""
        await self._take_time("lease not read")
        return await self.leases.get(name)

    async def put(self, name: str, lease: Lease) -> Lease:
        """See `LeaseApi`."""
        await self._take_time("lease not written")
        written = await self.leases.put(name, lease)
        await self._take_time("lease written without an answer")
        return written

    async def _take_time(self, what: str) -> None:
        try:
            async with asyncio.timeout(SECONDS / 3):
                await self._faults.drag()
        except TimeoutError:
            raise Unreachable("no answer in time: simulated") from None
        self._faults.fail(what, FAILED)

    def wrong(self, request: str, sources: Collection[str]) -> str:
        """Who makes a request that the rival alone may make now; "" where it may be made.

        `sources` are those that run in the worker which makes it: the rival's records do not come to its topics.
        """
        if self._holds(ROLES.get(request, EVENTS)):
            return "a worker whose lease another one holds"
        lost = sorted(each for each in role.WATCHERS if each not in sources and self._holds(each))
        return f"a worker to which nobody publishes {lost[0]}" if lost else ""

    # ---------------------------------------------------------------------------------------------------- the other one
    def _holds(self, of: str) -> bool:
        lease = self.leases.held.get(lease_name(self._site, of))
        return lease is not None and lease.holder == RIVAL

    async def run(self) -> None:
        """Until cancelled; it takes nothing any more once the site calms down."""
        while True:
            await asyncio.sleep(self._dice.uniform(0.0, 2 * LOOKS))
            for name in self._names:
                if name in self._until:
                    self._keep(name)
                elif self._faults.struck[TAKEN] < MOST and self._is_free(name) and self._faults.strike(TAKEN, TAKES):
                    self._until[name] = self._now() + self._dice.uniform(0.0, HOLDS)
                    self.leases.give(name, RIVAL, seconds=SECONDS)

    def _keep(self, name: str) -> None:
        """Renew it, or give it back, or let it end."""
        if self._faults.on and self._now() < self._until[name]:
            return self.leases.give(name, RIVAL, seconds=SECONDS)
        del self._until[name]
        if self._dice.random() >= ENDS:
            self.leases.give(name, "")

    def _is_free(self, name: str) -> bool:
        """As the product judges it: nobody's, or unchanged for as long as its holder may count on it."""
        lease = self.leases.held.get(name)
        if lease is None:
            return True
        if lease != self._seen.get(name, (None, 0.0))[0]:
            self._seen[name] = lease, self._now()
        return not lease.holder or self._now() - self._seen[name][1] >= lease.seconds

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
