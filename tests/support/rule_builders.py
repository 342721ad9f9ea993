"""The names that tests used before `support.build`, until they use that."""

from collections.abc import Iterable, Mapping

from support.answers.rules import refused, scores, verdict
from support.build import (
    HOST,
    RACK,
    ZONE,
    NodeBuilder,
    PodBuilder,
    a_namespace,
    a_node,
    a_pod,
    a_service,
    a_site,
    app,
    nodes,
    spread,
    term,
)

from underhost.agents.site.snapshot import Snapshot

__all__ = [
    "HOST", "RACK", "ZONE", "NodeBuilder", "PodBuilder", "a_node", "a_pod", "app", "cluster", "nodes", "refused",
    "scores", "spread", "term", "verdict",
]  # fmt: skip


def cluster(
    all_nodes: Iterable[NodeBuilder],
    pods: Iterable[PodBuilder],
    *,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    hosts: Mapping[str, str] | None = None,
    services: Mapping[str, Mapping[str, str]] | None = None,
) -> Snapshot:
    """See `a_site`."""
    more = [a_namespace(name, **labels) for name, labels in (namespaces or {}).items()]
    more += [a_service(key, **labels) for key, labels in (services or {}).items()]
    return a_site(*all_nodes, *pods, *more, on=hosts)
