"""The derived records: what the agents publish. State records are in `kubernetes.py` and `vsphere.py`.

Events are past tense, commands imperative; frozen, primitives only. camelCase on the wire.
"""

from typing import Annotated

from msgspec import Meta, Struct

_LAST = 253_402_300_799_999
"""Milliseconds since 1970 at the end of the year 9999."""


class _Record(Struct, frozen=True, rename="camel"):
    """Base: frozen, camelCase on the wire."""


class Listed(_Record, frozen=True, omit_defaults=True):
    """A source has finished its first list: nothing is decided for a site before every source has.

    `epoch` is the start of the watcher's run in milliseconds since 1970; `count` the number of objects listed. `doubt`
    says why the list is not believed: nothing is written for the site until a person accepts it. `seen` is when the
    source last heard from its server, in milliseconds since 1970; 0 where that means nothing (files).
    """

    epoch: int
    count: int
    doubt: str = ""
    seen: Annotated[int, Meta(ge=0, le=_LAST)] = 0


class NodeHost(_Record, frozen=True):
    """Where a node's VM runs. `vm` and `host` are morefs; `joined_by` is providerID, systemUUID, name or hostname.

    Where a label names the host, `joined_by` is label, `host` its value and `vm` "". `host` is "" while the VM's host
    is unknown. `since` is RFC 3339.
    """

    node: str
    vm: str
    host: str
    host_name: str
    joined_by: str
    since: str = ""


class Placement(_Record, frozen=True, omit_defaults=True):
    """A decision for one pending pod; for a pod of our scheduler it is also the order to bind.

    `node` is None while the pod waits; `failed` then counts nodes by reason. `snapshot` names the offsets decided from.
    `labels` are those that the binding hands over to the pod: the host of the node, and what is derived from it.
    """

    pod: str
    uid: str
    node: str | None
    total: int | None
    physical_conflicts: int
    failed: dict[str, int]
    snapshot: dict[str, int]
    labels: dict[str, str] = {}


class Domain(_Record, frozen=True):
    """A topology domain: a key and its value."""

    key: str
    value: str


class Finding(_Record, frozen=True, omit_defaults=True):
    """Something wrong now. docs/reference/severities.md tells what each severity means, rules.md beside it the rules.

    `pod` is the smallest name of the group and `peers` the rest, sorted; lint names `object` and `field` instead.
    """

    id: str
    severity: str
    rule: str
    reason: str
    message: str
    pod: str | None = None
    node: str | None = None
    peers: list[str] = []
    domain: Domain | None = None
    source: str | None = None
    pods: int | None = None
    object: str | None = None
    field: str | None = None


OPENED, UPDATED, RESOLVED = "opened", "updated", "resolved"
"""The states of a finding: every change of it is a record of `violations`."""


class FindingEvent(_Record, frozen=True, omit_defaults=True):
    """A record of `violations`: a finding with its life. `state` is opened, updated or resolved; times RFC 3339."""

    id: str
    state: str
    site: str
    severity: str
    rule: str
    reason: str
    message: str
    first_seen: str
    updated_at: str
    snapshot: dict[str, int]
    pod: str | None = None
    node: str | None = None
    peers: list[str] = []
    domain: Domain | None = None
    source: str | None = None
    pods: int | None = None
    object: str | None = None


def pods_named(finding: Finding | FindingEvent) -> list[str]:
    """The pods that a finding names, as `namespace/name`, the first of the group first."""
    return [pod for pod in (finding.pod, *finding.peers) if pod]


class Action(_Record, frozen=True):
    """A command to a sink.

    `kind` is label, pod-label, bind, drs-rule, move, maintenance, evict, event, report or resume. `target` names one
    object: label `node/NAME`; pod-label, bind and evict `pod/NAMESPACE/NAME`; drs-rule `drs-rule/CLUSTER/RULE`; move
    `vm/MOREF`; maintenance `host/MOREF`; event `event/KIND/NAMESPACE/NAME/REASON`; report `report/NAMESPACE/NAME`, or
    `reports/SITE` for all; resume `site/SITE`. `desired` by kind: label and pod-label {"uid", "labels": {key: value |
    null}}; bind {"uid", "node"}, with "labels" where the pod gets some; drs-rule {"cluster", "type", "vms",
    "mandatory"} or {} to remove it; move {"name", "cluster", "from", "to", "because", ...} (docs/mover.md); maintenance
    {"name", "cluster", "mode", ...} (docs/maintenance.md); evict {"uid", "at", "node", "to", ...} (docs/evictor.md);
    event {"regarding", "type", "reason", "note", "action", "condition", "cause"} (docs/events.md); report {"report"} or
    {"keep"}; resume {"at"}. `because` is one line for a person; `id` is a digest of all the others
    (`agents/sinks/orders.py`).
    """

    id: str
    kind: str
    target: str
    desired: dict[str, object]
    because: str
    snapshot: dict[str, int]


class Outcome(_Record, frozen=True):
    """What a sink did with an action: applied, dry-run, noop, refused or failed, with the reason."""

    id: str
    kind: str
    target: str
    result: str
    reason: str
