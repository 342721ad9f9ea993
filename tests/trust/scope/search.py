"""Every order in which the actors of a tiny cluster can act: does it come to rest, and is it no worse than before?

In: a story. Out: an `Account` of all worlds that it can come to, and what is wrong with it. A way from a world back to
it, with a write of ours on it, is a run without end. Where nothing happens any more, it may be no worse than where it
began (`badness`). Pure but for the deciders.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trust.scope.actors import Actors, Badness, Step
from trust.scope.world import Story, World, beginnings


@dataclass
class Account:
    """What a story comes to.

    Attributes:
        beginnings, worlds, steps, writes: how many there are.
        endless: a way round that Underhost writes on. worse: a way to an end that is worse than its beginning.
    """

    beginnings: int = 0
    worlds: int = 0
    steps: int = 0
    writes: int = 0
    endless: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)

    @property
    def lost(self) -> bool:
        """Something is wrong with it."""
        return bool(self.endless or self.worse)


class Acting(Protocol):
    """Who acts: see `Actors`."""

    def steps(self, world: World) -> Sequence[Step]:
        """What may happen next."""

    def badness(self, world: World) -> Badness:
        """How bad a world is; compared."""


def explored(story: Story) -> Account:
    """Try every order from every beginning of the story."""
    return accounted(Actors(story), list(beginnings(story)))


def accounted(actors: Acting, begins: Sequence[World]) -> Account:
    """What these beginnings come to."""
    graph = _graph(actors, begins)
    account = Account(len(begins), len(graph), sum(map(len, graph.values())))
    account.writes = sum(step.ours for steps in graph.values() for step in steps)
    rounds = _rounds(graph)
    of = {world: number for number, one in enumerate(rounds) for world in one}
    for number, one in enumerate(rounds):
        if any(step.ours and of[step.after] == number for world in one for step in graph[world]):
            account.endless.append(_told(_circle(graph, one)))
    ends = _ends(graph, rounds, of)
    bad = {number: max(actors.badness(world) for world in rounds[number]) for number in set().union(*ends)}
    for world in begins:
        before = actors.badness(world)
        worst = max(ends[of[world]], key=lambda number: bad[number])
        if bad[worst] > before:
            account.worse.append(f"{before} → {bad[worst]}\n{_told(_way(graph, world, set(rounds[worst])))}")
    return account


Graph = dict[World, Sequence[Step]]


def _graph(actors: Acting, begins: Sequence[World]) -> Graph:
    graph: Graph = {}
    waiting = list(begins)
    while waiting:
        world = waiting.pop()
        if world not in graph:
            graph[world] = actors.steps(world)
            waiting.extend(step.after for step in graph[world])
    return graph


def _rounds(graph: Graph) -> list[list[World]]:
    """The strongly connected components, what is come to before what comes to it (Tarjan)."""
    number: dict[World, int] = {}
    low: dict[World, int] = {}
    stack: list[World] = []
    waiting = set[World]()
    found: list[list[World]] = []
    for root in graph:
        if root in number:
            continue
        path: list[tuple[World, Iterator[Step]]] = []
        _enter(root, number, low, stack, waiting)
        path.append((root, iter(graph[root])))
        while path:
            world, steps = path[-1]
            for step in steps:
                if step.after not in number:
                    _enter(step.after, number, low, stack, waiting)
                    path.append((step.after, iter(graph[step.after])))
                    break
                if step.after in waiting:
                    low[world] = min(low[world], number[step.after])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[world])
                if low[world] == number[world]:
                    one = []
                    while not one or one[-1] != world:
                        one.append(stack.pop())
                        waiting.discard(one[-1])
                    found.append(one)
    return found


def _enter(world: World, number: dict[World, int], low: dict[World, int], stack: list[World], on: set[World]) -> None:
    number[world] = low[world] = len(number)
    stack.append(world)
    on.add(world)


def _ends(graph: Graph, rounds: Sequence[Sequence[World]], of: dict[World, int]) -> list[frozenset[int]]:
    """For each component, those in which it can end."""
    ends: list[frozenset[int]] = []
    for number, one in enumerate(rounds):
        after = {of[step.after] for world in one for step in graph[world]} - {number}
        ends.append(frozenset().union(*(ends[next_] for next_ in after)) if after else frozenset([number]))
    return ends


def _circle(graph: Graph, one: Sequence[World]) -> list[tuple[str, World]]:
    """A way from a world of the component, by a write of ours, back to it."""
    inside = set(one)
    begin, step = next((world, step) for world in one for step in graph[world] if step.ours and step.after in inside)
    return [("", begin), (step.what, step.after), *_way(graph, step.after, {begin})[1:]]


def _way(graph: Graph, begin: World, ends: set[World]) -> list[tuple[str, World]]:
    """The shortest way to one of these worlds, with what happens on it."""
    came: dict[World, tuple[str, World] | None] = {begin: None}
    queue = [begin]
    for world in queue:
        if world in ends:
            way = [world]
            while came[way[-1]] is not None:
                way.append(came[way[-1]][1])  # type: ignore[index]
            return [("" if came[each] is None else came[each][0], each) for each in reversed(way)]  # type: ignore[index]
        for step in graph[world]:
            if step.after not in came:
                came[step.after] = (step.what, world)
                queue.append(step.after)
    raise ValueError("there is no way")


def _told(way: Sequence[tuple[str, World]]) -> str:
    return "\n".join(f"  {what or 'begins'}: {_shown(world)}" for what, world in way)


def _shown(world: World) -> str:
    rules = " ".join(f"{rule.type}{rule.nodes}" for rule in world.rules)
    return f"hosts {world.hosts} pods {world.pods} {rules} {world.tries or ''}"
