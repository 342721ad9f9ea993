"""The leases of one namespace (coordination.k8s.io/v1): who holds each, for how long, and in which term.

In: a client and a namespace. Out: `Lease` records, read and written. A write names the resourceVersion that it
replaces, so of two at once one is a Conflict. Every call ends by its deadline, credentials' plugins included. Whose
lease it is to be, the election decides.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct

from underhost.schemas.errors import Forbidden, Gone, Refused, Unreachable
from underhost.streams.kubernetes.client import KubernetesClient

API = "coordination.k8s.io/v1"
RIGHTS = "get, create and update"
"""The verbs that whoever seeks a lease needs."""


class Lease(NamedTuple):
    """One lease.

    Attributes:
        holder: the identity of the worker that holds it, "" where nobody does.
        term: the API's `leaseTransitions`: it grows whenever somebody begins to hold the lease.
        seconds: for how long after its last change the holder may count on it.
        acquired: when its holder began to hold it, RFC 3339; "" where nobody has.
        version: its resourceVersion; "" where it is not there yet.
    """

    holder: str
    term: int
    seconds: int
    acquired: str = ""
    version: str = ""


class _Meta(Struct, rename="camel"):
    resource_version: str = ""


class _Spec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None


class _Live(Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Leases:
    """The leases of a namespace. A call that takes longer than `deadline` seconds is Unreachable."""

    def __init__(self, client: KubernetesClient, namespace: str, *, deadline: float) -> None:
        self._client, self._deadline = client, deadline
        self.namespace = namespace
        self._folder = f"/apis/{API}/namespaces/{quote(namespace, safe='')}/leases"

    async def get(self, name: str) -> Lease | None:
        """The lease as it is now, None where it is not there. Raises Forbidden, Refused, Retry or Unreachable."""
        try:
            return self._read(await self._call("GET", f"{self._folder}/{quote(name, safe='')}"))
        except Gone:
            return None

    async def put(self, name: str, lease: Lease) -> Lease:
        """Write the lease in the place of the one of its `version`; as the server has it then.

        One that somebody has deleted is created again. Raises Conflict where another version is there, Gone where the
        namespace is not, Forbidden (the text says what to grant), Refused, Retry or Unreachable.
        """
        metadata = {"name": name, "namespace": self.namespace}
        spec = {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": lease.seconds,
            "leaseTransitions": lease.term,
            "acquireTime": lease.acquired or None,
            "renewTime": moment(),
        }
        body = {"apiVersion": API, "kind": "Lease", "metadata": metadata, "spec": spec}
        if not lease.version:
            return self._read(await self._call("POST", self._folder, body))
        metadata["resourceVersion"] = lease.version
        return self._read(await self._call("PUT", f"{self._folder}/{quote(name, safe='')}", body))

    async def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> bytes:
        try:
            async with asyncio.timeout(self._deadline):
                return await self._client.call(method, path, body=body)
        except TimeoutError:
            raise Unreachable(f"{self._client.server}: no answer within {self._deadline:g} s") from None
        except Forbidden as error:
            raise Forbidden(f"{error}; grant {RIGHTS} on leases in namespace {self.namespace}") from error

    def _read(self, data: bytes) -> Lease:
        try:
            live = msgspec.json.decode(data, type=_Live)
        except msgspec.DecodeError as error:
            raise Refused(f"{self._client.server}: not an answer of the API: {error}") from error
        spec = live.spec
        return Lease(
            spec.holder_identity or "",
            spec.lease_transitions or 0,
            spec.lease_duration_seconds or 0,
            spec.acquire_time or "",
            live.metadata.resource_version,
        )


def moment() -> str:
    """Now, in the API's MicroTime. It is for people who look: nobody compares it with a clock."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
