"""Why no eviction ends a finding, in words: all of it for the outcome, and what readers of one namespace may know.

In: the reason of each pod of a finding. Out: a line for each of them. Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from underhost.agents.evaluate import findings as f
from underhost.agents.sinks.readers import own_and_others
from underhost.schemas.records import Finding


class LeftToPerson(NamedTuple):
    """That a finding is left to a person, said of its pod `pod`; `tell` is what of `reason` its namespace may read."""

    finding: Finding
    pod: str
    reason: str
    tell: str


def refusal(finding: Finding, reasons: Mapping[str, str]) -> LeftToPerson:
    """Of a finding none of whose pods can go, by the reason of each."""
    pod = finding.pod or ""
    own, others = own_and_others(reasons, pod.partition("/")[0])
    silence = f"of {others} nothing is said here" if others else ""
    tell = "; ".join(filter(None, (told({one: reasons[one] for one in own}), silence)))
    return LeftToPerson(finding, pod, told(reasons), tell)


def told(reasons: Mapping[str, str]) -> str:
    """The reasons, pods with the same together."""
    pods: dict[str, list[str]] = {}
    for pod, reason in sorted(reasons.items()):
        pods.setdefault(reason, []).append(pod)
    return "; ".join(f"{f.listing(names)}: {reason}" for reason, names in pods.items())
