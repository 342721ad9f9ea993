"""The JSON documents that commands print: versioned, keys sorted, byte-identical for identical input."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from underhost.schemas.records import Finding

API_VERSION = "underhost/v1"


class Document(Struct, rename="camel"):
    """Base: camelCase on the wire."""


class NotJudged(Document):
    """What a document says nothing about, in words: the rule `PhysicalHost`, `3 pods`, `source vsphere`; and why."""

    what: str
    why: str


class Because(Struct, frozen=True, kw_only=True):
    """One thing that stands in the way of a pod on a node, in one of five forms; amounts are Kubernetes quantities.

    - `pod`, `key`, `value`: a pod in the node's domain; `key` is a topologyKey, `host` for the physical host, `node`.
    - `taint`: one that is not tolerated, `key=value:Effect`.
    - `selector`, `has`: what is asked for as `kubectl -l` takes it, and what is there instead, null for nothing.
    - `port`, `pod`: a host port that the pod holds, `IP/PORT/PROTOCOL`.
    - `resource`, `asked`, `free`, `allocatable`: not enough of it.
    """

    pod: str | UnsetType = UNSET
    key: str | UnsetType = UNSET
    value: str | UnsetType = UNSET
    taint: str | UnsetType = UNSET
    selector: str | UnsetType = UNSET
    has: str | UnsetType | None = UNSET
    port: str | UnsetType = UNSET
    resource: str | UnsetType = UNSET
    asked: str | UnsetType = UNSET
    free: str | UnsetType = UNSET
    allocatable: str | UnsetType = UNSET


class NodeVerdict(Document):
    """One pod on one node. `scores` are normalised 0-100 before the weight; `total` is their weighted sum.

    `because` names what stands in the way, by rule: of each rule that refuses and has somebody or something to name,
    and of PhysicalHost on a feasible node with physical conflicts. Of many pods it names the first.
    """

    feasible: bool
    failing: dict[str, list[str]] = {}
    code: dict[str, str] | UnsetType = UNSET
    because: dict[str, list[Because]] | UnsetType = UNSET
    scores: dict[str, int] | UnsetType = UNSET
    total: int | UnsetType = UNSET
    physical_conflicts: int | UnsetType = UNSET


class PodVerdict(Document):
    """One pod on every node."""

    nodes: dict[str, NodeVerdict]
    gated: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Explanation(Document):
    """`underhost explain`."""

    pods: dict[str, PodVerdict]
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "Explanation"


class Placements(Document):
    """`underhost schedule`."""

    placements: dict[str, str | None]
    order: list[str]
    failed: dict[str, dict[str, int]]
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "Placements"


class BudgetFigures(Document):
    """A disruption budget as the disruption controller computes it."""

    expected: int
    current: int
    desired: int
    allowed: int


class Report(Document):
    """`underhost check` and `underhost lint`. `summary` has pods, nodes, hosts and a count per severity."""

    findings: list[Finding]
    budgets: dict[str, BudgetFigures]
    summary: dict[str, int]
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "Report"


class Move(Document):
    """A pod that ends on another node, or comes back. `from_` is null for a pod that had none when the plan began."""

    step: int
    pod: str
    from_: str | None = msgspec.field(name="from")
    to: str
    reason: str


class VmMove(Document):
    """A VM that HA restarts or DRS moves, by names. `to` is null where no host can take it and its host must wait."""

    step: int
    vm: str
    from_: str = msgspec.field(name="from")
    to: str | None


class Blocked(Document):
    """A pod that a drain cannot evict, and the disruption budgets in its way."""

    pod: str
    budgets: list[str]


class BudgetUse(Document):
    """A budget that evictions ask: what it allowed before the plan, and how many evictions it was charged for."""

    allowed_before: int
    used: int


class WhatIf(Document):
    """`underhost drain`, `fail`, `maintain` and `whatif`. `pending` counts nodes by reason, 0 where no node is asked.

    A pod keeps its name, though the one that its owner makes in its place would have another.
    """

    moves: list[Move]
    vm_moves: list[VmMove]
    pending: dict[str, dict[str, int]]
    blocked: list[Blocked]
    new_findings: list[Finding]
    resolved_findings: list[Finding]
    budgets: dict[str, BudgetUse]
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "WhatIf"


class Target(WhatIf):
    """One line of `underhost fail --each`: what the failure of `target` (`host/NAME`, `node/NAME`) means.

    `nodes` are on it, and so are `pods`, DaemonSets' and mirror pods not counted.
    """

    target: str = ""
    nodes: list[str] = []
    pods: int = 0


class WhatIfList(Document):
    """`underhost fail --each host|node`: every target alone, worst first."""

    items: list[Target]
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "WhatIfList"


class BlockedHost(Document):
    """A host that cannot be emptied: the VMs that cannot leave it, by name, and why."""

    host: str
    vms: list[str]
    why: str


class MaintenanceWave(Document):
    """Hosts that are in maintenance mode at one time, and the moves that empty them, by names."""

    wave: int
    hosts: list[str]
    vm_moves: list[VmMove]


class MaintenancePlan(Document):
    """`underhost maintain --all-hosts`. `new_findings` stand after some wave, and not before the plan.

    No plan has fewer waves than `lower_bound`; `optimal`: none has fewer than this one.
    """

    waves: list[MaintenanceWave]
    blocked: list[BlockedHost]
    new_findings: list[Finding]
    lower_bound: int
    optimal: bool
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "MaintenancePlan"


class RepairStep(Document):
    """One step of a repair: a vMotion of `vm` between hosts, or an eviction of `pod` between nodes; all by name.

    Steps of one `wave` may be under way together. `because` are the ids of the findings that it is for. Where a pod's
    scheduler is not Underhost, `to` is the best of the nodes that it may choose.
    """

    step: int
    wave: int
    kind: str
    from_: str = msgspec.field(name="from")
    to: str
    because: list[str]
    vm: str | None = None
    pod: str | None = None


class RepairCost(Document):
    """What a repair costs, in the order in which less is better.

    `memoryMiB` is what its vMotions copy, 0 where that is not known of each.
    """

    findings_left: int
    evictions: int
    vmotions: int
    memory_mib: int = msgspec.field(name="memoryMiB")


class Unrepairable(Document):
    """A finding that stays: the smallest set of facts that contradict one another, and what would end it."""

    finding: str
    conflict: list[str]
    would_help: list[str]


class RepairPlan(Document):
    """`underhost repair`. No plan costs less than `lowerBound` says; `optimal`: this one costs no more."""

    steps: list[RepairStep]
    objective: RepairCost
    lower_bound: RepairCost
    unrepairable: list[Unrepairable]
    resolved_findings: list[Finding]
    new_findings: list[Finding]
    left_findings: list[Finding]
    optimal: bool
    not_judged: list[NotJudged] = []
    api_version: str = API_VERSION
    kind: str = "RepairPlan"


class RepairDone(Document):
    """A step of a repair, or a vMotion of a maintenance, that is carried out, and what became of it.

    `id` is that of its command. `state` is ordered, or the result of its outcome, whose reason `reason` is.
    """

    id: str
    kind: str
    from_: str = msgspec.field(name="from")
    to: str
    state: str
    reason: str = ""
    vm: str | None = None
    pod: str | None = None


class RepairProgress(Document):
    """`underhost repair --apply`. `state` is planning, acting or ended; `why` is what it waits for, or why it ended.

    `leftFindings` stay; they are known at its end.
    """

    id: str
    site: str
    state: str
    steps: list[RepairDone]
    left_findings: list[Finding]
    why: str
    api_version: str = API_VERSION
    kind: str = "RepairProgress"


class MaintainedHost(Document):
    """A host of a maintenance that is carried out.

    `state` is waiting (its turn comes), emptying (its VMs move), entering, maintenance, leaving, or done.
    """

    host: str
    state: str


class MaintenanceProgress(Document):
    """`underhost maintain --apply`. `state` is planning, acting or ended; `done`: every host had its turn.

    `hosts` are in the order of their turns, `steps` are vMotions; `why` is what it waits for, or why it has stopped.
    """

    id: str
    site: str
    state: str
    hosts: list[MaintainedHost]
    steps: list[RepairDone]
    why: str
    done: bool
    api_version: str = API_VERSION
    kind: str = "MaintenanceProgress"


_encoder = msgspec.json.Encoder(order="sorted")


def to_builtins(document: Struct) -> Any:
    """Plain dicts and lists; whoever writes them sorts the keys."""
    return msgspec.to_builtins(document)


def to_json(document: Struct) -> bytes:
    """One line of JSON with sorted keys; the caller indents for people."""
    return _encoder.encode(document)
