"""Checks of topology keys: empty ones, deprecated ones, and those that no node, or only some nodes, carry.

In: a view. Out: complaints; `CHECKS` is the table. A key of the ESXi host means the live host where hosts are known.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, Complaint, plural
from underhost.agents.lint.parts import AFFINITY_TERM, ANTI_AFFINITY, Parsed, Place
from underhost.agents.lint.subjects import Subject
from underhost.agents.lint.view import Reach, View
from underhost.agents.rules.node_affinity import NAME as NODE_AFFINITY

HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
DEPRECATED = {"failure-domain.beta.kubernetes.io/zone": ZONE, "failure-domain.beta.kubernetes.io/region": REGION}
MISTAKEN = {
    "topology.kubernetes.io/hostname": HOSTNAME,
    "topology.kubernetes.io/host": HOSTNAME,
    "topology.kubernetes.io/node": HOSTNAME,
    "hostname": HOSTNAME,
    "kubernetes.io/zone": ZONE,
    "kubernetes.io/region": REGION,
}
"""Keys that no kubelet and no cloud provider writes, and the ones that were meant."""


def empty(view: View) -> Iterator[Complaint]:
    """A term without a topologyKey."""
    for place in view.places:
        if not place.key:
            yield Complaint(
                place.subject.object,
                f"{place.field}.topologyKey",
                f"The {place.what} of {place.subject.name} has an empty topologyKey, which the API server refuses: "
                f"name the node label that makes a domain, for example {HOSTNAME}.",
                place.rule,
            )


def deprecated(view: View) -> Iterator[Complaint]:
    """A topologyKey that Kubernetes replaced in 1.17."""
    for place in view.places:
        new = DEPRECATED.get(place.key)
        if new is not None:
            yield Complaint(
                place.subject.object,
                f"{place.field}.topologyKey",
                f"The {place.what} of {place.subject.name} uses the deprecated {place.key}: {_replacement(view, new)}.",
                place.rule,
                place.key,
            )


def deprecated_selection(view: View) -> Iterator[Complaint]:
    """A nodeSelector or a node affinity that reads a deprecated label."""
    for subject, parsed in view.parts:
        for field, key in _node_keys(subject, parsed):
            new = DEPRECATED.get(key)
            if new is not None:
                yield Complaint(
                    subject.object,
                    field,
                    f"{subject.name} chooses nodes by the deprecated label {key}: {_replacement(view, new)}.",
                    NODE_AFFINITY,
                    key,
                )


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


def absent(view: View, required: bool) -> Iterator[Complaint]:
    """A topologyKey that no node carries, or none of those that the pods may use."""
    for place, reach in _usable(view):
        if place.required != required or reach.domains(place.key):
            continue
        new = DEPRECATED.get(place.key) or MISTAKEN.get(place.key)
        remedy = f"{new} is meant" if new is not None else _remedy(view, reach)
        yield Complaint(
            place.subject.object,
            f"{place.field}.topologyKey",
            f"{_nobody(view, place.key)} {_carries(view, place.key)}, so {_effect(place)}: {remedy}.",
            place.rule,
            place.key,
        )


def partial_key(view: View) -> Iterator[Complaint]:
    """A topologyKey that only some of the nodes that the pods may use carry."""
    for place, reach in _usable(view):
        if not reach.without(place.key) or not reach.domains(place.key):
            continue
        without = view.names(reach.eligible & (view.codes(place.key) < 0))
        total = int(reach.eligible.sum())
        verb = "has" if len(without) == 1 else "have"
        remedy = "add their VMs" if view.model.topology.is_host_key(place.key) else "label them"
        yield Complaint(
            place.subject.object,
            f"{place.field}.topologyKey",
            f"{len(without)} of {plural(total, 'node')} that {place.subject.its_pods} may use "
            f"({f.listing(without)}) {verb} no {_thing(view, place.key)}: {_partial_effect(place)}; {remedy}.",
            place.rule,
            place.key,
        )


def mistaken(view: View) -> Iterator[Complaint]:
    """A well-known mistake for a topologyKey, where no node is there to ask."""
    if len(view.model.nodes):
        return
    for place in view.places:
        if place.key in MISTAKEN:
            yield Complaint(
                place.subject.object,
                f"{place.field}.topologyKey",
                f"The {place.what} of {place.subject.name} uses {place.key}, a label that Kubernetes gives to no node: "
                f"{MISTAKEN[place.key]} is meant.",
                place.rule,
                place.key,
            )


def host_labels(view: View) -> Iterator[Complaint]:
    """The label of the ESXi host is on some nodes and not on others."""
    for key in view.options.host_keys:
        if view.model.has_hosts:
            return  # the live host counts then, and `check` tells of nodes without one
        domains = view.model.topology.labels(key)
        known = np.array([code >= 0 and domains.values[code] != "" for code in domains.code_list], bool)
        if known.any() and not known.all():
            names = view.names(~known)
            yield Complaint(
                f"Node/{names[0]}",
                f"metadata.labels[{key}]",
                f"{len(names)} of {plural(len(known), 'node')} ({f.listing(names)}) "
                f"{'has' if len(names) == 1 else 'have'} no {key}, so nothing keeps pods apart by ESXi host there: "
                "let `underhost run` label them, or give an --inventory.",
                "PhysicalHost",
                key,
            )


# ----------------------------------------------------------------------------------------------------------- words
def _usable(view: View) -> Iterator[tuple[Place, Reach]]:
    """Places with a key, where there is any node that their pods may use."""
    for place in view.places:
        if place.key:
            reach = view.reach(place.subject)
            if reach.some:
                yield place, reach


def _node_keys(subject: Subject, parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Every node label that a subject reads, and where."""
    for key in sorted(parsed.node_selector):
        yield f"{subject.at}.nodeSelector[{key}]", key
    at = f"{subject.at}.affinity.nodeAffinity"
    for number, term in enumerate(parsed.node_terms or ()):
        for index, one in enumerate(term.match_expressions or ()):
            place = f"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{number}]"
            yield f"{at}.{place}.matchExpressions[{index}].key", one.key
    for number, preferred in enumerate(parsed.preferred_node):
        for index, one in enumerate(preferred.preference.match_expressions or ()):
            place = f"preferredDuringSchedulingIgnoredDuringExecution[{number}].preference"
            yield f"{at}.{place}.matchExpressions[{index}].key", one.key


