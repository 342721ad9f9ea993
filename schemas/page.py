"""The JSON documents of the web API (`/api/v1`): what the page shows, for the page and for other programs.

Versioned like the documents of the commands. A default is left out, so that a site of twenty thousand pods stays small.
"""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType, field

from underhost.schemas.documents import API_VERSION, MaintenanceProgress, NotJudged, PodVerdict
from underhost.schemas.records import FindingEvent

SITE, OPTIONS = "X-Underhost-Site", "X-Underhost-Options"
"""Headers of a snapshot: its site, and how the worker judges it, as JSON."""


class _Row(Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Base of a row: camelCase on the wire, defaults left out."""


class PageDocument(Struct, rename="camel"):
    """Base of a document: camelCase on the wire."""


class MapHost(_Row, frozen=True):
    """An ESXi host. `state` is connected, maintenance or disconnected; `labels` as the inventory gives them."""

    id: str
    name: str
    cluster: str = ""
    state: str = "connected"
    labels: dict[str, str] = {}


class MapNode(_Row, frozen=True):
    """A node and the VM it is. `host` is the id of a host, "" while unknown; `vm` its name where that is another.

    `labels` are only those that name a place (zone, rack, pool, …). `since`: on this host since, RFC 3339. `pods`: how
    many are on it, told where the map does not hold them.
    """

    name: str
    host: str = ""
    vm: str = ""
    vm_ref: str = ""
    since: str = ""
    ready: bool = True
    cordoned: bool = False
    labels: dict[str, str] = {}
    pods: int = 0


class MapPod(_Row, frozen=True):
    """A pod that has not finished. `name` is `namespace/name`, `node` "" while it waits, `workload` `Kind/NAME`.

    `leaving`: it is being deleted. `pinned`: it belongs to its node (a DaemonSet's, or a mirror pod).
    """

    name: str
    node: str = ""
    workload: str = ""
    phase: str = "Running"
    ready: bool = True
    leaving: bool = False
    pinned: bool = False


class MapTotals(_Row, frozen=True):
    """How many pods a site has, how many of them do not belong to their node, and of how many workloads they are."""

    pods: int
    own: int
    workloads: int


class SiteMap(PageDocument):
    """`/api/v1/map`: which pod is on which node on which host. `version` is where `/api/v1/events` goes on.

    With `pods=named` it holds only the pods that wait or that a finding names, and `totals`; with `node=`, nothing but
    these nodes and their pods.
    """

    site: str
    version: str
    hosts: list[MapHost]
    nodes: list[MapNode]
    pods: list[MapPod]
    vsphere: bool
    totals: MapTotals | UnsetType = UNSET
    api_version: str = API_VERSION
    kind: str = "Map"


class OpenFindings(PageDocument):
    """`/api/v1/findings`: what is open now, each with its first time. `version` as in the map."""

    site: str
    version: str
    findings: list[FindingEvent]
    not_judged: list[NotJudged]
    api_version: str = API_VERSION
    kind: str = "Findings"


class FindingMark(_Row, frozen=True):
    """A finding opened or ended: `state` is opened or resolved, `at` RFC 3339."""

    at: str
    finding: str
    state: str
    severity: str


class HistoryRange(PageDocument):
    """`/api/v1/history`: every moment between these (RFC 3339) can be told, with `at=`.

    `marks`: when findings opened and ended, oldest first, the newest 2,000. `resolved`: the findings that have ended
    last, newest first.
    """

    site: str
    from_: str = field(name="from")
    to: str
    marks: list[FindingMark] = []
    resolved: list[FindingEvent] = []
    api_version: str = API_VERSION
    kind: str = "History"


class MapChange(PageDocument, omit_defaults=True):
    """An event `change`: rows that are new or other than before, and the names (hosts: ids) of those that are gone.

    `not_judged` is whole, and there where it is other than before. `counts` is how many pods there are now on each node
    where that changed; the pods that a finding of these names are among `pods`.
    """

    hosts: list[MapHost] = []
    nodes: list[MapNode] = []
    pods: list[MapPod] = []
    findings: list[FindingEvent] = []
    not_judged: list[NotJudged] | UnsetType = UNSET
    counts: dict[str, int] = {}
    gone_hosts: list[str] = []
    gone_nodes: list[str] = []
    gone_pods: list[str] = []
    gone_findings: list[str] = []


class SiteSummary(PageDocument):
    """One site. `reason` says why nothing is decided for it now, or ""; `findings` counts by severity."""

    site: str
    ready: bool
    reason: str
    hosts: int
    nodes: int
    pods: int
    findings: dict[str, int]


class SiteList(PageDocument):
    """`/api/v1/sites`. `features` names what this worker's API can do beyond showing (`whatif`, `history`)."""

    sites: list[SiteSummary]
    features: list[str]
    api_version: str = API_VERSION
    kind: str = "Sites"


class SeverityRow(_Row, frozen=True):
    """How the page shows findings of a severity; `alert` is the label of its alert. From `schemas/severities.py`.

    `remedy` is what ends one, `remedies` by rule where that is another; `runbook` is the address of its runbook,
    `runbooks` by rule where that is another.
    """

    name: str
    meaning: str
    alert: str
    colour: str
    icon: str
    remedy: str
    remedies: Mapping[str, str]
    runbook: str
    runbooks: Mapping[str, str]
    grave: bool = False


class SeverityList(PageDocument):
    """`/api/v1/severities`: worst first."""

    severities: list[SeverityRow]
    api_version: str = API_VERSION
    kind: str = "Severities"


class HistoryEntry(_Row, frozen=True):
    """Something that was decided, done or seen. `topic` is where it was published, `subject` what it is about.

    Subjects: `pod/NAMESPACE/NAME`, `node/NAME`, `drs-rule/CLUSTER/NAME`, `finding/ID`. `tone` is good, bad or "".
    """

    at: str
    topic: str
    subject: str
    text: str
    tone: str = ""
    pods: list[str] = []
    node: str = ""
    snapshot: dict[str, int] = {}


class History(PageDocument):
    """`/api/v1/activity`: newest first."""

    site: str
    entries: list[HistoryEntry]
    api_version: str = API_VERSION
    kind: str = "Activity"


class PodDetail(PageDocument):
    """`/api/v1/pods/NAMESPACE/NAME`: every rule's word on every node, what is wrong, what was decided before.

    `asked`: what it asks of a node, in whole units (cpu: thousandths of a core).
    """

    site: str
    pod: MapPod
    host: str
    scheduler: str
    verdict: PodVerdict
    findings: list[FindingEvent]
    history: list[HistoryEntry]
    asked: dict[str, int]
    api_version: str = API_VERSION
    kind: str = "Pod"


class MachineVm(_Row, frozen=True):
    """A node's VM: its virtual CPUs and memory, 0 while unknown; `power` is on or off."""

    name: str
    cpus: int = 0
    memory_mib: int = field(default=0, name="memoryMiB")
    power: str = "on"


class NodeCondition(_Row, frozen=True):
    """A condition of a node."""

    type: str
    status: str
    reason: str = ""


class NodeDetail(PageDocument):
    """`/api/v1/nodes/NAME`: VM, what there is of each resource and what pods ask of it, what keeps pods away.

    Amounts are whole units: bytes, thousandths of a core, pods. `taints` as `key=value:Effect`.
    """

    site: str
    node: str
    vm: MachineVm | None = None
    allocatable: dict[str, int] = {}
    asked: dict[str, int] = {}
    taints: list[str] = []
    conditions: list[NodeCondition] = []
    history: list[HistoryEntry] = []
    api_version: str = API_VERSION
    kind: str = "Node"


class HostDetail(PageDocument):
    """`/api/v1/hosts/ID`: how large a host is, the VMs of nodes on it, what their pods ask for, as in `NodeDetail`."""

    site: str
    host: str
    cpu_mhz: int = 0
    memory_mib: int = field(default=0, name="memoryMiB")
    vms: list[MachineVm] = []
    asked: dict[str, int] = {}
    api_version: str = API_VERSION
    kind: str = "Host"


class Judging(Struct, rename="camel"):
    """What a snapshot is to be judged by, so that the command line says what the worker says."""

    host_keys: list[str]
    physical_host: str
    join_by_name: bool = True
    cross_namespace: str = "report"
    host_label: str = ""


class ErrorDocument(PageDocument):
    """Every answer that is none: why, in one line."""

    error: str
    api_version: str = API_VERSION
    kind: str = "Error"


class HealthDocument(PageDocument):
    """`/healthz`: the worker lives."""

    status: str
    api_version: str = API_VERSION
    kind: str = "Health"


class ReadinessDocument(PageDocument):
    """`/readyz`: ok, waiting (503), stopped or standby; `reasons` by what they are about."""

    status: str
    reasons: dict[str, str] = {}
    api_version: str = API_VERSION
    kind: str = "Readiness"


class LastMaintenance(PageDocument):
    """`/api/v1/maintenance`: how far the last one is that was begun since the worker's start; null where none was."""

    maintenance: MaintenanceProgress | None
    api_version: str = API_VERSION
    kind: str = "LastMaintenance"


class SessionDocument(PageDocument):
    """`/api/v1/session`: whether a token is `needed`, whether reading needs none (`reads`), whether one was shown."""

    needed: bool
    reads: bool
    signed_in: bool
    api_version: str = API_VERSION
    kind: str = "Session"
