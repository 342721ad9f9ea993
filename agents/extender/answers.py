"""The scheduler extender's answers: where kube-scheduler may put a pod so that replicas stay apart on hosts.

In: the questions of `schemas/extender.py`. Out: the answers; Unready where none can be given, InputError for a question
that makes no sense. kube-scheduler has applied every rule of its own: here only PhysicalHost (it refuses where it is
`required`) and terms on the host key, by the live host, are applied.

Answers come from a compiled picture (`follower.py`) and count the pods that are still being placed (`assumed.py`), once
our own watch has shown them. Where these leave no node that is surely free, though some may be, the answer waits for
the picture to show where they went, `WAIT` at most and once for each of them; so it does for those that matter and that
kube-scheduler has known before our watch. No other answer takes long.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import compress
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from underhost.agents.compiled.domains import BoolArray, IndexArray
from underhost.agents.compiled.overlay import Moved
from underhost.agents.extender.assumed import Assumed
from underhost.agents.extender.follower import Ground, HostFollower
from underhost.agents.extender.judge import REFUSALS, Verdict, judge, unseen
from underhost.agents.extender.messages import Messages
from underhost.agents.extender.picture import Apart, HostPicture, Outdated
from underhost.agents.rules.rule import CodeArray
from underhost.agents.sinks.bindings import desired_binding
from underhost.agents.sinks.labels.pods import BindingLabels
from underhost.agents.sinks.orders import DONE, DRY_RUN, order
from underhost.agents.site.requests import Request
from underhost.agents.site.snapshot import Options
from underhost.schemas import extender as wire
from underhost.schemas import topics
from underhost.schemas.commands import BIND
from underhost.schemas.errors import InputError, Unready
from underhost.schemas.kubernetes import Pod
from underhost.schemas.pods.sharing import alone
from underhost.schemas.records import Action, Outcome, Placement

WAIT = 1.0
"""Seconds that an answer waits at most for pods that are being placed; kube-scheduler gives up after 5."""


class Answering(Ground, Protocol):
    """The pipeline as the extender needs it."""

    def placing(self, site: str) -> Mapping[str, Placement]:
        """The pods that the binder is placing and that the rows do not show on a node yet."""

    async def perform(self, action: Action, refused: str | None) -> Outcome | None:
        """Carry out a command now, or refuse it; None where this worker has no sink of its kind."""


class _Question(NamedTuple):
    """A pod, what the rules know of it, and the nodes it may go to by position, -1 for one that the picture lacks."""

    key: str
    pod: Pod
    picture: HostPicture
    apart: Apart
    request: Request
    offered: IndexArray

    def mask(self) -> BoolArray:
        """bool[N], the nodes of the picture that are offered."""
        found = np.zeros(len(self.picture.names) + 1, bool)
        found[self.offered] = True
        return found[:-1]


class Extender:
    """Answers for one site. `monotonic` is the clock, `wait` how long an answer may wait for what is being placed.

    `labels` tells what a binding hands over to its pod.
    """

    def __init__(
        self,
        site: str,
        options: Options,
        ground: Callable[[], Answering | None],
        pool: Executor,
        monotonic: Callable[[], float] = time.monotonic,
        wait: float = WAIT,
        *,
        labels: BindingLabels,
    ) -> None:
        self._site, self._options, self._monotonic, self._wait = site, options, monotonic, wait
        self.follower = HostFollower(site, options, ground, pool)
        self._assumed = self.follower.assumed
        self._answering, self._labels = ground, labels
        self._placed: dict[str, Placement] = {}

    @property
    def assumed(self) -> int:
        """How many pods are being placed."""
        return len(self._assumed)

    def check(self) -> None:
        """Raises Unready where no answer can be given now; where one can, the picture is made before it is needed."""
        self.follower.ground()
        self.follower.prepare()

    # ----------------------------------------------------------------------------------------------------- the verbs
    async def filter(self, args: wire.ExtenderArgs) -> wire.ExtenderFilterResult:
        """The nodes that the host rules leave. Raises Unready, InputError."""
        names = await _names(args)
        question, verdict = await self._settle(await self._known_question(args.pod, names), names)
        codes = _of_offered(verdict.settled(), question.offered)
        told = self._messages(question, verdict)
        said = {at: told.of(int(question.offered[at]), int(codes[at])) for at in np.flatnonzero(codes).tolist()}
        self._remember(question, question.offered[codes == 0])
        return result_of(args, names, codes, said)

    async def prioritize(self, args: wire.ExtenderArgs) -> list[wire.HostPriority]:
        """10 where fewest pods would be brought together by a host, 0 where most. Raises Unready, InputError."""
        names = await _names(args)
        question = await self._known_question(args.pod, names)
        verdict = self._judge(question)
        # A pod that may be in the way is worse than none, and better than one that is.
        weighed = _of_offered(2 * verdict.conflicts + verdict.possible, question.offered)
        scores = scores_of(weighed)
        known = question.offered >= 0
        if question.apart.matters and known.any():
            if question.key not in self._assumed:
                self._remember(question, question.offered[known])
            best = int(question.offered[known][scores[known].argmax()])
            self._assumed.prefer(question.key, question.offered[known], best)
        return list(map(wire.HostPriority, names, scores.tolist()))

    async def preempt(self, args: wire.ExtenderPreemptionArgs) -> wire.ExtenderPreemptionResult:
        """The nodes where the host rules let the pod in once the victims are gone. Raises Unready, InputError."""
        victims = victims_of(args)
        question = await self._question(args.pod, list(victims))
        codes = _of_offered(self._judge(question).settled(), question.offered)
        left = {}
        for (name, one), code, node in zip(victims.items(), codes.tolist(), question.offered.tolist(), strict=True):
            if code == 0 or (REFUSALS[code].resolvable and self._fits_without(question, node, one)):
                left[name] = one
        return wire.ExtenderPreemptionResult(left)

    async def bind(self, args: wire.ExtenderBindingArgs) -> wire.ExtenderBindingResult:
        """Bind the pod, as the binder does: the result's error says why not. Raises Unready."""
        key, ground = f"{args.pod_namespace}/{args.pod_name}", self._answering()
        self.follower.ground()
        refused = await self._refused(key, args)
        because = f"kube-scheduler chose {args.node} for {key} of site {self._site}"
        assert ground is not None
        located = ground.located(self._site)
        desired = desired_binding(args.pod_uid, args.node, self._labels.of(located, key, args.node))
        action = order(BIND, f"pod/{key}", desired, because, located.offsets)
        outcome = await ground.perform(action, refused)
        if outcome is None:
            raise Unready("this worker has no binder")
        bound = outcome.result in DONE
        if not bound:
            self._assumed.end(key)
        self.follower.tell()
        return wire.ExtenderBindingResult("" if bound else _error_of(outcome))

    # -------------------------------------------------------------------------------------------------- questions
    async def _known_question(self, pod: Pod, names: Sequence[str]) -> _Question:
        """The question, once our own watch has shown the pods that matter to it and that kube-scheduler knew first."""
        question, until = await self._question(pod, names), self._monotonic() + self._wait
        while unseen := self._assumed.unseen(question.apart, question.key):
            left = until - self._monotonic()
            if left <= 0 or not await self.follower.moved(left):
                for one in unseen:
                    one.patient = False
            question = await self._question(pod, names)
        return question

    def _is_shown(self, question: _Question) -> bool:
        """Whether the rows have this very pod."""
        shown = self.follower.rows(topics.PODS).get(question.key)
        return shown is not None and shown.metadata.uid == question.pod.metadata.uid

    async def _question(self, pod: Pod, names: Sequence[str]) -> _Question:
        key = key_of(pod)
        self._assumed.forget(self._monotonic())
        picture = await self._with_placed(await self.follower.picture())
        picture, classes = await self._classes(picture, {key: pod})
        cls, request = classes[key]
        return _Question(key, pod, picture, picture.apart(cls), request, _positions(picture, names))

    async def _with_placed(self, picture: HostPicture) -> HostPicture:
        """The picture, with the pods that the binder is placing counted as bound by us, until it shows them itself."""
        ground = self._answering()
        placing = ground.placing(self._site) if ground is not None else {}
        if not placing and not self._placed:
            return picture
        rows = self.follower.rows(topics.PODS)
        for key in self._placed.keys() - placing.keys():
            del self._placed[key]
            if key in self._assumed and (key not in rows or not rows[key].spec.node_name):
                self._assumed.end(key)  # where it shows one, the picture ends it as it takes the pod in
        fresh = {key: row for key, row in placing.items() if self._placed.get(key) is not row}
        pods = {key: rows[key] for key in fresh}
        picture, classes = await self._classes(picture, pods)
        for key, (cls, _) in classes.items():
            self._placed[key] = fresh[key]
            node = picture.positions.get(str(fresh[key].node), -1)
            if node >= 0 and picture.apart(cls).matters:
                self._assumed.answer(key, pods[key], cls, np.array([node], np.intp))
                self._assumed.bind(key, node)
        return picture

    async def _classes(
        self, picture: HostPicture, pods: Mapping[str, Pod]
    ) -> tuple[HostPicture, dict[str, tuple[int, Request]]]:
        """The class and the request of each pod, and their picture: a new one where this has no class for one of them.

        Raises BadObjectError, Unready.
        """
        try:
            return picture, {key: picture.class_of(key, pod) for key, pod in pods.items()}
        except Outdated:
            picture = await self.follower.picture({key: alone(pod) for key, pod in pods.items()})
            return picture, {key: picture.class_of(key, pod) for key, pod in pods.items()}

    def _judge(self, question: _Question, gone: Sequence[Moved] = ()) -> Verdict:
        picture, coming = question.picture, self._coming(question)
        # Two pods of one name there never are: what runs in our picture under the name of one that is placed is gone.
        names = [question.key, *(one.key for one in coming)]
        past = [Moved(picture.class_at(key), picture.node_of(key), -1) for key in names if picture.node_of(key) >= 0]
        verdict = judge(picture, self._options, question.apart, question.request, coming, (*gone, *past))
        others = [one for one in coming if one.key in self._placed]
        return unseen(picture, question.apart, others, verdict) if others else verdict

    def _messages(self, question: _Question, verdict: Verdict) -> Messages:
        """What is said of refused nodes; to be asked before the picture changes."""
        return Messages(question.picture, question.key, question.request, verdict, self._coming(question))

    def _coming(self, question: _Question) -> list[Assumed]:
        """The pods that are being placed and matter to this one."""
        return self._assumed.coming(question.apart, question.key)

    async def _settle(self, question: _Question, names: Sequence[str]) -> tuple[_Question, Verdict]:
        """The verdict, once waiting cannot make it any surer."""
        until = self._monotonic() + self._wait
        while True:
            if question.apart.keys:
                self._assumed.witness(
                    question.picture, question.key, question.pod, question.apart, question.mask(), self._monotonic()
                )
            verdict = self._judge(question)
            unsure = [one for one in self._coming(question) if len(one.places) > 1 and one.patient]
            if not unsure or not _is_torn(verdict, question.offered):
                return question, verdict
            left = until - self._monotonic()
            if left <= 0 or not await self.follower.moved(left):
                for one in unsure:
                    one.patient = False
            question = await self._question(question.pod, names)

    def _remember(self, question: _Question, places: IndexArray) -> None:
        """What the pod was answered; it counts once our own watch has shown the pod, too."""
        if question.apart.matters:
            key, cls, places = question.key, question.apart.cls.id, places[places >= 0]
            seen = self._is_shown(question)
            self._assumed.answer(key, alone(question.pod), cls, places, asked=self._monotonic(), seen=seen)

    def _fits_without(self, question: _Question, node: int, victims: wire.MetaVictims) -> bool:
        uids, pods, picture = {one.uid for one in victims.pods or ()}, self.follower.rows(topics.PODS), question.picture
        keys = [key for key in picture.running_on(node) if key in pods and pods[key].metadata.uid in uids]
        gone = [Moved(picture.class_at(key), node, -1) for key in keys]
        return not self._judge(question, gone).settled()[node]

    # --------------------------------------------------------------------------------------------------- binding
    async def _refused(self, key: str, args: wire.ExtenderBindingArgs) -> str | None:
        """Why the pod must not be bound there; the host rules are asked once more, as a VM may have moved meanwhile.

        A pod that no host rule concerns, or a node that has just joined, may come before the picture shows it: the
        binder looks at the pod's uid, and whether there is such a node.
        """
        pod = self._assumed[key].pod if key in self._assumed else self.follower.rows(topics.PODS).get(key)
        if pod is None or pod.metadata.uid != args.pod_uid:
            return None
        question = await self._question(pod, [args.node])
        [node] = question.offered.tolist()
        if node < 0:
            return None
        verdict = self._judge(question)
        if code := int(verdict.codes[node]):
            return self._messages(question, verdict).of(node, code)
        if question.apart.matters:
            if key not in self._assumed:
                self._remember(question, question.offered)
            self._assumed.bind(key, node)
        return None


