"""What a worker of the running pipeline has, from its HTTP: the picture that `--server URL` judges, or its findings.

In: the address, what the worker asks for and is checked against, and, where it has several, a site. Out: the snapshot's
documents and how the worker judges it, or what is open. The command line evaluates a picture itself: the worker only
hands out what it has.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from underhost.agents.commands.output import progress
from underhost.schemas.documents import MaintenancePlan, MaintenanceProgress, RepairPlan, RepairProgress
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.page import OPTIONS, SITE, Judging, OpenFindings
from underhost.streams.authorities import trusted_by
from underhost.streams.credentials import text_of

SNAPSHOT = "/api/v1/snapshot"
FIRST_ANSWER = 9.0
"""Seconds until the worker must have answered; with the program's own start that is under the 15 s promised."""
SILENCE = 9.0
PLANNED = 65.0
"""Seconds for a plan that a worker makes: it takes a minute for one at most."""

T = TypeVar("T")
P = TypeVar("P", RepairPlan, MaintenancePlan)
D = TypeVar("D", RepairProgress, MaintenanceProgress)


class WorkerSnapshot(NamedTuple):
    """A snapshot as the worker sent it; `place` is where from, for messages."""

    data: bytes
    place: str
    site: str
    judging: Judging


class _ErrorBody(msgspec.Struct):
    error: str = ""


def read_worker(server: str, site: str | None, token_file: Path | None, ca_file: Path | None) -> WorkerSnapshot:
    """`fetch`, with a line that says so while it lasts."""
    progress.say(f"reading the picture of {server}")
    return asyncio.run(fetch(server, site, token_file, ca_file))


async def fetch(
    server: str, site: str | None, token_file: Path | None = None, ca_file: Path | None = None
) -> WorkerSnapshot:
    """Ask a worker for its picture, with the token of a file, where it asks for one. Raises as `_ask`."""
    return _picture(*await _ask(SNAPSHOT, server, site, token_file, ca_file))


async def findings(
    server: str, site: str | None, token_file: Path | None = None, ca_file: Path | None = None
) -> OpenFindings:
    """What is open at a worker's site, and what it has not judged. Raises as `_ask`."""
    address, _, data = await _ask("/api/v1/findings", server, site, token_file, ca_file)
    try:
        return msgspec.json.decode(data, type=OpenFindings)
    except msgspec.DecodeError as error:
        raise Refused(f"{address}: this is no worker of Underhost") from error


@dataclass(frozen=True)
class Asker(Generic[P, D]):
    """Asks a worker for plans of one kind, and to carry them out.

    `path` answers with a plan, `apply` carries one out; `body` says what shall be done, `only_apply` what the plan is
    not asked for.
    """

    server: str
    site: str | None
    token_file: Path | None
    ca_file: Path | None
    body: Mapping[str, object]
    path: str
    apply: str
    planned: type[P]
    progress: type[D]
    only_apply: Mapping[str, object] = field(default_factory=dict)

    async def plan(self) -> P:
        """The plan. Raises as `_ask`."""
        return await self._ask(self.path, self.planned, self.site, self.body)

    async def begin(self) -> D:
        """Have it carried out. Raises as `_ask`."""
        return await self._ask(self.apply, self.progress, self.site, {**self.body, **self.only_apply})

    async def follow(self, begun: D) -> D:
        """How far it is. Raises as `_ask`; InputError where the worker does not know it."""
        return await self._ask(f"{self.apply}/{begun.id}", self.progress, begun.site)

    async def _ask(self, path: str, form: type[T], site: str | None, body: Mapping[str, object] | None = None) -> T:
        sent = None if body is None else msgspec.json.encode(body)
        within = FIRST_ANSWER if sent is None else PLANNED
        address, _, data = await _ask(path, self.server, site, self.token_file, self.ca_file, sent, within)
        try:
            return msgspec.json.decode(data, type=form)
        except msgspec.DecodeError as error:
            raise Refused(f"{address}: this is no worker of Underhost") from error


