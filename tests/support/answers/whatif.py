"""Plans for the tests of what-if, as they are written on the command line, and their answers as plain values."""

from collections.abc import Mapping
from typing import Any

from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.whatif.plan import Answer, what_if
from underhost.agents.whatif.steps import Step, parse
from underhost.schemas.documents import WhatIf
from underhost.schemas.manifests import Manifest


def plan(*lines: str, ha: bool = True) -> list[Step]:
    """`drain n1` and the like, one line a step."""
    return [parse(*line.split(" ", 1), ha=ha) for line in lines]


def answer(
    site: Snapshot, *lines: str, ha: bool = True, options: Options | None = None, others: Mapping[str, Manifest] = {}
) -> Answer:
    """What the steps lead to, with what is said beside it."""
    return what_if(site, options or Options(), plan(*lines, ha=ha), others)


def tried(site: Snapshot, *lines: str, **more: Any) -> WhatIf:
    """What the steps lead to."""
    return answer(site, *lines, **more).document


def moves(document: WhatIf) -> list[str]:
    """`1 db-0 n1>n2 drain`, in their order; namespaces left out."""
    return [
        f"{one.step} {one.pod.partition('/')[2]} {one.from_ or '-'}>{one.to} {one.reason}" for one in document.moves
    ]


def vm_moves(document: WhatIf) -> list[str]:
    """`1 n1 h1>h2`, in their order."""
    return [f"{one.step} {one.vm} {one.from_}>{one.to or '-'}" for one in document.vm_moves]


def pending(document: WhatIf) -> dict[str, dict[str, int]]:
    """Reasons by pod, namespaces left out."""
    return {pod.partition("/")[2]: reasons for pod, reasons in document.pending.items()}


def blocked(document: WhatIf) -> dict[str, list[str]]:
    """Budgets by pod, namespaces left out."""
    return {one.pod.partition("/")[2]: [name.partition("/")[2] for name in one.budgets] for one in document.blocked}


def used(document: WhatIf) -> dict[str, tuple[int, int]]:
    """(allowed before, used) by budget, namespaces left out."""
    return {name.partition("/")[2]: (one.allowed_before, one.used) for name, one in document.budgets.items()}
