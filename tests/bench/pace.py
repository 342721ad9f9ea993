"""How fast the machine is at this moment: seconds of different machines, and of different hours, can be compared by it.

Machines of one name differ by a factor of three here, and one machine by a factor of two from hour to hour.
"""

import time

ROUNDS = 10_000_000
UNIT = 0.22
"""CPU seconds of the loop at pace 1, on the machine that the targets were set on. A check of 150,000 pods by ab46e92d
took 2.06 s of CPU there (docs/performance.jsonl has had that run), and 6.3 s of it where the loop takes 0.68 s."""


def pace() -> float:
    """CPU seconds of a fixed loop beside those at pace 1: 3 is a third as fast."""
    began, total = time.process_time(), 0
    for number in range(ROUNDS):
        total += number
    return (time.process_time() - began) / UNIT
