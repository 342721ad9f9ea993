"""How much of one kind may be under way at one time: for all together, and for one client.

In: requests. Out: a place for each, or a refusal: 429 where the client has its share, 503 where all places are taken.
A client is an address; of IPv6, the network that one machine is given.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from aiohttp import web

from underhost.agents.http.guard import RequestRefused

NETWORK = 64
"""Bits of an IPv6 address that tell clients apart: a machine can have any address below them."""
KNOWN = 1024
"""Addresses whose clients are remembered: each request asks several times."""


class ClientPlaces:
    """Places for one kind of work: `most` for all, `each` for one client. `why` says what is under way."""

    def __init__(self, most: int, each: int, why: str) -> None:
        self._most, self._each, self._why = most, each, why
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, request: web.Request) -> Iterator[None]:
        """A place, taken while the work lasts. Raises RequestRefused where there is none."""
        client = client_of(request.remote)
        if self._taken.total() >= self._most:
            raise RequestRefused(503, f"{self._why}; ask again")
        if self._taken[client] >= self._each:
            raise RequestRefused(429, f"{self._why}, {self._each} of them for you; ask again")
        self._taken[client] += 1
        try:
            yield
        finally:
            self._taken[client] -= 1
            if not self._taken[client]:
                del self._taken[client]


@lru_cache(KNOWN)
def client_of(address: str | None) -> str:
    """Who asks from an address; "" where it is not known."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, NETWORK), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
