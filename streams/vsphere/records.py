"""An inventory as records of the topics: hosts, VMs, clusters and DRS rules by their keys. Pure."""

import msgspec
from msgspec import Struct

from underhost.schemas.keys import object_key
from underhost.schemas.topics import DRS_RULES, HOSTS, VMS
from underhost.schemas.vsphere import Inventory

TOPICS_IN_ORDER = (HOSTS, VMS, DRS_RULES)
"""Hosts first: a VM's host is known before the VM names it."""

Records = dict[str, dict[str, Struct]]
"""By the topic's full name, then by record key."""


def cluster_name(name: str, moref: str) -> str:
    """What a cluster is called where another one has the same name, in another folder or datacenter."""
    return f"{name} ({moref})"


def inventory_records(site: str, inventory: Inventory) -> Records:
    """The records of an inventory. Rules are records of their own."""
    replace = msgspec.structs.replace
    records: Records = {topic.name: {} for topic in TOPICS_IN_ORDER}
    for host in inventory.hosts:
        records[HOSTS.name][object_key(site, "host", host.ref)] = replace(host, uid=host.uid or host.ref)
    for vm in inventory.vms:
        records[VMS.name][object_key(site, "vm", vm.ref)] = replace(vm, uid=vm.uid or vm.ref)
    for cluster in inventory.clusters:
        uid = cluster.uid or cluster.id or cluster.name
        records[DRS_RULES.name][object_key(site, "cluster", cluster.name)] = replace(cluster, rules=[], uid=uid)
        for rule in cluster.rules:
            key = object_key(site, "drs-rule", f"{cluster.name}:{rule.name}")
            records[DRS_RULES.name][key] = replace(rule, uid=rule.uid or f"{uid}-rule-{rule.key or rule.name}")
    return records
