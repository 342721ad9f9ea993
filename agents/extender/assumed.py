"""Pods that kube-scheduler is placing by our answers, until our own picture shows where they are.

kube-scheduler counts a pod on its node from the moment it chose it, our picture only once the API server's watch has
brought the binding: in between, a second replica must not get the first one's host. A filter call does not say what
came of it, so what is remembered of a pod is the set of nodes where it may be, which only ever shrinks:

- the nodes that the filter passed, then those that came to be prioritized;
- less those that the same scheduler offers, afterwards, to a pod that required anti-affinity keeps apart from this one:
  it takes one pod after another, and would offer no node whose domain it has given to this one. With anti-affinity by
  hostname that leaves one node, as a rule. Spread constraints prove nothing, as they let pods meet;
- the one node of a bind call, where we are the binder; the nominated node, where the scheduler writes it down.

Only pods that the API server has shown us count, by their uid: an invented one closes no host to anybody. Of one that
kube-scheduler knows first, what was answered is kept aside for `_UNSEEN_SECONDS` at most, until our own watch shows it.
A forgotten pod is a host taken twice, a pod remembered beside its own binding counts twice: a pod is remembered until
the picture shows it bound (then it counts there, under the same name), deleted, finished or failed (PodScheduled is
False in a newer version), or until it is asked about again, which begins anew. Two more ends: where a scheduler offers
every node on which the pod could be, it is on none of them. The pod is then counted on the node that was answered best,
in case the caller is no scheduler, and forgotten when the same pod is offered them in another attempt. And nobody takes
longer than `_LONGEST` over one attempt. At most `_MOST` are remembered, the youngest.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from underhost.agents.compiled.domains import BoolArray, IndexArray
from underhost.agents.extender.judge import Coming
from underhost.agents.extender.picture import Apart, HostPicture
from underhost.agents.site.owners import FINISHED
from underhost.schemas.kubernetes import Pod
from underhost.schemas.numbers import number

_MOST = 4096
_BACKOFF = 1.0
"""Seconds that kube-scheduler waits at least between two attempts of a pod."""
_LONGEST = 600.0
"""Seconds after which a pod is forgotten: by then it is bound (kube-scheduler waits 600 for volumes), or was tried
again (after 300), or who asked was no scheduler."""


_UNSEEN_SECONDS = 10.0
"""Seconds that our watch may be behind kube-scheduler's."""
_MOST_UNSEEN = 256


@dataclass
class Assumed(Coming):
    """A pod that is being placed. `places` are nodes of the picture; `best` is the one that was answered best.

    `asked`: monotonic seconds of the answer; infinite for one that our own binder places, which says itself when it is
    done. `seen`: the picture has shown this very pod; until then it counts for nothing. `bound`: we have bound it.
    `patient`: an answer may wait to learn more. `doubts`: by uid, when another pod was first offered every node where
    this one could be.
    """

    key: str
    pod: Pod
    best: int
    asked: float
    seen: bool
    bound: bool = False
    patient: bool = True
    doubts: dict[str, float] = field(default_factory=dict)

    def doubted_by(self, uid: str, now: float) -> bool:
        """Whether the pod with this uid, which is offered every node where this one could be, was so before."""
        return now - self.doubts.setdefault(uid, now) >= _BACKOFF


