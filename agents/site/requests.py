"""What a pod asks of a node: its resource vectors, exactly as upstream computes them.

In: a pod. Out: a `Request`: four views of the same containers, because upstream takes them differently for fitting,
for two scores, and for what a placed pod then holds.
Sources: component-helpers/resource/helpers.go, noderesources/{fit,resource_allocation}.go, framework/types.go.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

import msgspec

from underhost.agents.site import quantity
from underhost.agents.site.fault import Fault, decode
from underhost.schemas.kubernetes import EMPTY_OBJECT, Container, ContainerStatus, Pod

CPU, MEMORY, EPHEMERAL, PODS = "cpu", "memory", "ephemeral-storage", "pods"
BASE_RESOURCES = (CPU, MEMORY, EPHEMERAL)  # the first rows of every resource array

_DEFAULT_CPU, _DEFAULT_MEMORY = 100, 200 * 1024 * 1024 * 1000  # per container without a request, in thousandths
_POD_LEVEL = (CPU, MEMORY)
_SUFFIX = {"n": -9, "u": -6, "m": -3}

Amount = int | Fraction  # thousandths of a unit, exact
Amounts = dict[str, Amount]


class Resources(msgspec.Struct, frozen=True):
    """containers[].resources; quantities are text or numbers."""

    requests: dict[str, str | int | float] | None = None


_RESOURCES = msgspec.json.Decoder(Resources | None)
_LIST = msgspec.json.Decoder(dict[str, str | int | float] | None)


class Request:
    """The vectors of one shape of pod; resource names map to whole units, cpu to thousandths of a core.

    Attributes:
        id: position in the model. fit: what must be free, only amounts above zero. held: what a placed pod takes.
        held_nonzero: (cpu, memory) a placed pod takes in the score's eyes, where missing requests get defaults.
        least: (cpu, memory) for NodeResourcesFit's score. balanced: (cpu, memory) for the balanced allocation's.
    """

    __slots__ = ("balanced", "fit", "held", "held_nonzero", "id", "least")

    def __init__(
        self,
        fit: dict[str, int],
        held: dict[str, int],
        held_nonzero: tuple[int, int],
        least: tuple[int, int],
        balanced: tuple[int, int],
    ) -> None:
        self.id = -1
        self.fit, self.held, self.held_nonzero, self.least, self.balanced = fit, held, held_nonzero, least, balanced

    def key(self) -> tuple[object, ...]:
        """Equal for equal vectors."""
        fit, held = tuple(sorted(self.fit.items())), tuple(sorted(self.held.items()))
        return fit, held, self.held_nonzero, self.least, self.balanced


@lru_cache(maxsize=1 << 14, typed=True)
def exact(text: str | int | float) -> Amount:
    """A quantity in thousandths, unrounded. Raises ValueError for what is no quantity or is negative."""
    milli = quantity.milli_value(text)
    if milli < 0:
        raise ValueError(f"must not be negative: {text}")
    plain = str(text).strip()
    digits = plain.rstrip("kMGTPEim")
    if digits.isdecimal() or milli >= quantity.INT64_MAX:
        return milli if plain.endswith("m") or milli < quantity.INT64_MAX else quantity.value(text) * 1000
    if plain[-1] in "nu":
        return _settled(Fraction(Decimal(plain[:-1])) * Fraction(10) ** (_SUFFIX[plain[-1]] + 3))
    if plain[-1] == "m":
        return _settled(Fraction(Decimal(plain[:-1])))
    if plain[-1].isdecimal() or plain[-1] == ".":
        return _settled(Fraction(Decimal(plain)) * 1000)
    return milli  # a fraction of a larger unit: thousandths are exact but for absurd digits


def _settled(amount: Fraction) -> Amount:
    return amount.numerator if amount.denominator == 1 else amount


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts the resource besides cpu, memory, ephemeral storage and pods."""
    if name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


