"""The picture of a running pipeline, fetched from a worker's HTTP: what `--server URL` judges.

In: the address and, where the worker has several, a site. Out: the snapshot's documents and how the worker judges it.
The command line evaluates it itself: the worker only hands out what it has.
"""

import asyncio
import os
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp
import msgspec

from underhost.agents.commands.output import progress
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.page import OPTIONS, SITE, Judging

FIRST_ANSWER = 9.0
"""Seconds until the worker must have answered; with the program's own start that is under the 15 s promised."""
SILENCE = 9.0


class WorkerSnapshot(NamedTuple):
    """A snapshot as the worker sent it; `place` is where from, for messages."""

    data: bytes
    place: str
    site: str
    judging: Judging


class _ErrorBody(msgspec.Struct):
    error: str = ""


def read_worker(server: str, site: str | None) -> WorkerSnapshot:
    """`fetch`, with a line that says so while it lasts."""
    progress.say(f"reading the picture of {server}")
    return asyncio.run(fetch(server, site))


async def fetch(server: str, site: str | None) -> WorkerSnapshot:
    """Ask a worker for its picture.

    Raises InputError for an address that is none, or an unknown site; Refused or Unreachable where no worker answers,
    or where its picture is not complete.
    """
    address = _address(server)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=FIRST_ANSWER, sock_read=SILENCE)
    try:
        async with (
            asyncio.timeout(FIRST_ANSWER) as deadline,
            aiohttp.ClientSession(trust_env=True, timeout=timeout, auto_decompress=False) as session,
            session.get(f"{address}/api/v1/snapshot", params={"site": site} if site else {}) as response,
        ):
            deadline.reschedule(None)
            data = await response.read()
            if response.status == 200:
                return _picture(data, address, response)
            raise _refusal(address, site, response.status, data)
    except TimeoutError as error:
        raise Unreachable(f"{address}: no answer in time") from error
    except aiohttp.ClientError as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number else str(error) or type(error).__name__
        raise Unreachable(f"{address}: {' '.join(str(why).split())}") from error


def _address(server: str) -> str:
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"--server {server}: the address of a worker is expected, as http://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _picture(data: bytes, address: str, response: aiohttp.ClientResponse) -> WorkerSnapshot:
    try:
        site, judging = response.headers[SITE], msgspec.json.decode(response.headers[OPTIONS], type=Judging)
    except (KeyError, msgspec.DecodeError) as error:
        raise Refused(f"{address}: this is no worker of Underhost") from error
    return WorkerSnapshot(data, f"{address}/api/v1/snapshot", site, judging)


def _refusal(address: str, site: str | None, status: int, data: bytes) -> InputError | Refused | Unreachable:
    """What an answer other than 200 means."""
    try:
        said = msgspec.json.decode(data, type=_ErrorBody).error
    except msgspec.DecodeError:
        said = ""
    if not said or (status == 404 and site is None):
        return Refused(f"{address}: this is no worker of Underhost that hands out its picture ({status})")
    if status == 404:
        return InputError(f"{address}: {said}")
    return Unreachable(f"{address}: {said}") if status == 503 else Refused(f"{address}: {said} ({status})")