def key_of(pod: Pod) -> str:
    """`namespace/name`. Raises InputError."""
    if not pod.metadata.name or not pod.metadata.namespace:
        raise InputError("Pod: metadata.name and metadata.namespace are expected")
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _error_of(outcome: Outcome) -> str:
    dry = "; sinks.bindings is not enabled" if outcome.result == DRY_RUN else ""
    return f"{outcome.result}: {outcome.reason}{dry}"


def _positions(picture: HostPicture, names: Sequence[str]) -> IndexArray:
    """The nodes by position, -1 for one that the picture lacks. For 5,000 of them this is half of an answer's time."""
    at = picture.positions
    try:
        return np.fromiter(map(at.__getitem__, names), np.intp, len(names))
    except KeyError:
        return np.fromiter((at.get(name, -1) for name in names), np.intp, len(names))


def _of_offered(each: "CodeArray | np.ndarray[tuple[int], np.dtype[np.int64]]", offered: IndexArray) -> IndexArray:
    """What an array over the picture's nodes has for the nodes that are offered; 0 for those that it lacks."""
    found: IndexArray = np.append(each, 0).astype(np.intp)[offered]
    return found


def _is_torn(verdict: Verdict, offered: IndexArray) -> bool:
    """Whether every node that may be free may also not be."""
    known = offered[offered >= 0]
    surely = len(known) < len(offered) or bool(verdict.free[known].any())
    return not surely and bool(verdict.torn[known].any())


