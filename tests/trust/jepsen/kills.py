"""Workers that are killed: three over one site, and a `kill -9` of one of them at a random moment of each round.

In and out: see `rounds.py`. Ten rounds of 10,000 changes.
"""

import sys

from trust.jepsen.rig import Rig
from trust.jepsen.rounds import Rounds
from trust.jepsen.transports import OneBroker


async def kill(rig: Rig) -> None:
    """One worker, whichever, ends without a word and is started again."""
    member = rig.dice.choice(rig.members)
    member.kill()
    member.start()


ROUNDS = Rounds("kills", 10, 10_000, OneBroker, kill)
run = ROUNDS.run

if __name__ == "__main__":
    ROUNDS.main(int(sys.argv[1]))
