"""What the evictor remembers over a restart: its own commands, as the table of `actions` holds them.

In: the newest `evict` command of each pod, and outcomes. Out: the guard's cases, the evictions that are under way, and
what was said already. Called once by the decider as a site becomes ready. A command says all that there is to remember
of its case: no second record could disagree with it. Whether its pod went is seen in the picture.
"""

from collections.abc import Iterable

from underhost.agents.sinks.evictions.loop_guard import CaseHistory, CaseKey, LoopGuard
from underhost.agents.sinks.evictions.pace import EvictionPace, UnderWay
from underhost.agents.sinks.evictions.sink import DesiredEviction, PastCase, desired_eviction
from underhost.agents.sinks.orders import DONE, seconds_of
from underhost.agents.site.owners import Application
from underhost.schemas.records import Action, Outcome

RECENT = 600.0
"""Seconds for which an eviction may be under way."""

Said = dict[str, tuple[str, float]]
"""By finding, the reason why it is left alone, and when that was said."""


def remembered(
    actions: Iterable[Action],
    outcomes: Iterable[Outcome],
    pace: EvictionPace,
    guard: LoopGuard,
    now: float,
    clock: float,
) -> Said:
    """Fill the pace and the guard. `now` is in monotonic seconds, `clock` the same moment in seconds since 1970."""
    rows = sorted(_read(actions), key=lambda row: seconds_of(row[0].at))
    in_vain = {one.id for one in outcomes if one.result not in DONE}
    newest: dict[CaseKey, DesiredEviction | PastCase] = {}
    said: Said = {}
    for desired, _ in rows:
        newest.update({_case(desired.owner, past): past for past in desired.others})
        newest[_case(desired.owner, desired)] = desired
    for desired, action in rows:
        key, age = _case(desired.owner, desired), max(0.0, clock - seconds_of(desired.at))
        if desired.refuse:
            said[desired.finding] = desired.refuse, now - age
        elif action.id not in in_vain and (newest[key] is desired or age < RECENT):
            pace.begin(_under_way(desired, action, now - age, counted=newest[key] is not desired))
    for key, last in newest.items():
        # What is not seen to have gone is not counted: then there was one eviction less.
        ordered = isinstance(last, DesiredEviction) and not last.refuse
        if key.owner:
            guard.cases[key] = CaseHistory(last.low, last.number - 1 if ordered else last.number)
    return said


def _under_way(desired: DesiredEviction, action: Action, at: float, *, counted: bool) -> UnderWay:
    return UnderWay(
        id=action.id,
        pod=action.target.partition("/")[2],
        uid=desired.uid,
        application=Application(*desired.owner.split("/")),
        node=desired.node,
        host=desired.host,
        case=_case(desired.owner, desired),
        broken=desired.broken,
        wanted=0,
        at=at,
        earlier=True,
        counted=counted,
    )


def _read(actions: Iterable[Action]) -> list[tuple[DesiredEviction, Action]]:
    found = []
    for action in actions:
        desired = desired_eviction(action)
        if desired is not None and (desired.owner.count("/") == 2 or (desired.refuse and not desired.owner)):
            found.append((desired, action))
    return found


def _case(owner: str, one: DesiredEviction | PastCase) -> CaseKey:
    return CaseKey(owner, one.severity, one.rule, one.source, one.key)
