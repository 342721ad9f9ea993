"""vSphere tags of hosts, clusters, folders and datacenters, which only vCenter's REST API has.

In: morefs with their types. Out: by moref, the tag of each category. Two tags of one category on one object give no
value, because it is not clear which is meant. The REST API needs a login and a session of its own. Passwords and
session ids are in no log or error.
"""

import base64
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.log import structlog
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere import logins
from underhost.streams.vsphere.client import address_of, credentials, one_line, tls_context

log = structlog.get_logger("underhost.vsphere")

SESSION = "/rest/com/vmware/cis/session"
TAGGING = "/rest/com/vmware/cis/tagging"
TIMEOUT = aiohttp.ClientTimeout(total=10.0)
AT_ONCE = 500
"""Objects in one question; vCenter takes at most 2,000."""
LIFE = 300.0
"""Seconds after which the name of a tag is read again."""

T = TypeVar("T")
Objects = Mapping[str, str]
"""Managed object types (HostSystem, ...) by moref."""


class _TaggedObject(msgspec.Struct):
    id: str


class _Attached(msgspec.Struct):
    object_id: _TaggedObject
    tag_ids: list[str] | None = None


class _Tag(msgspec.Struct):
    name: str
    category_id: str


class _Category(msgspec.Struct):
    name: str


class TagReader:
    """Reads tags from one vCenter, logged in as the settings say. `close` it."""

    def __init__(self, settings: VSphereSettings) -> None:
        url = urlsplit(settings.url or "")
        self._settings, self._base = settings, f"{url.scheme}://{url.netloc}"
        self.address = address_of(url)
        self._door = f"{self.address}: tags"  # the REST API may refuse what the SOAP API takes, and the other way round
        self._http: aiohttp.ClientSession | None = None
        self._session = ""
        self._tags: dict[str, tuple[str, str]] = {}
        self._categories: dict[str, str] = {}
        self._read_at = 0.0
        self._ambiguous: set[tuple[str, str]] = set()
        self._last: dict[str, dict[str, str]] | None = None
        self._failure = ""

    async def read(self, objects: Objects) -> dict[str, dict[str, str]] | None:
        """As `read_now`; where that fails, which is logged once, the last tags, None before the first ones.

        Raises nothing but InputError.
        """
        try:
            self._last = await self.read_now(objects)
        except (Refused, Unreachable) as error:
            if str(error) != self._failure:
                log.warning("tags not read", reason=str(error))
            self._failure = str(error)
        else:
            self._failure = ""
        return self._last

    async def read_now(self, objects: Objects) -> dict[str, dict[str, str]]:
        """By moref, the name of the tag by the name of its category. Raises InputError, Refused or Unreachable."""
        attached = {ref: sorted(ids) for ref, ids in (await self._attached(objects)).items() if ids}
        await self._learn(sorted({id_ for ids in attached.values() for id_ in ids}))
        return {ref: self._by_category(ref, ids) for ref, ids in attached.items()}

    async def close(self) -> None:
        """Log out."""
        if self._http is None:
            return
        if self._session:
            with suppress(aiohttp.ClientError, TimeoutError, OSError):
                await self._http.delete(self._base + SESSION, headers=self._headers(), timeout=TIMEOUT)
        await self._http.close()
        self._http, self._session = None, ""

    async def _attached(self, objects: Objects) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        refs = sorted(objects)
        for begin in range(0, len(refs), AT_ONCE):
            asked = [{"id": ref, "type": objects[ref]} for ref in refs[begin : begin + AT_ONCE]]
            path = f"{TAGGING}/tag-association?~action=list-attached-tags-on-objects"
            answer = await self._ask("POST", path, list[_Attached] | None, {"object_ids": asked})
            found.update({each.object_id.id: each.tag_ids or [] for each in answer or ()})
        return found

    async def _learn(self, ids: Sequence[str]) -> None:
        """Read the names of these tags and their categories; all again after `LIFE`, for they may have been renamed."""
        now = time.monotonic()
        if now - self._read_at > LIFE:
            self._tags, self._categories, self._read_at = {}, {}, now
        for id_ in ids:
            if id_ in self._tags:
                continue
            tag = await self._ask("GET", f"{TAGGING}/tag/id:{quote(id_)}", _Tag)
            if tag.category_id not in self._categories:
                category = await self._ask("GET", f"{TAGGING}/category/id:{quote(tag.category_id)}", _Category)
                self._categories[tag.category_id] = category.name
            self._tags[id_] = tag.name, tag.category_id

    def _by_category(self, ref: str, ids: Iterable[str]) -> dict[str, str]:
        names: dict[str, list[str]] = {}
        for id_ in ids:
            name, category = self._tags[id_]
            names.setdefault(self._categories[category], []).append(name)
        for category, several in names.items():
            if len(several) > 1 and (ref, category) not in self._ambiguous:
                self._ambiguous.add((ref, category))
                log.warning("tags not used", object=ref, category=category, reason=f"it has {len(several)} of them")
        return {category: several[0] for category, several in sorted(names.items()) if len(several) == 1}

    async def _ask(self, method: str, path: str, type_: Any, body: object = None) -> Any:
        """The `value` of an answer, after a new login if the session has ended."""
        for attempt in range(2):
            if not self._session:
                await self._log_in()
            status, data = await self._send(method, path, self._headers(), body)
            if status != 401 or attempt:
                break
            self._session = ""
        self._check(status, "no right to read them, or no such API")
        return self._value(data, type_)

    def _check(self, status: int, refusal: str) -> None:
        if status >= 500:
            raise Unreachable(f"vCenter {self.address}: tags: {status}")
        if status != 200:
            raise Refused(f"vCenter {self.address}: tags: {refusal} ({status})")

    async def _log_in(self) -> None:
        username, password = credentials(self._settings)
        logins.check(self._door, username, password)
        basic = base64.b64encode(f"{username}:{password}".encode()).decode()
        status, data = await self._send("POST", SESSION, {"Authorization": f"Basic {basic}"})
        if status == 401:
            raise logins.refused(self._door, username, password)
        self._check(status, "no login at the REST API")
        self._session = self._value(data, str)

    async def _send(self, method: str, path: str, headers: Mapping[str, str], body: object = None) -> tuple[int, bytes]:
        if self._http is None:
            # Without a cookie jar: vCenter sends the session id as a cookie as well.
            connector = aiohttp.TCPConnector(ssl=tls_context(self._settings))
            self._http = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        try:
            async with self._http.request(
                method, self._base + path, headers=headers, json=body, timeout=TIMEOUT
            ) as response:
                return response.status, await response.read()
        except TimeoutError:
            raise Unreachable(f"vCenter {self.address}: tags: no answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            why = one_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__
            raise Unreachable(f"vCenter {self.address}: tags: {why}") from error

    def _value(self, data: bytes, type_: type[T]) -> T:
        envelope = msgspec.defstruct("Envelope", [("value", type_)])
        try:
            value: T = msgspec.json.decode(data, type=envelope).value  # type: ignore[attr-defined]
        except msgspec.DecodeError as error:
            raise Refused(f"vCenter {self.address}: tags: not an answer of the REST API: {error}") from error
        return value

    def _headers(self) -> dict[str, str]:
        return {"vmware-api-session-id": self._session}
