"""When labels of one object may be ordered: at once, after a while, or not again.

In: the commands for each object, what became of them, and what the object carries. Out: a time. Nodes and pods go by
the same pace.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from underhost.agents.sinks.orders import DRY_RUN, NOOP, REFUSED
from underhost.schemas.records import Action, Outcome

QUIET = 10.0
"""Seconds in which further changes of one object wait, so that a flapping VM costs one write; the last state wins."""
AFTER_FAILURE = 30.0
"""Seconds after which a command that failed, was lost, or did not show on the object is ordered again."""
AFTER_REFUSAL = 600.0
"""Seconds after which what was refused, or found nothing to do, is tried again while the object stays as it is."""


@dataclass
class _OrderedLabels:
    """The last command for an object: what it said, and against which labels of which version of the object.

    `quiet` is until when other changes of the object wait, `again` from when an equal command may follow, `retry` from
    when one may follow for another version of the object. `in_vain`: it was refused, or found nothing to do.
    """

    target: str
    desired: Mapping[str, object]
    held: Mapping[str, str | None]
    version: str
    quiet: float
    again: float
    retry: float
    action: str
    dry: bool = False
    in_vain: bool = False


class LabelPace:
    """Of the objects of one site, by name. `held_until` see `DeciderParts`, by target. Times are monotonic seconds."""

    def __init__(self, held_until: Callable[[str], float]) -> None:
        self._held_until = held_until
        self._ordered: dict[str, _OrderedLabels] = {}

    def opens(
        self,
        name: str,
        desired: Mapping[str, object],
        held: Mapping[str, str | None],
        version: str = "",
        *,
        once: bool = False,
    ) -> float:
        """From when this may be ordered for an object that carries these labels; infinity for never.

        `version` is of the object, where that it is another one is a reason to ask again; `once`: nothing is gained by
        repeating it.
        """
        last = self._ordered.get(name)
        if last is None:
            return 0.0
        if last.desired != desired or last.held != held:
            when = last.quiet  # the object moved on, or somebody changed its labels
        elif last.in_vain and last.version != version:
            when = last.retry  # labels that look the same may be another's no more: they went and came unseen
        elif last.dry or once:
            return float("inf")  # a dry run changes nothing, so nothing is gained by repeating it
        else:
            when = last.again
        return max(when, self._held_until(last.target))

    def order(
        self, name: str, action: Action, held: Mapping[str, str | None], version: str, now: float, *, quiet: float
    ) -> None:
        """This is ordered; other changes of the object wait for `quiet` seconds."""
        again, retry = now + AFTER_FAILURE, now + QUIET
        self._ordered[name] = _OrderedLabels(
            action.target, action.desired, held, version, now + quiet, again, retry, action.id
        )

    def observe(self, name: str, outcome: Outcome, now: float) -> float | None:
        """What became of a command: from when an equal one may follow, infinity for never.

        None where it is not the last one for the object, and says nothing.
        """
        last = self._ordered.get(name)
        if last is None or last.action != outcome.id:
            return None
        last.in_vain = outcome.result in (REFUSED, NOOP)
        last.again = now + (AFTER_REFUSAL if last.in_vain else AFTER_FAILURE)
        last.dry = outcome.result == DRY_RUN
        return float("inf") if last.dry else last.again

    def settle(self, name: str, now: float) -> float | None:
        """The object is as it should be: what differs next is a new change, but not at once if this one was just now.

        Returns until when it is remembered for that; None where it is not.
        """
        last = self._ordered.get(name)
        if last is None:
            return None
        last.desired = {}
        if now < last.quiet:
            return last.quiet
        del self._ordered[name]
        return None

    def forget(self, name: str) -> None:
        """The object is gone."""
        self._ordered.pop(name, None)

    def keep(self, names: Collection[str]) -> None:
        """Every other object is gone."""
        for gone in [name for name in self._ordered if name not in names]:
            del self._ordered[gone]
