"""`underhost explain`: why is a pod pending, why did it land there, node by node and rule by rule.

In: dumps, manifests and an inventory. Out: an Explanation as table, JSON or YAML. Exit 0 whatever the answer is.
"""

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import structs

from underhost.agents.commands.handlers.schedule import say_preemption
from underhost.agents.commands.input.offline import Scope, Site, faults_named, full_name, read_sites, say_changed
from underhost.agents.commands.input.options import Among, Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import (
    available,
    counted,
    kubectl_name,
    say,
    show,
    show_for_programs,
    show_not_judged,
    show_tables,
)
from underhost.agents.commands.output.formats import WIDE
from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.obstacles import grouped, said
from underhost.agents.site.not_judged import places_not_judged
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.documents import Explanation, NodeVerdict, PodVerdict
from underhost.schemas.errors import InputError

if TYPE_CHECKING:
    from underhost.agents.compiled.model import Model

WIDEST = 24
"""Characters of several nodes' names that fit a row; more are only counted."""
MOST_MEANT = 3
HEADER = ("NODE", "FEASIBLE", "TOTAL", "REASONS")


def handle(pods: list[str] | None, source: From, among: Among, output: str, judged: Judged, watch: bool) -> None:
    """Say of each pending pod, or of the named ones, which nodes would take it, and every rule that refuses."""
    last = None
    for picture in read_sites(source, judged, manifests=True, watch=watch):
        explanation = _explain(picture, Scope(picture.snapshot, among), pods)
        if explanation == last:
            continue
        if last is not None:
            say_changed(output)
        _print(explanation, picture, output)
        last = explanation


def _print(explanation: Explanation, site: Site, output: str) -> None:
    if not show_for_programs(explanation, output, map(kubectl_name, explanation.pods)):
        show_explanation(explanation, output == WIDE)
        verdicts = explanation.pods.items()
        say_preemption(site, [name for name, one in verdicts if not any(node.feasible for node in one.nodes.values())])


def _explain(site: Site, scope: Scope, pods: list[str] | None) -> Explanation:
    asked = [_meant(name, site.snapshot, scope) for name in _without_kind(pods)] if pods else None
    with faults_named(site.objects):
        explanation = explained(site.snapshot, site.options, asked, site.model)
    if asked is not None or not scope.limited:
        return explanation
    meant = {name: verdict for name, verdict in explanation.pods.items() if scope.has(name)}
    return structs.replace(explanation, pods=meant)


def _without_kind(words: list[str]) -> list[str]:
    """kubectl's grammar, too: `pod db-0` is `db-0`."""
    return words[1:] if len(words) > 1 and words[0] in ("po", "pod", "pods") else words


def _meant(name: str, snapshot: Snapshot, scope: Scope) -> str:
    """`namespace/name`. Raises InputError for a bare name without a namespace, with the pods that have the name."""
    if "/" not in name and scope.namespace is None:
        there = sorted(key for key in snapshot.pods if key.endswith(f"/{name}"))
        if there:
            raise InputError(f"pod {name}: give its namespace; did you mean {' or '.join(there[:MOST_MEANT])}?")
    return full_name(name, scope.namespace)


def explained(
    snapshot: Snapshot, options: Options, pods: list[str] | None, model: "Model | None" = None
) -> Explanation:
    """The document, with what it leaves out; arguments and errors as `schedule/explain.py` has them."""
    found = explain(snapshot, options, pods, model)
    return structs.replace(found, not_judged=places_not_judged(snapshot))


def show_explanation(explanation: Explanation, wide: bool) -> None:
    if not explanation.pods:
        show("No pending pods.\n")
    for at, (name, verdict) in enumerate(sorted(explanation.pods.items())):
        show("\n" if at else "")
        say(f"{name}: {headline(verdict)}")
        show_tables([table(name, verdict, wide)])
    show_not_judged(explanation.not_judged)


def headline(verdict: PodVerdict) -> str:
    """The answer in one line; where no node takes the pod, in the words of the upstream scheduler."""
    nodes = verdict.nodes
    if isinstance(verdict.error, str):
        return verdict.error
    gated = " It has scheduling gates, and waits until they are removed." if verdict.gated is True else ""
    good = sorted((one.physical_conflicts or 0, -(one.total or 0), name) for name, one in nodes.items() if one.feasible)
    if good:
        return f"{len(good)}/{len(nodes)} nodes would take it, best {good[0][2]}.{gated}"
    return available(len(nodes), first_reasons(nodes)) + gated


def first_reasons(nodes: dict[str, NodeVerdict]) -> dict[str, int]:
    """How many nodes each reason of the first failing rule refuses, as upstream counts."""
    return Counter(reason for one in nodes.values() for reason in next(iter(one.failing.values()), ()))


def table(pod: str, verdict: PodVerdict, wide: bool) -> Table:
    """The nodes, best first: those with fewer physical conflicts, then the higher total.

    Nodes that refuse for equal reasons share a row; with `wide` each has its own, with its scores and upstream's words.
    """
    rules = sorted({rule for one in verdict.nodes.values() for rule in (one.scores or {})}) if wide else []
    rows = []
    for name, one in sorted(verdict.nodes.items(), key=_best_first):
        if one.feasible or wide:
            scores = [str(one.scores[rule]) if one.scores and rule in one.scores else "-" for rule in rules]
            row = (name, "yes" if one.feasible else "no", str(one.total) if isinstance(one.total, int) else "-")
            rows.append((*row, *scores, _reasons(pod, one)))
    if not wide:
        rows += [(_nodes(group.nodes), "no", "-", group.text) for group in grouped(pod, verdict.nodes)]
    return Table((*HEADER[:3], *(rule.upper() for rule in rules), HEADER[3]), rows)


def _nodes(names: list[str]) -> str:
    listed = ", ".join(names)
    return listed if len(names) == 1 or len(listed) <= WIDEST else counted(len(names), "node")


def _best_first(item: tuple[str, NodeVerdict]) -> tuple[bool, int, int, str]:
    name, one = item
    return not one.feasible, one.physical_conflicts or 0, -(one.total or 0), name


def _reasons(pod: str, verdict: NodeVerdict) -> str:
    because = verdict.because or {}
    named = {rule: f" ({said(pod, each, rule)})" for rule, each in because.items()}
    if not verdict.feasible:
        return "; ".join(
            f"{rule}: {', '.join(reasons)}{named.get(rule, '')}" for rule, reasons in verdict.failing.items()
        )
    conflicts = verdict.physical_conflicts or 0
    if not conflicts:
        return "-"
    return f"shares its host with {counted(conflicts, 'pod')} to be kept apart{''.join(named.values())}"
