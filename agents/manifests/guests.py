"""KubeVirt's guests: the virt-launcher pod that a VirtualMachineInstance becomes.

In: a VMI's labels and spec as plain JSON values. Out: a pod template. Only what placement reads is carried over;
KubeVirt's own additions (memory overhead, its node labels) depend on its version and configuration and are left out.
Source: kubevirt pkg/virt-controller/services/{template,renderresources}.go.
"""

from collections import Counter
from typing import Any

from underhost.agents.manifests.parts import Json, object_of, objects_of

CPU_ALLOCATION_RATIO = 10  # KubeVirt's default: a guest's CPU asks for a tenth of a core
LAUNCHER = {"kubevirt.io": "virt-launcher"}
NAME_LABEL = "vm.kubevirt.io/name"
_SCHEDULING = (
    "affinity", "nodeSelector", "priorityClassName", "schedulerName", "tolerations", "topologySpreadConstraints",
)  # fmt: skip


def launcher_template(name: str, labels: Any, spec: Json) -> Json:
    """The pod template of the guest `name`: its placement rules, its requests and its volumes."""
    domain = object_of(spec.get("domain"))
    pod_spec: Json = {key: spec[key] for key in _SCHEDULING if spec.get(key) is not None}
    pod_spec["containers"] = [{"name": "compute", "resources": _resources(domain)}]
    claims = [volume.get("persistentVolumeClaim") for volume in objects_of(spec.get("volumes"))]
    volumes = [
        {"name": f"volume-{i}", "persistentVolumeClaim": {"claimName": claim.get("claimName", "")}}
        for i, claim in enumerate(claims)
        if isinstance(claim, dict)
    ]
    if volumes:
        pod_spec["volumes"] = volumes
    return {"metadata": {"labels": {**object_of(labels), **LAUNCHER, NAME_LABEL: name}}, "spec": pod_spec}


def is_started(spec: Json) -> bool:
    """Whether a VirtualMachine is to run: a stopped one has no pod. One that says neither is there to be tried."""
    strategy = spec.get("runStrategy")
    if strategy is None:
        return spec.get("running") is not False
    return strategy in ("Always", "RerunOnFailure", "Once")


def _resources(domain: Json) -> Json:
    """The guest's requests; limits where there are none; memory and CPUs of the machine where neither says."""
    given = object_of(domain.get("resources"))
    requests = {**object_of(given.get("limits")), **object_of(given.get("requests"))}
    memory, cpu = object_of(domain.get("memory")), object_of(domain.get("cpu"))
    if "memory" not in requests and memory.get("guest") is not None:
        requests["memory"] = memory["guest"]
    page = object_of(memory.get("hugepages")).get("pageSize")
    if page and "memory" in requests:
        requests[f"hugepages-{page}"] = requests.pop("memory")
    if "cpu" not in requests and cpu:
        count = 1
        for part in ("cores", "sockets", "threads"):
            count *= cpu[part] if isinstance(cpu.get(part), int) and cpu[part] > 0 else 1
        dedicated = cpu.get("dedicatedCpuPlacement") is True
        requests["cpu"] = str(count) if dedicated else f"{count * 1000 // CPU_ALLOCATION_RATIO}m"
    devices = object_of(domain.get("devices"))
    listed = (*objects_of(devices.get("gpus")), *objects_of(devices.get("hostDevices")))
    names = [device["deviceName"] for device in listed if isinstance(device.get("deviceName"), str)]
    return {"requests": requests | {name: str(count) for name, count in Counter(names).items()}}
