"""Each tenant's share of the alerts that fire at one receiver: nobody's pager rings a thousand times for one namespace.

In: finding events. Out: those to tell. What is beyond the share waits until one that fires has ended, the gravest
first. That writes stop, and what is of nodes and hosts, is nobody's, and always told.
"""

from collections import defaultdict

from underhost.agents.evaluate.findings import namespace_of
from underhost.schemas.records import RESOLVED, FindingEvent
from underhost.schemas.severities import RANK, SEVERITIES

_Place = tuple[str, str]  # a site and a namespace of it


class AlertShares:
    """Of one receiver; `most` findings of a namespace fire at one time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._firing: defaultdict[_Place, set[str]] = defaultdict(set)
        self._waiting: defaultdict[_Place, dict[str, FindingEvent]] = defaultdict(dict)

    def admit(self, event: FindingEvent) -> list[FindingEvent]:
        """What is told now that this record has come: it, nothing, or it and one that has waited."""
        place = event.site, namespace_of(event)
        if not place[1]:
            return [event]
        firing, waiting = self._firing[place], self._waiting[place]
        if event.state != RESOLVED:
            if event.id not in firing and len(firing) >= self._most:
                waiting[event.id] = event
                return []
            firing.add(event.id)
            return [event]
        told = [] if waiting.pop(event.id, None) is not None else [event]  # an earlier run may have told of it
        firing.discard(event.id)
        if waiting and len(firing) < self._most:
            chosen = min(waiting, key=lambda id_: (RANK.get(waiting[id_].severity, len(SEVERITIES)), id_))
            firing.add(chosen)
            told.append(waiting.pop(chosen))
        if not firing:
            del self._firing[place], self._waiting[place]
        return told
