"""`/api/v1/repair` and `/api/v1/maintain`: the fewest moves that leave nothing broken, and the shortest order in which
hosts can be emptied. Nothing is written anywhere.

In: the body of a request, every field an option of `underhost repair` or of `underhost maintain` with its value; `at`
is a moment of the past. Out: a `RepairPlan`, a `MaintenancePlan`.
"""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.http.trials import Trial, Trials, decoded
from underhost.agents.planner.fleet import Room
from underhost.agents.planner.plan import repair
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.maintenance import Chosen, maintenance
from underhost.agents.whatif.steps import host_name
from underhost.schemas.documents import to_json
from underhost.schemas.errors import InputError

NAMES, LONGEST = 200, 1024
"""Names in one list of a request, and characters of one, at most."""

Name = Annotated[str, Meta(max_length=LONGEST)]
Names = Annotated[list[Name], Meta(max_length=NAMES)]
Number = Annotated[int, Meta(ge=0, le=1_000_000)]


class RepairRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What shall be repaired, and how; see `underhost repair --help`."""

    site: str = ""
    only: Names = []
    for_: Name = msgspec.field(name="for", default="")
    max_vmotions: Number | None = msgspec.field(name="maxVmotions", default=None)
    evictions: bool = True
    headroom: Annotated[int, Meta(ge=0, le=99)] = 0
    reserved: bool = False
    admission: bool = False
    at: str = ""


class MaintainRequest(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Which hosts have their turn, and how many of a cluster at a time; see `underhost maintain --help`."""

    site: str = ""
    all_hosts: bool = False
    clusters: Names = []
    hosts: Names = []
    at_once: Number = 0
    at: str = ""


_repairs = msgspec.json.Decoder(RepairRequest)
_maintenance = msgspec.json.Decoder(MaintainRequest)


def routes(trials: Trials) -> list[web.RouteDef]:
    """The routes."""

    async def repaired(request: web.Request) -> web.Response:
        return await trials.tried(request, lambda body: decoded(body, _repairs, _repair))

    async def maintained(request: web.Request) -> web.Response:
        return await trials.tried(request, lambda body: decoded(body, _maintenance, _maintain))

    return [web.post("/api/v1/repair", repaired), web.post("/api/v1/maintain", maintained)]


def terms_of(asked: RepairRequest) -> RepairTerms:
    """What is asked, as the planner takes it."""
    return RepairTerms(
        namespaces=frozenset(asked.only),
        finding=asked.for_,
        most_vmotions=asked.max_vmotions,
        evictions=RepairTerms().evictions if asked.evictions else None,
        room=Room(asked.headroom, asked.reserved, asked.admission),
    )


def _repair(asked: RepairRequest) -> Trial:
    terms = terms_of(asked)

    def answer(picture: Snapshot, options: Options, holder: Evaluator | None) -> bytes:
        return to_json(repair(picture, options, terms, holder))

    return Trial(asked.site, asked.at, answer)


def chosen_of(asked: MaintainRequest) -> Chosen:
    """Which hosts are meant. Raises InputError where none is."""
    if not (asked.all_hosts or asked.clusters or asked.hosts):
        raise InputError("no host is named: allHosts, clusters or hosts are expected")
    return Chosen(asked.all_hosts, tuple(asked.clusters), tuple(map(host_name, asked.hosts)), asked.at_once)


def _maintain(asked: MaintainRequest) -> Trial:
    chosen = chosen_of(asked)

    def answer(picture: Snapshot, options: Options, holder: Evaluator | None) -> bytes:
        return to_json(maintenance(picture, options, chosen, holder))

    return Trial(asked.site, asked.at, answer)
