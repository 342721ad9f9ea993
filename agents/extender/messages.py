"""What kube-scheduler is told of a node that is refused: the reason, and which pod is in the way on which host.

In: a verdict and the picture that it was made from, before that changes. Out: a text for each node. kube-scheduler
counts nodes by text and writes all of them into the pod's condition, so that only some hosts are told of by name.
"""

from collections.abc import Sequence

from underhost.agents.compiled.occupants import Occupant, Occupants
from underhost.agents.extender.assumed import Assumed
from underhost.agents.extender.judge import REFUSALS, Verdict
from underhost.agents.extender.picture import HostPicture
from underhost.agents.schedule.obstacles import STRANGER, listing, said, to_its_namespace
from underhost.agents.site.requests import Request

MOST = 8
"""Hosts of which a text names pods: a condition's message is read by people, and an Event's is cut at 1 kB."""
_SEPARATOR = ": "


def reason_of(message: str) -> str:
    """A text without the pods and hosts that it names: what is counted."""
    return message.partition(_SEPARATOR)[0]


class Messages:
    """The texts of one answer. `pod` is the one that is asked about, `coming` are those on their way."""

    def __init__(
        self, picture: HostPicture, pod: str, request: Request, verdict: Verdict, coming: Sequence[Assumed]
    ) -> None:
        self._picture, self._pod, self._request, self._verdict = picture, pod, request, verdict
        self._unsure = [one for one in coming if len(one.places) > 1]
        surely = [Occupant(one.key, one.cls, int(one.places[0])) for one in coming if len(one.places) == 1]
        self._there = Occupants(picture.state.model, (pod, *(one.key for one in coming)), surely)
        self._hosts: set[int] = set()

    def of(self, node: int, code: int) -> str:
        """The text of a node that was refused with this code, a key of REFUSALS."""
        reason, named = REFUSALS[code].reason, ""
        hosts = self._picture.topology.hosts
        host = hosts.code_list[node] if hosts is not None else -1
        if host in self._hosts or len(self._hosts) < MOST:
            self._hosts.add(host)
            named = self._named(node, code)
        return f"{reason}{_SEPARATOR}{named}" if named else reason

    def _named(self, node: int, code: int) -> str:
        rule = REFUSALS[code].rule
        prepared = self._verdict.rules.get(rule)
        because = [] if prepared is None else list(prepared.because(code, self._request, node, self._there))
        return said(self._pod, to_its_namespace(self._pod, because), rule) or self._on_their_way(node)

    def _on_their_way(self, node: int) -> str:
        """The pods that may come to the node's host, where none is known to be there."""
        hosts = self._picture.topology.hosts
        if hosts is None or hosts.code_list[node] < 0:
            return ""
        host = hosts.code_list[node]
        coming = [one.key for one in self._unsure if (hosts.codes[one.places] == host).any()]
        mine = f"{self._pod.partition('/')[0]}/"
        names = listing([key.removeprefix(mine) if key.startswith(mine) else STRANGER for key in sorted(coming)])
        return f"{names} on {hosts.values[host]}" if names else ""
