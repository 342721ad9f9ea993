"""What `drain`, `fail`, `maintain` and `whatif` have in common: their options, the answer printed, the exit code.

In: a site and steps. Out: a WhatIf as table, JSON, YAML or names. Exit 1 where a pod stays pending, an eviction or a VM
is blocked, or a new finding is at or above `--fail-on`. The tables are in `plan_tables.py`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.offline import Site, faults_named
from underhost.agents.commands.input.options import NEVER, output_option
from underhost.agents.commands.output.documents import FORMATS
from underhost.schemas.severities import SEVERITIES, at_or_above

if TYPE_CHECKING:
    from underhost.agents.whatif.plan import Answer
    from underhost.agents.whatif.steps import Step
    from underhost.schemas.documents import Target, WhatIf
    from underhost.streams.files.objects import Objects

OutputOption = Annotated[str, output_option(FORMATS)]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="SEVERITY",
        help="Exit 1 for a new finding from this severity upwards, or never.",
        autocompletion=values.severities,
    ),
]
NoHaOption = Annotated[bool, typer.Option("--no-ha", help="No VM of a failed host is restarted: its nodes are lost.")]


def check_options(output: str, fail_on: str) -> None:
    """Refuse what could not be printed before anything is read. Raises InputError."""
    from underhost.agents.commands.output.columns import one_of

    one_of("--output", output, FORMATS)
    one_of("--fail-on", fail_on, (*SEVERITIES, NEVER))


def answer(site: Site, steps: Sequence["Step"], output: str, fail_on: str, added: Sequence["Objects"] = ()) -> None:
    """Try the steps and print what they lead to; `added` are the objects of the files that steps add."""
    from underhost.agents.commands.output import documents as out
    from underhost.agents.commands.output.columns import clean
    from underhost.agents.whatif.plan import what_if
    from underhost.agents.whatif.steps import described

    with faults_named(site.objects, *added):
        found = what_if(site.snapshot, site.options, steps, site.objects.others)
    document = found.document
    if output in (out.JSON, out.YAML):
        out.show(out.document(document, output))
    elif output == out.NAME:
        out.show("".join(f"pod/{clean(name)}\n" for name in touched(document)))
    else:
        from underhost.agents.commands.output.plan_tables import summary, tables

        out.show_tables(tables(found, described(steps), output == out.WIDE))
        out.show(f"{summary(document)}\n")
    _note(found)
    if fails(document, fail_on):
        raise typer.Exit(1)


def answer_each(found: list["Target"], kind: str, output: str, fail_on: str) -> None:
    """Print what the failure of each target alone leads to, the worst first."""
    from underhost.agents.commands.output import documents as out
    from underhost.agents.commands.output.columns import clean
    from underhost.schemas.documents import WhatIfList

    bad = [one for one in found if fails(one, fail_on)]
    if output in (out.JSON, out.YAML):
        out.show(out.document(WhatIfList(items=found), output))
    elif output == out.NAME:
        out.show("".join(f"{clean(one.target)}\n" for one in found))
    else:
        from underhost.agents.commands.output.plan_tables import each_summary, each_table

        out.show_tables([each_table(found, kind, output == out.WIDE)])
        out.show(f"{each_summary(found, bad, kind, fail_on)}\n")
    if bad:
        raise typer.Exit(1)


def fails(document: "WhatIf", fail_on: str) -> bool:
    """Whether the answer is exit code 1."""

    if document.pending or document.blocked or any(move.to is None for move in document.vm_moves):
        return True
    return fail_on != NEVER and any(at_or_above(one.severity, fail_on) for one in document.new_findings)


def touched(document: "WhatIf") -> list[str]:
    """The pods that something becomes of, sorted."""
    names = {move.pod for move in document.moves} | document.pending.keys() | {one.pod for one in document.blocked}
    return sorted(names)


def _note(found: "Answer") -> None:
    """What is no consequence of the plan, and a person should know."""
    from underhost.agents.evaluate.findings import listing

    for pods, one, many in (
        (found.first, "waited, and is placed before the plan begins", "waited, and are placed before the plan begins"),
        (found.waiting, "waited before the plan, and still does", "waited before the plan, and still do"),
    ):
        if pods:
            said = f"1 pod {one}" if len(pods) == 1 else f"{len(pods)} pods {many}"
            typer.echo(f"note: {said}: {listing(pods)}", err=True)
