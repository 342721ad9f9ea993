"""The OpenAPI 3.1 document of the worker's HTTP: every route, what it takes and what it answers.

In: the table of operations, the structs of the documents. Out: plain data, which is `docs/reference/openapi.json`.
A test compares the table with the routes of a worker, another one asks all of them what the document allows.
"""

from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from underhost.agents.http.api import SUBJECTS
from underhost.agents.http.applying import LAST, MAINTENANCE, MaintenanceRequest
from underhost.agents.http.applying import PATH as REPAIR_APPLY
from underhost.agents.http.doors.rights import RIGHTS, Asked
from underhost.agents.http.doors.session import PATH, SignIn
from underhost.agents.http.extender import PREFIX, VERBS
from underhost.agents.http.plans import OBJECTS, STEPS, PlanRequest
from underhost.agents.http.repairs import MaintainRequest, RepairRequest
from underhost.agents.whatif.steps import HOST, NODE
from underhost.agents.whatif.steps import STEPS as STEP_NAMES
from underhost.schemas import documents, extender, page
from underhost.schemas.json_schema import REF, schemas_of

VERSION = "3.1.0"
JSON = "application/json"
DESCRIPTION = (
    "What a worker of Underhost shows, and the questions that it answers. Only repairs and maintenance that are "
    "carried out, and the verbs of the extender, change anything. Where `web.tokenFile` is set, whatever costs more "
    "than reading what is held needs the token. Every error is an `ErrorDocument`. What one client may cost is "
    "bounded: 429 and 503 mean that asking again later helps."
)
WHY = {
    400: "No HTTP, or no such question.",
    401: "The token is needed, or a client certificate.",
    403: "A page of another site asks, or somebody with another token, or binding without one.",
    404: "There is no such site, pod, node, host or file.",
    405: "The route has other methods.",
    408: "The body was not sent in time.",
    413: "The body is too large.",
    415: "The body is no plain JSON.",
    421: "The host name is not served: see `web.hosts`.",
    422: "It cannot be done as it is asked, or would cost too much.",
    429: "This client has its share under way; ask again.",
    503: "It cannot be answered now; ask again.",
}
ALWAYS = (400, 403, 405, 421)
WITH_BODY = (408, 413, 415)
BEARER = "token"
SECURITY: dict[Asked, list[dict[str, list[str]]]] = {
    Asked.READ: [{}, {BEARER: []}],
    Asked.ASK: [{}, {BEARER: []}],
    Asked.BIND: [{BEARER: []}],
}
"""What is to be shown, by what the door asks for: where no token is configured, all but binding goes without."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query, or one that is in the path."""

    name: str
    about: str
    place: str = "query"


SITE = Parameter("site", "The site; absent, the worker's own.")
AT = Parameter("at", "The moment: RFC 3339, or `10m` for ten minutes ago; absent, now.")
SINCE = Parameter("since", "The version that the follower has seen.")
SUBJECT = Parameter("subject", f"What it is about: {SUBJECTS}; absent, the site.")
NAMESPACE = Parameter("namespace", "The namespace of the pod.", "path")
POD = Parameter("name", "The name of the pod.", "path")
NODE_NAME = Parameter("name", "The name of the node.", "path")
HOST_ID = Parameter("name", "The id of the host, as the map has it.", "path")
FILE = Parameter("name", "A file of the page.", "path")
PODS = Parameter("pods", "`named`: of the pods only those that wait or that a finding names; absent, all of them.")
NODES = Parameter("node", "Only this node and its pods; may be given 200 times.")
REPAIR = Parameter("id", "The id of the repair.", "path")
RUN = Parameter("id", "The id of the maintenance.", "path")
RUNBOOK = Parameter("name", "The name of an alert.", "path")