def whole(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """Whole units (cpu: thousandths), rounded up; what the scheduler does not count is left out."""
    found = {}
    for name, amount in amounts.items():
        if name in BASE_RESOURCES or name == PODS or is_scalar(name):
            found[name] = min(ceil(amount) if name == CPU else ceil(Fraction(amount, 1000)), quantity.INT64_MAX)
    return found


def amount_written(name: str, amount: int) -> str:
    """An amount of a resource in the unit that `whole` counts it in, as Kubernetes writes it."""
    binary = name in (MEMORY, EPHEMERAL) or name.startswith("hugepages-")
    return quantity.written(amount, milli=name == CPU, binary=binary)


def allocatable(raw: bytes) -> dict[str, int]:
    """A node's allocatable resources in whole units (cpu: thousandths)."""
    return whole(_amounts(decode(raw, _LIST, "status.allocatable"), "status.allocatable"))


def request_of(pod: Pod) -> Request:
    """The vectors of a pod. Raises Fault that names the wrong quantity's field."""
    spec = pod.spec
    containers = [_container(c, f"spec.containers[{i}]") for i, c in enumerate(spec.containers or ())]
    inits = [
        (_container(c, f"spec.initContainers[{i}]"), c.restart_policy == "Always")
        for i, c in enumerate(spec.init_containers or ())
    ]
    overhead = _amounts(decode(bytes(spec.overhead), _LIST, "spec.overhead"), "spec.overhead")
    own = decode(bytes(spec.resources), _RESOURCES, "spec.resources") or Resources()
    pod_level = {
        name: amount
        for name, amount in _amounts(own.requests, "spec.resources.requests").items()
        if name in _POD_LEVEL or name.startswith("hugepages-")
    }
    defaults: Amounts = {CPU: _DEFAULT_CPU, MEMORY: _DEFAULT_MEMORY}

    fit = _total(containers, inits, pod_level, overhead, {})
    least = _total(containers, inits, {}, overhead, defaults)  # upstream's scorer does not know pod-level resources
    actual, actual_inits = _with_status(pod, containers, inits)
    held = _total(actual, actual_inits, _pod_level_in_effect(pod, pod_level), overhead, {})
    missing = {k: v for k, v in defaults.items() if k not in held} if pod_level else defaults
    nonzero = _total(actual, actual_inits, pod_level, overhead, missing) if missing else held
    return Request(
        {name: amount for name, amount in whole(fit).items() if amount > 0 and name != PODS},
        {name: amount for name, amount in whole(held).items() if amount > 0 and name != PODS},
        _cpu_memory(nonzero),
        _cpu_memory(least),
        _cpu_memory(held),
    )


def _container(container: Container, field: str) -> Amounts:
    parsed = decode(bytes(container.resources), _RESOURCES, f"{field}.resources")
    return _amounts(parsed.requests if parsed is not None else None, f"{field}.resources.requests")


def _amounts(listed: Mapping[str, str | int | float] | None, field: str) -> Amounts:
    found: Amounts = {}
    for name, text in (listed or {}).items():
        try:
            found[name] = exact(text)
        except ValueError as error:
            raise Fault(f"{field}[{name}]", str(error)) from None
    return found


def _total(
    containers: list[Amounts],
    inits: list[tuple[Amounts, bool]],
    pod_level: Amounts,
    overhead: Amounts,
    defaults: Amounts,
) -> Amounts:
    """sum of containers and sidecars, at least the peak while initialising; pod-level values replace; plus overhead."""
    total: Amounts = {}
    for one in containers:
        _add(total, {**defaults, **one})
    sidecars: Amounts = {}
    peak: Amounts = {}
    for one, restarts in inits:
        amounts = {**defaults, **one}
        if restarts:
            _add(total, amounts)
            _add(sidecars, amounts)
            step = sidecars
        else:
            step = dict(amounts)
            _add(step, sidecars)
        for name, amount in step.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    total.update(pod_level)
    _add(total, overhead)
    return total


def _add(total: Amounts, more: Mapping[str, Amount]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _cpu_memory(amounts: Mapping[str, Amount]) -> tuple[int, int]:
    found = whole(amounts)
    return found.get(CPU, 0), found.get(MEMORY, 0)


def _with_status(
    pod: Pod, containers: list[Amounts], inits: list[tuple[Amounts, bool]]
) -> tuple[list[Amounts], list[tuple[Amounts, bool]]]:
    """The containers' requests while an in-place resize is under way: the largest of spec, actual and allocated."""
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses:
        return containers, inits
    by_name = {one.name: one for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    infeasible = _infeasible(pod)
    spec = pod.spec
    actual = [
        _effective(amounts, by_name.get(container.name), infeasible)
        for amounts, container in zip(containers, spec.containers or (), strict=True)
    ]
    actual_inits = [
        (_effective(amounts, by_name.get(container.name), infeasible) if restarts else amounts, restarts)
        for (amounts, restarts), container in zip(inits, spec.init_containers or (), strict=True)
    ]
    return actual, actual_inits


def _pod_level_in_effect(pod: Pod, pod_level: Amounts) -> Amounts:
    """The pod's own requests while an in-place resize of the pod as a whole is under way; likewise the largest."""
    status = pod.status
    if not pod_level or status.resources is EMPTY_OBJECT:
        return pod_level
    parsed = decode(bytes(status.resources), _RESOURCES, "status.resources")
    if parsed is None:
        return pod_level
    allocated = decode(bytes(status.allocated_resources), _LIST, "status.allocatedResources")
    levels = [
        {} if _infeasible(pod) else pod_level,
        _amounts(parsed.requests, "status.resources.requests"),
        _amounts(allocated, "status.allocatedResources"),
    ]
    return {name: max(level.get(name, 0) for level in levels) for name in pod_level}


def _infeasible(pod: Pod) -> bool:
    """The kubelet has refused the resize: what the spec asks for will not come."""
    pending = (c.reason for c in pod.status.conditions or () if c.type == "PodResizePending")
    return next(pending, None) == "Infeasible"


def _effective(spec: Amounts, status: ContainerStatus | None, infeasible: bool) -> Amounts:
    if status is None:
        return spec
    parsed = decode(bytes(status.resources), _RESOURCES, "status.containerStatuses.resources")
    if parsed is None or bytes(status.resources) == b"{}":
        return spec
    found: Amounts = {} if infeasible else dict(spec)
    allocated = decode(bytes(status.allocated_resources), _LIST, "status.containerStatuses.allocatedResources")
    for amounts in (
        _amounts(parsed.requests, "status.containerStatuses.resources.requests"),
        _amounts(allocated, "status.containerStatuses.allocatedResources"),
    ):
        for name, amount in amounts.items():
            found[name] = max(found.get(name, 0), amount)
    return found
