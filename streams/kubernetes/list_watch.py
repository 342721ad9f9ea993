"""One kind of object of one API server: its list, at once or page by page, and its watch as batches of changes.

In: raw bytes of the API. Out: trimmed records and the resourceVersion after them. When to list, to watch again or to
wait is left to the reflector.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec
from msgspec import Raw, Struct

from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import Gone, Refused, Retry, Unreachable
from underhost.schemas.pods.sharing import SharedParts, alone
from underhost.streams.kubernetes.client import UNDECODABLE, KubernetesClient, Status, retry_after, said
from underhost.streams.kubernetes.contact import Contact
from underhost.streams.kubernetes.kinds import Identified, Identity, Kind
from underhost.streams.kubernetes.long_answer import LongAnswer
from underhost.streams.log import structlog
from underhost.streams.timing import Timing
from underhost.streams.watching.changes import Listing, Seen, Unreadable, WatchBatch

log = structlog.get_logger("underhost.kubernetes")

PAGE = 1000
PAGE_TRIES = 5
LIST_TIMEOUT = 60.0
"""Seconds for one page, which may be megabytes over a slow line."""
TOO_LARGE = "Too large resource version"
"""The answer of a server that was restored from a backup to a newer resourceVersion than it has."""


T = TypeVar("T")


class _ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListPage(Struct, Generic[T]):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[T] | None = None


class _WatchEvent(Struct):
    type: str
    object: Raw


_PAGE_OF: Any = _ListPage
"""The page as a type that takes the type of its items when it is asked for."""
_events = msgspec.json.Decoder(_WatchEvent)
_identities = msgspec.json.Decoder(Identified)


class _Found:
    """What has been read of a list; `token` is where the rest of it begins, "" where nothing is left."""

    def __init__(self) -> None:
        self.position = self.token = ""
        self._objects: dict[str, Seen] = {}
        self._unreadable: list[Unreadable] = []
        self._parts = SharedParts(keeps_bytes=False)

    def add(self, change: Seen | Unreadable) -> None:
        if isinstance(change, Unreadable):
            self._unreadable.append(change)
        elif change.value is not None:
            value = self._parts.put(change.value) if isinstance(change.value, k8s.Pod) else alone(change.value)
            self._objects[change.key] = change._replace(value=value)

    def listing(self) -> Listing:
        return Listing(self._objects, self._unreadable, self.position)


class KindListWatch:
    """A kind over one client, for `streams.watch`."""

    def __init__(self, client: KubernetesClient, kind: Kind, site: str, timing: Timing, contact: Contact) -> None:
        """`contact` is told of everything that arrives."""
        self.kind = kind
        self.name = kind.plural
        self._client, self._site, self._timing, self._contact = client, site, timing, contact

    async def list(self) -> Listing:
        """See `ListWatch.list`. At once or page by page; where a page has expired, once more and without pages."""
        try:
            for limit in (PAGE, 0):
                listing = await self._list(limit)
                if listing is not None:
                    return listing
        except Gone:  # one that is refused is silent, unless it has never been heard of
            if self.kind.optional:
                self._contact.absent(self.name)
            raise
        raise Retry(f"{self.name}: the list expires before its end", 1.0)

    async def _list(self, limit: int) -> Listing | None:
        """The list, a long one at once if that can be; None where it expires before its last page."""
        found, is_first = _Found(), True
        while True:
            data = await self._page(limit, found.token)
            if data is None:
                return None
            self._contact.hear(self.name)
            self._take(data, found)
            if not found.token:
                return found.listing()
            if is_first and (listing := await self._at_once(found.position)) is not None:
                return listing
            is_first = False

    async def _at_once(self, version: str) -> Listing | None:
        """The whole list as of `version` or later, as one answer from the server's cache; None where that fails.

        For each page of a list a server may have to ask etcd: for a long list that takes four times as long.
        """
        found = _Found()
        pages = LongAnswer(lambda data: self._can_take(data, found))
        query = [("resourceVersion", version), ("resourceVersionMatch", "NotOlderThan")]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=LIST_TIMEOUT)
        try:
            async with self._client.open("GET", self.kind.path, query=query, timeout=timeout) as response:
                if response.status != 200:
                    reason = said(response.status, await response.read())
                elif not await self._reads(response, pages):
                    reason = "not as an API server writes a list"
                elif found.token:
                    reason = "only a part of it was given"
                else:
                    return found.listing()
        except Unreachable as error:  # also where the server ends what takes it too long
            reason = str(error)
        log.info("listed page by page", kind=self.name, reason=reason)
        return None

    async def _reads(self, response: aiohttp.ClientResponse, pages: LongAnswer) -> bool:
        """Read the answer; whether that succeeds."""
        async for block in response.content.iter_any():
            self._contact.hear(self.name)
            if not pages.feed(block):
                return False
        return pages.end()

    def _can_take(self, data: bytes, found: "_Found") -> bool:
        """Take the objects of a page, unless it is none."""
        try:
            self._take(data, found)
        except Refused:
            return False
        return True

    def _take(self, data: bytes, found: "_Found") -> None:
        """Take the objects of a page. Raises Refused."""
        page, changes = self._objects(data)
        found.position, found.token = page.resource_version, page.continue_
        for change in changes:
            found.add(change)

    def _objects(self, data: bytes) -> tuple[_ListMetadata, Sequence[Seen | Unreadable]]:
        """The objects of a page, read all at once; one by one where that fails for one of them. Raises Refused."""
        try:
            page = k8s.decode(data, _PAGE_OF[self.kind.item])
            return page.metadata, [self._seen(self.kind.record_of(item))[0] for item in page.items or ()]
        except UNDECODABLE:
            pass  # read again below, where it is seen whose fault it is
        try:
            raw = k8s.decode(data, _PAGE_OF[Raw])
        except UNDECODABLE as error:
            raise Refused(f"{self._client.server}{self.kind.path}: not a list of the API: {error}") from error
        return raw.metadata, [self._read(item)[0] for item in raw.items or ()]

    async def _page(self, limit: int, token: str) -> bytes | None:
        """One page; None where its continuation token has expired. A throttled request is repeated."""
        query = [("limit", str(limit))] if limit else []
        if token:
            query.append(("continue", token))
        timeout = aiohttp.ClientTimeout(total=LIST_TIMEOUT, sock_connect=10.0)
        for attempt in range(1, PAGE_TRIES + 1):
            try:
                return await self._client.call("GET", self.kind.path, query=query, timeout=timeout)
            except Gone:
                if token:
                    return None
                raise
            except Retry as error:
                if not token or attempt == PAGE_TRIES:
                    raise
                await self._timing.sleep(error.after)
        raise AssertionError("unreachable")

    async def watch(self, position: str) -> AsyncGenerator[WatchBatch, None]:
        """See `ListWatch.watch`. One batch for each piece that the network delivers."""
        query = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", position),
            ("timeoutSeconds", str(round(self._timing.rng.uniform(*self._timing.watch_timeout)))),
        ]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=self._timing.inactivity)
        async with self._client.open("GET", self.kind.path, query=query, timeout=timeout) as response:
            if response.status != 200:
                raise self._no_watch(response.status, await response.read(), response)
            if response.content_type != "application/json":  # a proxy's page: each line would be a dead letter
                raise Unreachable(f"{self.name}: the answer is not that of a Kubernetes API ({response.content_type})")
            self._contact.opened(self.name)
            try:
                rest = b""
                async for piece in response.content.iter_any():
                    self._contact.hear(self.name)
                    *lines, rest = (rest + piece).split(b"\n")
                    changes, position = self._changes(lines, position)
                    yield WatchBatch(changes, position)
            finally:
                self._contact.ended(self.name)
        # A line in `rest` was cut off with the connection: it is sent again after `position`.

    def _no_watch(self, status: int, body: bytes, response: aiohttp.ClientResponse) -> Exception:
        text = f"{self.name}: {said(status, body)}"
        if status in {400, 404, 410, 422} or TOO_LARGE.encode() in body:
            return Gone(text)
        if status == 429:
            return Retry(text, retry_after(response.headers) or 0.0)
        if status in {401, 403, 405}:
            return Refused(text)
        return Unreachable(text)

    def _changes(self, lines: Sequence[bytes], position: str) -> tuple[Sequence[Seen | Unreadable], str]:
        """The changes in complete lines, and the position after them. Raises what an ERROR event means."""
        changes: list[Seen | Unreadable] = []
        for line in lines:
            if not line:
                continue
            try:
                event = _events.decode(line)
            except UNDECODABLE as error:
                changes.append(Unreadable(self.kind.key(self._site, "?", ""), line, str(error)))
                continue
            if event.type == "ERROR":
                # Changes before it in this piece are sent again: they are after the last position that was yielded.
                raise self._error(bytes(event.object))
            if event.type == "BOOKMARK":
                position = self._version(bytes(event.object)) or position
                continue
            change, version = self._read(bytes(event.object))
            position = version or position
            if event.type == "DELETED":
                change = Seen(change.key, change.uid if isinstance(change, Seen) else "", None)
            changes.append(change)
        return changes, position

    def _error(self, data: bytes) -> Exception:
        try:
            status = msgspec.json.decode(data, type=Status)
        except UNDECODABLE:
            status = Status(message="an ERROR event that cannot be read")
        text = f"{self.name}: {said(status.code, data)}"
        # As client-go does: after any other error within a watch a new list restores the truth.
        return Retry(text, 0.0) if status.code == 429 else Gone(text)

    def _read(self, data: bytes | Raw) -> tuple[Seen | Unreadable, str]:
        """One object and its version. One that cannot be decoded keeps its key, as far as its name can be read."""
        try:
            return self._seen(self.kind.decode(data))
        except UNDECODABLE as error:
            reason = str(error)
        try:
            named = _identities.decode(data).metadata
        except UNDECODABLE as error:
            return Unreadable(self.kind.key(self._site, "?", ""), bytes(data), str(error)), ""
        return Unreadable(self._key(named), bytes(data), reason), named.resource_version

    def _seen(self, value: Any) -> tuple[Seen, str]:
        named = value.metadata
        return Seen(self._key(named), named.uid, value), named.resource_version

    def _key(self, named: Identity | k8s.Metadata) -> str:
        return self.kind.key(self._site, named.name or "?", named.namespace)

    def _version(self, data: bytes) -> str:
        try:
            return _identities.decode(data).metadata.resource_version
        except UNDECODABLE:
            return ""
