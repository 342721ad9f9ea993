"""What the API server makes of a pod that is created: requests from limits, merged label keys, host ports, priority.

In: a pod as plain JSON values. Out: the same, completed in place. Shapes are the engine's matter: what has a wrong one
is left as it is.
Sources: pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go, plugin/pkg/admission/priority.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from underhost.agents.manifests.parts import Json, object_of, objects_of
from underhost.agents.site.fault import Fault
from underhost.agents.site.requests import CPU, MEMORY, request_of
from underhost.agents.site.selectors import IN, NOT_IN
from underhost.agents.site.terms import PREFERRED, REQUIRED
from underhost.schemas import kubernetes as k8s
from underhost.schemas.manifests import Manifest


class Priority(NamedTuple):
    """A PriorityClass, as far as it matters here."""

    value: int
    preemption_policy: str | None = None


class PriorityClasses:
    """The classes of the input and the two that every cluster has."""

    def __init__(self, others: Mapping[str, Manifest]) -> None:
        """Raises BadObjectError for a class whose value is no number."""
        self._classes = {
            "system-cluster-critical": Priority(2_000_000_000),
            "system-node-critical": Priority(2_000_001_000),
        }
        self._default: Priority | None = None
        for manifest in others.values():
            if manifest.kind != "PriorityClass":
                continue
            value, policy = msgspec.json.decode(manifest.value), msgspec.json.decode(manifest.preemption_policy)
            if not isinstance(value, int) or isinstance(value, bool):
                raise Fault("value", "must be an integer").within(f"PriorityClass/{manifest.metadata.name}")
            found = Priority(value, policy if isinstance(policy, str) else None)
            self._classes[manifest.metadata.name] = found
            if msgspec.json.decode(manifest.global_default) is True:
                self._default = found

    @property
    def has_default(self) -> bool:
        """Whether a pod without a class gets one."""
        return self._default is not None

    def of(self, name: str) -> Priority | None:
        """The class of a pod that names it ("" names none), None where the input lacks it."""
        return self._classes.get(name) if name else self._default or Priority(0)


def needs_completion(pod: k8s.Pod, classes: PriorityClasses) -> bool:
    """Whether `complete` could change the pod: a cheap look at the raw parts, for inputs of many pods."""
    spec = pod.spec
    if spec.priority is None and (spec.priority_class_name or classes.has_default):
        return True
    if (
        spec.host_network
        or b"abelKeys" in bytes(spec.affinity)
        or b"abelKeys" in bytes(spec.topology_spread_constraints)
    ):
        return True
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return b"limits" in bytes(spec.resources) or any(b"limits" in bytes(one.resources) for one in containers)


def complete(pod: Json, classes: PriorityClasses) -> str:
    """Complete the pod in place; the name of a priority class that the input lacks, "" if all is known."""
    spec = pod["spec"]
    for container in _containers(spec):
        _limits_to_requests(object_of(container.get("resources")))
        if spec.get("hostNetwork") is True:
            for port in objects_of(container.get("ports")):
                if not port.get("hostPort") and "containerPort" in port:
                    port["hostPort"] = port["containerPort"]
    _pod_level_requests(pod)
    labels = pod["metadata"].get("labels")
    if isinstance(labels, dict):
        for term in _affinity_terms(spec):
            _merge(term, "matchLabelKeys", IN, labels)
            _merge(term, "mismatchLabelKeys", NOT_IN, labels)
        for constraint in objects_of(spec.get("topologySpreadConstraints")):
            _merge(constraint, "matchLabelKeys", IN, labels)
    return _prioritise(spec, classes)


def _prioritise(spec: Json, classes: PriorityClasses) -> str:
    name = spec.get("priorityClassName") or ""
    if spec.get("priority") is not None or not isinstance(name, str):
        return ""
    found = classes.of(name)
    if found is None:
        return name
    spec["priority"] = found.value
    if found.preemption_policy is not None:
        spec.setdefault("preemptionPolicy", found.preemption_policy)
    return ""


def _limits_to_requests(resources: Json) -> None:
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if isinstance(limits, dict) and isinstance(requests, dict) and limits:
        resources["requests"] = {**limits, **requests}


def _pod_level_requests(pod: Json) -> None:
    """Pod-level limits without requests: the containers' sum, or where none of them says any the limit itself."""
    spec = pod["spec"]
    own = object_of(spec.get("resources"))
    limits = object_of(own.get("limits"))
    if not limits:
        return
    requests = dict(own.get("requests") or {})
    bare = {**spec, "resources": {}, "overhead": {}}
    try:
        total = request_of(k8s.decode(msgspec.json.encode({"metadata": {}, "spec": bare}), k8s.Pod)).fit
    except (Fault, msgspec.ValidationError):
        return  # the engine names the fault when it reads the pod
    asked = [object_of(object_of(one.get("resources")).get("requests")) for one in _containers(spec)]
    for name, unit in ((CPU, "m"), (MEMORY, "")):
        if any(name in one for one in asked):  # an explicit 0, too
            requests.setdefault(name, f"{total.get(name, 0)}{unit}")
    for name, limit in limits.items():
        if name in (CPU, MEMORY) or name.startswith("hugepages-"):
            requests.setdefault(name, limit)
    own["requests"] = requests


def _merge(term: Json, keys: str, operator: str, labels: Mapping[str, Any]) -> None:
    """Merge (mis)matchLabelKeys into the selector; a null selector matches nothing and stays so."""
    selector, wanted = term.get("labelSelector"), term.get(keys)
    if not isinstance(selector, dict) or not isinstance(wanted, list):
        return
    expressions = selector.get("matchExpressions") or []
    for key in wanted:
        if isinstance(key, str) and key in labels:
            merged = {"key": key, "operator": operator, "values": [labels[key]]}
            if merged not in expressions:
                expressions = [*expressions, merged]
    if expressions:
        selector["matchExpressions"] = expressions


def _affinity_terms(spec: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = object_of(object_of(spec.get("affinity")).get(kind))
        yield from objects_of(part.get(REQUIRED))
        yield from (object_of(weighted.get("podAffinityTerm")) for weighted in objects_of(part.get(PREFERRED)))


def _containers(spec: Json) -> Iterator[Json]:
    yield from objects_of(spec.get("containers"))
    yield from objects_of(spec.get("initContainers"))
