"""Checks of disruption budgets: those that cannot be, protect nothing, can never allow an eviction, or block a drain.

In: a view. Out: complaints; `CHECKS` is the table. The figures are those of `budgets.py`.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np

from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.budgets import RULE, Covered
from underhost.agents.lint.checks import Check, Complaint, plural
from underhost.agents.lint.parts import ANTI_AFFINITY, Place
from underhost.agents.lint.spelling import BUDGET_SPEC, misspelled
from underhost.agents.lint.subjects import Subject
from underhost.agents.lint.view import ADDED, View
from underhost.agents.site import terms
from underhost.agents.site.selectors import matches
from underhost.schemas.kubernetes import Budget

BETA = "policy/v1beta1"


def both(view: View) -> Iterator[Complaint]:
    """minAvailable and maxUnavailable at once."""
    for name, budget in _budgets(view):
        if budget.spec.min_available is not None and budget.spec.max_unavailable is not None:
            yield _said(
                name,
                "spec.maxUnavailable",
                f"Budget {name} sets minAvailable and maxUnavailable, which the API server refuses: keep one of them.",
            )


def neither(view: View) -> Iterator[Complaint]:
    """Neither minAvailable nor maxUnavailable."""
    for name, budget in _budgets(view):
        if budget.spec.min_available is None and budget.spec.max_unavailable is None:
            yield _said(
                name,
                "spec",
                f"Budget {name} sets neither minAvailable nor maxUnavailable, so it allows no eviction: set one.",
            )


def beta(view: View) -> Iterator[Complaint]:
    """The API version that Kubernetes 1.25 removed."""
    for name, budget in _budgets(view):
        if budget.api_version == BETA:
            yield _said(
                name,
                "apiVersion",
                f"Budget {name} is of {BETA}, which Kubernetes 1.25 removed: use policy/v1, where an empty selector "
                "matches every pod of the namespace instead of none.",
            )


def empty_selector(view: View) -> Iterator[Complaint]:
    """`{}`: every pod of the namespace, or in v1beta1 none."""
    for name, budget in _budgets(view):
        if terms.label_selector(bytes(budget.spec.selector), "spec.selector") == ():
            effect = "matches no pod" if budget.api_version == BETA else "covers every pod of its namespace"
            yield _said(
                name,
                "spec.selector",
                f"Budget {name} has the empty selector, which {effect}, and some versions of the API server read it "
                "otherwise: select the pods that are meant.",
            )


def matches_nothing(view: View) -> Iterator[Complaint]:
    """A budget that covers no pod of the input, nor one that a template of it would make."""
    peopled = {subject.namespace for subject in view.subjects}
    for name, budget in _budgets(view):
        requirements = terms.label_selector(bytes(budget.spec.selector), "spec.selector")
        namespace = budget.metadata.namespace
        if requirements == () or view.budgets[name].pods:
            continue
        if requirements is None:
            message = f"Budget {name} has no selector, so it covers no pod: select the pods that are meant."
        elif not view.telling or (not view.whole and namespace not in peopled):
            continue  # its pods may well be in another file, or made by a custom resource
        elif any(
            subject.namespace == namespace and matches(_lasting(requirements), terms.labels(subject.template_labels))
            for subject in view.subjects
            if subject.template_labels is not None
        ):
            continue
        else:
            message = f"Budget {name} covers no pod of the input: select the labels of the pods that are meant."
        yield _said(name, "spec.selector", message)


def _lasting(requirements: tuple[tuple[str, str, tuple[str, ...]], ...]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [one for one in requirements if one[0] not in ADDED]


def protects_nothing(view: View) -> Iterator[Complaint]:
    """minAvailable 0, or maxUnavailable 100 %."""
    for name, budget in _budgets(view):
        spec = budget.spec
        if spec.max_unavailable is None and spec.min_available in (0, "0", "0%"):
            yield _said(
                name,
                "spec.minAvailable",
                f"Budget {name} has minAvailable {spec.min_available}, so it protects nothing: raise it.",
            )
        elif spec.min_available is None and spec.max_unavailable == "100%":
            yield _said(
                name, "spec.maxUnavailable", f"Budget {name} has maxUnavailable 100%, so it protects nothing: lower it."
            )


def never(view: View) -> Iterator[Complaint]:
    """A budget that allows no eviction even with every replica healthy."""
    for name, budget in _budgets(view):
        covered = view.budgets[name]
        spec = budget.spec
        if covered.best == 0 and covered.pods and not (spec.min_available is None and spec.max_unavailable is None):
            yield _said(
                name,
                _field(budget),
                f"Budget {name} can never allow an eviction of {f.listing(covered.pods)}: {covered.why}, so a drain "
                f"waits for ever; {_remedy(budget, covered)}.",
            )


def _remedy(budget: Budget, covered: Covered) -> str:
    if "controller" in covered.why or "scale" in covered.why:
        return "count them with an integer minAvailable"
    if budget.spec.max_unavailable is not None:
        return "raise it"
    return "lower it" if budget.spec.min_available == "100%" else "run one replica more, or lower it"


def overlap(view: View) -> Iterator[Complaint]:
    """Two budgets on one pod: the eviction API answers with an error, for ever."""
    of_pod: defaultdict[str, list[str]] = defaultdict(list)
    for name, covered in view.budgets.items():
        for pod in covered.pods:
            of_pod[pod].append(name)
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for pod in sorted(of_pod):
        if len(of_pod[pod]) > 1:
            groups[tuple(of_pod[pod])].append(pod)
    for names, pods in sorted(groups.items()):
        yield _said(
            names[0],
            "spec.selector",
            f"Budgets {f.listing(list(names), len(names))} {'both' if len(names) == 2 else 'all'} cover "
            f"{f.listing(pods)}, so the API server refuses every eviction: leave one budget for each pod.",
            "\0".join(names),
        )


def blocks_drain(view: View) -> Iterator[Complaint]:
    """A budget whose pods must be apart, and for which too few domains remain when a node or ESXi host is drained.

    The last pod there may go once the desired number is healthy elsewhere; where that many domains do not remain, the
    drain waits for ever. How full the other nodes are is not looked at: a budget that is named here is blocked anyway.
    """
    for name, budget in _budgets(view):
        covered = view.budgets[name]
        if not covered.best or covered.figures.desired < 1:
            continue
        subjects = {id(one): one for one in map(view.subject_of.get, covered.pods) if one is not None}
        if len(subjects) != 1:
            continue
        (subject,) = subjects.values()
        for place in view.parsed(subject).places:
            if place.form == ANTI_AFFINITY and place.required and place.key and view.selects_own(place):
                blocked = _blocked(view, subject, place, covered)
                if blocked:
                    yield _drain(name, budget, place, covered, blocked)


def _drain(name: str, budget: Budget, place: Place, covered: Covered, blocked: list[tuple[str, int]]) -> Complaint:
    left = min(count for _, count in blocked)
    return _said(
        name,
        _field(budget),
        f"Budget {name} blocks a drain of {f.listing([one for one, _ in blocked])}: {covered.figures.desired} pods "
        f"must stay healthy, each in a {place.key} of its own, and {plural(left, 'domain')} would be left; "
        "let the budget spare more, add a domain, or make the rule a preference.",
        place.key,
    )


def _blocked(view: View, subject: Subject, place: Place, covered: Covered) -> list[tuple[str, int]]:
    """Nodes and ESXi hosts with pods of the budget, and how many domains a drain of each leaves."""
    reach, codes = view.reach(subject), view.codes(place.key)
    if not reach.some or reach.without(place.key):
        return []
    index = view.model.nodes.index
    used = sorted({index[name] for name in subject.nodes if name in index})
    areas = [(f"node {view.model.nodes.names[at]}", np.arange(len(codes)) == at) for at in used]
    hosts = view.model.topology.hosts
    if hosts is not None:
        for code in sorted({hosts.code_list[at] for at in used} - {-1}, key=lambda code: hosts.values[code]):
            areas.append((f"ESXi host {hosts.values[code]}", hosts.codes == code))
    found = []
    for name, area in areas:
        left = len(np.unique(codes[reach.eligible & ~area]))
        if left < covered.figures.desired:
            found.append((name, left))
    return found


def spelling(view: View) -> Iterator[Complaint]:
    """Fields with the wrong capitals."""
    for name, budget in _budgets(view):
        unread = dict.fromkeys(view.misspelled.get(f"{RULE}/{name}", ()))
        read = {"selector": msgspec.json.decode(budget.spec.selector)}
        for one in misspelled({**unread, **read}, BUDGET_SPEC, "spec"):
            wrong = one.field.rpartition(".")[2]
            message = f"Budget {name} says {wrong}, which the API server refuses or ignores: the field is {one.right}."
            yield _said(name, one.field, message)


def _budgets(view: View) -> list[tuple[str, Budget]]:
    return sorted(view.snapshot.budgets.items())


def _field(budget: Budget) -> str:
    return "spec.maxUnavailable" if budget.spec.max_unavailable is not None else "spec.minAvailable"


def _said(name: str, field: str, message: str, value: str = "") -> Complaint:
    return Complaint(f"{RULE}/{name}", field, message, RULE, value)


_CONTROLLER = "pkg/controller/disruption/disruption.go"
_EVICTION = "pkg/registry/core/pod/storage/eviction.go"
_VALIDATION = "pkg/apis/policy/validation/validation.go"
CHECKS = (
    Check("budget-min-and-max", f.BUDGET, "the budget sets minAvailable and maxUnavailable", _VALIDATION, both),
    Check("budget-without-bound", f.BUDGET, "the budget sets neither bound", _CONTROLLER, neither),
    Check("budget-api-removed", f.BUDGET, "the budget's API version was removed", "pkg/apis/policy/v1beta1", beta),
    Check(
        "budget-selector-empty", f.BUDGET, "the budget's selector is empty", "api/policy/v1/types.go", empty_selector
    ),
    Check("budget-covers-nothing", f.BUDGET, "the budget covers no pod", _CONTROLLER, matches_nothing),
    Check("budget-protects-nothing", f.BUDGET, "the budget protects nothing", _CONTROLLER, protects_nothing),
    Check("budget-never-allows", f.BUDGET, "the budget can never allow an eviction", _CONTROLLER, never),
    Check("budget-overlap", f.BUDGET, "more than one budget covers a pod", _EVICTION, overlap),
    Check("budget-blocks-drain", f.BUDGET, "the budget blocks a drain", _EVICTION, blocks_drain),
    Check("budget-miscapitalised", f.BUDGET, "a field of the budget is misspelled", _VALIDATION, spelling),
)
