"""`underhost drain`, `fail`, `maintain` and `whatif`: steps are tried on a site, and what they lead to is printed.

In: dumps, an inventory and steps. Out: a WhatIf (a WhatIfList with `--each`, the worst first) as table, JSON, YAML or
names. Exit 1 where a pod stays pending, an eviction or a VM is blocked, or a new finding is at or above `--fail-on`.
"""

from collections.abc import Sequence

import typer

from underhost.agents.commands.input.offline import Site, faults_named, full_name, read_site
from underhost.agents.commands.input.options import Answered, Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.input.sources import stdin
from underhost.agents.commands.output import documents as out
from underhost.agents.commands.output import errors
from underhost.agents.commands.output.formats import NEVER, WIDE
from underhost.agents.commands.output.plan_tables import each_summary, each_table, simulated, summary, tables
from underhost.agents.evaluate.findings import listing
from underhost.agents.snapshots.load import added_of
from underhost.agents.whatif.each import each as try_each
from underhost.agents.whatif.each import listed
from underhost.agents.whatif.plan import Answer, what_if
from underhost.agents.whatif.processes import processes
from underhost.agents.whatif.steps import (
    STEPS,
    Drain,
    Fail,
    Maintain,
    Step,
    described,
    host_name,
    node_name,
    parse,
    target,
)
from underhost.schemas.documents import Target, WhatIf
from underhost.schemas.errors import InputError
from underhost.schemas.severities import at_or_above
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import STDIN, load_files


def drain(nodes: list[str], source: From, answered: Answered, judged: Judged) -> None:
    """Nodes are cordoned, then drained in this order."""
    steps = [Drain(tuple(dict.fromkeys(node_name(name) for name in nodes)))]
    _answer(read_site(source, judged, manifests=True), steps, answered)


def maintain(hosts: list[str], source: From, answered: Answered, judged: Judged) -> None:
    """ESXi hosts enter maintenance mode, one after another."""
    steps = [Maintain(name) for name in dict.fromkeys(host_name(host) for host in hosts)]
    _answer(read_site(source, judged, manifests=True), steps, answered)


def fail(targets: list[str], each: str | None, ha: bool, source: From, answered: Answered, judged: Judged) -> None:
    """Nodes and ESXi hosts fail at the same time; or, of the kind `each`, every one alone."""
    steps = [Fail(tuple(dict.fromkeys(target(one) for one in targets)), ha)]
    site = read_site(source, judged, manifests=True)
    if each is None:
        _answer(site, steps, answered)
        return
    with faults_named(site.objects):
        others = site.objects.others
        found = try_each(site.snapshot, site.options, each, ha=ha, others=others, processes=processes())
    _answer_each(found, each, answered)


def whatif(
    given: list[tuple[str, str]], namespace: str | None, ha: bool, source: From, answered: Answered, judged: Judged
) -> None:
    """Any steps, as (option, value), in this order."""
    added_files = [text for name, text in given if name == "add"]
    if [*(source.files or ()), source.inventory, *added_files].count(STDIN) > 1:
        raise InputError("stdin: is given twice")
    steps, added = _steps(given, namespace, ha)
    _answer(read_site(source, judged, manifests=True), steps, answered, added)


def _steps(given: list[tuple[str, str]], namespace: str | None, ha: bool) -> tuple[list[Step], list[Objects]]:
    """The steps in their order, and what the files of `--add` hold. Raises InputError."""
    steps: list[Step] = []
    added: list[Objects] = []
    faults: list[str] = []
    for name, text in given:
        if name not in STEPS:
            continue
        try:
            if name == "add":
                added.append(load_files([text], stdin=stdin()))
                steps.append(added_of(added[-1]))
            else:
                steps.append(parse(name, full_name(text, namespace) if name == "delete" else text, ha=ha))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return steps, added


def _answer(site: Site, steps: Sequence[Step], answered: Answered, added: Sequence[Objects] = ()) -> None:
    """Try the steps and print what they lead to; `added` are the objects of the files that steps add."""
    with faults_named(site.objects, *added):
        found = what_if(site.snapshot, site.options, steps, site.objects.others)
    document = found.document
    if not out.show_for_programs(document, answered.output, map(out.kubectl_name, _touched(document))):
        out.say(simulated(", then ".join(described(steps)) or "no step"))
        out.show_tables(tables(found, described(steps), answered.output == WIDE))
        out.say(summary(document))
        out.show_not_judged(document.not_judged)
    _note(found)
    if _fails(document, answered.fail_on):
        raise typer.Exit(1)


def _answer_each(found: list[Target], kind: str, answered: Answered) -> None:
    """Print what the failure of each target alone leads to, the worst first."""
    bad = [one for one in found if _fails(one, answered.fail_on)]
    if not out.show_for_programs(listed(found), answered.output, (one.target for one in found)):
        out.say(simulated(f"each {kind} fails, alone"))
        out.show_tables([each_table(found, kind, answered.output == WIDE)])
        out.say(each_summary(found, bad, kind, answered.fail_on))
        out.show_not_judged(listed(found).not_judged)
    if bad:
        raise typer.Exit(1)


def _fails(document: WhatIf, fail_on: str) -> bool:
    """Whether the answer is exit code 1."""
    if document.pending or document.blocked or any(move.to is None for move in document.vm_moves):
        return True
    return fail_on != NEVER and any(at_or_above(one.severity, fail_on) for one in document.new_findings)


def _touched(document: WhatIf) -> list[str]:
    """The pods that something becomes of, sorted."""
    names = {move.pod for move in document.moves} | document.pending.keys() | {one.pod for one in document.blocked}
    return sorted(names)


def _note(found: Answer) -> None:
    """What is no consequence of the plan, and a person should know."""
    for pods, one, many in (
        (found.first, "waited, and is placed before the plan begins", "waited, and are placed before the plan begins"),
        (found.waiting, "waited before the plan, and still does", "waited before the plan, and still do"),
    ):
        if pods:
            said = f"1 pod {one}" if len(pods) == 1 else f"{len(pods)} pods {many}"
            errors.note(f"{said}: {listing(pods)}")