async def _names(args: wire.ExtenderArgs) -> list[str]:
    """`names_of`; nodes that were sent whole are read in a thread, as it takes long. Raises InputError."""
    return names_of(args) if args.node_names is not None else await asyncio.to_thread(names_of, args)


# ------------------------------------------------------------------------------- the two forms of questions and answers
def names_of(args: wire.ExtenderArgs) -> list[str]:
    """The nodes that a question is about. Raises InputError."""
    if args.node_names is not None:
        return args.node_names
    if args.nodes is None:
        raise InputError("NodeNames (nodeCacheCapable) or Nodes is expected")
    try:
        return [msgspec.json.decode(item, type=wire.NamedNode).metadata.name for item in args.nodes.items or ()]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"Nodes: {error}") from error


def victims_of(args: wire.ExtenderPreemptionArgs) -> dict[str, wire.MetaVictims]:
    """The victims by node, each by its uid. Raises InputError."""
    if args.node_name_to_meta_victims is not None:
        return args.node_name_to_meta_victims
    if args.node_name_to_victims is None:
        raise InputError("NodeNameToMetaVictims (nodeCacheCapable) or NodeNameToVictims is expected")
    return {
        node: wire.MetaVictims([wire.MetaPod(pod.metadata.uid) for pod in one.pods or ()], one.num_pdb_violations)
        for node, one in args.node_name_to_victims.items()
    }


