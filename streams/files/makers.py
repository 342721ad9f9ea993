"""Manifests of kinds that make what is read: a CronJob makes a Job, KubeVirt's VirtualMachinePool makes guests.

In: the spec of one. Out: kind, apiVersion and spec of what it makes; one Job, as no two runs of it need be at work.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from underhost.schemas.manifests import NULL
from underhost.streams.files.faults import fault_of


class Product(NamedTuple):
    """What is read in a maker's place."""

    kind: str
    api_version: str
    spec: Raw


class _Blueprint(Struct):
    spec: dict[str, Raw] | None = None


class _CronJobSpec(Struct, rename="camel"):
    suspend: bool | None = None
    job_template: _Blueprint | None = None


class _PoolSpec(Struct, rename="camel"):
    replicas: Raw = NULL
    selector: Raw = NULL
    virtual_machine_template: _Blueprint | None = None


def _job(spec: Raw) -> Raw:
    read = msgspec.json.decode(spec, type=_CronJobSpec)
    made = (read.job_template.spec if read.job_template else None) or {}
    return Raw(msgspec.json.encode({**made, **({"suspend": True} if read.suspend else {})}))


def _guests(spec: Raw) -> Raw:
    read = msgspec.json.decode(spec, type=_PoolSpec)
    machine = (read.virtual_machine_template.spec if read.virtual_machine_template else None) or {}
    stopped = machine.get("running") == Raw(b"false") or machine.get("runStrategy") == Raw(b'"Halted"')
    made = {"replicas": 0 if stopped else read.replicas, "selector": read.selector, "template": machine.get("template")}
    return Raw(msgspec.json.encode(made))


_MAKERS: Mapping[tuple[str, str], tuple[str, str, Callable[[Raw], Raw]]] = {
    ("CronJob", "batch"): ("Job", "batch/v1", _job),
    ("VirtualMachinePool", "pool.kubevirt.io"): ("VirtualMachineInstanceReplicaSet", "kubevirt.io/v1", _guests),
}


def made_by(kind: str, api_version: str, spec: Raw) -> Product | None:
    """What a manifest of this kind makes; None for every other kind. Raises BadObjectError with the field only."""
    found = _MAKERS.get((kind, api_version.rpartition("/")[0]))
    if found is None or spec is NULL:
        return None
    made_kind, made_version, make = found
    try:
        return Product(made_kind, made_version, make(spec))
    except msgspec.ValidationError as error:
        raise fault_of(error, "spec", data=spec) from error
