"""Lists that show the past: an API server may serve them from a cache that is cut off from etcd.

In: what a topic holds. Out: the newest resourceVersion of a kind in it; a list of a lower one is older than what was
published from this cluster before. How long a newer list is waited for is left to the watcher. Pure.
"""

from collections.abc import Mapping

import msgspec

from underhost.schemas.keys import parse_key
from underhost.schemas.numbers import number
from underhost.streams.kubernetes.kinds import Identified, Kind


def newest_held(held: Mapping[str, bytes], kind: Kind) -> int:
    """The highest resourceVersion of the kind's records, 0 where there is none."""
    wanted, newest = kind.kind.lower(), 0
    for key, data in held.items():
        try:
            if parse_key(key).kind == wanted:
                newest = max(newest, number(_decoder.decode(data).metadata.resource_version) or 0)
        except (ValueError, msgspec.MsgspecError):
            continue  # said where it is read to be used
    return newest


_decoder: msgspec.json.Decoder[Identified] = msgspec.json.Decoder(Identified)
