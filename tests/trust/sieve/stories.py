"""What happens in a plan, step by step, and how the world stands after each step, whatever happens to the worker.

In: nothing. Out: `STORIES`. The right outcomes of each step, one or two, are written out here: a worker that was killed
or deceived comes to one of them, too.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import permutations

from trust.sieve.scene import Scene, State

Act = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """Something that happens, and how the world may stand once the worker has answered it.

    Attributes:
        right: the outcomes that are right: which of two pods that share a host goes is the evictor's choice. None: any,
            at once. Empty: none, as no worker is there.
        dry: up to this step the worker only says what it would write.
    """

    name: str
    act: Act
    right: tuple[State, ...] | None
    dry: bool = False


@dataclass(frozen=True)
class Story:
    """Steps in turn, after which the cluster has seen one of these numbers of evictions, and of bindings.

    Attributes:
        tainted: nodes begin with the start-up taint.
    """

    nodes: int
    steps: tuple[Step, ...]
    evictions: Collection[int]
    bindings: Collection[int]
    tainted: bool = True


TRIES = 2
"""Evictions in vain before the evictor leaves a finding to a person, in the settings of every plan."""
LEFT_TO_A_PERSON = "it is left to a person"


async def _nothing(scene: Scene) -> None:
    """The nodes are there already."""


async def _pod_again(scene: Scene) -> None:
    before = await scene.delete_pod("db-1")
    await scene.replaced("db-1", before)


async def _node_again(scene: Scene) -> None:
    await scene.delete_node("n4")
    await scene.add_node("n4", "v5")


async def _down_and_up(scene: Scene) -> None:
    await _down(scene)
    await scene.scale(2)
    await scene.replicas(2)


async def _deploy(scene: Scene, replicas: int, *, unavailable: int = 1) -> None:
    await scene.deploy(replicas, unavailable=unavailable)
    await scene.replicas(1)


async def _down(scene: Scene) -> None:
    await scene.scale(1)
    await scene.replicas(1, most=1)


async def _delete_at_once(scene: Scene) -> None:
    await scene.scale(3)
    await scene.bound("db-2")
    before = await scene.delete_pod("db-2")
    await scene.replaced("db-2", before)


async def _undo_evictions(scene: Scene) -> None:
    for _ in range(2 * TRIES + 2):
        await scene.follow("db-1", "db-0")
        if not await scene.apart(2, otherwise=LEFT_TO_A_PERSON):
            break


async def _deploy_in_vain(scene: Scene) -> None:
    await _deploy(scene, 2)
    await scene.told("would bind")


async def _label_and_back(scene: Scene) -> None:
    await scene.label("n3", "somewhere")
    await scene.label("n3", "h3")
    await scene.label("n1", "elsewhere")


async def _vmotion_and_back(scene: Scene) -> None:
    await scene.move("v2", "h5")
    await scene.move("v2", "h2")


async def _cordon_and_back(scene: Scene) -> None:
    await scene.cordon("n3", True)
    await scene.cordon("n3", False)


def _labels(nodes: int, **others: str) -> Mapping[str, str]:
    return {f"n{number}": f"h{number}" for number in range(1, nodes + 1)} | others


def _apart(*vms: str) -> frozenset[frozenset[str]]:
    return frozenset({frozenset(vms)})


TWO = {"db-0": "n2", "db-1": "n3"}
THREE = {**TWO, "db-2": "n4"}
UNTOUCHED = State(dict.fromkeys(_labels(4), ""))


def _one_has_gone(labels: Mapping[str, str]) -> tuple[State, ...]:
    """`db-0` or `db-1`, whose nodes shared a host, is on the fifth node now."""
    return (
        State(labels, {**THREE, "db-0": "n5"}, _apart("v3", "v4", "v5")),
        State(labels, {**THREE, "db-1": "n5"}, _apart("v2", "v4", "v5")),
    )


def _two(labels: Mapping[str, str]) -> tuple[State, ...]:
    return (State(labels, TWO, _apart("v2", "v3")),)


def _anywhere(nodes: int) -> tuple[State, ...]:
    """Two replicas on any two nodes."""
    return tuple(
        State(_labels(nodes), {"db-0": f"n{one}", "db-1": f"n{other}"}, _apart(f"v{one}", f"v{other}"))
        for one, other in permutations(range(1, nodes + 1), 2)
    )


STORIES: Mapping[str, Story] = {
    # A vMotion puts two replicas on one host: one of them goes; the VM comes back.
    "conflict": Story(
        5,
        (
            Step("start", _nothing, (State(_labels(5)),)),
            Step("deploy", lambda scene: _deploy(scene, 3), (State(_labels(5), THREE, _apart("v2", "v3", "v4")),)),
            Step("vmotion", lambda scene: scene.move("v3", "h2"), _one_has_gone(_labels(5, n3="h2"))),
            Step("back", lambda scene: scene.move("v3", "h3"), _one_has_gone(_labels(5))),
        ),
        evictions=(1,),
        bindings=(4,),
    ),
    # Objects go and come again under their names: a pod, a node on another VM, a replica.
    "again": Story(
        4,
        (
            Step("start", _nothing, (State(_labels(4)),)),
            Step("deploy", lambda scene: _deploy(scene, 2), _two(_labels(4))),
            Step("pod", _pod_again, _two(_labels(4))),
            Step("node", _node_again, _two(_labels(4, n4="h5"))),
            Step("scale", _down_and_up, _two(_labels(4, n4="h5"))),
            Step("down", _down, (State(_labels(4, n4="h5"), {"db-0": "n2"}),)),
        ),
        evictions=(0,),
        bindings=(4,),
    ),
    # Everything becomes something else, and what it was.
    "flap": Story(
        3,
        (
            Step("start", _nothing, (State(_labels(3)),)),
            Step("deploy", lambda scene: _deploy(scene, 2), _two(_labels(3))),
            Step("label", _label_and_back, _two(_labels(3))),
            Step("vmotion", _vmotion_and_back, _two(_labels(3))),
            Step("cordon", _cordon_and_back, _two(_labels(3))),
        ),
        evictions=(0,),
        bindings=(2,),
    ),
    # A pod is deleted as soon as it is bound.
    "hasty": Story(
        4,
        (
            Step("start", _nothing, (State(_labels(4)),)),
            Step("deploy", lambda scene: _deploy(scene, 2), _two(_labels(4))),
            Step("hasty", _delete_at_once, (State(_labels(4), THREE, _apart("v2", "v3", "v4")),)),
        ),
        evictions=(0,),
        bindings=(4,),
    ),
    # DRS brings two replicas together each time that the evictor has parted them: `tries` of its settings ends that. It
    # counts anew where things were better than ever before, which can be once here. The budget allows two: for
    # Kubernetes a pod that is back under its name can count as disrupted for two minutes.
    "fight": Story(
        4,
        (
            Step("start", _nothing, (State(_labels(4)),)),
            Step("deploy", lambda scene: _deploy(scene, 2, unavailable=2), _two(_labels(4))),
            Step("fight", _undo_evictions, right=None),
            Step("over", lambda scene: scene.go_home(), _anywhere(4)),
        ),
        evictions=range(1, 2 * TRIES + 1),
        bindings=range(3, 2 * TRIES + 3),
    ),
    # The worker is tried first, and then allowed to write.
    "tryout": Story(
        4,
        (
            Step("start", _nothing, (UNTOUCHED,), dry=True),
            Step("deploy", _deploy_in_vain, (UNTOUCHED,), dry=True),
            Step("on", _nothing, _two(_labels(4))),
        ),
        evictions=(0,),
        bindings=(2,),
        tainted=False,
    ),
    # Two replicas share a host for as long as the worker is away: nobody is to go.
    "passing": Story(
        5,
        (
            Step("start", _nothing, (State(_labels(5)),)),
            Step("deploy", lambda scene: _deploy(scene, 3), (State(_labels(5), THREE, _apart("v2", "v3", "v4")),)),
            Step("vmotion", lambda scene: scene.move("v3", "h2"), right=()),
            Step("back", lambda scene: scene.move("v3", "h3"), (State(_labels(5), THREE, _apart("v2", "v3", "v4")),)),
        ),
        evictions=(0,),
        bindings=(3,),
    ),
}
