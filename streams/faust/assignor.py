"""A worker of one site is assigned the partition of its site and no other: what it has no use for is not even fetched.

In: what Faust's assignor gives to the members of a group. Out: the same, without the partitions that hold nothing of
the group's site. Which member gets the site is left to Faust: whoever has it keeps it.
"""

from collections.abc import Mapping
from typing import Any

from faust.assignor import PartitionAssignor


class SiteAssignor(PartitionAssignor):  # type: ignore[misc]
    """Faust's, of one partition. All topics have as many partitions, which is checked before a worker starts."""

    def __init__(self, app: Any, replicas: int = 0, *, partition: int) -> None:
        super().__init__(app, replicas)
        self._partition = partition

    def _global_table_standby_assignments(
        self, assignments: Mapping[str, Any], partitions_by_topic: Mapping[str, int]
    ) -> Mapping[str, Any]:
        """Faust's last step before it tells the members: here the other partitions are taken away."""
        reduced: Mapping[str, Any] = super()._global_table_standby_assignments(assignments, partitions_by_topic)
        for member in reduced.values():
            for share in (member.actives, member.standbys):
                share.update({topic: [one for one in share[topic] if one == self._partition] for topic in share})
        return reduced
