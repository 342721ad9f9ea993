"""Checks of nodeSelector and node affinity, and of the spelling of what a person wrote.

In: a view. Out: complaints; `CHECKS` is the table. A DaemonSet for nodes that the cluster lacks is no fault.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from underhost.agents.evaluate import findings as f
from underhost.agents.lint.checks import Check, Complaint, plural
from underhost.agents.lint.parts import PREFERRED, REQUIRED, Parsed
from underhost.agents.lint.spelling import POD_SPEC, WORKLOAD_SPEC, misspelled
from underhost.agents.lint.subjects import DAEMON_SET, Subject
from underhost.agents.lint.view import View
from underhost.agents.manifests.replicas import VMI
from underhost.agents.rules.node_affinity import NAME
from underhost.agents.site import terms

SPELLING = "Manifest"


def spelling(view: View) -> Iterator[Complaint]:
    """Fields with the wrong capitals."""
    for subject, parsed in view.parts:
        found = [(f"{subject.at}.{one.field}", one.right) for one in parsed.misspelled]
        if subject.written is not None:
            tree = POD_SPEC if subject.kind == VMI else WORKLOAD_SPEC
            found += misspelled(msgspec.json.decode(subject.written), tree, "spec")
        found += misspelled(dict.fromkeys(view.misspelled.get(subject.object, ())), POD_SPEC, "spec")
        for field, right in sorted(set(found)):
            wrong = field.rpartition(".")[2]
            yield Complaint(
                subject.object,
                field,
                f"{subject.name} says {wrong}, which the API server refuses or ignores: the field is {right}.",
                SPELLING,
            )


def no_terms(view: View) -> Iterator[Complaint]:
    """Required node affinity without a term that could match."""
    for subject, parsed in view.parts:
        if parsed.node_terms is None:
            continue
        at = f"{subject.at}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
        if not parsed.node_terms:
            message = f"The required node affinity of {subject.name} has no term, which the API server refuses"
            yield Complaint(subject.object, at, f"{message}: add one, or leave the affinity out.", NAME)
        elif all(term.empty for term in parsed.node_terms):
            message = f"The required node affinity of {subject.name} has only empty terms, which match no node"
            yield Complaint(subject.object, at, f"{message}: say which labels the nodes must have.", NAME)


def empty_terms(view: View) -> Iterator[Complaint]:
    """Empty terms beside others, and empty preferences."""
    for subject, parsed in view.parts:
        at = f"{subject.at}.affinity.nodeAffinity"
        node_terms = parsed.node_terms or ()
        if not all(term.empty for term in node_terms):
            for number, term in enumerate(node_terms):
                if term.empty:
                    field = f"{at}.{REQUIRED}.nodeSelectorTerms[{number}]"
                    message = f"A node affinity term of {subject.name} is empty, so it matches no node"
                    yield Complaint(subject.object, field, f"{message}: fill it in, or leave it out.", NAME)
        for number, preferred in enumerate(parsed.preferred_node):
            if preferred.preference.empty:
                field = f"{at}.{PREFERRED}[{number}].preference"
                message = f"A node preference of {subject.name} is empty, so it prefers nothing"
                yield Complaint(subject.object, field, f"{message}: fill it in, or leave it out.", NAME)


def invalid_terms(view: View, fatal: bool) -> Iterator[Complaint]:
    """Terms that the scheduler cannot parse.

    A required one matches nothing, fatal where no other term is left; a preferred one makes scoring fail.
    """
    for subject, parsed in view.parts:
        at = f"{subject.at}.affinity.nodeAffinity"
        node_terms = parsed.node_terms or ()
        lost = not any(_usable(term) for term in node_terms)
        found = [(f"{REQUIRED}.nodeSelectorTerms[{n}]", one, lost) for n, one in enumerate(node_terms)]
        found += [(f"{PREFERRED}[{n}].preference", one.preference, True) for n, one in enumerate(parsed.preferred_node)]
        for place, term, is_fatal in found:
            fault = terms.node_requirements(term)
            if isinstance(fault, str) and is_fatal == fatal:
                effect = (
                    "the term matches no node" if place.startswith(REQUIRED) else f"scoring fails and {subject.stuck}"
                )
                yield Complaint(
                    subject.object,
                    f"{at}.{place}",
                    f"A node affinity term of {subject.name} cannot be used ({fault}), so {effect}: correct the value.",
                    NAME,
                )


def _usable(term: terms.NodeSelectorTerm) -> bool:
    return not term.empty and not isinstance(terms.node_requirements(term), str)


def unmet(view: View) -> Iterator[Complaint]:
    """nodeSelector or required node affinity that no node of the input meets."""
    if not len(view.model.nodes):
        return
    for subject, parsed in view.parts:
        if subject.kind == DAEMON_SET or not subject.replicas or view.reach(subject).selected.any():
            continue
        found = list(_unmet(view, subject, parsed))
        if found:
            yield from found
        elif parsed.node_terms is None or any(_usable(term) for term in parsed.node_terms):
            field = "nodeSelector" if parsed.node_terms is None else f"affinity.nodeAffinity.{REQUIRED}"
            parts = "nodeSelector" if parsed.node_terms is None else "nodeSelector and node affinity"
            yield Complaint(
                subject.object,
                f"{subject.at}.{field}",
                f"No node meets all of the {parts} of {subject.name} at once, so {subject.stuck}: "
                "label a node so, or ask for less.",
                NAME,
            )


def _unmet(view: View, subject: Subject, parsed: Parsed) -> Iterator[Complaint]:
    """The parts that no node meets even by themselves."""
    for key, value in sorted(parsed.node_selector.items()):
        domains = view.model.topology.labels(key)
        if value not in domains.code_of:
            there = sorted(set(domains.code_of))
            has = f"nodes have {key} {f.listing(there)}" if there else f"no node has the label {key}"
            yield Complaint(
                subject.object,
                f"{subject.at}.nodeSelector[{key}]",
                f"No node has {key}={value}, which the nodeSelector of {subject.name} asks for, so "
                f"{subject.stuck}: {has}; label a node, or ask for a label that is there.",
                NAME,
                key,
            )
    node_terms = parsed.node_terms
    if node_terms and any(_usable(one) for one in node_terms) and not view.matching(parsed, False, True):
        asked = sorted(
            {e.key for one in node_terms for e in (*(one.match_expressions or ()), *(one.match_fields or ()))}
        )
        by = f" ({f.listing(asked)})" if asked else ""
        yield Complaint(
            subject.object,
            f"{subject.at}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
            f"No node meets {'the term' if len(node_terms) == 1 else 'any term'} of the required node affinity of "
            f"{subject.name}{by}, so {subject.stuck}: label a node so, or ask for less.",
            NAME,
        )


def untolerated(view: View) -> Iterator[Complaint]:
    """Every node that labels allow has a lasting taint that the pods do not tolerate."""
    for subject in view.subjects:
        if subject.kind == DAEMON_SET or not subject.replicas or subject.nodes:  # what runs was placed before
            continue
        reach = view.reach(subject)
        if not reach.some and reach.selected.any():
            names = view.names(reach.selected)
            yield Complaint(
                subject.object,
                f"{subject.at}.tolerations",
                f"{subject.name} may use {plural(len(names), 'node')} by labels ({f.listing(names)}), and tolerates "
                "the taints of none: add a toleration with the taint's key, value and effect.",
                "TaintToleration",
            )


_NA = "staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go"
CHECKS = (
    Check(
        "field-miscapitalised",
        f.UNSATISFIABLE,
        "a field is misspelled, so it has no effect",
        "staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json (strict decoding)",
        spelling,
    ),
    Check(
        "node-affinity-without-terms",
        f.UNSATISFIABLE,
        "required node affinity has no term that can match",
        f"{_NA} (NewLazyErrorNodeSelector)",
        no_terms,
    ),
    Check("node-affinity-empty-term", f.DRIFT, "a node affinity term is empty", _NA, empty_terms),
    Check(
        "node-affinity-invalid-term",
        f.UNSATISFIABLE,
        "a node affinity term cannot be parsed, and no pod can be placed for it",
        _NA,
        partial(invalid_terms, fatal=True),
    ),
    Check(
        "node-affinity-ignored-term",
        f.DRIFT,
        "a node affinity term cannot be parsed",
        _NA,
        partial(invalid_terms, fatal=False),
    ),
    Check("node-affinity-unmet", f.UNSATISFIABLE, "no node meets the nodeSelector or node affinity", _NA, unmet),
    Check(
        "taints-untolerated",
        f.UNSATISFIABLE,
        "every node that labels allow has a taint that is not tolerated",
        "pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go",
        untolerated,
    ),
)
