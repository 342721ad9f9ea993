"""Host labels of running pods: writing them.

In: `pod-label` commands. Out: what became of them. Only labels that the settings name are written, with values that a
host's label can have, to pods that carry the host label; a label that another controller has set is left to it, as on
nodes. Each write names the version of the pod that was read, so that nothing is overwritten unseen.
"""

import logging
from collections.abc import Mapping

import msgspec

from underhost.agents.sinks.labels.managers import FIELD_MANAGER, is_person
from underhost.agents.sinks.labels.sink import TRIES, needed_by, told
from underhost.agents.sinks.labels.values import label_value
from underhost.agents.sinks.orders import APPLIED, DRY_RUN, NOOP, REFUSED, answer, desired_of, named
from underhost.agents.sinks.ports import KubernetesWriter, Sink
from underhost.schemas.commands import POD_LABEL
from underhost.schemas.errors import Conflict
from underhost.schemas.records import Action, Outcome
from underhost.streams.settings.labels import HostLabelSettings

log = logging.getLogger(__name__)


class DesiredPodLabels(msgspec.Struct):
    """`Action.desired` of a pod: labels, None for one that shall go, and by label that stays who selects by it."""

    uid: str
    labels: dict[str, str | None]
    selected: dict[str, str] = {}


class PodLabelSink(Sink):
    """Writes labels of pods. `enabled` false is a dry run."""

    kind = POD_LABEL

    def __init__(self, writer: KubernetesWriter, settings: HostLabelSettings, *, enabled: bool) -> None:
        self._writer, self._enabled = writer, enabled
        self._key, self._keys, self._mode = settings.key, needed_by(settings), settings.mode

    async def apply(self, action: Action) -> Outcome:
        """Write what differs in one request, and say what happened."""
        return await answer(action, self._apply(action))

    async def _apply(self, action: Action) -> tuple[str, str]:
        """(result, reason)."""
        pod, desired = named(action, "pod"), desired_of(action, DesiredPodLabels, "a command for a pod's labels")
        if others := sorted(desired.labels.keys() - set(self._keys)):
            return REFUSED, f"label {', '.join(others)} is not configured (hostLabel): {', '.join(self._keys)} is"
        wrong = {key: value for key, value in desired.labels.items() if value is not None and not _is_valid(value)}
        if wrong:
            return REFUSED, f"{told(wrong)} is no value of a label"
        stays = [f"label {key} stays: {who} selects by it" for key, who in sorted(desired.selected.items())]
        if not desired.labels:
            return REFUSED if self._enabled else DRY_RUN, "; ".join(stays) or "there is nothing to write"
        for _ in range(TRIES - 1):
            try:
                return await self._look_and_write(pod, desired, stays)
            except Conflict:
                log.info("pod %s: somebody has changed it since it was read: it is read again", pod)
        return await self._look_and_write(pod, desired, stays)

    async def _look_and_write(self, pod: str, desired: DesiredPodLabels, stays: list[str]) -> tuple[str, str]:
        namespace, _, name = pod.partition("/")
        live = await self._writer.pod_labels(namespace, name)
        if live.uid != desired.uid:
            return REFUSED, f"pod {pod} is another one now (uid {live.uid})"
        if self._key not in live.labels:
            return REFUSED, f"pod {pod} carries no label {self._key}"
        differing = {key: value for key, value in desired.labels.items() if live.labels.get(key) != value}
        foreign = {
            key: live.managers[key] for key in differing if self._mode != "own" and _is_foreign(key, live.managers)
        }
        stays = [*stays, *(f"label {key} belongs to {manager}" for key, manager in sorted(foreign.items()))]
        ours = {key: value for key, value in differing.items() if key not in foreign}
        if not ours:
            return (REFUSED, "; ".join(stays)) if stays else (NOOP, "the pod carries these labels already")
        if not self._enabled:
            return DRY_RUN, "; ".join([f"would set {told(ours)}", *stays])
        await self._writer.merge_pod_labels(namespace, name, live.uid, live.version, ours)
        return APPLIED, "; ".join([f"set {told(ours)}", *stays])


def _is_valid(value: str) -> bool:
    return value != "" and label_value(value) == value


def _is_foreign(key: str, managers: Mapping[str, str]) -> bool:
    """What a binding has written is nobody's by name."""
    manager = managers.get(key, FIELD_MANAGER)
    return manager != FIELD_MANAGER and not is_person(manager)
