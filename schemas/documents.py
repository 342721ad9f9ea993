"""The JSON documents that commands print: versioned, keys sorted, byte-identical for identical input."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from underhost.schemas.records import Finding

API_VERSION = "underhost/v1"


class _Document(Struct, rename="camel"):
    """Base: camelCase on the wire."""


class NodeVerdict(_Document):
    """One pod on one node. `scores` are normalised 0-100 before the weight; `total` is their weighted sum."""

    feasible: bool
    failing: dict[str, list[str]] = {}
    code: dict[str, str] | UnsetType = UNSET
    scores: dict[str, int] | UnsetType = UNSET
    total: int | UnsetType = UNSET
    physical_conflicts: int | UnsetType = UNSET


class PodVerdict(_Document):
    """One pod on every node."""

    nodes: dict[str, NodeVerdict]
    gated: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Explanation(_Document):
    """`underhost explain`."""

    pods: dict[str, PodVerdict]
    api_version: str = API_VERSION
    kind: str = "Explanation"


class Placements(_Document):
    """`underhost schedule`."""

    placements: dict[str, str | None]
    order: list[str]
    failed: dict[str, dict[str, int]]
    api_version: str = API_VERSION
    kind: str = "Placements"


class BudgetFigures(_Document):
    """A disruption budget as the disruption controller computes it."""

    expected: int
    current: int
    desired: int
    allowed: int


class Report(_Document):
    """`underhost check` and `underhost lint`. `summary` has pods, nodes, hosts and a count per severity."""

    findings: list[Finding]
    budgets: dict[str, BudgetFigures]
    summary: dict[str, int]
    api_version: str = API_VERSION
    kind: str = "Report"


_encoder = msgspec.json.Encoder(order="sorted")


def to_builtins(document: Struct) -> Any:
    """Plain dicts and lists, keys sorted."""
    return msgspec.to_builtins(document, order="sorted")


def to_json(document: Struct) -> bytes:
    """One line of JSON with sorted keys; the caller indents for people."""
    return _encoder.encode(document)
