"""Whether two pods are written alike: replicas of one owner mostly are, and comparing is quicker than reading again.

In: two pods. Out: yes or no, where a wrong no costs time and a wrong yes would be a wrong class.
"""

from underhost.agents.compiled.volumes.of_pod import is_plain
from underhost.schemas.kubernetes import Pod, PodStatus


def classed_alike(one: Pod, other: Pod, claims: bool) -> bool:
    """Whether both are of the same raw class, labels aside, and their containers ask for the same.

    With `claims`, the claims of a pod are part of its class.
    """
    meta, spec, its_meta, its_spec = one.metadata, one.spec, other.metadata, other.spec
    return (
        spec.containers == its_spec.containers
        and spec.affinity == its_spec.affinity
        and spec.tolerations == its_spec.tolerations
        and spec.topology_spread_constraints == its_spec.topology_spread_constraints
        and meta.owner_references == its_meta.owner_references
        and meta.namespace == its_meta.namespace
        and (meta.deletion_timestamp is None) == (its_meta.deletion_timestamp is None)
        and spec.node_selector == its_spec.node_selector
        and spec.init_containers == its_spec.init_containers
        and spec.overhead == its_spec.overhead
        and spec.resources == its_spec.resources
        and spec.host_users == its_spec.host_users
        and spec.host_network == its_spec.host_network
        and (
            spec.volumes == its_spec.volumes
            or (is_plain(bytes(spec.volumes), claims) and is_plain(bytes(its_spec.volumes), claims))
        )
    )


def resized_alike(one: PodStatus, other: PodStatus) -> bool:
    """Whether both statuses say the same of what was asked for in place."""
    return one is other or (  # replicas that a file was read of share it
        one.container_statuses == other.container_statuses
        and one.init_container_statuses == other.init_container_statuses
        and one.resources == other.resources
        and one.allocated_resources == other.allocated_resources
        and one.conditions == other.conditions
    )
