"""`/api/v1/pods`, `/nodes` and `/hosts`: one object, what is asked of it and what stands in its way. Read only.

In: the picture of a site, now or at a moment (`at=`); activity logs, the evaluator's `explain`. Out: the documents of
`schemas/page.py`. Each is worked out in a thread, one at a time, from the same snapshot that the map shows.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from aiohttp import web

from underhost.agents.http.budgets.places import ClientPlaces
from underhost.agents.http.doors.rights import PAST
from underhost.agents.http.feeds import ChangeFeeds
from underhost.agents.http.guard import RequestRefused
from underhost.agents.http.history import PastSites, document
from underhost.agents.http.map_rows import MapRows
from underhost.agents.schedule.explain import explain
from underhost.agents.site import terms
from underhost.agents.site.fault import Fault
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.requests import PODS, allocatable, request_of
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import PodVerdict
from underhost.schemas.kubernetes import Pod
from underhost.schemas.page import HostDetail, MachineVm, NodeCondition, NodeDetail, PodDetail

REMEMBERED = 32
"""Explanations that are kept of one snapshot: each speaks of every node."""
WAITING, EACH = 8, 6
"""Answers that may wait for their turn, and those of one client: a browser has six connections."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="sorted")


def routes(feeds: ChangeFeeds, options: Options, past_sites: PastSites) -> list[web.RouteDef]:
    """The routes; `past_sites` answers for `at=`."""
    answers = _Answers(options)

    async def picture(request: web.Request, site: str) -> tuple[Snapshot, MapRows]:
        """The site as it is, or was, with its rows. Raises RequestRefused, InputError."""
        if PAST in request.query:
            return await past_sites.moment(request, site, request.query[PAST])
        return await feeds.wanted(site).picture()

    async def pod(request: web.Request) -> web.Response:
        site = request.query.get("site", feeds.default())
        name = f"{request.match_info['namespace']}/{request.match_info['name']}"
        snapshot, rows = await picture(request, site)
        row, named = rows.pod(name), rows.findings_of(name)
        if row is None:
            raise RequestRefused(404, f"pod {name}: not in site {site}, or finished")
        host = rows.host_of(row)
        if name not in snapshot.pods:
            raise RequestRefused(404, f"pod {name}: gone")
        verdict = await answers.verdict(request, snapshot, name)
        found = snapshot.pods[name]
        history = feeds.activity_log(site).of_pod(name, row.node)
        asked = _asked([found], count=False)
        detail = PodDetail(site, row, host, found.spec.scheduler_name, verdict, named, history, asked)
        return document(_encoder.encode(detail))

    async def node(request: web.Request) -> web.Response:
        site, name = request.query.get("site", feeds.default()), request.match_info["name"]
        snapshot, _ = await picture(request, site)
        if name not in snapshot.nodes:
            raise RequestRefused(404, f"node {name}: not in site {site}")
        detail = await answers.do(request, lambda: node_detail(site, snapshot, name))
        detail.history = feeds.activity_log(site).of(f"node/{name}")
        return document(_encoder.encode(detail))

    async def host(request: web.Request) -> web.Response:
        site, ref = request.query.get("site", feeds.default()), request.match_info["name"]
        snapshot, _ = await picture(request, site)
        if ref not in snapshot.hosts:
            raise RequestRefused(404, f"host {ref}: not in site {site}")
        return document(_encoder.encode(await answers.do(request, lambda: host_detail(site, snapshot, ref))))

    return [
        web.get("/api/v1/pods/{namespace}/{name:.+}", pod),
        web.get("/api/v1/nodes/{name:.+}", node),
        web.get("/api/v1/hosts/{name:.+}", host),
    ]


def node_detail(site: str, snapshot: Snapshot, name: str) -> NodeDetail:
    """What a node is and has, how much of that is asked for. A field that breaks the API's rules is left out."""
    node, joined = snapshot.nodes[name], snapshot.node_hosts.get(name)
    vm = snapshot.vms.get(joined.vm) if joined is not None else None
    there = _or_none(lambda: allocatable(node.status.allocatable)) or {}
    taints = _or_none(lambda: terms.taints(node.spec.taints)) or ()
    return NodeDetail(
        site,
        name,
        vm=MachineVm(vm.name, vm.cpus, vm.memory_mib, vm.power) if vm is not None else None,
        allocatable={resource: amount for resource, amount in there.items() if amount},
        asked=_asked(_running(snapshot, {name})),
        taints=[f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in taints],
        conditions=[NodeCondition(each.type, each.status, each.reason or "") for each in node.status.conditions or ()],
    )


def host_detail(site: str, snapshot: Snapshot, ref: str) -> HostDetail:
    """How large a host is, which VMs of nodes are on it, and what their pods ask for."""
    host = snapshot.hosts[ref]
    nodes = {name: joined for name, joined in snapshot.node_hosts.items() if joined.host == ref}
    vms = [snapshot.vms[joined.vm] for joined in nodes.values() if joined.vm in snapshot.vms]
    return HostDetail(
        site,
        ref,
        cpu_mhz=host.cpu_mhz,
        memory_mib=host.memory_mib,
        vms=[MachineVm(vm.name, vm.cpus, vm.memory_mib, vm.power) for vm in sorted(vms, key=lambda vm: vm.name)],
        asked=_asked(_running(snapshot, nodes.keys())),
    )


def _running(snapshot: Snapshot, nodes: Iterable[str]) -> Iterator[Pod]:
    """The pods that take room on these nodes."""
    wanted = set(nodes)
    for pod in snapshot.pods.values():
        if pod.spec.node_name in wanted and pod.status.phase not in FINISHED:
            yield pod


def _asked(pods: Iterable[Pod], *, count: bool = True) -> dict[str, int]:
    """What pods ask for together in whole units (cpu: thousandths), with their number where `count` says so."""
    total: Counter[str] = Counter()
    for pod in pods:
        request = _or_none(lambda pod=pod: request_of(pod))  # type: ignore[misc]
        total.update(request.held if request is not None else {})
        total.update({PODS: 1} if count else {})
    return dict(total)


def _or_none(read: Callable[[], T]) -> T | None:
    """What is read; None where a field breaks the API's rules."""
    try:
        return read()
    except Fault:
        return None


class _Answers:
    """Works answers out, one after another, and remembers the last verdicts of a snapshot."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="details")
        self._places = ClientPlaces(WAITING, EACH, "other explanations are being worked out")
        self._snapshot: Snapshot | None = None
        self._known: OrderedDict[str, PodVerdict] = OrderedDict()

    async def do(self, request: web.Request, work: Callable[[], T]) -> T:
        """What the work gives. Raises RequestRefused if busy, and what it raises."""
        with self._places.place(request):
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def verdict(self, request: web.Request, snapshot: Snapshot, pod: str) -> PodVerdict:
        """The verdict on a pod. Raises InputError for an object that breaks the API's rules, RequestRefused if busy."""
        if snapshot is not self._snapshot:
            self._snapshot, self._known = snapshot, OrderedDict()
        if pod in self._known:
            return self._known[pod]
        explained = await self.do(request, lambda: explain(snapshot, self._options, [pod]))
        verdict = explained.pods[pod]
        if snapshot is self._snapshot:
            self._known[pod] = verdict
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return verdict
