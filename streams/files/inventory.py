"""The inventory file: which VM runs on which ESXi host, without a vCenter.

Hand-written files are accepted: YAML, without `kind`, hosts by name. Joining VMs to nodes is left to the agents.
"""

from collections import Counter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from underhost.schemas.errors import BadObjectError
from underhost.schemas.vsphere import AUTOMATION, DISABLED, HOST_STATES, RULE_TYPES, Inventory
from underhost.streams.files.faults import fault_of

WRITES = "`underhost inventory` writes one from vCenter"
POWERS = ("on", "off")
_LARGE, _LEAST_PART = 1 << 20, 8
"""Bytes of a text, and of a part of it: those of a hundred thousand VMs with short names are longer."""


class _InventoryParts(Struct, rename="camel"):
    """An inventory whose parts are not read yet."""

    kind: Raw | UnsetType = UNSET
    api_version: Raw | UnsetType = UNSET
    hosts: Raw | UnsetType = UNSET
    vms: Raw | UnsetType = UNSET
    clusters: Raw | UnsetType = UNSET


_parts = msgspec.json.Decoder(_InventoryParts)


def read_inventory(data: bytes, file: str) -> Inventory:
    """The inventory in a JSON document: the whole form, or only {hosts, vms}.

    Raises BadObjectError (with the first fault: file and field named), msgspec.DecodeError, RecursionError.
    """
    msgspec.json.decode(data, type=Raw)  # is it JSON at all? This holds nothing of it
    if not data[:4096].lstrip().startswith(b"{"):
        raise BadObjectError(f"expected an object with hosts and vms: {WRITES}", file=file)
    value = _known_parts(data, file)
    kind = value.get("kind", "Inventory")
    if kind != "Inventory":
        raise BadObjectError(f"is a {str(kind)[:60]!r}, not an Inventory: {WRITES}", file=file)
    if not ("hosts" in value or "vms" in value):
        raise BadObjectError(f"holds neither hosts nor vms: not an inventory; {WRITES}", file=file)
    _repair(value)
    try:
        inventory = msgspec.convert(value, Inventory)
    except msgspec.ValidationError as error:
        raise fault_of(error, file=file, data=msgspec.json.encode(value)) from error
    _check(value, inventory, file)
    return _canonical(inventory, file)


def _known_parts(data: bytes, file: str) -> dict[str, Any]:
    """The parts that an inventory has, as they are written; of others nothing is held."""
    parts = msgspec.structs.asdict(_parts.decode(data))
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(_InventoryParts):
        raw = parts[field.name]
        if raw is not UNSET:
            if _is_of_tiny_parts(bytes(raw)):
                raise BadObjectError(
                    f"has more parts than an inventory of its size: {WRITES}", field=field.encode_name, file=file
                )
            found[field.encode_name] = msgspec.json.decode(raw)
    return found


def _is_of_tiny_parts(text: bytes) -> bool:
    """Whether taking hold of all parts of a large text would take many times its size."""
    return len(text) > _LARGE and sum(map(text.count, (b",", b"{", b"["))) * _LEAST_PART > len(text)


def _repair(value: dict[str, Any]) -> None:
    """Undo what YAML makes of hand-written files: a bare `on` is a boolean there, and an empty field a null."""
    for name in ("hosts", "vms", "clusters"):
        parts = value.get(name)
        if parts is None:
            value.pop(name, None)
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                if isinstance(part.get("power"), bool):
                    part["power"] = "on" if part["power"] else "off"
                for key in [key for key, inner in part.items() if inner is None and key != "host"]:
                    del part[key]
                if "host" in part and part["host"] is None:
                    part["host"] = ""


def _check(value: dict[str, Any], inventory: Inventory, file: str) -> None:
    for index, host in enumerate(inventory.hosts):
        _one_of(host.state, HOST_STATES, f"hosts[{index}].state", file)
        if not host.name:
            raise BadObjectError("must not be empty", field=f"hosts[{index}].name", file=file)
    for index, vm in enumerate(inventory.vms):
        _one_of(vm.power, POWERS, f"vms[{index}].power", file)
        if not vm.name:
            raise BadObjectError("must not be empty", field=f"vms[{index}].name", file=file)
        if "host" not in value["vms"][index]:
            what = 'missing: the id or name of the host it runs on, or "" where that is unknown'
            raise BadObjectError(what, object_=f"vm {vm.name}", field=f"vms[{index}].host", file=file)
    for index, cluster in enumerate(inventory.clusters):
        _one_of(cluster.automation, AUTOMATION, f"clusters[{index}].automation", file)
        for vm_ref, level in cluster.overrides.items():
            _one_of(level, (*AUTOMATION, DISABLED), f"clusters[{index}].overrides[{vm_ref}]", file)
        for number, rule in enumerate(cluster.rules):
            _one_of(rule.type, RULE_TYPES, f"clusters[{index}].rules[{number}].type", file)
    _distinct([host.ref for host in inventory.hosts], "hosts", file)
    _distinct([vm.ref for vm in inventory.vms], "vms", file)


def _canonical(inventory: Inventory, file: str) -> Inventory:
    """The same inventory with hosts and VMs named by their ids, as vCenter does; by name where they have no id."""
    named = Counter(host.name for host in inventory.hosts)
    ref_of_host = {host.name: host.ref for host in inventory.hosts} | {host.ref: host.ref for host in inventory.hosts}
    ref_of_vm = {vm.name: vm.ref for vm in inventory.vms} | {vm.ref: vm.ref for vm in inventory.vms}
    vms = []
    for index, vm in enumerate(inventory.vms):
        if vm.host and vm.host not in ref_of_host:
            what = f"{vm.host[:60]!r} is the id or name of no host of the inventory"
        elif named[vm.host] > 1:
            what = f"{vm.host[:60]!r} is the name of several hosts: give the id"
        else:
            vms.append(replace(vm, host=ref_of_host.get(vm.host, "")))
            continue
        raise BadObjectError(what, object_=f"vm {vm.name}", field=f"vms[{index}].host", file=file)
    clusters = [
        replace(
            cluster,
            overrides={ref_of_vm.get(name, name): level for name, level in cluster.overrides.items()},
            admission=cluster.admission
            and replace(
                cluster.admission,
                failover_hosts=sorted(ref_of_host.get(name, name) for name in cluster.admission.failover_hosts),
            ),
            rules=[
                replace(
                    rule,
                    cluster=cluster.name,
                    vms=sorted(ref_of_vm.get(name, name) for name in rule.vms),
                    hosts=sorted(ref_of_host.get(name, name) for name in rule.hosts),
                )
                for rule in cluster.rules
            ],
        )
        for cluster in inventory.clusters
    ]
    return replace(inventory, vms=vms, clusters=clusters)


def _one_of(given: str, allowed: tuple[str, ...], field: str, file: str) -> None:
    if given not in allowed:
        raise BadObjectError(f"{given[:60]!r} is none of {', '.join(allowed)}", field=field, file=file)


def _distinct(refs: list[str], field: str, file: str) -> None:
    for ref, count in Counter(refs).items():
        if count > 1:
            raise BadObjectError(f"{ref[:60]!r} is given {count} times", field=field, file=file)
