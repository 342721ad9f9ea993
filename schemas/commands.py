"""The kinds of commands as they travel in `actions` and `outcomes`. A kind is spelled here and nowhere else.

Out: the names, and the table of what the configuration says of each. Who decides a command and who carries it out is
the table in `agents/sinks/registry.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LABEL, POD_LABEL, BIND, DRS_RULE, EVICT = "label", "pod-label", "bind", "drs-rule", "evict"
MOVE, MAINTENANCE, EVENT, REPORT, RESUME = "move", "maintenance", "event", "report", "resume"


@dataclass(frozen=True)
class Written:
    """What may be written by commands of one kind.

    Attributes:
        name: the kind. setting: the switch under `sinks`, and the limit under `limits`.
        per_minute: writes of the whole site in any minute, at most, unless the setting says otherwise.
        to_vsphere: whether it is vSphere that is written to.
        subject: what a sentence calls the target of a command; "" where it is called by its kind.
        about: what else is to be said of the switch.
    """

    name: str
    setting: str
    per_minute: int
    to_vsphere: bool = False
    subject: str = ""
    about: str | None = None


WRITTEN: Mapping[str, Written] = {
    row.name: row
    for row in (
        Written(LABEL, "labels", 6000, subject="Node"),
        Written(
            POD_LABEL,
            "pod_labels",
            3000,
            subject="Pod",
            about="Host labels that bindings gave to pods, corrected after a vMotion.",
        ),
        Written(BIND, "bindings", 30_000, subject="Pod"),
        Written(DRS_RULE, "drs_rules", 20, to_vsphere=True, subject="DRS rule"),
        Written(
            MOVE,
            "moves",
            20,
            to_vsphere=True,
            subject="VM",
            about="vMotions that repair findings. Without it none is planned unless somebody asks (underhost repair).",
        ),
        Written(
            MAINTENANCE,
            "maintenance",
            10,
            to_vsphere=True,
            subject="Host",
            about="Hosts put into maintenance mode, and taken out, where somebody asks (underhost maintain --apply).",
        ),
        Written(EVICT, "evictions", 20, subject="Pod"),
        Written(
            EVENT,
            "events",
            3000,
            about="Kubernetes Events on pods and nodes: findings, what is done about them, why a pod of ours waits.",
        ),
        Written(
            REPORT,
            "reports",
            6000,
            about="Open findings as reports of openreports.io. Without it nothing is decided about reports at all.",
        ),
    )
}
"""Every kind that writes to a cluster, by name."""
