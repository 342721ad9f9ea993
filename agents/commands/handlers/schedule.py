"""`underhost schedule`: where the pending pods go, placed one after another as the scheduler would.

In: dumps, manifests and an inventory. Out: Placements as table, JSON, YAML or names. Exit 1 where a pod stays pending.
"""

import typer
from msgspec import structs

from underhost.agents.commands.input.offline import Scope, Site, faults_named, read_site
from underhost.agents.commands.input.options import Among, Judged
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output import errors
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import (
    available,
    kubectl_name,
    show,
    show_for_programs,
    show_not_judged,
    show_tables,
)
from underhost.agents.schedule.pending import schedule
from underhost.agents.schedule.preemption import note
from underhost.agents.site.not_judged import not_placed, places_not_judged
from underhost.schemas.documents import Placements

HEADER = ("POD", "NODE", "REASON")
PENDING = "Pending"


def handle(source: From, among: Among, output: str, judged: Judged) -> None:
    """Place the pending pods, and those of the manifests given, and say why the rest must wait."""
    picture = read_site(source, judged, manifests=True)
    placements = _schedule(picture, Scope(picture.snapshot, among))
    if not show_for_programs(placements, output, map(kubectl_name, placements.order)):
        show_tables([table(placements, len(picture.snapshot.nodes))])
        if not placements.order:
            show("No pending pods.\n")
        show_not_judged(placements.not_judged)
        say_preemption(picture, [name for name, node in placements.placements.items() if node is None])
    if any(node is None for node in placements.placements.values()):
        raise typer.Exit(1)


def _schedule(site: Site, scope: Scope) -> Placements:
    """All pods are placed, as each takes room from the next; the answer is limited to the scope."""
    with faults_named(site.objects):
        placed = schedule(site.snapshot, site.options, site.model)
    meant = (pod for name, pod in site.snapshot.unplaced.items() if scope.has(name))
    left_out = [*places_not_judged(site.snapshot), *not_placed(meant, site.options.scheduler_names)]
    if not scope.limited:
        return structs.replace(placed, not_judged=left_out)
    order = [name for name in placed.order if scope.has(name)]
    return Placements(
        placements={name: placed.placements[name] for name in order},
        order=order,
        failed={name: placed.failed[name] for name in order if name in placed.failed},
        not_judged=left_out,
    )


def say_preemption(site: Site, waiting: list[str]) -> None:
    """The one note about pods that preemption might place."""
    said = note(site.snapshot, site.model, waiting) if waiting else None
    if said is not None:
        errors.note(said)


def table(placements: Placements, nodes: int) -> Table:
    """The pods in the order in which they were placed."""
    rows = []
    for name in placements.order:
        node, reasons = placements.placements[name], placements.failed.get(name, {})
        if node is not None:
            rows.append((name, node, "-"))
        elif any(reasons.values()):
            rows.append((name, PENDING, available(nodes, reasons)))
        else:
            rows.append((name, PENDING, ", ".join(sorted(reasons))))
    return Table(HEADER, rows)
