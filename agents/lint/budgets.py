"""Checks of disruption budgets: those that cannot be, protect nothing, can never allow an eviction, or block a drain.

In: a view. Out: complaints; `CHECKS` is the table. The figures are those of `evaluate/budgets.py`.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.disruption import RULE, Covered
from underhost.agents.lint.checks import Check, plural
from underhost.agents.lint.spelling import BUDGET_SPEC, misspelled
from underhost.agents.lint.subjects import ANTI_AFFINITY, Complaint, PodRule
from underhost.agents.lint.view import ADDED, View
from underhost.agents.site import terms
from underhost.agents.site.places import named_host
from underhost.agents.site.selectors import matches
from underhost.schemas.kubernetes import Budget, BudgetSpec
from underhost.schemas.severities import BUDGET

BETA = "policy/v1beta1"


class JudgedBudget(NamedTuple):
    """A budget with its pods and figures; `name` is `namespace/name`."""

    name: str
    budget: Budget
    spec: BudgetSpec
    covered: Covered

    @property
    def bound(self) -> str:
        """The field that says how many pods may be disrupted."""
        return "spec.maxUnavailable" if self.spec.max_unavailable is not None else "spec.minAvailable"

    def complaint(self, field: str, says: str, value: str = "") -> Complaint:
        """What is said of it, after its name."""
        return Complaint(f"{RULE}/{self.name}", field, f"Budget {self.name} {says}", RULE, value)


def budgets(view: View) -> Iterator[JudgedBudget]:
    """Every budget, by name."""
    for name, budget in sorted(view.snapshot.budgets.items()):
        yield JudgedBudget(name, budget, budget.spec, view.budgets[name])


def both(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """minAvailable and maxUnavailable at once."""
    if one.spec.min_available is not None and one.spec.max_unavailable is not None:
        says = "sets minAvailable and maxUnavailable, which the API server refuses: keep one of them."
        yield one.complaint("spec.maxUnavailable", says)


def out_of_range(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """A bound that is negative, above 100 %, or neither a number nor a percentage."""
    for field, value in (("minAvailable", one.spec.min_available), ("maxUnavailable", one.spec.max_unavailable)):
        if value is not None and not _is_allowed(value):
            says = (
                f"has {field} {str(value)[:40]}, which the API server refuses: use a number from 0 on, or 0% to 100%."
            )
            yield one.complaint(f"spec.{field}", says)


def _is_allowed(value: int | str) -> bool:
    if isinstance(value, int):
        return value >= 0
    percent = _percent(value)
    return percent is not None and percent <= 100


def neither(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """Neither minAvailable nor maxUnavailable."""
    if one.spec.min_available is None and one.spec.max_unavailable is None:
        yield one.complaint("spec", "sets neither minAvailable nor maxUnavailable, so it allows no eviction: set one.")


def beta(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """The API version that Kubernetes 1.25 removed, in a manifest: an old cluster answers with no other."""
    if one.budget.api_version == BETA and not one.budget.metadata.uid:
        yield one.complaint(
            "apiVersion",
            f"is of {BETA}, which Kubernetes 1.25 removed: use policy/v1, where an empty selector "
            "matches every pod of the namespace instead of none.",
        )


def empty_selector(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """`{}`: every pod of the namespace, or in v1beta1 none."""
    if terms.label_selector(bytes(one.spec.selector), "spec.selector") == ():
        effect = "matches no pod" if one.budget.api_version == BETA else "covers every pod of its namespace"
        yield one.complaint(
            "spec.selector",
            f"has the empty selector, which {effect}, and some versions of the API server read it "
            "otherwise: select the pods that are meant.",
        )


def matches_nothing(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """A budget that covers no pod of the input, nor one that a template of it would make."""
    requirements = terms.label_selector(bytes(one.spec.selector), "spec.selector")
    if requirements is None:
        yield one.complaint("spec.selector", "has no selector, so it covers no pod: select the pods that are meant.")
        return
    if not requirements or one.covered.pods or not view.telling:
        return  # its pods may well be made by a custom resource
    there = [subject for subject in view.subjects if subject.namespace == one.budget.metadata.namespace]
    if not view.whole and not there:
        return  # its pods may well be in another file
    lasting = [requirement for requirement in requirements if requirement[0] not in ADDED]
    templates = (subject.template_labels for subject in there if subject.template_labels is not None)
    if not any(matches(lasting, terms.labels(labels)) for labels in templates):
        says = "covers no pod of the input: select the labels of the pods that are meant, or leave it out with them."
        yield one.complaint("spec.selector", says)


def protects_nothing(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """minAvailable 0, or maxUnavailable 100 %."""
    least, most = one.spec.min_available, one.spec.max_unavailable
    if most is None and least in (0, "0", "0%"):
        yield one.complaint("spec.minAvailable", f"has minAvailable {least}, so it protects nothing: raise it.")
    elif least is None and most == "100%":
        yield one.complaint("spec.maxUnavailable", "has maxUnavailable 100%, so it protects nothing: lower it.")


def never(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """A budget that allows no eviction even with every replica healthy."""
    spec, covered = one.spec, one.covered
    if not all(_is_allowed(value) for value in (spec.min_available, spec.max_unavailable) if value is not None):
        return  # no cluster has such a budget
    if covered.best == 0 and covered.pods and not (spec.min_available is None and spec.max_unavailable is None):
        yield one.complaint(
            one.bound,
            f"can never allow an eviction of {f.listing(covered.pods)}: {covered.why}, so a drain waits for ever; "
            f"{_remedy(one)}.",
        )


def _remedy(one: JudgedBudget) -> str:
    if "controller" in one.covered.why or "scale" in one.covered.why:
        return "count them with an integer minAvailable"
    if one.spec.max_unavailable is not None:
        return "raise it"
    enough = _enough(one.spec.min_available)
    return "lower it" if enough is None else f"run {enough} replicas, or lower it"


def _enough(least: int | str | None) -> int | None:
    """The fewest replicas of which `least` spare one, None where no number does."""
    if isinstance(least, int):
        return least + 1
    percent = _percent(least or "")
    return None if percent is None or percent >= 100 else -(-100 // (100 - percent))


def _percent(value: str) -> int | None:
    digits = value.removesuffix("%")
    return int(digits) if value.endswith("%") and digits.isdecimal() and len(digits) < 10 else None


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
        yield Complaint(
            f"{RULE}/{names[0]}",
            "spec.selector",
            f"Budgets {f.listing(list(names), len(names))} {'both' if len(names) == 2 else 'all'} cover "
            f"{f.listing(pods)}, so the API server refuses every eviction: leave one budget for each pod.",
            RULE,
            "\0".join(names),
        )


def blocks_drain(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """A budget whose pods must be apart, and for which too few domains remain when a node or host is drained.

    The last pod there may go once the desired number is healthy elsewhere; where that many domains do not remain, the
    drain waits for ever. How full the other nodes are is not looked at: a budget that is named here is blocked anyway.
    """
    desired = one.covered.figures.desired
    if not one.covered.best or desired < 1:
        return
    subjects = {view.subject_of.get(pod) for pod in one.covered.pods} - {None}
    subject = subjects.pop() if len(subjects) == 1 else None
    if subject is None:
        return
    for rule in subject.rules.between_pods:
        if rule.form == ANTI_AFFINITY and rule.required and rule.key and rule.selects_own:
            blocked = _blocked(view, rule, desired)
            if blocked:
                yield one.complaint(
                    one.bound,
                    f"blocks a drain of {f.listing([name for name, _ in blocked])}: {desired} pods must stay healthy, "
                    f"each in a {rule.key} of its own, and {plural(min(left for _, left in blocked), 'domain')} would "
                    "be left; let the budget spare more, add a domain, or make the rule a preference.",
                    rule.key,
                )


def _blocked(view: View, rule: PodRule, desired: int) -> list[tuple[str, int]]:
    """Nodes and hosts with pods of the budget, and how many domains a drain of each leaves, if too few."""
    reach, codes, nodes = view.reach(rule.subject), view.codes(rule.key), view.model.nodes
    if not reach.some or reach.without(rule.key):
        return []
    used = sorted({nodes.index[name] for name in rule.subject.nodes if name in nodes.index})
    areas = [(f"node {nodes.names[at]}", np.arange(len(codes)) == at) for at in used]
    hosts = view.model.topology.hosts
    if hosts is not None:
        for code in sorted({hosts.code_list[at] for at in used} - {-1}, key=lambda code: hosts.values[code]):
            areas.append((named_host(view.snapshot, hosts.values[code]), hosts.codes == code))
    left = [(name, len(np.unique(codes[reach.eligible & ~area]))) for name, area in areas]
    return [(name, count) for name, count in left if count < desired]


def spelling(view: View, one: JudgedBudget) -> Iterator[Complaint]:
    """Fields with the wrong capitals."""
    unread = dict.fromkeys(view.misspelled.get(f"{RULE}/{one.name}", ()))
    for found in misspelled({**unread, "selector": msgspec.json.decode(one.spec.selector)}, BUDGET_SPEC, "spec"):
        wrong = found.field.rpartition(".")[2]
        says = f"says {wrong}, which the API server refuses or ignores: the field is {found.right}."
        yield one.complaint(found.field, says)


_CONTROLLER = "pkg/controller/disruption/disruption.go"
_EVICTION = "pkg/registry/core/pod/storage/eviction.go"
_API = "pkg/apis/policy/validation/validation.go"
_OLD_API, _NEW_API = "pkg/apis/policy/v1beta1", "api/policy/v1/types.go"
CHECKS = (
    Check("budget-min-and-max", BUDGET, "the budget sets minAvailable and maxUnavailable", _API, budgets, both),
    Check("budget-out-of-range", BUDGET, "a bound of the budget is out of range", _API, budgets, out_of_range),
    Check("budget-without-bound", BUDGET, "the budget sets neither bound", _CONTROLLER, budgets, neither),
    Check("budget-api-removed", BUDGET, "the budget's API version was removed", _OLD_API, budgets, beta),
    Check("budget-selector-empty", BUDGET, "the budget's selector is empty", _NEW_API, budgets, empty_selector),
    Check("budget-covers-nothing", BUDGET, "the budget covers no pod", _CONTROLLER, budgets, matches_nothing),
    Check("budget-protects-nothing", BUDGET, "the budget protects nothing", _CONTROLLER, budgets, protects_nothing),
    Check("budget-never-allows", BUDGET, "the budget can never allow an eviction", _CONTROLLER, budgets, never),
    Check("budget-overlap", BUDGET, "more than one budget covers a pod", _EVICTION, None, overlap),
    Check("budget-blocks-drain", BUDGET, "the budget blocks a drain", _EVICTION, budgets, blocks_drain),
    Check("budget-miscapitalised", BUDGET, "a field of the budget is misspelled", _API, budgets, spelling),
)
