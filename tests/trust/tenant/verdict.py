"""What a tenant must not have caused, whoever it meant. Pure.

In: the API server's audit log of the product's writes, the DRS rules before and after, where VMs were, how long the
victim's findings took, what the worker held, and the findings at the end. Out: a line for each thing that is wrong.
A VM may move for the tenant's own pods: that disturbs nobody, within its share, unless the victim's rule breaks by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from underhost.schemas.shares import Shares

MIB = 1 << 20
SOON = 2.0
"""Seconds within which a finding of others opens and resolves."""
GROWTH = 400 * MIB
"""Bytes that the worker may hold more than before the attack."""

SHARE = Shares().moves
PATCH = "patch"

Write = tuple[str, str, int]
"""Verb, path, and the answer's code."""
Rules = Mapping[str, tuple[bool, list[str]]]
"""By name: whether it is enabled, and its VMs."""


class Waited(NamedTuple):
    """How long a finding took, and for how much of that the worker's event loop wanted a processor and had none."""

    seconds: float
    starved: float = 0.0

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s ({self.starved:.1f} s of them without a processor)"


@dataclass
class Seen:
    """What was seen from the moment when the attack began.

    Attributes:
        writes: of the product. followed: paths of the nodes, and of their pods, whose VM has moved.
        vmotions: how many were seen. together: pods of the victim that then shared a host, in words.
        rules: before and at the end, without the tenant's own.
        opened, resolved: from the change to the finding, and from its end to the finding's.
        memory: bytes, before and after. tenants: messages of the findings of rule `Tenant`.
        answers: whether the worker still answers.
    """

    writes: Sequence[Write] = ()
    followed: set[str] = field(default_factory=set)
    vmotions: int = 0
    together: list[str] = field(default_factory=list)
    rules: tuple[Rules, Rules] = ({}, {})
    opened: list[Waited] = field(default_factory=list)
    resolved: list[Waited] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    tenants: Sequence[str] = ()
    answers: bool = True

    def figures(self) -> str:
        """A few words for the table."""
        worst = max([*self.opened, *self.resolved], default=Waited(0.0))
        before, after = (self.memory[0], max(self.memory)) if self.memory else (0.0, 0.0)
        probes, mib = len(self.resolved), f"{before / MIB:.0f} → {after / MIB:.0f} MiB at most"
        found = f"{probes} findings of others, the slowest {worst}; memory {mib}"
        return f"{found}; {len(self.tenants)} named; {self.vmotions} vMotions"


def faults(seen: Seen, victim: str, soon: float = SOON) -> list[str]:
    """What is wrong; `victim` is a namespace, `soon` the seconds within which its findings must open and resolve."""
    found = [
        f"{verb} {path} ({code})"
        for verb, path, code in seen.writes
        if _touches(verb, path, victim) and (verb != PATCH or path not in seen.followed)
    ]
    found += [f"after a vMotion: {words}" for words in seen.together]
    if seen.vmotions > SHARE:
        found.append(f"{seen.vmotions} vMotions, and {SHARE} are the tenant's share")
    before, after = seen.rules
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    found += [f"DRS rule {name}: {before.get(name)} → {after.get(name)}" for name in changed]
    found += [f"a finding opened after {late}" for late in seen.opened if late.seconds > soon]
    found += [f"a finding was resolved after {late}" for late in seen.resolved if late.seconds > soon]
    if len(seen.opened) != len(seen.resolved) or not seen.opened:
        found.append(f"{len(seen.opened)} findings opened and {len(seen.resolved)} were resolved")
    if seen.memory and max(seen.memory) - seen.memory[0] > GROWTH:
        found.append(f"memory grew by {(max(seen.memory) - seen.memory[0]) / MIB:.0f} MiB")
    if not seen.tenants:
        found.append("no finding names the tenant")
    if not seen.answers:
        found.append("the worker does not answer any more")
    return found


def _touches(verb: str, path: str, victim: str) -> bool:
    """Whether a write moves, ends or labels anything of others; Events only tell."""
    if path.startswith("/api/v1/nodes"):
        return True
    pods = f"/api/v1/namespaces/{victim}/pods/"
    if not path.startswith(pods):
        return False
    return path.endswith(("/eviction", "/binding")) or (verb == PATCH and "/" not in path.removeprefix(pods))
