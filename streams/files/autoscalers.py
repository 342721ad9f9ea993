"""What an autoscaler makes of the replicas of a manifest: at least its minimum, at most its maximum.

In: autoscalers and manifests. Out: the replicas of those that a person wrote; a cluster's objects have theirs already.
Source: pkg/controller/podautoscaler/horizontal.go (`reconcileAutoscaler`): 0 replicas turn the autoscaler off.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from underhost.schemas.manifests import Manifest


class _Target(Struct, rename="camel"):
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct, rename="camel"):
    """HorizontalPodAutoscaler spec, of every version."""

    scale_target_ref: _Target | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None


class Autoscaler(NamedTuple):
    """An autoscaler in its namespace."""

    namespace: str
    spec: AutoscalerSpec

    @property
    def target(self) -> str:
        """`Kind/namespace/name` of what it scales."""
        of = self.spec.scale_target_ref or _Target()
        return f"{of.kind}/{self.namespace}/{of.name}"

    def scaled(self, replicas: int) -> int:
        """How many replicas it makes of so many."""
        least = 1 if self.spec.min_replicas is None else self.spec.min_replicas
        most = replicas if self.spec.max_replicas is None else self.spec.max_replicas
        return max(min(replicas, most), least) if replicas else 0


def scaled(autoscalers: Iterable[Autoscaler], manifests: Mapping[str, Manifest]) -> dict[str, int]:
    """By `Kind/namespace/name`, the replicas that are others than the manifest says."""
    found: dict[str, int] = {}
    for one in autoscalers:
        manifest = manifests.get(one.target)
        if manifest is not None and not manifest.metadata.uid:
            given = msgspec.json.decode(manifest.spec, type=dict[str, Any]).get("replicas", 1)
            if isinstance(given, int) and one.scaled(given) != given:
                found[one.target] = one.scaled(given)
    return found


def with_replicas(manifest: Manifest, replicas: int) -> Manifest:
    """The manifest with another number of replicas."""
    spec = msgspec.json.decode(manifest.spec, type=dict[str, Any]) | {"replicas": replicas}
    return msgspec.structs.replace(manifest, spec=msgspec.Raw(msgspec.json.encode(spec)))
