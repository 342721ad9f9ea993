"""Host labels of nodes: writing them.

In: `label` commands. Out: what became of them. Only labels and the taint that the settings name are written, whatever a
command says, and of those on the live node only what is ours; the start-up taint goes with the last of them
(`startup_taint.py`).
"""

import logging
from collections.abc import Callable, Mapping

import msgspec

from underhost.agents.sinks.labels.last_write import LabelMemory
from underhost.agents.sinks.labels.managers import FIELD_MANAGER, is_person
from underhost.agents.sinks.labels.startup_taint import Lifting, lift
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, FAILED, NOOP, REFUSED, answer, desired_of, named
from underhost.agents.sinks.ports import KubernetesWriter, Sink
from underhost.schemas.commands import LABEL
from underhost.schemas.errors import Conflict
from underhost.schemas.records import Action, Outcome
from underhost.streams.settings.labels import HostLabelSettings

log = logging.getLogger(__name__)
TRIES = 3
"""Times that a node is read for one command, where somebody sets a label of ours between the look and the write."""
TELLING = (APPLIED, FAILED, DRY_RUN, REFUSED, NOOP)
"""Of a command that did several things: the result that says most about it."""


class DesiredLabels(msgspec.Struct):
    """`Action.desired` of a node: labels, None for one that shall go, and the taint that goes with the last."""

    uid: str
    labels: dict[str, str | None]
    taint: Lifting | None = None


class LabelSink(Sink):
    """Writes labels. `enabled` false is a dry run; `seen` see `LabelMemory`.

    Reads the node to know whose its labels are. Where they are as our own last write left them, that is known. It
    writes with force only what is taken from its owner on purpose: a label which somebody has taken over in that moment
    is a conflict, and is read.
    """

    kind = LABEL

    def __init__(
        self,
        writer: KubernetesWriter,
        settings: HostLabelSettings,
        *,
        enabled: bool,
        seen: Callable[[str], Mapping[str, str] | None] = lambda node: None,
    ) -> None:
        self._writer, self._settings, self._enabled = writer, settings, enabled
        self._memory = LabelMemory(seen)

    async def apply(self, action: Action) -> Outcome:
        """Write what differs in one request, and say what happened."""
        return await answer(action, self._apply(action))

    async def _apply(self, action: Action) -> tuple[str, str]:
        """(result, reason)."""
        node, desired = named(action, "node"), desired_of(action, DesiredLabels, "a label command")
        if (why := not_configured(desired, self._settings)) is not None:
            return REFUSED, why
        left = self._memory.take(node, desired.uid) if desired.taint is None else None
        if left is not None and (changes := left.differing(desired.labels)):
            try:
                await self._put(node, left.uid, left.labels, {**left.owned(), **changes}, force=False)
            except Conflict:
                log.info("node %s: somebody has taken over a label of ours: it is read", node)
            else:
                return APPLIED, f"set {told(changes)}"
        for _ in range(TRIES - 1):
            try:
                return await self._look_and_write(node, desired)
            except Conflict:
                log.info("node %s: somebody has changed it since it was read: it is read again", node)
        return await self._look_and_write(node, desired)

    async def _look_and_write(self, node: str, desired: DesiredLabels) -> tuple[str, str]:
        uid, labels, managers = await self._writer.node_labels(node)
        if uid != desired.uid:
            return REFUSED, f"node {node} is another one now (uid {uid})"
        differing = {key: value for key, value in desired.labels.items() if labels.get(key) != value}
        foreign = self._foreign(differing, labels, managers)
        ours = {key: value for key, value in differing.items() if key not in foreign}
        done = [await self._write(node, uid, labels, managers, ours)] if ours else []
        done += [(REFUSED, reason) for reason in foreign.values()]
        if desired.taint is not None:
            after = {key: value for key, value in {**labels, **ours}.items() if value is not None}
            done.append(await lift(self._writer, node, uid, desired.taint, after, enabled=self._enabled))
        if not done:
            return NOOP, "the node carries these labels already"
        result = min((result for result, _ in done), key=TELLING.index)
        return result, "; ".join(reason for _, reason in done)

    async def _write(
        self,
        node: str,
        uid: str,
        labels: Mapping[str, str],
        managers: Mapping[str, str],
        ours: Mapping[str, str | None],
    ) -> tuple[str, str]:
        if not self._enabled:
            return DRY_RUN, f"would set {told(ours)}"
        # Server-side apply states the whole of what we own: a label that is left out would be removed.
        owned = {key: labels[key] for key, manager in managers.items() if manager == FIELD_MANAGER and key in labels}
        taken = any(managers.get(key, FIELD_MANAGER) != FIELD_MANAGER for key in ours)
        await self._put(node, uid, labels, {**owned, **ours}, force=taken)
        return APPLIED, f"set {told(ours)}"

    async def _put(
        self, node: str, uid: str, before: Mapping[str, str], ours: Mapping[str, str | None], *, force: bool
    ) -> None:
        await self._writer.apply_node_labels(node, uid, ours, force=force)
        self._memory.keep(node, uid, before, ours)

    def _foreign(
        self, keys: Mapping[str, str | None], labels: Mapping[str, str], managers: Mapping[str, str]
    ) -> dict[str, str]:
        """The keys that are not ours to write, or to remove, with the reason."""
        reasons: dict[str, str] = {}
        for key, value in sorted(keys.items()):
            manager = managers.get(key, "" if key in labels else FIELD_MANAGER)
            if value is None and manager != FIELD_MANAGER:
                reasons[key] = f"label {key} was not set by {FIELD_MANAGER}: it stays"
            elif self._settings.mode == "own" or value is None:
                continue
            elif self._settings.mode == "observe" and key == self._settings.key:
                reasons[key] = f"label {key} is only observed"
            elif manager != FIELD_MANAGER and not is_person(manager):
                reasons[key] = f"label {key} belongs to {manager or 'nobody that the API server names'}"
        return reasons


def not_configured(desired: DesiredLabels, settings: HostLabelSettings) -> str | None:
    """What of the command is none of ours by the settings; None where all of it is."""
    ours = needed_by(settings)
    if others := sorted(desired.labels.keys() - set(ours)):
        return f"label {', '.join(others)} is not configured (hostLabel): {', '.join(ours)} is"
    taint = desired.taint
    if taint is not None and taint.key != settings.startup_taint:
        return f"taint {taint.key} is not configured (hostLabel.startupTaint)"
    if taint is not None and not set(ours) <= set(taint.needs):
        return f"taint {taint.key} goes only with {', '.join(ours)}"
    return None


def needed_by(settings: HostLabelSettings) -> list[str]:
    """The keys of the labels that a node shall carry; each is in the settings, and no other is ever written."""
    return [settings.key, *(derived.key for derived in settings.derived)]


def told(changes: Mapping[str, str | None]) -> str:
    """As sentences tell of labels: `KEY=VALUE`, or `KEY-` for one that goes."""
    return ", ".join(f"{key}={value}" if value is not None else f"{key}-" for key, value in sorted(changes.items()))
