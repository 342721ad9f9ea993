"""Shorter pauses for the workers of plans: what takes minutes in a cluster takes a second, in the same order.

In: the table. Out: the product's constants, changed in this process before a worker starts. Only pauses between tries
are changed: no bound after which something is believed, doubted or forgotten, but for `AFTER` a pause.
"""

from functools import partial
from pkgutil import resolve_name

OURS = "underhost.agents"
PACES: dict[str, float] = {
    f"{OURS}.sinks.labels.pace:QUIET": 0.3,
    f"{OURS}.sinks.labels.pace:AFTER_FAILURE": 1.0,
    f"{OURS}.sinks.labels.pace:AFTER_REFUSAL": 3.0,
    f"{OURS}.sinks.evictions.decider:LOOK": 0.1,
    f"{OURS}.sinks.evictions.drs_first:PATIENCE": 1.0,
    f"{OURS}.sinks.evictions.decider:AGAIN": 1.0,
    f"{OURS}.sinks.evictions.decider:FIRST_FAILURE": 0.5,
    f"{OURS}.sinks.evictions.decider:AFTER_REFUSAL": 3.0,
    f"{OURS}.pipeline.decide.placements:FIRST_PAUSE": 0.2,
    f"{OURS}.pipeline.decide.cycle:TICK": 0.5,
    f"{OURS}.pipeline.supervisor:FIRST_PAUSE": 0.1,
}
"""Seconds, by `module:name`."""
PACING = {"steady": 0.2, "failed": 1.0, "settle": 3.0, "refused": 3.0}
"""The pauses of DRS rules, in seconds."""
TIMING = {"first_delay": 0.05, "longest_delay": 0.5}
"""The back-off of the watchers, in seconds."""


def quicken() -> None:
    """Change the constants. Raises AttributeError where one has another name now."""
    for place, seconds in PACES.items():
        module, _, name = place.partition(":")
        resolve_name(place)
        setattr(resolve_name(module), name, seconds)
    decider = resolve_name(f"{OURS}.sinks.drs.decider")
    decider.Pacing = partial(decider.Pacing, **PACING)
    for watcher in ("underhost.streams.kubernetes.watcher", "underhost.streams.vsphere.watcher"):
        module_ = resolve_name(watcher)
        module_.Timing = partial(module_.Timing, **TIMING)
