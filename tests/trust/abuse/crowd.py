"""Those who abuse a worker, each kind from an address of its own: `ASSAULTS` lists them.

In: a worker's port. Out: requests until they are cancelled, and what was answered. Nobody waits politely, nobody reads
more than is needed, and who is cut off comes again.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from urllib.parse import quote

import aiohttp
from trust.abuse.bodies import MADE, Posted

FOLLOWERS, ADDRESSES = 1000, 10
CUT_OFF = 0
REST = 0.02
"""Seconds between two requests of one who abuses."""


class Crowd:
    """All who abuse one worker.

    Attributes:
        answers: by kind of assault and status; `CUT_OFF` where the connection ended without an answer.
    """

    def __init__(self, port: int, seed: int = 0) -> None:
        self.port, self.answers = port, Counter[tuple[str, int]]()
        self._seed = seed

    async def run(self, seconds: float, kinds: "Mapping[str, Assault] | None" = None) -> None:
        """Abuse the worker for so long."""
        tasks = [
            asyncio.ensure_future(self._go_on(kind, assault, f"127.0.1.{at + 1}"))
            for at, (kind, assault) in enumerate((kinds or ASSAULTS).items())
        ]
        await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _go_on(self, kind: str, assault: "Assault", address: str) -> None:
        dice = random.Random(f"{self._seed} {kind}")
        while True:
            with suppress(aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError):
                status = await assault(self.port, address, dice)
                self.answers[kind, status] += 1
            await asyncio.sleep(REST)


Assault = Callable[[int, str, random.Random], Awaitable[int]]
"""(port, own address, dice) → the status of an answer."""


async def line(port: int, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection from an address of this machine."""
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))


async def ask(port: int, address: str, data: bytes, patience: float = 90.0) -> int:
    """Send bytes; the status of the answer."""
    first = b""
    reader, writer = await line(port, address)
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(patience):
            try:
                writer.write(data)
                with suppress(ConnectionError):
                    await writer.drain()
                first = await reader.readline()
            finally:
                writer.transport.abort()
    parts = first.split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else CUT_OFF


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A request as it is sent."""
    given = {"Host": "127.0.0.1", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def post(make: Callable[[random.Random], Posted], port: int, address: str, dice: random.Random) -> int:
    """A body that means harm."""
    made = make(dice)
    return await ask(port, address, request("POST", made.path, made.headers, made.body))


LONG_PLANS = (("whatif", b'{"each":"node"}'), ("repair", b"{}"), ("maintain", b'{"allHosts":true}'))


async def post_and_leave(port: int, address: str, dice: random.Random) -> int:
    """A long plan, whose client leaves at once."""
    what, body = dice.choice(LONG_PLANS)
    headers = {"Content-Type": "application/json"}
    return await ask(port, address, request("POST", f"/api/v1/{what}", headers, body), 0.3)


async def look(port: int, address: str, dice: random.Random) -> int:
    """What is not there, and moments of no calendar."""
    name, kind = quote(dice.randbytes(9)), dice.choice(["map", "findings", "activity", "history", "events", "snapshot"])
    at = dice.choice(["", "&at=1m", f"&at={'9' * dice.randrange(1, 400)}d", f"&at={name}", "&at=1e999"])
    site = dice.choice([f"site={name}", "", "site=prod"])
    return await ask(port, address, request("GET", f"/api/v1/{kind}?{site}{at}", {}))


async def past(port: int, address: str, dice: random.Random) -> int:
    """A moment of the past that nobody has asked for."""
    return await ask(port, address, request("GET", f"/api/v1/map?at={dice.randrange(1, 600)}s", {}))


async def explained(port: int, address: str, dice: random.Random) -> int:
    """A pod with every rule's word on every node."""
    at = dice.randrange(2000)
    path = f"/api/v1/pods/team-{at // 25 % 40}/app-{at // 25}-5d9c7b8f6d-{at:05d}"
    return await ask(port, address, request("GET", path, {}))


async def other_site(port: int, address: str, dice: random.Random) -> int:
    """A page of another site in somebody's browser."""
    headers = {"Sec-Fetch-Site": "cross-site", "Origin": dice.choice(["http://evil.example", "null", "http://[::1"])}
    return await ask(port, address, request("GET", "/api/v1/map?at=1m", headers))


async def malformed(port: int, address: str, dice: random.Random) -> int:
    """What is no HTTP, or nearly."""
    whole = bytearray(
        request("POST", "/api/v1/whatif?site=prod&at=1m", {"Content-Type": "application/json"}, b'{"each":"host"}')
    )
    for _ in range(dice.randrange(1, 20)):
        whole[dice.randrange(len(whole))] = dice.randrange(256)
    return await ask(port, address, bytes(whole) + b"\r\n\r\n", 5.0)


@asynccontextmanager
async def lines(count: int, port: int, *addresses: str) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """So many connections at a time, of which nobody reads; they end with the block."""
    opening = (line(port, addresses[at % len(addresses)]) for at in range(count))
    opened = await asyncio.gather(*opening, return_exceptions=True)
    held = [each for each in opened if not isinstance(each, BaseException)]
    try:
        yield [writer for _, writer in held]
    finally:
        for _, writer in held:
            writer.transport.abort()


async def slow(begin: bytes, piece: bytes, port: int, address: str, dice: random.Random) -> int:
    """200 connections at a time that send a byte now and then."""
    async with lines(200, port, address) as writers:
        for at in range(20):
            for writer in writers:
                if not writer.is_closing():
                    writer.write(piece if at else begin)
            await asyncio.sleep(0.5)
    return CUT_OFF


async def unread(port: int, address: str, dice: random.Random) -> int:
    """50 connections at a time that ask for the map and the snapshot, again and again, and read nothing."""
    async with lines(50, port, address) as writers:
        for writer in writers:
            writer.write(request("GET", dice.choice(["/api/v1/map", "/api/v1/snapshot"]), {}) * 20)
        await asyncio.sleep(10)
    return CUT_OFF


async def followers(port: int, address: str, dice: random.Random) -> int:
    """1,000 followers from ten addresses, who read nothing."""
    async with lines(FOLLOWERS, port, *(f"127.0.2.{at + 1}" for at in range(ADDRESSES))) as writers:
        for writer in writers:
            writer.write(request("GET", "/api/v1/events", {}))
        await asyncio.sleep(10)
    return CUT_OFF


MANY = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (at, b"y" * 4000) for at in range(47))
"""As many and as long headers as are allowed, and no end of them."""
HALF = b"POST /api/v1/whatif HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
ASSAULTS: Mapping[str, Assault] = {
    **{kind: partial(post, make) for kind, make in MADE.items()},
    "plans that nobody waits for": post_and_leave,
    "what is not there": look,
    "moments": past,
    "explanations": explained,
    "other sites": other_site,
    "no HTTP": malformed,
    "half a request": partial(slow, b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
    "half a large request": partial(slow, MANY, b"X"),
    "half a body": partial(slow, HALF + b"Content-Length: 1000000\r\n\r\n", b" "),
    "answers that nobody reads": unread,
    "followers": followers,
}
