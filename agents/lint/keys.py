"""Checks of topology keys: empty ones, deprecated ones, and those that no node, or only some nodes, carry.

In: a view. Out: complaints; `CHECKS` is the table. A key of the host means the live host where hosts are known.
"""

from collections.abc import Iterator

import numpy as np

from underhost.agents.compiled.classes import HOSTNAME_KEY, ZONE_KEY
from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, plural, preferences, required_rules, rules, subjects
from underhost.agents.lint.subjects import AFFINITY_TERM, ANTI_AFFINITY, Complaint, PodRule, Subject
from underhost.agents.lint.view import Reach, View
from underhost.agents.rules.node_affinity import NAME as NODE_AFFINITY
from underhost.agents.rules.physical_host import NAME as PHYSICAL_HOST
from underhost.agents.site.places import host_word
from underhost.agents.site.terms import PREFERRED, REQUIRED
from underhost.schemas.severities import DRIFT, UNSATISFIABLE

REGION_KEY = "topology.kubernetes.io/region"
DEPRECATED = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_KEY,
    "failure-domain.beta.kubernetes.io/region": REGION_KEY,
}
MISTAKEN = {
    "topology.kubernetes.io/hostname": HOSTNAME_KEY,
    "topology.kubernetes.io/host": HOSTNAME_KEY,
    "topology.kubernetes.io/node": HOSTNAME_KEY,
    "hostname": HOSTNAME_KEY,
    "kubernetes.io/zone": ZONE_KEY,
    "kubernetes.io/region": REGION_KEY,
}
"""Keys that no kubelet and no cloud provider writes, and the ones that were meant."""


