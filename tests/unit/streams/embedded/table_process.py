"""A Faust worker that keeps a table of the last value of each key: table_process.py PATH COUNT.

Says `ready ROWS` once its table is recovered; sends COUNT records (values 0, 1, ...) over 2000 keys; says
`acknowledged N` for every hundred that are; says `read N` when everything that is there was handled, N records by this
process; waits for a line on stdin, says `rows ROWS SUM`, stops in order and says `stopped`.
"""

import asyncio
import sys
from pathlib import Path

import faust
from support.workers.embedded import a_topic, an_app, running

from underhost.streams.faust.table import ChangelogTable

KEYS = 2000


async def main(path: Path, count: int) -> None:
    """Run until stdin says something."""
    app = an_app(path, broker_commit_interval=0.1, Table=ChangelogTable)
    table = app.Table("last", key_type=bytes, value_type=bytes, partitions=4)
    following = {}
    handled = asyncio.Event()
    read = 0

    async def keep(stream: faust.StreamT) -> None:
        nonlocal read
        async for event in stream.events():
            table[event.key] = event.value
            following[event.message.tp] = event.message.offset + 1
            read += 1
            handled.set()

    app.agent(a_topic(app, "source"), name="keep")(keep)
    async with running(app):
        print("ready", len(table), flush=True)
        for start in range(0, count, 100):
            await asyncio.gather(*[await send(app, number) for number in range(start, min(start + 100, count))])
            print("acknowledged", start + 100, flush=True)
        mine = {tp for tp in app.consumer.assignment() if tp.topic == "source"}
        while count and any(following.get(tp, 0) < app.consumer.highwater(tp) for tp in mine):
            handled.clear()
            await handled.wait()
        print("read", read, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print("rows", len(table), sum(int(value) for value in table.values()), flush=True)
        print("again", read, flush=True)
    print("stopped", flush=True)


async def send(app: faust.App, number: int) -> "asyncio.Future[object]":
    """One record, in the partition of its key."""
    future: asyncio.Future[object] = await app.producer.send(
        "source", b"k%d" % (number % KEYS), b"%d" % number, number % 4, None, None
    )
    return future


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