@dataclass(frozen=True)
class Operation:
    """One method of one route. `answer` is the struct of its document, or of each status; a text is a media type."""

    path: str
    summary: str
    answer: type[Struct] | str | dict[int, Any]
    errors: tuple[int, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    method: str = "get"
    body: type[Struct] | None = None

    @property
    def right(self) -> Asked:
        """What its door asks for."""
        return RIGHTS[f"{self.method.upper()} {self.path}"]

    def answers(self) -> dict[int, Any]:
        """What it answers, by status."""
        given = self.answer if isinstance(self.answer, dict) else {200: self.answer}
        asked = () if self.right is Asked.OPEN else (401,)
        more = (*ALWAYS, *asked, *self.errors, *(WITH_BODY if self.body is not None else ()))
        return dict(sorted({**dict.fromkeys(more, page.ErrorDocument), **given}.items()))


class HostPriorities(Struct):
    """Of the extender's prioritize; it stands for a list of them."""

    of: list[extender.HostPriority]


ANSWERS: dict[str, type[Struct]] = {
    "filter": extender.ExtenderFilterResult,
    "prioritize": HostPriorities,
    "preempt": extender.ExtenderPreemptionResult,
    "bind": extender.ExtenderBindingResult,
}
"""By verb of the extender, the form of its answer."""

GONE = (404, 503)
OPERATIONS: tuple[Operation, ...] = (
    Operation("/healthz", "Does the worker live?", page.HealthDocument),
    Operation("/readyz", "Is it ready?", {200: page.ReadinessDocument, 503: page.ReadinessDocument}),
    Operation("/metrics", "What it counts, as Prometheus reads it.", "text/plain"),
    Operation("/", "The page.", {200: "text/html", 304: None}),
    Operation("/static/{name}", "The files of the page.", {200: "*/*", 304: None}, (404,), (FILE,)),
    Operation("/runbooks/{name}", "A runbook of the package.", {200: "text/html", 304: None}, (404,), (RUNBOOK,)),
    Operation(PATH, "Is somebody signed in?", page.SessionDocument),
    Operation(PATH, "Sign in with the token: a cookie.", page.SessionDocument, (422,), (), "post", SignIn),
    Operation(PATH, "Sign out.", page.SessionDocument, (), (), "delete"),
    Operation("/api/v1/sites", "The sites.", page.SiteList),
    Operation("/api/v1/severities", "The severities, worst first.", page.SeverityList),
    Operation(
        "/api/v1/map",
        "Which pod is on which node on which host.",
        page.SiteMap,
        (*GONE, 422, 429),
        (SITE, AT, PODS, NODES),
    ),
    Operation("/api/v1/findings", "What is wrong.", page.OpenFindings, (*GONE, 422, 429), (SITE, AT)),
    Operation("/api/v1/activity", "What happened lately.", page.History, (*GONE, 422), (SITE, SUBJECT)),
    Operation("/api/v1/history", "Since when moments can be told.", page.HistoryRange, (*GONE, 429), (SITE,)),
    Operation(
        "/api/v1/pods/{namespace}/{name}",
        "One pod, with every rule's word on every node.",
        page.PodDetail,
        (*GONE, 422, 429),
        (NAMESPACE, POD, SITE, AT),
    ),
    Operation("/api/v1/nodes/{name}", "One node.", page.NodeDetail, (*GONE, 422, 429), (NODE_NAME, SITE, AT)),
    Operation("/api/v1/hosts/{name}", "One ESXi host.", page.HostDetail, (*GONE, 422, 429), (HOST_ID, SITE, AT)),
    Operation("/api/v1/events", "What changes, as it does.", "text/event-stream", (*GONE, 429), (SITE, SINCE)),
    Operation("/api/v1/snapshot", "The picture of a site to take away.", "application/gzip", (*GONE, 429), (SITE,)),
    Operation(
        "/api/v1/whatif",
        "What a plan would do. It changes nothing.",
        {200: (documents.WhatIf, documents.WhatIfList)},
        (*GONE, 422, 429),
        (SITE,),
        "post",
        PlanRequest,
    ),
    Operation(
        "/api/v1/repair",
        "The fewest moves that leave nothing broken. It changes nothing.",
        documents.RepairPlan,
        (*GONE, 422, 429),
        (SITE,),
        "post",
        RepairRequest,
    ),
    Operation(
        REPAIR_APPLY,
        "Carry a repair out.",
        documents.RepairProgress,
        (*GONE, 422),
        (SITE,),
        "post",
        RepairRequest,
    ),
    Operation(REPAIR_APPLY + "/{id}", "How far a repair is.", documents.RepairProgress, (404,), (REPAIR,)),
    Operation(
        "/api/v1/maintain",
        "The shortest order in which hosts can be emptied. It changes nothing.",
        documents.MaintenancePlan,
        (*GONE, 422, 429),
        (SITE,),
        "post",
        MaintainRequest,
    ),
    Operation(
        MAINTENANCE,
        "Carry maintenance of hosts out.",
        documents.MaintenanceProgress,
        (*GONE, 422),
        (SITE,),
        "post",
        MaintenanceRequest,
    ),
    Operation(LAST, "How far the last maintenance is.", page.LastMaintenance),
    Operation(MAINTENANCE + "/{id}", "How far a maintenance is.", documents.MaintenanceProgress, (404,), (RUN,)),
    Operation(f"{PREFIX}/readyz", "Does this worker answer?", page.ReadinessDocument, (503,)),
    *(
        Operation(f"{PREFIX}/{verb}", f"kube-scheduler asks: {verb}.", ANSWERS[verb], (503,), (), "post", form)
        for verb, (form, _) in VERBS.items()
    ),
)


def document(version: str) -> dict[str, Any]:
    """The whole document; `version` is Underhost's."""
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = _operation(one)
    schemas = schemas_of(_structs())
    schemas[PlanRequest.__name__] |= _plan(schemas[PlanRequest.__name__])
    schemas[HostPriorities.__name__] = schemas[HostPriorities.__name__]["properties"]["of"]
    return {
        "openapi": VERSION,
        "info": {
            "title": "Underhost",
            "version": version,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8080", "description": "Where `web.listen` says."}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {BEARER: {"type": "http", "scheme": "bearer"}}},
    }


def _structs() -> list[type[Struct]]:
    """Every struct that the table names."""
    found: list[type[Struct]] = []
    for one in OPERATIONS:
        for answer in (one.body, *one.answers().values()):
            found += [each for each in _each(answer) if isinstance(each, type)]
    return found


def _operation(one: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": _name(one), "summary": one.summary}
    if one.parameters:
        found["parameters"] = [_parameter(each) for each in one.parameters]
    if one.right is not Asked.OPEN:
        found["security"] = SECURITY[one.right]
    if one.body is not None:
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": {"$ref": REF + one.body.__name__}}}}
    found["responses"] = {str(status): _answer(status, answer) for status, answer in one.answers().items()}
    return found


def _name(one: Operation) -> str:
    """`get-api-v1-pods`: unique, and a name that generators of clients take."""
    parts = [part for part in one.path.strip("/").split("/") if part and not part.startswith("{")]
    return "-".join([one.method, *(parts or ["page"])])


def _parameter(one: Parameter) -> dict[str, Any]:
    required = {"required": True} if one.place == "path" else {}
    return {"name": one.name, "in": one.place, "description": one.about, **required, "schema": {"type": "string"}}


def _each(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _answer(status: int, answer: Any) -> dict[str, Any]:
    if answer is None:
        return {"description": "As it is known already."}
    about = WHY.get(status, "The answer.") if answer is page.ErrorDocument else "The answer."
    if isinstance(answer, str):
        return {"description": about, "content": {answer: {}}}
    schemas = [{"$ref": REF + each.__name__} for each in _each(answer)]
    return {
        "description": about,
        "content": {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}},
    }


def _plan(schema: dict[str, Any]) -> dict[str, Any]:
    """What the struct of a plan cannot say of itself."""
    step = {name: {"type": "string", "minLength": 1} for name in STEP_NAMES if name != "add"}
    step["add"] = {"type": "array", "items": {"type": "object"}, "maxItems": OBJECTS}
    steps = {
        "type": "array",
        "maxItems": STEPS,
        "items": {
            "type": "object",
            "properties": step,
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    }
    each = {"type": "string", "enum": ["", HOST, NODE]}
    return {"properties": {**schema["properties"], "steps": steps, "each": each}}
