"""Checks that need hosts: rules that nodes keep and hosts undo, and DRS rules that do nothing.

In: a view. Out: complaints; `CHECKS` is the table. Terms on the host key itself are judged as every other term.
"""

from collections.abc import Iterator
from itertools import pairwise

from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, plural
from underhost.agents.lint.domains import separating
from underhost.agents.lint.subjects import ANTI_AFFINITY, Complaint, PodRule
from underhost.agents.lint.view import View
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site.places import host_word
from underhost.schemas.severities import DRIFT, PHYSICAL, UNSATISFIABLE
from underhost.schemas.vsphere import VM_RULES


def kept_by_nodes(view: View) -> Iterator[PodRule]:
    """Rules that keep replicas apart by a key other than the host's, where hosts are known."""
    topology = view.model.topology
    return (rule for rule in separating(view) if topology.hosts is not None and not topology.is_host_key(rule.key))


def shares_host(view: View, rule: PodRule) -> Iterator[Complaint]:
    """Pods of one workload in different domains of a required rule, and all the same on one host."""
    hosts, index = view.model.topology.hosts, view.model.nodes.index
    assert hosts is not None
    codes = view.model.topology.of(rule.key).code_list
    at = {index[name] for name in rule.subject.nodes if name in index}
    pairs = {(hosts.code_list[node], codes[node]) for node in at}
    held = sorted(host for host, code in pairs if host >= 0 and code >= 0)
    shared = sorted({hosts.values[a] for a, b in pairwise(held) if a == b})
    if shared:
        yield rule.complaint(
            "topologyKey",
            f"The {rule.what} of {rule.subject.name} is kept by {rule.key}, yet pods of it share "
            f"{host_word(view.snapshot)} {f.listing(shared)}: {_remedy(view)}.",
            rule.key,
            PHYSICAL_HOST,
        )


def _remedy(view: View) -> str:
    if label := view.snapshot.joining.label:
        return f"use the key {label}"
    return f"use the key {view.options.host_keys[0]}, or let `underhost run` write DRS rules"


def replicas_exceed_hosts(view: View, rule: PodRule) -> Iterator[Complaint]:
    """More replicas that must be apart than hosts under the nodes that they may use, though nodes are enough."""
    host_key, reach = view.options.host_keys[0], view.reach(rule.subject)
    if rule.form != ANTI_AFFINITY or reach.without(rule.key) or reach.without(host_key):
        return
    count, wanted = reach.domains(host_key), rule.subject.replicas
    if count < wanted <= reach.domains(rule.key):
        yield rule.complaint(
            "topologyKey",
            f"{rule.subject.name} wants {wanted} replicas apart, and the nodes that they may use run on "
            f"{plural(count, host_word(view.snapshot))}: some must share one; use fewer replicas, or add hosts.",
            rule.key,
            PHYSICAL_HOST,
        )


def lonely_rules(view: View) -> Iterator[Complaint]:
    """DRS rules of fewer than two VMs that are there."""
    for (cluster, name), rule in sorted(view.snapshot.rules.items()):
        there = sorted({vm for vm in rule.vms if vm in view.snapshot.vms})
        if rule.type in VM_RULES and len(there) < 2:
            who = f"only the VM {view.snapshot.vms[there[0]].name}" if there else "no VM that is there"
            yield Complaint(
                f"DrsRule/{cluster}/{name}",
                "vms",
                f"DRS rule {name} of vSphere cluster {cluster} names {who}, so it does nothing: "
                "name two VMs or more, or remove it.",
                PHYSICAL_HOST,
            )


_DESIGN = "design: PhysicalHost, docs/reference/rules.md"
CHECKS = (
    Check("separation-shares-host", PHYSICAL, "a required separation is kept by nodes and undone by a host",
          _DESIGN, kept_by_nodes, shares_host),
    Check("replicas-exceed-hosts", UNSATISFIABLE, "required anti-affinity with more replicas than hosts",
          _DESIGN, kept_by_nodes, replicas_exceed_hosts),
    Check("drs-rule-alone", DRIFT, "a DRS rule has fewer than two VMs", "vim25 ClusterRuleInfo", None, lonely_rules),
)  # fmt: skip
