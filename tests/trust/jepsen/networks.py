"""Networks that are cut: the owner of the site loses Kafka and lives on, another worker takes over, and the cut heals.

In and out: see `rounds.py`. Ten rounds; the owner can still reach the API server all the time.
"""

import asyncio
import sys

from trust.jepsen.rig import Rig
from trust.jepsen.rounds import Rounds
from trust.jepsen.transports import WaysToOneBroker

CUT = 25.0
"""Seconds: longer than the workers' session at Kafka and their leases at the API server."""


async def cut(rig: Rig) -> None:
    """What the owner sends stays on the way, and comes when its successor has long begun."""
    assert isinstance(rig.transport, WaysToOneBroker)
    owner = await rig.owner() or rig.members[0]
    way = rig.transport.ways[rig.members.index(owner)]
    way.freeze()
    await asyncio.sleep(CUT)  # the length of the fault
    way.mend()


ROUNDS = Rounds("networks", 10, 10_000, WaysToOneBroker, cut)
run = ROUNDS.run

if __name__ == "__main__":
    ROUNDS.main(int(sys.argv[1]))
