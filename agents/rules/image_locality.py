"""ImageLocality: prefers nodes that already hold the pod's images, the more so the more nodes hold them."""

import numpy as np

from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.domains import IndexArray
from underhost.agents.compiled.memo import Depends
from underhost.agents.compiled.nodes import IntArray
from underhost.agents.compiled.state import State
from underhost.agents.rules.rule import MAX_SCORE, Prepared
from underhost.agents.site.requests import Request

NAME = "ImageLocality"
WEIGHT = 1
_MIB = 1024 * 1024
_LEAST, _MOST_PER_CONTAINER = 23 * _MIB, 1000 * _MIB


class _ImageLocality(Prepared):
    def __init__(self, scores: IntArray) -> None:
        self._scores = scores

    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        return self._scores[nodes]


class _NoImage(Prepared):
    def score(self, request: Request, nodes: IndexArray) -> IntArray | int | None:
        return 0


def prepare(state: State, cls: PodClass) -> Prepared:
    """Never None: pods whose images no node has score 0 everywhere."""
    if not cls.images:
        return _NoImage()
    key = (NAME, cls.images, cls.image_count)
    return state.memo.remember(key, Depends.NODES | Depends.IMAGES, lambda: _ImageLocality(_scores(state, cls)))


def _scores(state: State, cls: PodClass) -> IntArray:
    """int64[N]: the sum over containers of size · (nodes with the image / nodes), cut to the bounds, scaled to 100."""
    nodes = state.model.nodes
    total: IntArray = np.zeros(len(nodes), np.int64)
    for name in cls.images:
        size, holders = nodes.images[name]
        total[holders] += int(float(size) * (len(holders) / len(nodes)))  # truncated before the sum, as upstream does
    most = _MOST_PER_CONTAINER * cls.image_count
    scores: IntArray = MAX_SCORE * (np.clip(total, _LEAST, most) - _LEAST) // (most - _LEAST)
    return scores
