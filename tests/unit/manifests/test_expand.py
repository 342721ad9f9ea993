"""Manifests become their pods: how many, under which names, on which nodes, and what the API server adds to them."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from support.build import NodeBuilder, PodBuilder, a_node, a_pod

from underhost.agents.manifests.expand import Expansion, expand
from underhost.schemas import kubernetes as k8s
from underhost.schemas.errors import BadObjectError
from underhost.schemas.manifests import Manifest

Json = dict[str, Any]
HASH = "pod-template-hash"


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def written(pod: PodBuilder) -> k8s.Pod:
    """The pod as a file of a person has it."""
    return k8s.decode(msgspec.json.encode(pod.sent()), k8s.Pod)


def a_template(labels: Json | None = None, **spec: Any) -> Json:
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [{"name": "c"}], **spec}}


def a_workload(kind: str, name: str = "web", *, status: Json | None = None, owner: str = "", **spec: Any) -> Manifest:
    group = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    group = "kubevirt.io/v1" if kind.startswith("VirtualMachine") else group
    if "template" not in spec and kind != "VirtualMachineInstance":
        spec["template"] = a_template()
    spec.setdefault("selector", {"matchLabels": {"app": "web"}})
    owners = (
        [k8s.OwnerReference(kind=owner.split("/")[0], name=owner.split("/")[1], controller=True)] if owner else None
    )
    metadata = k8s.Metadata(name=name, namespace="shop", owner_references=owners)
    return Manifest(kind, metadata, group, raw(spec), raw(status or {}))


def expanded(
    *manifests: Manifest,
    pods: list[PodBuilder | k8s.Pod] | None = None,
    nodes: list[NodeBuilder] | None = None,
    **other: Manifest,
) -> Expansion:
    typed = [pod.build() if isinstance(pod, PodBuilder) else pod for pod in pods or []]
    return expand(
        {f"shop/{pod.metadata.name}": pod for pod in typed},
        {node.name: node.build() for node in nodes or []},
        {
            f"{m.kind}/shop/{m.metadata.name}": k8s.Workload(m.kind, m.metadata, m.api_version)
            for m in manifests
            if m.kind == "ReplicaSet"
        },
        {f"{m.kind}/shop/{m.metadata.name}": m for m in (*manifests, *other.values())},
    )


def names(expansion: Expansion) -> list[str]:
    return [key.removeprefix("shop/") for key in expansion.pods]


def spec_of(expansion: Expansion, name: str) -> Json:
    """The pod's spec as plain values."""
    value: Json = msgspec.json.decode(k8s.encode(expansion.pods[f"shop/{name}"]))["spec"]
    return value


def labels_of(expansion: Expansion, name: str) -> Json:
    value: Json = msgspec.json.decode(expansion.pods[f"shop/{name}"].metadata.labels)
    return value


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(a_workload("Deployment", replicas=3), ["web-0", "web-1", "web-2"], id="Deployment"),
        pytest.param(a_workload("Deployment"), ["web-0"], id="one replica unless said otherwise"),
        pytest.param(a_workload("Deployment", replicas=0), [], id="no replica"),
        pytest.param(a_workload("ReplicaSet", replicas=2), ["web-0", "web-1"], id="ReplicaSet"),
        pytest.param(
            a_workload("ReplicationController", replicas=1, selector={"app": "web"}),
            ["web-0"],
            id="ReplicationController",
        ),
        pytest.param(a_workload("StatefulSet", replicas=2), ["web-0", "web-1"], id="StatefulSet"),
        pytest.param(
            a_workload("StatefulSet", replicas=2, ordinals={"start": 5}),
            ["web-5", "web-6"],
            id="StatefulSet with a start",
        ),
        pytest.param(a_workload("Job"), ["web-0"], id="Job"),
        pytest.param(a_workload("Job", parallelism=3), ["web-0", "web-1", "web-2"], id="a work queue"),
        pytest.param(a_workload("Job", parallelism=3, completions=2), ["web-0", "web-1"], id="fewer completions"),
        pytest.param(
            a_workload("Job", parallelism=3, completions=5, status={"succeeded": 4}), ["web-0"], id="a Job nearly done"
        ),
        pytest.param(a_workload("Job", suspend=True), [], id="a suspended Job"),
        pytest.param(
            a_workload("Job", status={"conditions": [{"type": "Complete", "status": "True", "reason": "x"}]}),
            [],
            id="done",
        ),
        pytest.param(
            a_workload("VirtualMachineInstanceReplicaSet", "mssql", replicas=2),
            ["virt-launcher-mssql-0", "virt-launcher-mssql-1"],
            id="VirtualMachineInstanceReplicaSet",
        ),
        pytest.param(a_workload("VirtualMachine", "vm", running=True), ["virt-launcher-vm-0"], id="a running VM"),
        pytest.param(
            a_workload("VirtualMachine", "vm", runStrategy="Always"), ["virt-launcher-vm-0"], id="a VM always"
        ),
        pytest.param(a_workload("VirtualMachine", "vm", runStrategy="Halted"), [], id="a stopped VM"),
        pytest.param(a_workload("VirtualMachine", "vm", running=False), [], id="a VM that is not running"),
        pytest.param(a_workload("VirtualMachine", "vm"), ["virt-launcher-vm-0"], id="a VM that does not say"),
        pytest.param(a_workload("VirtualMachineInstance", "vmi", domain={}), ["virt-launcher-vmi-0"], id="a VMI"),
        pytest.param(a_workload("Deployment", template={"spec": {}}), [], id="a patch without containers"),
    ],
)
def test_a_workload_becomes_its_pods(manifest: Manifest, expected: list[str]) -> None:
    assert names(expanded(manifest)) == expected


