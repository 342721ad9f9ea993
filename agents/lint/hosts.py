"""Checks that need an inventory: rules that nodes keep and ESXi hosts undo, and DRS rules that do nothing.

In: a view. Out: complaints; `CHECKS` is the table. Terms on the host key itself are judged as every other term.
"""

from collections.abc import Iterator
from itertools import pairwise

from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, Complaint, plural
from underhost.agents.lint.domains import separating
from underhost.agents.lint.parts import ANTI_AFFINITY, SPREAD_CONSTRAINT
from underhost.agents.lint.view import View

RULE = "PhysicalHost"
AFFINITY, SEPARATE = "affinity", "anti-affinity"


def shares_host(view: View) -> Iterator[Complaint]:
    """Pods of one workload in different domains of a required rule, and all the same on one ESXi host."""
    hosts = view.model.topology.hosts
    if hosts is None:
        return
    index = view.model.nodes.index
    for form in (ANTI_AFFINITY, SPREAD_CONSTRAINT):
        for place, _ in separating(view, form):
            if view.model.topology.is_host_key(place.key):
                continue
            codes = view.model.topology.of(place.key).code_list
            at = {index[name] for name in place.subject.nodes if name in index}
            pairs = {(hosts.code_list[node], codes[node]) for node in at}
            held = sorted(host for host, code in pairs if host >= 0 and code >= 0)
            shared = sorted({hosts.values[a] for a, b in pairwise(held) if a == b})
            if shared:
                yield Complaint(
                    place.subject.object,
                    f"{place.field}.topologyKey",
                    f"The {place.what} of {place.subject.name} is kept by {place.key}, yet pods of it share ESXi host "
                    f"{f.listing(shared)}: use the key {view.options.host_keys[0]}, or let `underhost run` write "
                    "DRS rules.",
                    RULE,
                    place.key,
                )


def replicas_exceed_hosts(view: View) -> Iterator[Complaint]:
    """More replicas that must be apart than ESXi hosts under the nodes that they may use, though nodes are enough."""
    hosts = view.model.topology.hosts
    if hosts is None:
        return
    host_key = view.options.host_keys[0]
    for place, reach in separating(view, ANTI_AFFINITY):
        if view.model.topology.is_host_key(place.key) or reach.without(place.key) or reach.without(host_key):
            continue
        count, wanted = reach.domains(host_key), place.subject.replicas
        if count < wanted <= reach.domains(place.key):
            yield Complaint(
                place.subject.object,
                f"{place.field}.topologyKey",
                f"{place.subject.name} wants {wanted} replicas apart, and the nodes that they may use run on "
                f"{plural(count, 'ESXi host')}: some must share one; use fewer replicas, or add hosts.",
                RULE,
                place.key,
            )


def lonely_rules(view: View) -> Iterator[Complaint]:
    """DRS rules of fewer than two VMs that are there."""
    for (cluster, name), rule in sorted(view.snapshot.rules.items()):
        if rule.type not in (AFFINITY, SEPARATE):
            continue
        there = sorted({vm for vm in rule.vms if vm in view.snapshot.vms})
        if len(there) < 2:
            who = f"only the VM {view.snapshot.vms[there[0]].name}" if there else "no VM that is there"
            yield Complaint(
                f"DrsRule/{cluster}/{name}",
                "vms",
                f"DRS rule {name} of vSphere cluster {cluster} names {who}, so it does nothing: "
                "name two VMs or more, or remove it.",
                RULE,
            )


CHECKS = (
    Check(
        "separation-shares-host",
        f.PHYSICAL,
        "a required separation is kept by nodes and undone by an ESXi host",
        "design: PhysicalHost, docs/rules.md",
        shares_host,
    ),
    Check(
        "replicas-exceed-hosts",
        f.UNSATISFIABLE,
        "required anti-affinity with more replicas than ESXi hosts",
        "design: PhysicalHost, docs/rules.md",
        replicas_exceed_hosts,
    ),
    Check("drs-rule-alone", f.DRIFT, "a DRS rule has fewer than two VMs", "vim25 ClusterRuleInfo", lonely_rules),
)
