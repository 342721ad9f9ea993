"""Many nodes and many pods on a real API server, made fast, and the server's own log of what was then done to them.

Everything is asked by plain HTTP, not by the product's clients. `create` posts objects. `fill` puts them straight into
etcd, a large site in a minute and not in an hour: the API server reads JSON from its storage as well as its own
encoding. It must start after that, or it would learn of each object by a watch.
"""

import asyncio
import base64
import json
import ssl
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from support.processes.kube import ADMIN_TOKEN, Kube
from support.processes.kwok import HOST_LABEL

AT_ONCE = 32
STORED_BYTES, STORED = 700_000, 100
"""Bounds of one transaction of etcd, which takes 1.5 MiB and 128 operations."""
PLACES = {"Pod": "pods", "Node": "minions", "Namespace": "namespaces"}
"""Where etcd has objects of a kind."""
Object = dict[str, Any]


def inventory(nodes: Iterable[Object]) -> Object:
    """The vSphere side of these nodes: a VM for each, on the host that its label names."""
    hosts = sorted({node["metadata"]["labels"][HOST_LABEL] for node in nodes})
    vms = [
        {
            "name": node["metadata"]["name"],
            "id": f"vm-{number}",
            "uuid": node["spec"]["providerID"].removeprefix("vsphere://"),
            "host": node["metadata"]["labels"][HOST_LABEL],
        }
        for number, node in enumerate(nodes)
    ]
    return {"kind": "Inventory", "hosts": [{"name": name, "cluster": "C0"} for name in hosts], "vms": vms}


def create(kube: Kube, path: str, bodies: Iterable[Object]) -> None:
    """POST every body to the path, so many at a time. Fails with the first refusal."""
    asyncio.run(_create(kube, path, list(bodies)))


async def _create(kube: Kube, path: str, bodies: list[Object]) -> None:
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=ssl.create_default_context(cafile=str(kube.ca)))
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "User-Agent": "Python-urllib crowd"}
    left = iter(bodies)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work() -> None:
            for body in left:
                async with session.post(kube.server + path, json=body) as answer:
                    assert answer.status == 201, await answer.text()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(work())


def fill(etcd: str, objects: Iterable[Object]) -> int:
    """Store the objects through etcd's JSON gateway; how many bytes they are."""
    total = 0
    for batch in _batches(objects):
        operations = [{"requestPut": {"key": _coded(key), "value": _coded(value)}} for key, value in batch]
        request = urllib.request.Request(f"{etcd}/v3/kv/txn", json.dumps({"success": operations}).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["succeeded"]
        total += sum(len(value) for _, value in batch)
    return total


def _batches(objects: Iterable[Object]) -> Iterator[list[tuple[bytes, bytes]]]:
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for one in objects:
        value = json.dumps(one, separators=(",", ":")).encode()
        if batch and (size + len(value) > STORED_BYTES or len(batch) == STORED):
            yield batch
            batch, size = [], 0
        batch.append((_key(one), value))
        size += len(value)
    if batch:
        yield batch


def _key(one: Object) -> bytes:
    metadata = one["metadata"]
    parts = ("registry", PLACES[one["kind"]], metadata.get("namespace"), metadata["name"])
    return ("/" + "/".join(filter(None, parts))).encode()


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class _Target(msgspec.Struct, gc=False):
    """What was written; a pod's binding is a subresource of it."""

    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def path(self) -> str:
        """`pods`, or `pods/binding`."""
        return "/".join(filter(None, (self.resource, self.subresource)))


class _Answer(msgspec.Struct, gc=False):
    """What the server said to it."""

    code: int


class LoggedWrite(msgspec.Struct, gc=False, rename="camel"):
    """One line of the log, as far as anybody asks."""

    verb: str
    object_ref: _Target
    response_status: _Answer
    request_received_timestamp: str
    stage_timestamp: str


_line = msgspec.json.Decoder(LoggedWrite)


@dataclass
class WriteLog:
    """The API server's log of writes of pods, bindings, statuses and events; read on from where it was left.

    `level` Metadata tells who and what; nothing is asked of the server for it. A bench looks several times a second
    while it measures, and leaves hundred thousands of lines: a look takes no longer for them, nor do collections.
    """

    path: Path
    events: list[LoggedWrite] = field(default_factory=list)
    _done: dict[tuple[str, str, str], list[LoggedWrite]] = field(default_factory=dict)
    _read: int = 0
    _rest: bytes = b""

    def flags(self) -> list[str]:
        """The flags of kube-apiserver that make it write the log."""
        resources = [
            {"group": "", "resources": ["pods", "pods/binding", "pods/status", "bindings", "events"]},
            {"group": "events.k8s.io", "resources": ["events"]},
        ]
        rules = [
            {
                "level": "Metadata",
                "verbs": ["create", "patch", "update", "delete"],
                "resources": resources,
                "omitStages": ["RequestReceived"],
            },
            {"level": "None"},
        ]
        policy = self.path.with_name("write-policy.json")
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.path}"]

    def read(self) -> list[LoggedWrite]:
        """Every event so far."""
        with self.path.open("rb") as log:
            log.seek(self._read)
            data = log.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for event in map(_line.decode, lines):
            self.events.append(event)
            if event.response_status.code < 300:
                place = event.verb, event.object_ref.path, event.object_ref.namespace
                self._done.setdefault(place, []).append(event)
        return self.events

    def writes(self, verb: str, resource: str, namespace: str) -> list[LoggedWrite]:
        """The events of successful writes to a resource (`pods`, `pods/binding`, ...), in the order of the log."""
        self.read()
        return list(self._done.get((verb, resource, namespace), ()))