def owned(name: str, owner: str, **labels: str) -> PodBuilder:
    kind, _, owner_name = owner.partition("/")
    reference = {"kind": kind, "name": owner_name, "controller": True}
    return a_pod(name).metadata(ownerReferences=[reference], labels=labels)


@pytest.mark.parametrize(
    ("manifests", "pods", "added"),
    [
        pytest.param(
            [a_workload("StatefulSet", replicas=3)],
            [owned("web-1", "StatefulSet/web")],
            ["web-0", "web-2"],
            id="StatefulSet",
        ),
        pytest.param(
            [a_workload("ReplicaSet", replicas=3)],
            [owned("web-1", "ReplicaSet/web")],
            ["web-0", "web-2"],
            id="ReplicaSet",
        ),
        pytest.param(
            [
                a_workload("Deployment", replicas=2),
                a_workload("ReplicaSet", "web-1a", replicas=2, owner="Deployment/web"),
            ],
            [owned("web-1a-x", "ReplicaSet/web-1a"), owned("web-1a-y", "ReplicaSet/web-1a")],
            [],
            id="a Deployment through its ReplicaSet",
        ),
        pytest.param(
            [a_workload("Deployment", replicas=2)],
            [owned("web-1a-x", "ReplicaSet/web-1a", **{HASH: "1a"})],
            ["web-0"],
            id="a Deployment whose ReplicaSet the dump lacks",
        ),
        pytest.param(
            [a_workload("Deployment", replicas=2)],
            [written(a_pod("loose").labels(app="web")), written(a_pod("other").labels(app="db"))],
            ["web-0", "web-1"],
            id="a Deployment takes no pod without a hash",
        ),
        pytest.param(
            [a_workload("Deployment", replicas=2)],
            [written(a_pod("loose").labels(**{"app": "web", HASH: "1a"}))],
            ["web-0"],
            id="a Deployment takes a pod with a hash",
        ),
        pytest.param(
            [a_workload("ReplicaSet", replicas=2)],
            [written(a_pod("loose").labels(app="web")), written(a_pod("other").labels(app="db"))],
            ["web-0"],
            id="a ReplicaSet takes pods by its selector",
        ),
        pytest.param(
            [a_workload("StatefulSet", replicas=3)],
            [
                written(a_pod("web-test").labels(app="web")),
                written(a_pod("web-1").labels(app="web")),
                written(a_pod("other-2").labels(app="web")),
            ],
            ["web-0", "web-2"],
            id="a StatefulSet takes pods by name and selector",
        ),
        pytest.param(
            [a_workload("ReplicaSet", replicas=1)],
            [owned("web-x", "ReplicaSet/web").finished("Failed")],
            ["web-0"],
            id="a failed pod is replaced",
        ),
        pytest.param(
            [a_workload("VirtualMachineInstanceReplicaSet", "db", replicas=2)],
            [owned("virt-launcher-dbabc-x", "VirtualMachineInstance/dbabc", app="web")],
            ["virt-launcher-db-0"],
            id="guests by the set's selector",
        ),
        pytest.param(
            [a_workload("VirtualMachine", "vm", running=True)],
            [owned("virt-launcher-vm-x", "VirtualMachineInstance/vm")],
            [],
            id="the guest of a VM",
        ),
    ],
)
def test_only_the_missing_pods_are_added(manifests: list[Manifest], pods: list[Json], added: list[str]) -> None:
    expansion = expanded(*manifests, pods=pods)
    assert names(expansion)[len(pods) :] == added


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Deployment"])
def test_a_workload_of_a_cluster_is_no_manifest_while_none_of_its_pods_is_there(kind: str) -> None:
    manifest = msgspec.structs.replace(
        a_workload(kind, replicas=3), metadata=k8s.Metadata(name="web", namespace="shop", uid="u")
    )
    assert names(expanded(manifest)) == []
    assert names(expanded(manifest, pods=[owned("web-7", f"{kind}/web")])) == ["web-7", "web-0", "web-1"]


