"""Which leases this worker may hold now: no role is of use without what it rests on.

In: whose leases the sources have, which of them are silent, how complete the site's picture is, the membership. Out:
whether a role's lease is to be sought. Workers that share no topics must not hold the site half each: who labels where
nothing is listed labels nothing, and keeps everybody else from it. So vSphere is watched where Kubernetes is, by a
worker that can do both, and a role that writes is sought where the sources are, or the site's picture is complete. It
is given up when the sources are another worker's whose records do not come here.
"""

from collections.abc import Callable, Collection

from underhost.agents.pipeline.roles import KUBERNETES, VSPHERE, WATCHERS
from underhost.streams.faust.membership import Membership


class Seeking:
    """Of one worker of these roles. `is_log_ours` tells that nobody else's records come here: the log is embedded.

    `is_ours` tells of a source's lease, `silent` names the sources that give no sign of life, `unready` says why the
    site's picture is not complete.

    Attributes:
        owns_site: whether the consumer group gives the site to this worker, or there is no group.
    """

    def __init__(
        self,
        roles: Collection[str],
        membership: Membership,
        *,
        is_log_ours: bool,
        is_ours: Callable[[str], bool],
        silent: Callable[[], Collection[str]],
        unready: Callable[[], str | None],
    ) -> None:
        self._roles, self._membership, self._is_log_ours = frozenset(roles), membership, is_log_ours
        self._is_ours, self._silent, self._unready = is_ours, silent, unready
        self.owns_site = False
        self._has_been_complete = False

    def is_candidate(self) -> bool:
        """Whether this worker is there for the site at all."""
        return self.owns_site and self._membership.doubt() is None

    def may_seek(self, role: str) -> bool:
        """Whether the role's lease is to be held by this worker if nobody else has it."""
        if not self.owns_site:
            self._has_been_complete = False
        if not self.is_candidate():
            return False
        if role == VSPHERE:
            return KUBERNETES not in self._roles or self._is_ours(KUBERNETES)
        return role == KUBERNETES or self._has_picture()

    def _has_picture(self) -> bool:
        """Whether the site's picture is kept up to date: from here, or from elsewhere once it has been complete."""
        own = WATCHERS & self._roles
        away = {name for name in own if not self._is_ours(name)}
        if own == WATCHERS and not away:
            self._has_been_complete = True
        elif (self._is_log_ours and away) or set(self._silent()) - (own - away):
            self._has_been_complete = False
        elif self._unready() is None:
            self._has_been_complete = True
        return self._has_been_complete
