"""Brokers that stop or freeze: one of three, for a minute, in the middle of each round.

In and out: see `rounds.py`. Five rounds with a broker killed, five with one frozen, taking turns.
"""

import asyncio
import sys
from functools import partial

from trust.jepsen.rig import Rig
from trust.jepsen.rounds import Rounds
from trust.jepsen.transports import ThreeBrokers

MINUTE = 60.0


async def stop(rig: Rig, seconds: float = MINUTE) -> None:
    """One broker is frozen, or killed, and comes back."""
    assert isinstance(rig.transport, ThreeBrokers)
    broker = rig.dice.choice(list(rig.transport.brokers))
    if rig.seed % 2:
        broker.pause()
    else:
        broker.kill()
    await asyncio.sleep(seconds)  # the length of the fault
    await asyncio.to_thread(rig.transport.brokers.resume)


ROUNDS = Rounds("brokers", 10, 10_000, ThreeBrokers, stop)
SHORT = Rounds("brokers", 2, 1_000, ThreeBrokers, partial(stop, seconds=12.0))
run = ROUNDS.run

if __name__ == "__main__":
    ROUNDS.main(int(sys.argv[1]))
