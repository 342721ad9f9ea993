"""Every tiny cluster: up to 3 hosts, 4 nodes and 5 pods of one or two workloads, and who acts in it.

In: nothing. Out: `STORIES`, numbered by their place; the small ones come first.
"""

from collections.abc import Iterator
from itertools import product

from trust.scope.world import Load, Story

HOSTS, NODES, PODS = 3, 4, 5
ALONE = ("apart by node", "apart by host", "spread over nodes", "spread over hosts", "together on a host")
BESIDE = (
    ("apart by node", "apart by node"),
    ("apart by node", "apart by host"),
    ("apart by node", "apart from a by node"),
    ("free", "apart from a by host"),
    ("apart by host", "with a on a host"),
    ("spread over nodes", "together on a host"),
)
ROOMS = (PODS, 2)
"""Pods on one node: as many as there are, and so few that places are scarce."""


def _loads() -> Iterator[tuple[Load, ...]]:
    for rule, replicas in product(ALONE, range(2, PODS + 1)):
        yield (Load(replicas, rule),)
    for (one, other), here, there in product(BESIDE, range(1, PODS), range(1, PODS)):
        if here + there <= PODS:
            yield Load(here, one), Load(there, other)


def _stories() -> Iterator[Story]:
    for nodes, hosts, loads, room in product(range(1, NODES + 1), range(1, HOSTS + 1), list(_loads()), ROOMS):
        if sum(load.replicas for load in loads) <= nodes * room:
            for ours, drs in product((True, False), (False, True)):
                yield Story(hosts, nodes, loads, room, ours, drs)


STORIES = sorted(_stories(), key=lambda story: (story.nodes, story.hosts, sum(load.replicas for load in story.loads)))
