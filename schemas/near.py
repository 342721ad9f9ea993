"""Did you mean: the known name that is most like a mistyped one.

In: an unknown name, and the known ones. Out: the end of an error line.
"""

import re
from collections.abc import Collection

_DIGIT = re.compile(r"\d")
MANY = 2000
"""Beyond this number only names that begin alike are compared: an error must not take seconds."""


def near(name: str, names: Collection[str]) -> str | None:
    """The name that was probably meant; None where none is similar."""
    from difflib import get_close_matches  # here: only errors need it, and it takes some milliseconds

    # A name that differs by a number only is no typing error: worker-1 is not meant by worker-7.
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