async def _ask(
    path: str,
    server: str,
    site: str | None,
    token_file: Path | None,
    ca_file: Path | None,
    body: bytes | None = None,
    within: float = FIRST_ANSWER,
) -> tuple[str, Mapping[str, str], bytes]:
    """A worker's address, and the headers and body of its answer, which begins within so many seconds.

    Without a body it is asked what it has; with one, for what that says.

    Raises InputError for an address that is none, a file that cannot be used, or an unknown site; Refused or
    Unreachable where no worker answers, or where its picture is not complete.
    """
    address, shown = _address(server), _token(token_file)
    trusted = True if ca_file is None else trusted_by("--ca-file", ca_file)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=FIRST_ANSWER, sock_read=max(SILENCE, within))
    try:
        async with (
            asyncio.timeout(within) as deadline,
            aiohttp.ClientSession(trust_env=True, timeout=timeout, auto_decompress=False) as session,
            session.request(
                "GET" if body is None else "POST",
                f"{address}{path}",
                data=body,
                headers={"Accept-Encoding": "identity"}
                | ({} if body is None else {"Content-Type": "application/json"}),
                params={"site": site} if site else {},
                ssl=trusted,
                middlewares=shown,
                allow_redirects=not shown,  # a token is for this worker alone
            ) as response,
        ):
            deadline.reschedule(None)
            data = await response.read()
            if response.status == 200:
                return address, response.headers, data
            raise _refusal(address, site, response.status, data)
    except TimeoutError as error:
        raise Unreachable(f"{address}: no answer in time") from error
    except aiohttp.ClientConnectorCertificateError as error:
        why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        raise Refused(f"{address}: certificate not trusted: {why.rstrip('.')} (--ca-file)") from error
    except aiohttp.ClientError as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number else str(error) or type(error).__name__
        raise Unreachable(f"{address}: {' '.join(str(why).split())}") from error


def _address(server: str) -> str:
    try:
        parts = urlsplit(server)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # brackets without their end; a port that is no number, or that there is not
        named = False
    if not named:
        raise InputError(f"--server {server}: the address of a worker is expected, as http://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _token(file: Path | None) -> tuple[aiohttp.ClientMiddlewareType, ...]:
    """What shows the token of a file, whatever a netrc file has for the address. Raises InputError."""
    if file is None:
        return ()
    token = text_of("--token-file", file, "ascii", "ASCII").strip()
    if not token.isprintable() or not token:
        raise InputError(f"--token-file: {file}: one token is expected")

    async def show(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        request.headers["Authorization"] = f"Bearer {token}"
        return await send(request)

    return (show,)


def _picture(address: str, headers: Mapping[str, str], data: bytes) -> WorkerSnapshot:
    try:
        site, judging = headers[SITE], msgspec.json.decode(headers[OPTIONS], type=Judging)
    except (KeyError, msgspec.DecodeError) as error:
        raise Refused(f"{address}: this is no worker of Underhost") from error
    return WorkerSnapshot(data, f"{address}{SNAPSHOT}", site, judging)


def _refusal(address: str, site: str | None, status: int, data: bytes) -> InputError | Refused | Unreachable:
    """What an answer other than 200 means."""
    try:
        said = msgspec.json.decode(data, type=_ErrorBody).error
    except msgspec.DecodeError:
        said = ""
    if not said or (status == 404 and site is None):
        return Refused(f"{address}: this is no worker of Underhost that hands out its picture ({status})")
    if status == 422:
        return InputError(f"{address}: {said}")
    if status in (401, 403):
        return Refused(f"{address}: {said} (--token-file)")
    if status == 404:
        return InputError(f"{address}: {said}")
    return Unreachable(f"{address}: {said}") if status in (429, 503) else Refused(f"{address}: {said} ({status})")
