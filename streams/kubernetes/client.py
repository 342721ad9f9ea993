"""One Kubernetes cluster over HTTP: requests as bytes, answers as raw responses, failures as our own errors.

In: settings. Out: `KubernetesClient`. Credentials that the server no longer accepts, and an authority that no longer
vouches for it, are read again from their origin (exec plugins, rotated files). Paging, watching and retrying are left
to the callers.
"""

import asyncio
import os
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple, TypedDict, Unpack
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.http import HttpProcessingError
from yarl import URL

from underhost.schemas.errors import Conflict, Forbidden, Gone, Refused, Retry, UnderhostError, Unreachable
from underhost.schemas.numbers import number
from underhost.streams.before_write import before_write
from underhost.streams.kubernetes import kubeconfig
from underhost.streams.kubernetes.exchange import Exchange, Reply
from underhost.streams.log import structlog
from underhost.streams.settings.clusters import KubernetesSettings

log = structlog.get_logger("underhost.kubernetes")

PROBE_TIMEOUT = 10.0
"""Limit for the first answer: with the program's start it stays below the promised 15 s."""
RENEW_INTERVAL = 15.0
"""Least seconds between two readings of the credentials, so that a lasting 401 does not run exec plugins in a loop."""
LONGEST_WAIT = 60.0
"""Seconds for which a server may put us off. An API server says 32 at most (maxRetryAfter): who says hours is a proxy
before it, and a watch that obeyed would be blind that long. client-go obeys whatever is said, but ten times at most."""
TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=PROBE_TIMEOUT)
UNDECODABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What msgspec raises for a text that is not what it should be."""
UNTRUSTED = (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)
"""Certificates that no authority of ours vouches for."""
WRITES = ("POST", "PATCH")
"""What goes past the session: it would send none of these twice."""


class Status(msgspec.Struct):
    """A `Status` object: how the API server refuses."""

    message: str = ""
    reason: str = ""
    code: int = 0


class RequestOptions(TypedDict, total=False):
    """What a request may have beside its method and path."""

    query: Sequence[tuple[str, str]]
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
    content_type: str
    accept: str
    timeout: aiohttp.ClientTimeout


class _Request(NamedTuple):
    """What is sent; `target` is the path with its query."""

    method: str
    target: str
    headers: dict[str, str]
    data: bytes | None
    timeout: aiohttp.ClientTimeout


class KubernetesClient:
    """Requests to one cluster. Made by `connect`; `close` it, or use it in `async with`.

    Attributes:
        server: the API server's address, for messages.
        origin: where the configuration was read.
        insecure: why others may read or answer what is asked of the server, as one line; "" where they may not.
    """

    def __init__(self, origin: kubeconfig.Origin, api: Any) -> None:
        self.origin = origin
        self.server: str = api.configuration.host
        self.insecure = kubeconfig.insecure(api.configuration)
        self._api = api
        self._in_use: Counter[Any] = Counter()
        self._exchange: Exchange | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._renewed = -RENEW_INTERVAL

    async def __aenter__(self) -> "KubernetesClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. No request may be under way: with aiohttp it would wait for ever."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        for api in {self._api, *self._in_use}:
            await api.close()

    @asynccontextmanager
    async def open(
        self, method: str, path: str, **options: Unpack[RequestOptions]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response, whatever its status, its body not yet read. Raises Unreachable, Refused (certificate)."""
        async with _Access(self) as api:
            response = await self._send(api, await _request(api, method, path, **options))
            try:
                if response.status == 401:
                    await self._renew(api)
                yield response
            finally:
                response.close()

    async def _send(self, api: Any, request: _Request) -> aiohttp.ClientResponse:
        rest = api.rest_client
        given = {name: getattr(rest, name) for name in ("proxy", "proxy_headers", "server_hostname")}
        if request.method != "GET":
            before_write()
        # The library's own request, without its copies of the body and its quoting of the address.
        response: aiohttp.ClientResponse = await rest.pool_manager.request(
            request.method,
            URL(_base(self.server) + request.target, encoded=True),
            headers=request.headers,
            data=request.data,
            timeout=request.timeout,
            **{name: value for name, value in given.items() if value},
        )
        return response

    async def call(self, method: str, path: str, **options: Unpack[RequestOptions]) -> bytes:
        """The body of a 2xx answer. Raises Gone (404, 410), Conflict (409), Refused, Retry or Unreachable."""
        reply = await self.ask(method, path, **options)
        if not is_success(reply.status, reply.body):
            raise self.refusal(reply.status, reply.body, reply.headers)
        return reply.body

    async def ask(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Reply:
        """The answer, whatever its status. Raises Unreachable, Refused (certificate).

        Whom the server does not know, it has done nothing for: with credentials that were read again it is asked again.
        """
        api = self._api
        reply = await self._reply(method, path, **options)
        if reply.status == 401 and self._api is not api:
            reply = await self._reply(method, path, **options)
        return reply

    async def _reply(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Reply:
        reply = await self._write(method, path, **options) if method in WRITES else None
        if reply is None:
            async with self.open(method, path, **options) as response:
                reply = Reply(response.status, response.headers, await response.read())
        return reply

    async def _write(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Reply | None:
        """A write past the session; None where one is needed: behind a proxy, or to be led elsewhere."""
        async with _Access(self) as api:
            if api.rest_client.proxy:
                return None
            request = await _request(api, method, path, **options)
            reply = await self._exchange_of(api).write(
                method, request.target, request.headers, request.data or b"", request.timeout
            )
            if reply.status == 401:
                await self._renew(api)
            return None if 300 <= reply.status < 400 else reply

    def _exchange_of(self, api: Any) -> Exchange:
        rest = api.rest_client
        if self._exchange is None or self._exchange.session is not rest.pool_manager:
            self._exchange = Exchange(rest.pool_manager, self.server, rest.server_hostname)
        return self._exchange

    async def answers(self, timeout: float) -> bool:
        """Whether the server answers within so many seconds, is ready, and takes our credentials."""
        try:
            async with self.open("GET", "/readyz", timeout=aiohttp.ClientTimeout(total=timeout)) as response:
                await response.read()
                # This user may not be let ask, a proxy may not know the path, a busy server may put us off.
                return response.status < 500 and response.status != 401
        except UnderhostError:
            return False

    def refusal(self, status: int, body: bytes, headers: Mapping[str, str]) -> UnderhostError:
        """The error that an answer means which is no success."""
        if 200 <= status < 300:  # a proxy's page, that of a login say
            return Unreachable(f"{self.server}: the answer is not that of a Kubernetes API ({status})")
        text = f"{self.server}: {said(status, body)}"
        after = retry_after(headers)
        if status in {404, 410}:
            return Gone(text)
        if status == 409:
            return Conflict(text)
        if status == 429 or (status in {500, 503, 504} and after is not None):
            return Retry(text, after if after is not None else 1.0)
        if status >= 500 or status == 408:
            return Unreachable(text)
        return Forbidden(text) if status == 403 else Refused(text)

    def _failure(self, error: Exception) -> UnderhostError:
        """A request that got no answer, in one line."""
        if isinstance(error, UNTRUSTED):
            cause = getattr(error, "certificate_error", error)
            why = getattr(cause, "verify_message", "") or str(cause)
            return Refused(f"{self.server}: its certificate is not trusted: {why} ({self.origin})")
        if isinstance(error, TimeoutError):
            return Unreachable(f"{self.server}: no answer in time")
        # Both texts hold the proxy's address, and its password with it.
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return Unreachable(f"{self.server}: the proxy says {error.status} {error.message}")
        if isinstance(error, aiohttp.InvalidURL):
            return Unreachable(f"{self.server}: the address of the proxy, or of a redirect, is not a URL")
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unreachable(f"{self.server}: {' '.join(why.split())}")

    async def _renew(self, refused: Any) -> None:
        """Read the credentials again; where that fails the old ones stay, and the caller gets the 401.

        It goes on where who asked for it gives up: a lease waits for less time than a plugin may take.
        """
        if self._api is not refused:
            return
        if self._renewal is None or self._renewal.done():
            if time.monotonic() - self._renewed < RENEW_INTERVAL:
                return
            self._renewed = time.monotonic()
            self._renewal = asyncio.create_task(self._read_again(), name="credentials")
        await asyncio.shield(self._renewal)

    async def _read_again(self) -> None:
        try:
            fresh = await asyncio.wait_for(kubeconfig.load(self.origin), PROBE_TIMEOUT)
        except (UnderhostError, TimeoutError) as error:
            reason = str(error) or "the credentials' plugin gives no answer"
            log.warning("credentials not read again", server=self.server, reason=reason)
            return
        # The old session is closed when its last watch ends: closed now, its readers would hang in aiohttp.
        stale, self._api = self._api, fresh
        if not self._in_use[stale]:
            await stale.close()


class _Access:
    """The credentials and connections as they are now; the last one to use them closes them, once others came.

    Entered around each request, so it is no generator. Raises for a request that got no answer what that means.
    """

    def __init__(self, client: KubernetesClient) -> None:
        self._client, self._api = client, client._api

    async def __aenter__(self) -> Any:
        self._client._in_use[self._api] += 1
        return self._api

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, api = self._client, self._api
        client._in_use[api] -= 1
        if not client._in_use[api]:
            del client._in_use[api]
            if api is not client._api:
                await api.close()
        if isinstance(error, UNTRUSTED):
            await client._renew(api)  # the authority may have been replaced on disk
        if isinstance(error, aiohttp.ClientError | HttpProcessingError | OSError):
            raise client._failure(error) from error


async def connect(settings: KubernetesSettings, *, environ: Mapping[str, str] | None = None) -> KubernetesClient:
    """A client whose server has answered once.

    Raises InputError for a wrong kubeconfig; Unreachable or Refused, within PROBE_TIMEOUT, for a server that does not
    answer, has an untrusted certificate or does not take the credentials.
    """
    origin = kubeconfig.find(settings, os.environ if environ is None else environ)
    await kubeconfig.prepare()
    try:
        api = await asyncio.wait_for(kubeconfig.load(origin), PROBE_TIMEOUT)
    except TimeoutError as error:
        raise Unreachable(f"{origin}: the credentials' plugin gives no answer") from error
    client = KubernetesClient(origin, api)
    client._renewed = time.monotonic()  # the credentials are fresh: a 401 now is no reason to read them again
    try:
        timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT)
        async with client.open("GET", "/version", timeout=timeout) as response:
            data = await response.read()
            # A 403 means only that this user may not read the version; the lists will show whether more is missing.
            if response.status == 404 or (response.status < 400 and not data.lstrip().startswith(b"{")):
                raise Refused(f"{client.server}: this is no Kubernetes API ({origin})")
            if response.status >= 400 and response.status != 403:
                raise _as_backend(client.refusal(response.status, data, response.headers))
    except BaseException:  # a cancellation, too: nobody else can close the client yet
        await client.close()
        raise
    return client


async def _request(
    api: Any,
    method: str,
    path: str,
    *,
    query: Sequence[tuple[str, str]] = (),
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    content_type: str = "application/json",
    accept: str = "application/json",
    timeout: aiohttp.ClientTimeout = TIMEOUT,
) -> _Request:
    """With the credentials. Raises Unreachable where they cannot be read now."""
    # Uncompressed: to unpack the list of a large site would take a tenth of the CPU of its start.
    headers = {
        "Accept": accept,
        "Accept-Encoding": "identity",
        "Content-Type": content_type,
        "User-Agent": "underhost",
    }
    await kubeconfig.authorize(api, headers)
    data = None if body is None else msgspec.json.encode(body)
    return _Request(method, path + _encoded(tuple(query)), headers, data, timeout)


@lru_cache
def _base(server: str) -> str:
    """A server's address as the prefix of a path, quoted where it is not."""
    return str(URL(server)).rstrip("/")


@lru_cache(maxsize=16)  # a write of one kind is asked for in the same way each time
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urlencode(query)}" if query else ""


def _as_backend(error: UnderhostError) -> UnderhostError:
    return Unreachable(str(error)) if isinstance(error, Retry | Gone | Conflict) else error


def is_success(status: int, body: bytes) -> bool:
    """Whether it is a 2xx answer of an API server: always an object in JSON."""
    return 200 <= status < 300 and body[:64].lstrip().startswith(b"{")


def said(status: int, body: bytes) -> str:
    """The message of an answer, in one line for a person."""
    try:
        message = msgspec.json.decode(body, type=Status).message
    except UNDECODABLE:
        message = body.decode(errors="replace")
    printable = "".join(char if char.isprintable() else " " for char in message)
    return f"{' '.join(printable.split())[:256] or 'no reason given'} ({status})"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After header, `LONGEST_WAIT` at most; None without any (the API server sends no dates)."""
    seconds = number(headers.get("Retry-After", ""))
    return None if seconds is None else min(float(seconds), LONGEST_WAIT)