def scores_of(weighed: IndexArray) -> IndexArray:
    """10 for the least, 0 for the most, in proportion between them; what has more than the least never gets 10."""
    if not len(weighed):
        return weighed
    most, least = int(weighed.max()), int(weighed.min())
    if most == least:
        return np.full(len(weighed), wire.MOST, np.intp)
    found: IndexArray = wire.MOST * (most - weighed) // (most - least)
    return found


def result_of(
    args: wire.ExtenderArgs, names: list[str], codes: IndexArray, said: Mapping[int, str]
) -> wire.ExtenderFilterResult:
    """By the code of each node, in the form of the question; `said` of those refused, by position.

    Upstream takes what is in both maps for unresolvable.
    """
    good, refused = (codes == 0).tolist(), bool(said)
    failed = {names[at]: message for at, message in said.items()}
    unresolvable = {names[at]: one for at, one in said.items() if not REFUSALS[int(codes[at])].resolvable}
    if args.node_names is not None:
        left = names if not refused else list(compress(names, good))
        return wire.ExtenderFilterResult(
            node_names=left, failed_nodes=failed, failed_and_unresolvable_nodes=unresolvable
        )
    items = list(compress(args.nodes.items or (), good)) if args.nodes is not None else []
    return wire.ExtenderFilterResult(
        nodes=wire.NodeList(items), failed_nodes=failed, failed_and_unresolvable_nodes=unresolvable
    )
