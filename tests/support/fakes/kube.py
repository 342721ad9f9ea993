"""A small API server on loopback: list, paging, watch, bookmarks, expiry, throttling, labels, bindings, evictions.

Objects are plain dicts. Faults are items of the list `faults`: each is used once, by the next request that it fits.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web
from support.build import Built

from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.settings.clusters import KubernetesSettings

Object = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What one request meets.

    Attributes:
        verb: list, continue (a further page), at once (the whole of a long list), watch, get, patch, bind, evict or
            readyz. plural: of the resource, "" for any.
        status, headers, message, causes: answer so, with a Status object.
        page: answer 200 with this text, as a proxy does that asks people to sign in.
        error: on a watch: an ERROR event with this code, then the end.
        lines: on a watch: these raw lines, then the stream goes on.
        drop: cut the connection, of a watch after so many events, of a list after so many bytes.
        part: of a list: only so many objects and a token for the rest, whatever was asked for.
        silent: on a watch: send nothing, ever, and do not hang up.
        after: answer as ever, but not before so many such requests have come: (verb, plural, times).
    """

    verb: str
    plural: str = ""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "a fault was asked for"
    causes: tuple[str, ...] = ()
    page: str = ""
    error: int = 0
    lines: tuple[bytes, ...] = ()
    drop: int = -1
    part: int = 0
    silent: bool = False
    after: tuple[str, str, int] | None = None


class Request(NamedTuple):
    """A request as it came; `at` is the event loop's time."""

    verb: str
    plural: str
    query: dict[str, str]
    at: float


