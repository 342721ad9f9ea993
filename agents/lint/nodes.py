"""Checks of nodeSelector and node affinity, and of the spelling of what a person wrote.

In: a view. Out: complaints; `CHECKS` is the table. A DaemonSet for nodes that the cluster lacks is no fault.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, plural, subjects
from underhost.agents.lint.spelling import POD_SPEC, WORKLOAD_SPEC, misspelled
from underhost.agents.lint.subjects import DAEMON_SET, Complaint, Subject
from underhost.agents.lint.view import View
from underhost.agents.manifests.parts import VMI
from underhost.agents.rules.node_affinity import NAME
from underhost.agents.site import terms
from underhost.agents.site.terms import PREFERRED, REQUIRED
from underhost.schemas.severities import DRIFT, UNSATISFIABLE

SPELLING = "Manifest"
_PLACING = ("affinity", "nodeSelector", "priorityClassName", "tolerations", "topologySpreadConstraints")
_TERMS = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


def spelling(view: View, subject: Subject) -> Iterator[Complaint]:
    """Fields with the wrong capitals, or a wrong ending."""
    found = [(f"{subject.at}.{one.field}", one.right) for one in subject.rules.misspelled]
    if subject.written is not None:
        tree = POD_SPEC if subject.kind == VMI else WORKLOAD_SPEC
        found += misspelled(msgspec.json.decode(subject.written), tree, "spec")
    found += misspelled(dict.fromkeys(view.misspelled.get(subject.object, ())), POD_SPEC, "spec")
    for field, right in sorted(set(found)):
        wrong = field.rpartition(".")[2]
        message = f"{subject.name} says {wrong}, which the API server refuses or ignores: the field is {right}."
        yield Complaint(subject.object, field, message, SPELLING)


def misplaced(view: View, subject: Subject) -> Iterator[Complaint]:
    """Parts of a pod spec that stand beside it: at the workload, or at the template."""
    if subject.written is None or subject.kind == VMI:
        return
    spec = msgspec.json.decode(subject.written)
    for at, outer in (("spec", spec), ("spec.template", spec.get("template"))):
        for name in _PLACING if isinstance(outer, dict) else ():
            if name in outer:
                message = f"{subject.name} says {name} in {at}, where the API server refuses or ignores it: "
                yield Complaint(subject.object, f"{at}.{name}", f"{message}it belongs in {subject.at}.", SPELLING)


def no_terms(view: View, subject: Subject) -> Iterator[Complaint]:
    """Required node affinity without a term that could match."""
    node_terms = subject.rules.node_terms
    if node_terms is not None and not node_terms:
        message = f"The required node affinity of {subject.name} has no term, which the API server refuses"
        yield subject.complaint(_TERMS, f"{message}: add one, or leave the affinity out.", NAME)
    elif node_terms is not None and all(term.empty for term in node_terms):
        message = f"The required node affinity of {subject.name} has only empty terms, which match no node"
        yield subject.complaint(_TERMS, f"{message}: say which labels the nodes must have.", NAME)


class _NodeTerm(NamedTuple):
    """A term of node affinity. `field`: where in the pod spec. `only`: no other required term can match a node."""

    subject: Subject
    field: str
    term: terms.NodeSelectorTerm
    required: bool
    only: bool


def _node_terms(view: View) -> Iterator[_NodeTerm]:
    for subject in view.subjects:
        required = subject.rules.node_terms or ()
        only = not any(_usable(term) for term in required)
        for index, term in enumerate(required):
            yield _NodeTerm(subject, f"{_TERMS}[{index}]", term, True, only)
        for index, one in enumerate(subject.rules.preferred_node):
            field = f"affinity.nodeAffinity.{PREFERRED}[{index}].preference"
            yield _NodeTerm(subject, field, one.preference, False, False)


def _fatal_terms(view: View) -> Iterator[_NodeTerm]:
    """Terms without which no pod can be placed: a wrong preference makes scoring fail."""
    return (one for one in _node_terms(view) if one.only or not one.required)


def _other_terms(view: View) -> Iterator[_NodeTerm]:
    return (one for one in _node_terms(view) if one.required and not one.only)


def empty_term(view: View, at: _NodeTerm) -> Iterator[Complaint]:
    """An empty term beside others, or an empty preference."""
    name = at.subject.name
    if not at.term.empty or (at.required and all(term.empty for term in at.subject.rules.node_terms or ())):
        return
    message = f"A node preference of {name} is empty, so it prefers nothing"
    if at.required:
        message = f"A node affinity term of {name} is empty, so it matches no node"
    yield at.subject.complaint(at.field, f"{message}: fill it in, or leave it out.", NAME)


def invalid_term(view: View, at: _NodeTerm) -> Iterator[Complaint]:
    """A term that the scheduler cannot parse: a required one matches nothing, a preferred one makes scoring fail."""
    fault = terms.node_requirements(at.term)
    if isinstance(fault, str):
        effect = "the term matches no node" if at.required else f"scoring fails and {at.subject.stuck}"
        message = f"A node affinity term of {at.subject.name} cannot be used ({fault}), so {effect}: correct the value."
        yield at.subject.complaint(at.field, message, NAME)


def _usable(term: terms.NodeSelectorTerm) -> bool:
    return not term.empty and not isinstance(terms.node_requirements(term), str)


def unmet(view: View, subject: Subject) -> Iterator[Complaint]:
    """nodeSelector or required node affinity that no node of the input meets."""
    waiting = len(view.model.nodes) and subject.kind != DAEMON_SET and subject.replicas
    if not waiting or view.reach(subject).selected.any():
        return
    node_terms = subject.rules.node_terms
    usable = [term for term in node_terms or () if _usable(term)]
    alone = list(_unmet_labels(view, subject))
    if usable and not any(view.is_met(term) for term in usable):
        alone.append(_unmet_terms(subject, node_terms or ()))
    if alone:
        yield from alone
    elif node_terms is None or usable:
        field = "nodeSelector" if node_terms is None else f"affinity.nodeAffinity.{REQUIRED}"
        parts = "nodeSelector" if node_terms is None else "nodeSelector and node affinity"
        message = f"No node meets all of the {parts} of {subject.name} at once, so {subject.stuck}: "
        yield subject.complaint(field, f"{message}label a node so, or ask for less.", NAME)


def _unmet_labels(view: View, subject: Subject) -> Iterator[Complaint]:
    """The labels of a nodeSelector that no node has."""
    for key, value in sorted(subject.rules.node_selector.items()):
        there = view.model.topology.labels(key).code_of
        if value not in there:
            has = f"nodes have {key} {f.listing(sorted(there))}" if there else f"no node has the label {key}"
            yield subject.complaint(
                f"nodeSelector[{key}]",
                f"No node has {key}={value}, which the nodeSelector of {subject.name} asks for, so "
                f"{subject.stuck}: {has}; label a node, or ask for a label that is there.",
                NAME,
                key,
            )


def _unmet_terms(subject: Subject, node_terms: tuple[terms.NodeSelectorTerm, ...]) -> Complaint:
    asked = sorted({e.key for one in node_terms for e in (*(one.match_expressions or ()), *(one.match_fields or ()))})
    by = f" ({f.listing(asked)})" if asked else ""
    return subject.complaint(
        _TERMS,
        f"No node meets {'the term' if len(node_terms) == 1 else 'any term'} of the required node affinity of "
        f"{subject.name}{by}, so {subject.stuck}: label a node so, or ask for less.",
        NAME,
    )


def untolerated(view: View, subject: Subject) -> Iterator[Complaint]:
    """Every node that labels allow has a lasting taint that the pods do not tolerate."""
    if subject.kind == DAEMON_SET or not subject.replicas or subject.nodes:  # what runs was placed before
        return
    reach = view.reach(subject)
    if not reach.some and reach.selected.any():
        names = view.names(reach.selected)
        yield subject.complaint(
            "tolerations",
            f"{subject.name} may use {plural(len(names), 'node')} by labels ({f.listing(names)}), and tolerates "
            "the taints of none: add a toleration with the taint's key, value and effect.",
            "TaintToleration",
        )


_JSON = "staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json (strict decoding)"
_NA = "staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go"
_TAINTS = "pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go"
CHECKS = (
    Check("field-miscapitalised", UNSATISFIABLE, "a field is misspelled, so it has no effect", _JSON,
          subjects, spelling),
    Check("field-misplaced", UNSATISFIABLE, "a field is in the wrong place, so it has no effect", _JSON,
          subjects, misplaced),
    Check("node-affinity-without-terms", UNSATISFIABLE, "required node affinity has no term that can match",
          f"{_NA} (NewLazyErrorNodeSelector)", subjects, no_terms),
    Check("node-affinity-empty-term", DRIFT, "a node affinity term is empty", _NA, _node_terms, empty_term),
    Check("node-affinity-invalid-term", UNSATISFIABLE,
          "a node affinity term cannot be parsed, and no pod can be placed for it", _NA, _fatal_terms, invalid_term),
    Check("node-affinity-ignored-term", DRIFT, "a node affinity term cannot be parsed", _NA,
          _other_terms, invalid_term),
    Check("node-affinity-unmet", UNSATISFIABLE, "no node meets the nodeSelector or node affinity", _NA,
          subjects, unmet),
    Check("taints-untolerated", UNSATISFIABLE, "every node that labels allow has a taint that is not tolerated",
          _TAINTS, subjects, untolerated),
)  # fmt: skip
