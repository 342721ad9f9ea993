"""Rows of commands whose object is not in the picture: kept for a while, then forgotten.

In: keys of rows as they are written, and of objects as they go. Out: the keys that nobody needs any more. A command, a
placement and an outcome are kept under their target's key, and end with it. But an outcome may come after its target's
tombstone, and a worker that does not read the target's topic never hears of its end: without this module such rows
would grow with every pod that has ever been.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from underhost.agents.site.objects import SiteState
from underhost.schemas import topics
from underhost.schemas.keys import Key, key_of
from underhost.schemas.topics import Topic

KEPT = 300.0
"""Seconds for which such a row is kept: a command that comes again finds its outcome, and one that waits is still
known."""


class Orphans:
    """The keys of such rows, by when they are forgotten.

    Times are the records', in seconds since 1970, and none of the future: nothing would be forgotten before it.
    """

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def note(self, key: bytes, now: float) -> None:
        """A row of this key was written, or its object has gone."""
        self._until.pop(key, None)  # the newest come last
        self._until[key] = now + KEPT

    def due(self, now: float, is_there: Callable[[bytes], bool]) -> Iterator[bytes]:
        """The keys that are forgotten now; one whose object has come meanwhile is kept with it."""
        while self._until and next(iter(self._until.values())) <= now:
            key = next(iter(self._until))
            del self._until[key]
            if not is_there(key):
                yield key


def is_target(states: Mapping[str, SiteState], key: bytes) -> bool:
    """Whether the picture of its site shows the object that a command with this key is about."""
    try:
        target = key_of(key)
    except ValueError:
        return False
    # No picture is made by asking: a site that has only commands is not shown.
    state, place = states.get(target.site), _PLACES.get(target.kind)
    return state is not None and place is not None and state.has(place[0], place[1](target))


def target_of(key: Key) -> bytes:
    """The key of the commands about the object with this key."""
    if key.kind == _RULE:
        cluster, _, name = key.name.partition(":")
        key = key._replace(namespace=cluster, name=name)
    return str(key).encode()


_RULE = "drs-rule"
_PLACES: dict[str, tuple[Topic, Callable[[Key], Any]]] = {
    "node": (topics.NODES, lambda key: key.name),
    "pod": (topics.PODS, lambda key: f"{key.namespace}/{key.name}"),
    _RULE: (topics.DRS_RULES, lambda key: key._replace(namespace="", name=f"{key.namespace}:{key.name}")),
}
"""By kind of target, the topic of its objects, and how a site's rows name one (see `agents/site/objects.py`)."""