class Assumptions:
    """The pods that are being placed, of one site."""

    def __init__(self) -> None:
        self._pods: dict[str, Assumed] = {}
        self._picture: HostPicture | None = None
        self._generation = -1
        self._names: list[str] = []

    def __len__(self) -> int:
        return sum(one.seen for one in self._pods.values())

    def __getitem__(self, key: str) -> Assumed:
        return self._pods[key]

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def pods(self) -> dict[str, Pod]:
        """All of them, by key."""
        return {key: one.pod for key, one in self._pods.items()}

    # -------------------------------------------------------------------------------------------------- our own answers
    def answer(
        self, key: str, pod: Pod, cls: int, places: IndexArray, *, asked: float = math.inf, seen: bool = True
    ) -> None:
        """A pod may go to these nodes, the first is as good as any; nowhere, if there are none."""
        self._pods.pop(key, None)
        if len(places):
            self._pods[key] = Assumed(cls, places, key, pod, int(places[0]), asked, seen)
            alike = [one.key for one in self._pods.values() if one.seen is seen]
            if len(alike) > (_MOST if seen else _MOST_UNSEEN):
                del self._pods[alike[0]]

    def forget(self, now: float) -> None:
        """Those end whose attempt, or whose way to us, has taken too long; `now` is monotonic seconds."""
        longest = {True: _LONGEST, False: _UNSEEN_SECONDS}
        for key in [one.key for one in self._pods.values() if now - one.asked >= longest[one.seen]]:
            self.end(key)

    def prefer(self, key: str, places: IndexArray, best: int) -> None:
        """Of the nodes that were passed, these were prioritized, and this one got the most."""
        one = self._pods[key]
        one.best = best
        left = one.places[np.isin(one.places, places)]
        one.places = left if len(left) else places

    def bind(self, key: str, node: int) -> None:
        """We have bound it."""
        one = self._pods[key]
        one.places, one.best, one.bound = np.array([node], np.intp), node, True

    def end(self, key: str) -> None:
        """It is on its way no more."""
        self._pods.pop(key, None)

    def coming(self, apart: Apart, but: str) -> list[Assumed]:
        """Those that matter to pods of a class, without one of them."""
        return [one for one in self._mattering(apart, but) if one.seen]

    def unseen(self, apart: Apart, but: str) -> list[Assumed]:
        """Those that would matter if our watch had shown them, and that an answer may wait for."""
        return [one for one in self._mattering(apart, but) if not one.seen and one.patient]

    def _mattering(self, apart: Apart, but: str) -> list[Assumed]:
        every = bool(apart.near) or apart.spread
        return [one for one in self._pods.values() if one.key != but and (every or one.cls in apart.concerned)]

    # ---------------------------------------------------------------------------------------- what the scheduler shows
    def witness(self, picture: HostPicture, key: str, pod: Pod, apart: Apart, offered: BoolArray, now: float) -> None:
        """A scheduler offers these nodes (bool[N]) to a pod. `now` is monotonic seconds."""
        for one in list(self._pods.values()):
            keys = apart.keys.get(one.cls)
            if one.key == key or one.bound or not keys or one.pod.spec.scheduler_name != pod.spec.scheduler_name:
                continue
            labelled = np.logical_or.reduce([picture.topology.labels(name).present for name in keys])
            left = one.places[~(offered & labelled)[one.places]]
            if len(left):
                one.places = left
                one.best = one.best if one.best in left else int(left[0])
            elif one.doubted_by(pod.metadata.uid, now):
                self.end(one.key)
            else:
                one.places = np.array([one.best], np.intp)

    # ------------------------------------------------------------------------------------------ what the picture shows
    def see(self, key: str, pod: Pod | None, positions: Mapping[str, int]) -> None:
        """The picture shows a pod of this name, or (None) none any more."""
        one = self._pods.get(key)
        if one is None:
            return
        if pod is None:
            if one.seen:
                self.end(key)
        elif pod.metadata.uid != one.pod.metadata.uid:
            if _is_newer(pod, one.pod):
                self.end(key)
        else:
            if not one.seen:
                one.seen = one.patient = True
            self._see(one, pod, positions)

    def _see(self, one: Assumed, pod: Pod, positions: Mapping[str, int]) -> None:
        nominated = positions.get(pod.status.nominated_node_name, -1)
        gone = pod.metadata.deletion_timestamp is not None or pod.status.phase in FINISHED
        if pod.spec.node_name or gone:
            self.end(one.key)
        elif nominated >= 0:
            one.places, one.best = np.array([nominated], np.intp), nominated
        elif not one.bound and _has_failed(pod) and _is_newer(pod, one.pod):
            self.end(one.key)

    def keep(self, keys: Iterable[str]) -> None:
        """The source has listed every pod there is: those of other names are gone."""
        for key in self._pods.keys() - set(keys):
            if self._pods[key].seen:
                self.end(key)

    def align(self, picture: HostPicture) -> None:
        """Nodes and classes are those of this picture from now on. Raises Outdated, BadObjectError."""
        if picture is self._picture and picture.generation == self._generation:
            return
        for one in list(self._pods.values()):
            names = [self._names[at] for at in one.places.tolist()]
            best = picture.positions.get(self._names[one.best], -1)
            places = [picture.positions[name] for name in names if name in picture.positions]
            if not places:
                self.end(one.key)
                continue
            one.places, one.best = np.array(places, np.intp), best if best >= 0 else places[0]
            if picture is not self._picture:
                one.cls, _ = picture.class_of(one.key, one.pod)
        self._picture, self._generation, self._names = picture, picture.generation, list(picture.names)


def _has_failed(pod: Pod) -> bool:
    return any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions or ())


def _is_newer(pod: Pod, other: Pod) -> bool:
    """Whether a version of a pod is newer than another; versions count up, over all pods of a cluster.

    Where one of them is no number, as it may be in a question, any other version is.
    """
    one, two = pod.metadata.resource_version, other.metadata.resource_version
    mine, others = number(one), number(two)
    return one != two if mine is None or others is None else mine > others
