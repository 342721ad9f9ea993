"""Evicting a pod: what a command says, and carrying it out (sink).

In: `evict` actions of the decider (`decider.py`). Out: outcomes. The Eviction API alone is used, so that
disruption budgets are kept by the API server, whatever the decider believed of them. Pods of the namespaces that the
settings except are left alone, whatever a command says.
"""

import time
from collections.abc import Callable, Collection

import msgspec

from underhost.agents.sinks.orders import (
    APPLIED,
    DRY_RUN,
    FAILED,
    NOOP,
    REFUSED,
    answer,
    desired_of,
    named,
    read_back,
    seconds_of,
)
from underhost.agents.sinks.ports import KubernetesWriter, Sink
from underhost.schemas.commands import EVICT
from underhost.schemas.errors import Conflict, Gone, Retry, Unreachable
from underhost.schemas.records import Action, Outcome

FRESH = 60.0
"""Seconds for which a decision to evict holds: what kept Kafka from delivering it may have changed the cluster, too."""
KEPT = 2 * 86_400.0
"""Seconds that a command is remembered; what is left to a person is said every day anew."""
MIGRATES = "triggered evacuation"
"""How KubeVirt's webhook refuses (429) an eviction that it answers with a live migration: it is under way."""


class PastCase(msgspec.Struct, omit_defaults=True):
    """Another case of the same workload, as the loop guard has it."""

    severity: str
    rule: str
    source: str = ""
    key: str = ""
    low: int = 0
    number: int = 0


class DesiredEviction(msgspec.Struct, omit_defaults=True):
    """`Action.desired` of an eviction: the pod, why, and what the decider has to remember when it begins anew.

    Attributes:
        uid: of the pod; another pod of the name is left alone.
        at: when it was decided, RFC 3339.
        refuse: not "": nothing is to be done, and this is why; the outcome is to say so.
        tell: what of it the pod's namespace may read.
        node, host, to: where the pod runs, and the node that is expected to take the next one.
        owner: the workload, `Kind/namespace/name`. finding, severity, rule, source, key: what the eviction is to end.
        broken, low, number: pods of the workload that the finding holds, the fewest so far, and evictions since then.
        others: what else of the workload there is to remember.
    """

    uid: str
    at: str
    refuse: str = ""
    tell: str = ""
    node: str = ""
    host: str = ""
    to: str = ""
    owner: str = ""
    finding: str = ""
    severity: str = ""
    rule: str = ""
    source: str = ""
    key: str = ""
    broken: int = 0
    low: int = 0
    number: int = 0
    others: list[PastCase] = []


def desired_eviction(action: Action) -> DesiredEviction | None:
    """What a command to evict a pod desires; None for another one."""
    return read_back(action, EVICT, DesiredEviction)


def outdated(action: Action, clock: float) -> bool:
    """Whether nobody needs to remember the `evict` command any more; `clock` is in seconds since 1970."""
    desired = desired_eviction(action)
    return desired is None or clock - seconds_of(desired.at) > KEPT


class EvictionSink(Sink):
    """Evicts pods, but for those of `except_namespaces`. `enabled` false is a dry run."""

    kind = EVICT

    def __init__(
        self,
        writer: KubernetesWriter,
        *,
        enabled: bool,
        except_namespaces: Collection[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer, self._enabled, self._clock = writer, enabled, clock
        self._excepted = frozenset(except_namespaces)

    async def apply(self, action: Action) -> Outcome:
        """Read the live pod, ask for its eviction if it is still the one, and say what happened."""
        return await answer(action, self._carry_out(action))

    async def _carry_out(self, action: Action) -> tuple[str, str]:
        """(result, reason)."""
        desired = desired_of(action, DesiredEviction, "an evict command")
        namespace, _, name = named(action, "pod").partition("/")
        if namespace in self._excepted:
            return REFUSED, f"no pod of namespace {namespace} is evicted (evictions.exceptNamespaces)"
        if desired.refuse:
            return REFUSED, desired.refuse
        if (age := self._clock() - seconds_of(desired.at)) > FRESH:
            return FAILED, f"it was decided {age:.0f} s ago, and much may have changed since"
        try:
            return await self._apply(namespace, name, desired)
        except Gone:
            return NOOP, "the pod is gone"
        except Retry as error:
            if MIGRATES not in str(error):
                raise
            return APPLIED, f"it migrates: {error}"

    async def _apply(self, namespace: str, name: str, desired: DesiredEviction) -> tuple[str, str]:
        """(result, reason)."""
        done = await self._done(namespace, name, desired)
        if done is not None:
            return NOOP, done
        if not self._enabled:
            return DRY_RUN, f"would evict it from {desired.node}; the next one fits on {desired.to}"
        try:
            await self._writer.request_eviction(namespace, name, desired.uid)
        except (Conflict, Unreachable):
            # Another pod has the name by now, somebody else changed this one at the same moment, or nobody knows what
            # became of the request: had it failed, another pod might be evicted for the same finding.
            done = await self._done(namespace, name, desired)
            if done is None:
                raise
            return NOOP, done
        return APPLIED, f"evicted from {desired.node}; the next one fits on {desired.to}"

    async def _done(self, namespace: str, name: str, desired: DesiredEviction) -> str | None:
        """Why there is nothing to do for the live pod; None while there is."""
        uid, ending = await self._writer.pod_end(namespace, name)
        if uid != desired.uid:
            return f"the pod is another one now (uid {uid})"
        return "it is being deleted already" if ending else None