class FakeKube:
    """The state of the server. Use `serving` to run it."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.served = {kind.plural: kind for kind in KINDS if not kind.optional}
        self.token = ""
        """What a bearer token must be, "" when any will do."""
        self.hidden: set[str] = set()
        """Names of objects that lists leave out, though they are there: a broken server's answer."""
        self.url = ""
        self._objects: dict[str, dict[tuple[str, str], Object]] = defaultdict(dict)
        self._events: list[tuple[int, str, Object]] = []
        self._version = 100
        self._oldest = 0
        self._changed = asyncio.Condition()

    # ------------------------------------------------------------------------------------------- what a test changes
    def seed(self, plural: str, *objects: Built | Object) -> None:
        """Objects that were there before anybody watched."""
        for obj in objects:
            self._store(plural, obj)

    async def put(self, plural: str, one: Built | Object) -> Object:
        """Create the object, or replace it."""
        obj = one.sent() if isinstance(one, Built) else one
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        kind = "MODIFIED" if key in self._objects[plural] else "ADDED"
        stored = self._store(plural, obj)
        await self._emit(plural, kind, stored)
        return stored

    async def delete(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete the object; a watch sees its last state with a new version."""
        obj = self._objects[plural].pop((namespace, name))
        self._version += 1
        gone = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        await self._emit(plural, "DELETED", gone)

    async def bookmark(self, plural: str) -> None:
        """Tell watches how far they are."""
        await self._emit(plural, "BOOKMARK", {"metadata": {"resourceVersion": str(self._version)}})

    def compact(self) -> None:
        """Forget the events so far: who resumes from before now is told 410."""
        self._oldest = self._version

    def get(self, plural: str, name: str, namespace: str = "") -> Object:
        """The object as it is."""
        return self._objects[plural][namespace, name]

    def has(self, plural: str, name: str, namespace: str = "") -> bool:
        """Whether the object is there."""
        return (namespace, name) in self._objects[plural]

    def all(self, plural: str) -> dict[tuple[str, str], Object]:
        """Every object, by (namespace, name)."""
        return dict(self._objects[plural])

    def count(self, verb: str, plural: str = "") -> int:
        """How many such requests came."""
        return sum(1 for item in self.requests if item.verb == verb and plural in ("", item.plural))

    async def asked(self, verb: str, plural: str, times: int = 1) -> None:
        """Wait until so many such requests came."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: self.count(verb, plural) >= times)

    def _store(self, plural: str, one: Built | Object) -> Object:
        obj = one.sent() if isinstance(one, Built) else one
        self._version += 1
        metadata = {"uid": f"uid-{obj['metadata']['name']}", **obj["metadata"], "resourceVersion": str(self._version)}
        stored = {**obj, "metadata": metadata}
        self._objects[plural][metadata.get("namespace", ""), metadata["name"]] = stored
        return stored

    async def _emit(self, plural: str, type_: str, obj: Object) -> None:
        async with self._changed:
            version = int(obj["metadata"]["resourceVersion"])
            self._events.append((version, plural, {"type": type_, "object": obj}))
            self._changed.notify_all()

    # ------------------------------------------------------------------------------------------------- what it serves
    @asynccontextmanager
    async def serving(self) -> AsyncIterator["FakeKube"]:
        """Listen on a free port of the loopback."""
        app = web.Application()
        app.router.add_get("/version", self._about)
        app.router.add_get("/readyz", self._probe)
        app.router.add_get("/api/v1/nodes/{name}", self._get)
        app.router.add_patch("/api/v1/nodes/{name}", self._patch)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}", self._get)
        app.router.add_patch("/api/v1/namespaces/{namespace}/pods/{name}", self._merge)
        app.router.add_post("/api/v1/namespaces/{namespace}/pods/{name}/binding", self._bind)
        app.router.add_post("/api/v1/namespaces/{namespace}/pods/{name}/eviction", self._evict)
        for kind in KINDS:
            app.router.add_get(kind.path, self._collection)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = "http://{}:{}".format(*runner.addresses[0])
        try:
            yield self
        finally:
            await runner.cleanup()

    def settings(self, folder: Path, token: str = "secret") -> KubernetesSettings:
        """Settings with a kubeconfig in the folder that names this server."""
        path = folder / "kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                    "users": [{"name": "u", "user": {"token": token}}],
                    "contexts": [{"name": "fake", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "fake",
                }
            )
        )
        return KubernetesSettings(kubeconfig=path)

    async def _meet(self, request: web.Request, verb: str, plural: str) -> Fault | web.Response | None:
        """Note the request; the fault that it meets, or the answer that it gets for being who it is."""
        async with self._changed:
            self.requests.append(Request(verb, plural, dict(request.query), asyncio.get_running_loop().time()))
            self._changed.notify_all()
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized")
        for fault in self.faults:
            if fault.verb == verb and fault.plural in ("", plural):
                self.faults.remove(fault)
                if fault.after is not None:
                    await self.asked(*fault.after)
                    return None
                if fault.page:
                    return web.Response(text=fault.page, content_type="text/html")
                return _status(fault.status, fault.message, fault.headers, fault.causes) if fault.status else fault
        return None

    async def _about(self, request: web.Request) -> web.StreamResponse:
        met = await self._meet(request, "version", "")
        return met if isinstance(met, web.Response) else web.json_response({"gitVersion": "v1.36.3"})

    async def _probe(self, request: web.Request) -> web.StreamResponse:
        met = await self._meet(request, "readyz", "")
        return met if isinstance(met, web.Response) else web.Response(text="ok")

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rpartition("/")[2]
        watch = "watch" in request.query
        at_once = "at once" if "resourceVersionMatch" in request.query else "list"
        verb = "watch" if watch else "continue" if "continue" in request.query else at_once
        met = await self._meet(request, verb, plural)
        if isinstance(met, web.Response):
            return met
        if plural not in self.served:
            return web.Response(status=404, text="404 page not found")
        if watch:
            return await self._watch(request, plural, met)
        answer = self._list(request, plural, met.part if met is not None else 0)
        return answer if met is None or met.drop < 0 else await self._cut(request, answer, met.drop)

    async def _cut(self, request: web.Request, answer: web.Response, at: int) -> web.StreamResponse:
        assert request.transport is not None
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write((answer.body or b"")[:at])
        request.transport.close()
        return response

    def _list(self, request: web.Request, plural: str, part: int) -> web.Response:
        objects = [self._objects[plural][key] for key in sorted(self._objects[plural]) if key[1] not in self.hidden]
        begin = int(request.query.get("continue", "0"))
        end = begin + (part or int(request.query.get("limit") or len(objects) + 1))
        # As the API server does, items of a list carry neither kind nor apiVersion.
        items = [{key: obj[key] for key in obj if key not in ("kind", "apiVersion")} for obj in objects[begin:end]]
        metadata = {"resourceVersion": str(self._version)}
        if end < len(objects):
            metadata["continue"] = str(end)
        served = self.served[plural]
        head = {"kind": f"{served.kind}List", "apiVersion": served.api_version, "metadata": metadata}
        return web.Response(body=json.dumps({**head, "items": items}, separators=(",", ":")).encode())

    async def _watch(self, request: web.Request, plural: str, fault: Fault | None) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self._oldest:
            return _status(410, "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if fault is not None and fault.silent:
            await asyncio.Event().wait()
        for line in fault.lines if fault is not None else ():
            await response.write(line + b"\n")
        if fault is not None and fault.error:
            status = {"kind": "Status", "code": fault.error, "message": fault.message}
            await response.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            return response
        left = fault.drop if fault is not None else -1
        seen = 0
        while True:
            async with self._changed:
                while len(self._events) == seen and left != 0:
                    await self._changed.wait()
                fresh, seen = self._events[seen:], len(self._events)
            for version, where, event in fresh:
                if where != plural or version < since or (version == since and event["type"] != "BOOKMARK"):
                    continue
                if left == 0:
                    break
                left -= 1
                # As the API server does, objects of a watch carry what items of a list do not.
                kind = self.served[plural]
                said = {"kind": kind.kind, "apiVersion": kind.api_version, **event["object"]}
                await response.write(json.dumps({**event, "object": said}).encode() + b"\n")
            if left == 0:
                assert request.transport is not None
                request.transport.abort()
                return response

    async def _get(self, request: web.Request) -> web.StreamResponse:
        plural, namespace = _place(request)
        met = await self._meet(request, "get", plural)
        if isinstance(met, web.Response):
            return met
        obj = self._objects[plural].get((namespace, request.match_info["name"]))
        return web.json_response(obj) if obj is not None else _status(404, f"{plural} not found")

    async def _patch(self, request: web.Request) -> web.StreamResponse:
        """Server-side apply of labels, as far as ownership goes: what the manager owned and leaves out is removed."""
        met = await self._meet(request, "patch", "nodes")
        if isinstance(met, web.Response):
            return met
        if request.content_type == "application/json-patch+json":
            return await self._json_patch(request)
        assert request.content_type == "application/apply-patch+yaml"
        name, manager = request.match_info["name"], request.query["fieldManager"]
        body = json.loads(await request.text())
        node = self._objects["nodes"].get(("", name))
        if node is None:
            return _status(409, f"uid mismatch: {body['metadata']['uid']}, and no existing object was found")
        if node["metadata"]["uid"] != body["metadata"]["uid"]:
            return _status(422, "metadata.uid: Invalid value: field is immutable")
        wanted: dict[str, str] = body["metadata"]["labels"]
        managed = {entry["manager"]: set(_keys(entry)) for entry in node["metadata"].get("managedFields", [])}
        labels = dict(node["metadata"].get("labels", {}))
        foreign = set().union(*(keys for other, keys in managed.items() if other != manager))
        if request.query["force"] != "true" and any(labels.get(key) != wanted[key] for key in foreign & wanted.keys()):
            return _status(409, "Apply failed with 1 conflict")
        for key in managed.get(manager, set()) - wanted.keys():
            del labels[key]
        labels.update(wanted)
        others = {other: keys - wanted.keys() for other, keys in managed.items() if other != manager}
        entries = [_entry(other, keys) for other, keys in {**others, manager: set(wanted)}.items()]
        metadata = {**node["metadata"], "labels": labels, "managedFields": entries}
        return web.json_response(await self.put("nodes", {**node, "metadata": metadata}))

    async def _json_patch(self, request: web.Request) -> web.Response:
        """Tests, and replacement or removal of the taints."""
        node = self._objects["nodes"][("", request.match_info["name"])]
        for change in json.loads(await request.text()):
            *above, last = change["path"].strip("/").split("/")
            here = node = json.loads(json.dumps(node))
            for part in above:
                here = here[part]
            if change["op"] == "test" and here.get(last) != change["value"]:
                return _status(422, "the server rejected our request due to an error in our request")
            if change["op"] == "replace":
                here[last] = change["value"]
            elif change["op"] == "remove":
                del here[last]
        return web.json_response(await self.put("nodes", node))

    async def _merge(self, request: web.Request) -> web.Response:
        """A merge patch of a pod's labels, with its uid and resourceVersion as the precondition."""
        met = await self._meet(request, "patch", "pods")
        if isinstance(met, web.Response):
            return met
        assert request.content_type == "application/merge-patch+json"
        pod = self._objects["pods"].get((request.match_info["namespace"], request.match_info["name"]))
        if pod is None:
            return _status(404, "pods not found")
        given, metadata = json.loads(await request.text())["metadata"], pod["metadata"]
        if any(given[key] != metadata[key] for key in ("uid", "resourceVersion")):
            return _status(409, "the object has been modified; please apply your changes to the latest version")
        labels = {key: value for key, value in {**metadata["labels"], **given["labels"]}.items() if value is not None}
        return web.json_response(await self.put("pods", {**pod, "metadata": {**metadata, "labels": labels}}))

    async def _bind(self, request: web.Request) -> web.StreamResponse:
        met = await self._meet(request, "bind", "pods")
        if isinstance(met, web.Response):
            return met
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        body = json.loads(await request.text())
        pod = self._objects["pods"].get((namespace, name))
        if pod is None:
            return _status(404, "pod not found")
        if pod["metadata"]["uid"] != body["metadata"]["uid"]:
            return _status(409, "Precondition failed: UID in precondition does not match")
        if pod.get("spec", {}).get("nodeName"):
            return _status(409, "pod is already assigned to a node")
        spec = {**pod.get("spec", {}), "nodeName": body["target"]["name"]}
        labels = {**pod["metadata"].get("labels", {}), **body["metadata"].get("labels", {})}
        await self.put("pods", {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec})
        return _status(201, "")

    async def _evict(self, request: web.Request) -> web.StreamResponse:
        """The pod is being deleted from now on; its grace period never ends here."""
        met = await self._meet(request, "evict", "pods")
        if isinstance(met, web.Response):
            return met
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        body = json.loads(await request.text())
        assert (body["kind"], body["metadata"]) == ("Eviction", {"name": name, "namespace": namespace})
        pod = self._objects["pods"].get((namespace, name))
        if pod is None:
            return _status(404, "pod not found")
        if pod["metadata"]["uid"] != body["deleteOptions"]["preconditions"]["uid"]:
            return _status(409, "Precondition failed: UID in precondition does not match")
        metadata = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        await self.put("pods", {**pod, "metadata": metadata})
        return _status(201, "")


def _place(request: web.Request) -> tuple[str, str]:
    return ("pods", request.match_info["namespace"]) if "namespace" in request.match_info else ("nodes", "")


def _keys(entry: Object) -> list[str]:
    return [key[2:] for key in entry["fieldsV1"]["f:metadata"]["f:labels"]]


def _entry(manager: str, keys: set[str]) -> Object:
    fields = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in sorted(keys)}}}
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields}


def managed_by(manager: str, *keys: str) -> Object:
    """An entry of metadata.managedFields: these labels belong to the manager."""
    return _entry(manager, set(keys))


def _status(
    code: int, message: str, headers: Mapping[str, str] | None = None, causes: tuple[str, ...] = ()
) -> web.Response:
    body: Object = {"kind": "Status", "code": code, "message": message}
    if causes:
        body["details"] = {"causes": [{"reason": "DisruptionBudget", "message": cause} for cause in causes]}
    return web.json_response(body, status=code, headers=headers)
