"""Record keys: `SITE/kind/namespace/name`, the same in every topic and table."""

from functools import lru_cache
from typing import NamedTuple


class Key(NamedTuple):
    """A parsed key. `kind` is lower case with dashes; `name` may hold slashes."""

    site: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


LISTED = "listed"


def object_key(site: str, kind: str, name: str, namespace: str = "") -> str:
    """The key of an object: `SITE/kind/namespace/name`, with an empty namespace for cluster-scoped objects."""
    return f"{site}/{kind}/{namespace}/{name}"


def listed_key(site: str, source: str) -> str:
    """The key of the marker that `source` has listed: `SITE/listed/SOURCE`."""
    return f"{site}/{LISTED}/{source}"


def finding_key(site: str, finding_id: str) -> str:
    """The key of a finding in `violations`: `SITE/FINDING-ID`."""
    return f"{site}/{finding_id}"


def parse_key(key: str) -> Key:
    """The parts of an object's or marker's key (a marker has kind `listed` and the source as name).

    Raises ValueError for anything else.
    """
    parts = key.split("/", 3)
    if len(parts) == 4 and parts[0] and parts[1] and parts[3]:
        return Key(*parts)
    if len(parts) == 3 and parts[0] and parts[1] == LISTED and parts[2]:
        return Key(parts[0], LISTED, "", parts[2])
    raise ValueError(f"not a record key: {key!r}")


@lru_cache(maxsize=4096)  # a pod that is bound comes twice, and its placement and its outcome have the same key
def key_of(key: bytes) -> Key:
    """The parts of a key as topics and tables have it. Raises ValueError as `parse_key`."""
    return parse_key(key.decode())


def site_of(key: str) -> str:
    """The site of any key of ours."""
    return key.partition("/")[0]
