"""Our answers beside upstream's: every difference, by part, pod, node and rule.

In: a List document and upstream's answer (`-running -both`). Out: differences. Called by `parity.py` and by the tests.
"""

import io
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from underhost.agents.evaluate.check import check
from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.documents import to_builtins
from underhost.streams.files.reader import load_files

Json = Mapping[str, Any]
VIOLATIONS = ("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit", "InterPodAffinity", "PodTopologySpread")
LEFT_OUT = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
OPTIONS = Options(scheduler_names=("default-scheduler",))


class Difference(NamedTuple):
    """Where we and upstream say different things. `part` is explain, running, schedule or check."""

    part: str
    pod: str
    node: str
    rule: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        place = " ".join(word for word in (self.part, self.pod, self.node, self.rule) if word)
        return f"{place}: ours {self.ours!r}, upstream {self.theirs!r}"


def snapshot(document: bytes) -> Snapshot:
    """The document as the commands read it."""
    return snapshot_of(load_files(["-"], stdin=io.BytesIO(document)))[0]


def compare(document: bytes, answer: Json, parts: frozenset[str]) -> list[Difference]:
    """All differences in the named parts."""
    site = snapshot(document)
    found: list[Difference] = []
    if "explain" in parts:
        found += verdicts("explain", to_builtins(explain(site, OPTIONS))["pods"], answer["pods"])
    if "running" in parts:
        asked = list(answer.get("running") or {})
        found += verdicts("running", to_builtins(explain(site, OPTIONS, asked))["pods"], answer.get("running") or {})
    if "schedule" in parts:
        found += placements(to_builtins(schedule(site, OPTIONS)), answer["simulate"])
    if "check" in parts:
        found += violations(site, to_builtins(check(site, OPTIONS)), answer.get("running") or {})
    return found


def verdicts(part: str, ours: Json, theirs: Json) -> Iterator[Difference]:
    """Differences between two explanations."""
    for pod in sorted(ours.keys() | theirs.keys()):
        mine, upstream = ours.get(pod), theirs.get(pod)
        if mine is None or upstream is None:
            yield Difference(part, pod, "", "pod", mine is not None, upstream is not None)
            continue
        gated = (upstream.get("preenqueue") or {}).get("plugin") == "SchedulingGates"
        if bool(mine.get("gated")) != gated:
            yield Difference(part, pod, "", "gated", bool(mine.get("gated")), gated)
        if bool(mine.get("error")) != bool(upstream.get("error")):
            yield Difference(part, pod, "", "error", mine.get("error"), upstream.get("error"))
        for node in sorted(mine["nodes"].keys() | upstream["nodes"].keys()):
            yield from _node(part, pod, node, mine["nodes"].get(node), upstream["nodes"].get(node))


def _node(part: str, pod: str, node: str, mine: Json | None, upstream: Json | None) -> Iterator[Difference]:
    if mine is None or upstream is None:
        yield Difference(part, pod, node, "node", mine is not None, upstream is not None)
        return
    if mine["feasible"] != upstream["feasible"]:
        yield Difference(part, pod, node, "feasible", mine["failing"] or True, upstream.get("all_failing") or True)
    failing, all_failing = mine.get("failing") or {}, upstream.get("all_failing") or {}
    codes, all_codes = mine.get("code") or {}, upstream.get("all_codes") or {}
    for rule in sorted(failing.keys() | all_failing.keys()):
        if sorted(failing.get(rule, ())) != sorted(all_failing.get(rule, ())):
            yield Difference(part, pod, node, rule, failing.get(rule), all_failing.get(rule))
        elif codes.get(rule) != all_codes.get(rule):
            yield Difference(part, pod, node, f"{rule} code", codes.get(rule), all_codes.get(rule))
    scores, all_scores = mine.get("scores") or {}, upstream.get("scores") or {}
    for rule in sorted(scores.keys() | all_scores.keys()):
        if scores.get(rule, 0) != all_scores.get(rule, 0):
            yield Difference(part, pod, node, f"{rule} score", scores.get(rule), all_scores.get(rule))
    if mine.get("total") != upstream.get("total"):
        yield Difference(part, pod, node, "total", mine.get("total"), upstream.get("total"))


def placements(ours: Json, theirs: Json) -> Iterator[Difference]:
    """Differences between two schedules."""
    if list(ours["order"]) != list(theirs["order"] or ()):
        yield Difference("schedule", "", "", "order", ours["order"], theirs["order"])
    failed, all_failed = ours.get("failed") or {}, theirs.get("failed") or {}
    for pod in sorted(ours["placements"].keys() | theirs["placements"].keys()):
        mine, upstream = ours["placements"].get(pod, "absent"), theirs["placements"].get(pod, "absent")
        if mine != upstream:
            yield Difference("schedule", pod, "", "placement", mine, upstream)
        elif not _agree(failed.get(pod), all_failed.get(pod)):
            yield Difference("schedule", pod, "", "failed", failed.get(pod), all_failed.get(pod))


def _agree(ours: Json | None, theirs: Json | None) -> bool:
    """Whether nodes are counted by the same reasons.

    Nodes that upstream leaves out beforehand, by the names in a required node affinity, have one reason of their own
    there; with us they have their first failing rule's. Where upstream gives up for an error of its own (scoring
    fails), its words are not part of the contract.
    """
    if any(reason.startswith("error: ") for reason in theirs or {}):
        return True
    if not theirs or LEFT_OUT not in theirs:
        return ours == theirs
    return all((ours or {}).get(reason, 0) >= count for reason, count in theirs.items() if reason != LEFT_OUT)


def violations(site: Snapshot, report: Json, running: Json) -> Iterator[Difference]:
    """Differences between the violations that `check` finds and what upstream refuses on the pods' own nodes."""
    ours = {
        (pod, finding["rule"])
        for finding in report["findings"]
        if finding["severity"] == "violation" and finding["rule"] in VIOLATIONS
        for pod in (finding["pod"], *finding.get("peers", ()))
    }
    theirs = set()
    for pod, verdict in running.items():
        theirs |= {(pod, rule) for rule in verdict.get("own") or {} if rule in VIOLATIONS}
    for pod, rule in sorted(ours ^ theirs):
        yield Difference("check", pod, site.pods[pod].spec.node_name, rule, (pod, rule) in ours, (pod, rule) in theirs)
