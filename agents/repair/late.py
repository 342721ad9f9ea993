"""Who came to a node when there was no room or port left: the later ones, whoever they belong to.

In: a compiled site and its pods. Out: which of a node's pods are late. When a pod was made is the API server's word, so
nobody comes first by saying so. Of pods of one second those of other namespaces count as later: nobody goes for one
that may have come with it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from underhost.agents.schedule.places import Places
from underhost.schemas.kubernetes import Pod


class Arrivals:
    """The order in which pods came; `pods` are those of the snapshot that the places are of."""

    def __init__(self, places: Places, pods: Mapping[str, Pod]) -> None:
        self._places, self._pods = places, pods

    def is_late(self, one: str, other: str) -> bool:
        """Whether one pod came after the other; of one namespace and second, both did."""
        mine, theirs = self._came(one), self._came(other)
        return mine > theirs or (mine == theirs and self._namespace(one) == self._namespace(other))

    def without_room(self, pods: Iterable[str]) -> set[str]:
        """Those of a node's pods for which those before them left too little room; all are on one node."""
        pods = list(pods)
        if not pods:
            return set()
        state, model = self._places.state, self._places.model
        node = self._places.where(pods[0]).node
        over = [
            (name, int(model.nodes.allocatable[row, node]))
            for name, row in model.nodes.resources.items()
            if state.used[row, node] > model.nodes.allocatable[row, node]
        ]
        keys = model.running.keys
        there = [keys[at] for at in model.running.on_node[node]]
        late = set[str]()
        for name, room in over:
            held = {pod: model.requests[self._places.where(pod).request].held.get(name, 0) for pod in there}
            taken = self._taken(held)
            late |= {pod for pod in pods if taken[self._came(pod), self._namespace(pod)] > room}
        return late

    def _taken(self, held: Mapping[str, int]) -> Mapping[tuple[str, str], int]:
        """By second and namespace, what these pods held once those had come, without others of the same second."""
        at: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for pod, amount in held.items():
            at[self._came(pod)][self._namespace(pod)] += amount
        taken, before = dict[tuple[str, str], int](), 0
        for second, amounts in sorted(at.items()):
            taken.update(((second, namespace), before + amount) for namespace, amount in amounts.items())
            before += amounts.total()
        return taken

    def _came(self, pod: str) -> str:
        return self._pods[pod].metadata.creation_timestamp or ""

    def _namespace(self, pod: str) -> str:
        return self._pods[pod].metadata.namespace