def test_a_daemonset_gets_a_pod_on_every_node_that_it_tolerates_and_selects() -> None:
    nodes = [
        a_node("b").labels(role="x"),
        a_node("a").labels(role="x").cordoned(),
        a_node("tainted").labels(role="x").tainted("k:NoSchedule"),
        a_node("pressed").labels(role="x").tainted("node.kubernetes.io/disk-pressure:NoSchedule"),
        a_node("other").labels(role="y"),
        a_node("has").labels(role="x"),
    ]
    manifest = a_workload("DaemonSet", "ds", template=a_template(nodeSelector={"role": "x"}))
    pods = [owned("ds-qqq", "DaemonSet/ds").on("has")]
    expansion = expanded(manifest, pods=pods, nodes=nodes)
    assert names(expansion) == ["ds-qqq", "ds-a", "ds-b", "ds-pressed"]
    term = spec_of(expansion, "ds-a")["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    }
    keys = [
        toleration["key"].removeprefix("node.kubernetes.io/")
        for toleration in spec_of(expansion, "ds-a")["tolerations"]
    ]
    assert keys == ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]


def test_limits_become_requests_where_there_are_none() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    container = {"name": "c", "resources": resources}
    expansion = expanded(
        a_workload("Deployment", template=a_template(containers=[container], initContainers=[container]))
    )
    for part in ("containers", "initContainers"):
        assert spec_of(expansion, "web-0")[part][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "limits", "requests"),
    [
        pytest.param([{}], {"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, id="no container asks"),
        pytest.param([{"cpu": "100m"}, {"cpu": "1"}], {"cpu": "2"}, {"cpu": "1100m"}, id="the containers' sum"),
        pytest.param([{"memory": "1Mi"}], {"cpu": "2"}, {"cpu": "2", "memory": "1048576"}, id="one of each"),
        pytest.param(
            [{"cpu": "0", "memory": 0}, {}],
            {"cpu": "9", "memory": "1Gi"},
            {"cpu": "0m", "memory": "0"},
            id="nothing, and they say so",
        ),
    ],
)
def test_pod_level_limits_become_pod_level_requests(containers: list[Json], limits: Json, requests: Json) -> None:
    parts = [{"name": f"c{i}", "resources": {"requests": one}} for i, one in enumerate(containers)]
    expansion = expanded(a_workload("Deployment", template=a_template(containers=parts, resources={"limits": limits})))
    assert spec_of(expansion, "web-0")["resources"]["requests"] == requests


def test_an_init_container_that_asks_for_0_asks_for_something() -> None:
    init = {"name": "i", "resources": {"requests": {"cpu": "0"}}}
    template = a_template(containers=[{"name": "c"}], initContainers=[init], resources={"limits": {"cpu": "9"}})
    expansion = expanded(a_workload("Deployment", template=template))
    assert spec_of(expansion, "web-0")["resources"]["requests"] == {"cpu": "0m"}


def test_match_label_keys_are_merged_once_and_only_those_that_the_pod_has() -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "zone",
        "matchLabelKeys": [HASH, "absent"],
        "mismatchLabelKeys": ["app"],
    }
    null = {"topologyKey": "zone", "matchLabelKeys": ["app"]}
    anti = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term, null],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
    }
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    template = a_template(
        affinity={"podAntiAffinity": anti}, topologySpreadConstraints=[spread | {"matchLabelKeys": ["app"]}]
    )
    expansion = expanded(a_workload("Deployment", template=template))
    digest = labels_of(expansion, "web-0")[HASH]
    merged = [
        {"key": HASH, "operator": "In", "values": [digest]},
        {"key": "app", "operator": "NotIn", "values": ["web"]},
    ]
    found = spec_of(expansion, "web-0")["affinity"]["podAntiAffinity"]
    required = found["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required[0]["labelSelector"]["matchExpressions"] == merged
    assert "labelSelector" not in required[1]
    preferred = found["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert preferred["labelSelector"]["matchExpressions"] == merged
    assert spec_of(expansion, "web-0")["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]
    }
    again = expand(expansion.pods, {}, {}, {})
    assert again.pods == expansion.pods


def test_a_new_pod_of_a_deployment_carries_the_hash_of_those_that_are_there() -> None:
    pods = [owned("web-1a-x", "ReplicaSet/web-1a", app="web", **{HASH: "1a"})]
    expansion = expanded(a_workload("Deployment", replicas=2), pods=pods)
    assert labels_of(expansion, "web-0") == {"app": "web", HASH: "1a"}


def test_a_new_deployment_gets_the_replicaset_by_whose_selector_its_pods_are_spread() -> None:
    expansion = expanded(a_workload("Deployment", replicas=1))
    owner = (expansion.pods["shop/web-0"].metadata.owner_references or [])[0]
    workload = expansion.workloads[f"ReplicaSet/shop/{owner.name}"]
    digest = labels_of(expansion, "web-0")[HASH]
    assert owner == k8s.OwnerReference("ReplicaSet", f"web-{digest}", "", "apps/v1", True)
    assert msgspec.json.decode(workload.spec.selector) == {"matchLabels": {"app": "web", HASH: digest}}


def a_class(name: str, value: Any, default: bool = False, policy: str | None = None) -> Manifest:
    return Manifest(
        "PriorityClass",
        k8s.Metadata(name=name),
        value=raw(value),
        global_default=raw(default),
        preemption_policy=raw(policy),
    )


@pytest.mark.parametrize(
    ("spec", "classes", "priority"),
    [
        pytest.param({"priorityClassName": "gold"}, [a_class("gold", 9)], 9, id="the class of the input"),
        pytest.param({"priorityClassName": "system-node-critical"}, [], 2_000_001_000, id="a class of every cluster"),
        pytest.param({}, [a_class("gold", 9), a_class("base", 5, default=True)], 5, id="the default class"),
        pytest.param({"priority": 3}, [a_class("base", 5, default=True)], 3, id="a priority that is given"),
        pytest.param({}, [], 0, id="no class at all"),
    ],
)
def test_the_priority_class_is_looked_up(spec: Json, classes: list[Manifest], priority: int) -> None:
    expansion = expanded(a_workload("Deployment", template=a_template(**spec)), *classes)
    assert expansion.pods["shop/web-0"].spec.priority == priority


def test_a_priority_class_that_the_input_lacks_is_noted() -> None:
    expansion = expanded(a_workload("Deployment", template=a_template(priorityClassName="gold")))
    assert expansion.notes == [
        "pods added, pending, for workloads that lack them: Deployment/shop/web 1",
        "priority class 'gold' is not in the input: taken as 0",
    ]


def test_hooks_of_helm_are_no_load_and_are_noted() -> None:
    hook = k8s.Annotations(hook="test")
    pod = written(a_pod("web-test").labels(app="web"))
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=hook))
    running = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name="runs", uid="u"))
    job = a_workload("Job", "migrate")
    job = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, annotations=hook))
    expansion = expanded(a_workload("ReplicaSet", replicas=1), job, pods=[pod, running])
    assert names(expansion) == ["runs"]  # whose labels the ReplicaSet takes
    assert expansion.notes == [
        "hooks of Helm, which end before the rest is at work, are not placed: Pod/shop/web-test, Job/shop/migrate"
    ]