def _replacement(view: View, new: str) -> str:
    if not len(view.model.nodes) or view.model.topology.labels(new).present.all():
        return f"use {new}"
    return f"label the nodes with {new}, which some lack, then use that"


def _thing(view: View, key: str) -> str:
    return f"known ESXi host for {key}" if view.model.topology.is_host_key(key) else f"label {key}"


def _carries(view: View, key: str) -> str:
    return f"has a known ESXi host for {key}" if view.model.topology.is_host_key(key) else f"carries the label {key}"


def _nobody(view: View, key: str) -> str:
    return "No node in reach of its pods" if view.model.topology.of(key).present.any() else "No node"


def _remedy(view: View, reach: Reach) -> str:
    carried = [key for key in (HOSTNAME, ZONE, *view.options.host_keys) if not reach.without(key)]
    return f"label the nodes, or use a key that they carry ({', '.join(carried)})" if carried else "label the nodes"


def _effect(place: Place) -> str:
    name = place.subject.name
    if place.form == ANTI_AFFINITY:
        return f"the {place.what} of {name} keeps nothing apart"
    if not place.required:
        return f"the {place.what} of {name} has no effect"
    return f"the {place.what} of {name} can never be met and {place.subject.stuck}"


def _partial_effect(place: Place) -> str:
    if place.form == ANTI_AFFINITY:
        return f"the {place.what} keeps nothing apart there"
    if place.required:
        return f"the {place.what} never lets a pod go there"
    return (
        f"the {place.what} gives them no preference"
        if place.form == AFFINITY_TERM
        else (f"the {place.what} leaves them out of its count")
    )


_IPA = "pkg/scheduler/framework/plugins/interpodaffinity/filtering.go"
_PTS = "pkg/scheduler/framework/plugins/podtopologyspread/filtering.go"
_VALIDATION = "pkg/apis/core/validation/validation.go"
CHECKS = (
    Check("topology-key-empty", f.UNSATISFIABLE, "the topologyKey is empty", _VALIDATION, empty),
    Check(
        "topology-key-absent",
        f.UNSATISFIABLE,
        "no node carries the topologyKey of a required rule",
        f"{_IPA} (satisfyPodAffinity, satisfyPodAntiAffinity), {_PTS} (Filter)",
        partial(absent, required=True),
    ),
    Check(
        "preferred-topology-key-absent",
        f.DRIFT,
        "no node carries the topologyKey of a preference",
        "pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, podtopologyspread/scoring.go",
        partial(absent, required=False),
    ),
    Check("topology-key-partial", f.DRIFT, "only some nodes carry the topologyKey", f"{_IPA}, {_PTS}", partial_key),
    Check(
        "topology-key-mistaken",
        f.DRIFT,
        "the topologyKey is a well-known mistake",
        "staging/src/k8s.io/api/core/v1/well_known_labels.go",
        mistaken,
    ),
    Check(
        "topology-key-deprecated",
        f.DRIFT,
        "the topologyKey is deprecated since Kubernetes 1.17",
        "staging/src/k8s.io/api/core/v1/well_known_labels.go",
        deprecated,
    ),
    Check(
        "node-label-deprecated",
        f.DRIFT,
        "nodes are chosen by a label that is deprecated since Kubernetes 1.17",
        "staging/src/k8s.io/api/core/v1/well_known_labels.go",
        deprecated_selection,
    ),
    Check(
        "node-labels-behind",
        f.DRIFT,
        "nodes carry only the deprecated topology label",
        "staging/src/k8s.io/api/core/v1/well_known_labels.go",
        deprecated_labels,
    ),
    Check(
        "host-label-missing",
        f.DRIFT,
        "the ESXi host's label is missing on some nodes",
        "design: host key, docs/rules.md",
        host_labels,
    ),
)
