"""Did you mean: of the names that there are, the one that a mistyped name is most like.

In: a name that is none, and the names that there are. Out: a part of an error line. Called wherever a person's name for
something is looked up: commands, options, formats, agents, sinks, settings, topics, nodes, pods and hosts.
"""

import re
from collections.abc import Collection

_DIGIT = re.compile(r"\d")
MANY = 2000
"""Of more names than these only those that begin alike are compared: an error must not take seconds."""


def near(name: str, names: Collection[str]) -> str | None:
    """The name that was probably meant; None where none is like it."""
    from difflib import get_close_matches  # seldom needed, and not for nothing

    # Another number is no slip: whoever asks for worker-7 where there is none is not helped with worker-1.
    several = sorted(one for one in names if one == name or _DIGIT.sub("#", one) != _DIGIT.sub("#", name))
    if len(several) > MANY:
        several = [one for one in several if one[:3] == name[:3]][:MANY]
    folded = {one.lower(): one for one in reversed(several)}
    found = get_close_matches(name.lower(), folded, 1)
    return folded[found[0]] if found else None


def did_you_mean(name: str, names: Collection[str]) -> str:
    """The end of an error line: `; did you mean worker-1?`, or nothing."""
    meant = near(name, names)
    return f"; did you mean {meant}?" if meant is not None else ""
