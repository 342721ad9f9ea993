"""Everything of a live cluster that the offline commands read, listed once, as `kubectl get` dumps it.

In: settings. Out: the raw pages, each with its address, as they arrive, and notes about what could not be read. Nothing
is written, nothing is watched.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import aiohttp
import msgspec

from underhost.schemas.errors import Gone, Refused, Retry, Unreachable
from underhost.streams.kubernetes.client import KubernetesClient, connect
from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.settings.clusters import KubernetesSettings

FIRST_ANSWER = 10.0
"""Limit from the start to the first page: with the program's own start it stays below the promised 15 s."""
SILENCE = 10.0
"""Seconds without a byte after which a list is given up."""
PAGE = 1000
TRIES = 5
AT_ONCE = 4
DUMPED = (
    "/apis/apps/v1/daemonsets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/volumeattachments",
)
"""What only the offline commands read. Each is optional."""


Take = Callable[[bytes, str], None]
"""Called with each page and its address, list by list, in the order of `KINDS` and `DUMPED`."""


class _ContinueToken(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _ListEnd(msgspec.Struct):
    metadata: _ContinueToken = msgspec.field(default_factory=_ContinueToken)


async def read_cluster(settings: KubernetesSettings, take: Take) -> list[str]:
    """List everything once; returns one line for each list that was not read.

    Raises InputError for a wrong kubeconfig, Unreachable or Refused where the cluster does not answer, or does not let
    us read what no command can do without.
    """
    try:
        async with asyncio.timeout(FIRST_ANSWER) as deadline, await connect(settings) as client:
            return await _Lister(client, take, deadline).read()
    except TimeoutError as error:
        raise Unreachable(f"the Kubernetes cluster gives no answer within {FIRST_ANSWER:.0f} s") from error


class _Turns:
    """Hands pages on list by list, in a fixed order: among equal pods the order of the input decides, and the same
    cluster has to be judged the same way twice. Pages that arrive before their list's turn are kept."""

    def __init__(self, paths: list[str], take: Take) -> None:
        self._left, self._take = deque(paths), take
        self._kept: dict[str, list[tuple[bytes, str]]] = {path: [] for path in paths}
        self._ended: set[str] = set()

    def hand(self, path: str, data: bytes, place: str) -> None:
        """One page of the list at this path."""
        if self._left[0] == path:
            self._take(data, place)
        else:
            self._kept[path].append((data, place))

    def end(self, path: str) -> None:
        """The list has no more pages, or failed: hand on the next list, and those after it that have ended."""
        self._ended.add(path)
        while self._left and self._left[0] in self._ended:
            self._left.popleft()
            for page in self._kept.pop(self._left[0]) if self._left else ():
                self._take(*page)


class _Lister:
    """One dump. `deadline` is removed once a page has arrived."""

    def __init__(self, client: KubernetesClient, take: Take, deadline: asyncio.Timeout) -> None:
        self._client, self._deadline = client, deadline
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._needed = {kind.path: not kind.optional for kind in KINDS} | dict.fromkeys(DUMPED, False)
        self._turns = _Turns(list(self._needed), take)

    async def read(self) -> list[str]:
        """All lists, some at once."""
        lists = [asyncio.create_task(self._list(path, must)) for path, must in self._needed.items()]
        try:
            return [note for note in await asyncio.gather(*lists) if note]
        finally:
            for task in lists:
                task.cancel()
            await asyncio.gather(*lists, return_exceptions=True)

    async def _list(self, path: str, needed: bool) -> str:
        """Hand on a list; a note where it may not be read ("" for a kind that the API does not serve)."""
        note = await self._note_of(path, needed)
        self._turns.end(path)
        return note

    async def _note_of(self, path: str, needed: bool) -> str:
        async with self._slots:
            try:
                await self._pages(path)
            except Gone as error:
                if needed:
                    raise Refused(str(error)) from error
            except Refused as error:
                if needed:
                    raise
                return f"not read, and so not judged: {path.rpartition('/')[2]}: {error}"
            return ""

    async def _pages(self, path: str) -> None:
        token, place = "", f"{self._client.server}{path}"
        while True:
            try:
                data = await self._page(path, token)
            except Gone as error:
                if token:
                    raise Unreachable(f"{place}: the list has expired before its end") from error
                raise
            self._deadline.reschedule(None)
            self._turns.hand(path, data, place)
            try:
                token = msgspec.json.decode(data, type=_ListEnd).metadata.continue_
            except msgspec.DecodeError as error:
                raise Refused(f"{place}: not a list of the API: {error}") from error
            if not token:
                return

    async def _page(self, path: str, token: str) -> bytes:
        query = [("limit", str(PAGE)), *([("continue", token)] if token else [])]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE, sock_read=SILENCE)
        for _ in range(TRIES):
            try:
                return await self._client.call("GET", path, query=query, timeout=timeout)
            except Retry as error:
                await asyncio.sleep(error.after)
        raise Unreachable(f"{self._client.server}{path}: asks to come back later, {TRIES} times")
