"""The API server's audit log: who wrote what, and whom a lease names.

In: the log of kube-apiserver. Out: `Write`s, in the order of the log.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trust.jepsen.checks import Write


@dataclass(frozen=True)
class AuditLog:
    """The log at a path."""

    path: Path

    def flags(self) -> list[str]:
        """The flags of kube-apiserver that make it write the log."""
        verbs, omitted = ["create", "patch", "update", "delete"], ["RequestReceived"]
        leases = [{"group": "coordination.k8s.io", "resources": ["leases"]}]
        writes = [{"group": "", "resources": ["pods", "pods/binding", "bindings", "nodes"]}]
        rules = [
            {"level": "Request", "verbs": verbs, "resources": leases, "omitStages": omitted},
            {"level": "Metadata", "verbs": ["create", "delete"], "resources": writes, "omitStages": omitted},
            {"level": "None"},
        ]
        policy = self.path.with_name("audit-policy.json")
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.path}"]

    def writes(self) -> list[Write]:
        """Every write that the server did."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        events = (json.loads(line) for line in lines)
        return [_write(event) for event in events if event.get("responseStatus", {}).get("code", 500) < 300]


def _write(event: dict[str, Any]) -> Write:
    ref, user = event["objectRef"], event["user"]["username"]
    what = "/".join(part for part in (ref["resource"], ref.get("subresource", "")) if part)
    holder = ""
    if what == "leases":
        named = ((event.get("requestObject") or {}).get("spec") or {}).get("holderIdentity")
        # Whoever names somebody names itself: workers have users of their own.
        holder = user if named else ""
    elif event["verb"] == "delete":
        holder = "deleted"
    name = f"{ref.get('namespace', '')}/{ref.get('name', '')}"
    return Write(user, what, name, event["requestReceivedTimestamp"], event["stageTimestamp"], holder)
