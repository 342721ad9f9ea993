"""A process that owns an embedded log, for the tests that kill it: log_process.py PATH WHAT [SYNC].

WHAT is `hold` (opens, says `open`, waits), `write` (says every acknowledged number, for ever) or `bulk` (sends in
batches of 50 and says the last acknowledged number of each).
"""

import asyncio
import sys
from pathlib import Path

from underhost.streams.embedded import registry


async def main(path: Path, what: str, sync: str) -> None:
    """Run until killed."""
    log = await registry.acquire(path, sync)
    await log.create_topic("t", 1, {})
    print("open", flush=True)
    if what == "hold":
        await asyncio.Event().wait()
    number, size = 0, 1 if what == "write" else 50
    while True:
        sends = [log.append(("t", 0), b"k", b"%d" % (number + index), 0) for index in range(size)]
        await asyncio.gather(*sends)
        number += size
        print(number - 1, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "NORMAL"))
