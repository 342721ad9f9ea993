"""The scheduling rules, one file each, named by the upstream plugin.

REGISTRY is the only list of them, in upstream's filter order; ours, PhysicalHost, comes last. A pod's refusal on a node
is counted for the first rule that refuses. What a rule implements is in `agents/rules/rule.py`.
"""

from underhost.agents.rules import (
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    physical_host,
    pod_topology_spread,
    scheduling_gates,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from underhost.agents.rules.rule import Rule, as_rule

REGISTRY: dict[str, Rule] = {
    rule.NAME: rule
    for rule in map(
        as_rule,
        (
            scheduling_gates,
            node_unschedulable,
            node_name,
            taint_toleration,
            node_affinity,
            node_ports,
            node_resources_fit,
            volume_restrictions,
            node_volume_limits,
            volume_binding,
            volume_zone,
            pod_topology_spread,
            inter_pod_affinity,
            node_resources_balanced_allocation,
            image_locality,
            node_declared_features,
            physical_host,
        ),
    )
}