def empty(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A term without a topologyKey."""
    if not rule.key:
        yield rule.complaint(
            "topologyKey",
            f"The {rule.what} of {rule.subject.name} has an empty topologyKey, which the API server refuses: "
            f"name the node label that makes a domain, for example {HOSTNAME_KEY}.",
        )


def deprecated(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A topologyKey that Kubernetes replaced in 1.17; one that no node carries is told already, with the right one."""
    if rule.key in DEPRECATED and not _is_absent(view, rule):
        message = f"The {rule.what} of {rule.subject.name} uses the deprecated {rule.key}: "
        yield rule.complaint("topologyKey", f"{message}{_replacement(view, rule.key)}.", rule.key)


def deprecated_selection(view: View, subject: Subject) -> Iterator[Complaint]:
    """A nodeSelector or a node affinity that reads a deprecated label."""
    for field, key in _node_keys(subject):
        if key in DEPRECATED:
            message = f"{subject.name} chooses nodes by the deprecated label {key}: {_replacement(view, key)}."
            yield subject.complaint(field, message, NODE_AFFINITY, key)


def deprecated_labels(view: View) -> Iterator[Complaint]:
    """Nodes that carry only the deprecated labels: terms on the new keys do not see them."""
    for old, new in DEPRECATED.items():
        behind = view.model.topology.labels(old).present & ~view.model.topology.labels(new).present
        names = view.names(behind)
        if names:
            yield Complaint(
                f"Node/{names[0]}",
                f"metadata.labels[{old}]",
                f"{f.listing(names)} {'carries' if len(names) == 1 else 'carry'} the deprecated {old} without {new}: "
                f"rules on {new} do not see them; add that label with the same value.",
                "Node",
                old,
            )


def _is_absent(view: View, rule: PodRule) -> bool:
    reach = view.reach(rule.subject)
    return bool(rule.key) and reach.some and not reach.domains(rule.key)


def absent(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A topologyKey that no node carries, or none of those that the pods may use."""
    if not _is_absent(view, rule):
        return
    reach = view.reach(rule.subject)
    topology = view.model.topology
    nobody = "No node in reach of its pods" if topology.of(rule.key).present.any() else "No node"
    is_host = topology.is_host_key(rule.key)
    carries = f"has a known {host_word(view.snapshot)} for {rule.key}" if is_host else f"carries the label {rule.key}"
    meant = DEPRECATED.get(rule.key) or MISTAKEN.get(rule.key)
    remedy = f"{meant} is meant" if meant is not None else _remedy(view, reach)
    yield rule.complaint("topologyKey", f"{nobody} {carries}, so {_effect(rule)}: {remedy}.", rule.key)


def partial_key(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A topologyKey that only some of the nodes that the pods may use carry."""
    reach = view.reach(rule.subject)
    if not rule.key or not reach.without(rule.key) or not reach.domains(rule.key):
        return
    without = view.names(reach.eligible & (view.codes(rule.key) < 0))
    total = int(reach.eligible.sum())
    verb = "has" if len(without) == 1 else "have"
    is_host = view.model.topology.is_host_key(rule.key)
    lacked = f"known {host_word(view.snapshot)} for {rule.key}" if is_host else f"label {rule.key}"
    remedy = "add their VMs" if is_host and view.snapshot.vsphere else "label them"
    yield rule.complaint(
        "topologyKey",
        f"{len(without)} of {plural(total, 'node')} that {rule.subject.its_pods} may use ({f.listing(without)}) {verb} "
        f"no {lacked}: {_partial_effect(rule)}; {remedy}.",
        rule.key,
    )


def mistaken(view: View, rule: PodRule) -> Iterator[Complaint]:
    """A well-known mistake for a topologyKey, where no node is there to ask."""
    if rule.key in MISTAKEN and not len(view.model.nodes):
        message = f"The {rule.what} of {rule.subject.name} uses {rule.key}, a label that Kubernetes gives to no node: "
        yield rule.complaint("topologyKey", f"{message}{MISTAKEN[rule.key]} is meant.", rule.key)


def host_labels(view: View) -> Iterator[Complaint]:
    """The label of the host is on some nodes and not on others."""
    if view.model.has_hosts:
        return  # the live host counts then, and `check` tells of nodes without one
    for key in view.options.host_keys:
        domains = view.model.topology.labels(key)
        known = np.array([code >= 0 and domains.values[code] != "" for code in domains.code_list], bool)
        if known.any() and not known.all():
            names = view.names(~known)
            yield Complaint(
                f"Node/{names[0]}",
                f"metadata.labels[{key}]",
                f"{len(names)} of {plural(len(known), 'node')} ({f.listing(names)}) "
                f"{'has' if len(names) == 1 else 'have'} no {key}, so nothing keeps pods apart by host there: "
                "let `underhost run` label them, or give an --inventory.",
                PHYSICAL_HOST,
                key,
            )


# ----------------------------------------------------------------------------------------------------------- words
def _node_keys(subject: Subject) -> Iterator[tuple[str, str]]:
    """Every node label that a subject reads, and where in its pod spec."""
    for key in sorted(subject.rules.node_selector):
        yield f"nodeSelector[{key}]", key
    listed = [(f"{REQUIRED}.nodeSelectorTerms[{n}]", one) for n, one in enumerate(subject.rules.node_terms or ())]
    listed += [(f"{PREFERRED}[{n}].preference", one.preference) for n, one in enumerate(subject.rules.preferred_node)]
    for at, term in listed:
        for index, expression in enumerate(term.match_expressions or ()):
            yield f"affinity.nodeAffinity.{at}.matchExpressions[{index}].key", expression.key


def _replacement(view: View, old: str) -> str:
    new = DEPRECATED[old]
    if not len(view.model.nodes) or view.model.topology.labels(new).present.all():
        return f"use {new}"
    return f"label the nodes with {new}, which some lack, then use that"


def _remedy(view: View, reach: Reach) -> str:
    carried = [key for key in (HOSTNAME_KEY, ZONE_KEY, *view.options.host_keys) if not reach.without(key)]
    return f"label the nodes, or use a key that they carry ({', '.join(carried)})" if carried else "label the nodes"


def _effect(rule: PodRule) -> str:
    name = rule.subject.name
    if rule.form == ANTI_AFFINITY:
        return f"the {rule.what} of {name} keeps nothing apart"
    if not rule.required:
        return f"the {rule.what} of {name} has no effect"
    return f"the {rule.what} of {name} can never be met and {rule.subject.stuck}"


def _partial_effect(rule: PodRule) -> str:
    if rule.form == ANTI_AFFINITY:
        return f"the {rule.what} keeps nothing apart there"
    if rule.required:
        return f"the {rule.what} never lets a pod go there"
    if rule.form == AFFINITY_TERM:
        return f"the {rule.what} gives them no preference"
    return f"the {rule.what} leaves them out of its count"


_IPA = "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go"
_PTS = "pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"
_REFUSING = f"{_IPA} (satisfyPodAffinity, satisfyPodAntiAffinity), {_PTS} (Filter)"
_SCORING = "pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, podtopologyspread/scoring.go"
_API = "pkg/apis/core/validation/validation.go"
_LABELS = "staging/src/k8s.io/api/core/v1/well_known_labels.go"
_OURS = "design: host key, docs/reference/rules.md"
CHECKS = (
    Check("topology-key-empty", UNSATISFIABLE, "the topologyKey is empty", _API, rules, empty),
    Check("topology-key-absent", UNSATISFIABLE, "no node carries the topologyKey of a required rule", _REFUSING,
          required_rules, absent),
    Check("preferred-topology-key-absent", DRIFT, "no node carries the topologyKey of a preference", _SCORING,
          preferences, absent),
    Check("topology-key-partial", DRIFT, "only some nodes carry the topologyKey", f"{_IPA}, {_PTS}", rules,
          partial_key),
    Check("topology-key-mistaken", DRIFT, "the topologyKey is a well-known mistake", _LABELS, rules, mistaken),
    Check("topology-key-deprecated", DRIFT, "the topologyKey is deprecated since Kubernetes 1.17", _LABELS, rules,
          deprecated),
    Check("node-label-deprecated", DRIFT, "nodes are chosen by a label that is deprecated since Kubernetes 1.17",
          _LABELS, subjects, deprecated_selection),
    Check("node-labels-behind", DRIFT, "nodes carry only the deprecated topology label", _LABELS, None,
          deprecated_labels),
    Check("host-label-missing", DRIFT, "the host's label is missing on some nodes", _OURS, None, host_labels),
)  # fmt: skip