@pytest.mark.parametrize(
    ("claims", "volumes"),
    [
        pytest.param([], [{"name": "tmp", "emptyDir": {}}], id="claims that are made with the pods"),
        pytest.param(
            ["shop/data-web-0"],
            [{"name": "tmp", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}],
            id="a claim that is there",
        ),
    ],
)
def test_a_statefulset_replaces_the_volume_that_its_claims_are_called(claims: list[str], volumes: list[Json]) -> None:
    template = a_template(
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "tmp", "emptyDir": {}},
        ]
    )
    manifest = a_workload("StatefulSet", template=template, volumeClaimTemplates=[{"metadata": {"name": "data"}}])
    expansion = expand({}, {}, {}, {"StatefulSet/shop/web": manifest}, claims=claims)
    assert spec_of(expansion, "web-0")["volumes"] == volumes


def test_a_stopped_machine_is_noted() -> None:
    assert expanded(a_workload("VirtualMachine", "vm", running=False)).notes == [
        "stopped, so without a pod: VirtualMachine vm"
    ]


def test_host_network_ports_become_host_ports() -> None:
    container = {"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]}
    expansion = expanded(a_workload("Deployment", template=a_template(containers=[container], hostNetwork=True)))
    assert [port["hostPort"] for port in spec_of(expansion, "web-0")["containers"][0]["ports"]] == [80, 8081]


def test_a_pod_manifest_is_completed_but_a_pod_of_a_cluster_is_not() -> None:
    limits = {"resources": {"limits": {"cpu": "1"}}}
    expansion = expanded(pods=[written(a_pod("new").containers(limits)), a_pod("old").containers(limits)])
    assert spec_of(expansion, "new")["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert spec_of(expansion, "old")["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("domain", "requests"),
    [
        pytest.param({"resources": {"requests": {"memory": "16Gi"}}}, {"memory": "16Gi"}, id="what the guest asks for"),
        pytest.param({"resources": {"limits": {"cpu": "2"}}}, {"cpu": "2"}, id="limits where it asks for nothing"),
        pytest.param(
            {"memory": {"guest": "4Gi"}, "cpu": {"cores": 2, "sockets": 2}},
            {"memory": "4Gi", "cpu": "400m"},
            id="the machine",
        ),
        pytest.param(
            {"cpu": {"cores": 4, "dedicatedCpuPlacement": True}}, {"cpu": "4"}, id="dedicated CPUs are asked for whole"
        ),
        pytest.param(
            {"memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}}, {"hugepages-2Mi": "1Gi"}, id="huge pages"
        ),
        pytest.param(
            {"devices": {"gpus": [{"deviceName": "nvidia.com/T4"}, {"deviceName": "nvidia.com/T4"}]}},
            {"nvidia.com/T4": "2"},
            id="devices",
        ),
    ],
)
def test_a_guest_asks_for_what_its_machine_needs(domain: Json, requests: Json) -> None:
    expansion = expanded(a_workload("VirtualMachineInstance", "vmi", domain=domain))
    assert spec_of(expansion, "virt-launcher-vmi-0")["containers"][0]["resources"]["requests"] == requests


def test_a_guest_keeps_its_labels_and_placement_rules() -> None:
    guest = {"domain": {}, "nodeSelector": {"performance": "high"}, "affinity": {"nodeAffinity": {}}}
    template = {"metadata": {"labels": {"kubevirt.io/domain": "mssql2016"}}, "spec": guest}
    expansion = expanded(a_workload("VirtualMachineInstanceReplicaSet", "mssql", template=template))
    assert labels_of(expansion, "virt-launcher-mssql-0") == {
        "kubevirt.io/domain": "mssql2016",
        "kubevirt.io": "virt-launcher",
        "vm.kubevirt.io/name": "mssql-0",
    }
    assert spec_of(expansion, "virt-launcher-mssql-0")["nodeSelector"] == {"performance": "high"}
    assert spec_of(expansion, "virt-launcher-mssql-0")["affinity"] == {"nodeAffinity": {}}


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        pytest.param(
            a_workload("Deployment", replicas=10**9),
            "Deployment/shop/web: spec.replicas: more than 100000 pods",
            id="too many",
        ),
        pytest.param(
            a_workload("Deployment", replicas=-1),
            "Deployment/shop/web: spec.replicas: must be a whole number, not '-1'",
            id="less than none",
        ),
        pytest.param(
            a_workload("Deployment", template={"metadata": [], "spec": {"containers": [{}]}}),
            "Deployment/shop/web: spec.template.metadata: expected an object, got a list",
            id="metadata as a list",
        ),
        pytest.param(
            a_workload("Deployment", template=a_template(nodeName=5)),
            "Deployment/shop/web: spec.template.spec.nodeName: expected a string, got an integer",
            id="a number as node name",
        ),
        pytest.param(a_class("gold", "high"), "PriorityClass/gold: value: must be an integer", id="a class in words"),
    ],
)
def test_a_manifest_that_the_api_refuses_is_named_with_its_field(manifest: Manifest, fault: str) -> None:
    with pytest.raises(BadObjectError) as caught:
        expanded(manifest)
    assert str(caught.value) == fault


def test_added_pods_are_younger_than_those_that_are_there() -> None:
    pods = [a_pod("x").created("2026-01-02T00:00:00Z")]
    expansion = expanded(a_workload("Deployment"), pods=pods)
    assert expansion.pods["shop/web-0"].metadata.creation_timestamp == "2026-01-02T00:00:00Z"
