"""A small site that changes at random, one object after another: for tests of what follows changes."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from support.build import HOST, term
from support.sites.random_cluster import RandomCluster

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.records import NodeHost
from underhost.schemas.vsphere import Host

OWNERS = [("ReplicaSet", "web-1"), ("StatefulSet", "db"), ("ReplicaSet", "alone"), ("DaemonSet", "agent")]


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


class ChangingSite:
    """`snapshot` is the site as it is now; `change` makes one change and says which."""

    def __init__(self, pick: random.Random, hosts: bool = True) -> None:
        self.pick, self.has_hosts, self._number = pick, hosts, 0
        self._spare = RandomCluster(pick.randrange(1 << 30), hosts=hosts)
        self.snapshot = self._with_hosts(self._spare.snapshot())
        self.snapshot = replace(self.snapshot, pods={k: self._owned(p) for k, p in self.snapshot.pods.items()})
        for _ in range(4):
            self._change_budget()
            self._change_workload()

    def change(self) -> str:
        """One change (now and then several at once); its name."""
        changes: list[tuple[int, Callable[[], str]]] = [
            (6, self._add_pod),
            (8, self._move_pod),
            (4, self._remove_pod),
            (5, self._change_pod),
            (3, self._bind_pod),
            (3, self._change_node),
            (1, self._add_node),
            (1, self._remove_node),
            (3, self._move_vm),
            (1, self._change_namespace),
            (1, self._change_service),
            (2, self._change_workload),
            (2, self._change_budget),
            (1, self._change_host),
            (2, self._change_quorum),
            (1, self._several),
        ]
        weights = [weight for weight, _ in changes]
        [(_, change)] = self.pick.choices(changes, weights)
        return change()

    def _several(self) -> str:
        return " and ".join(self.change() for _ in range(self.pick.randrange(2, 6)))

    def exchange_nodes(self) -> str:
        """Up to four nodes come, go or are replaced at once, before, among and behind the others, pods on them or not.

        Some come with their VM's host, some with a resource that no node has.
        """
        said = []
        for name in self.pick.sample(["a", "m", "n0", "n1", "n3", "n5", "n55", "z"], self.pick.randrange(1, 5)):
            node: k8s.Node | None = None
            if name not in self.snapshot.nodes or self.pick.random() < 0.2:
                built = self._spare._node(name)
                if self.pick.random() < 0.2:
                    built = built.has(**{f"example.com/{self.pick.choice('xyz')}": "2"})
                node = built.build()
            self._set("nodes", name, node)
            said.append(f"{'took' if node is None else 'put'} node {name}")
            if self.pick.random() < 0.5:
                said.append(self._move_vm(name))
        return " and ".join(said)

    # ------------------------------------------------------------------------------------------------------- pods
    def _set(self, name: str, key: str, value: object | None) -> None:
        mapping = dict(getattr(self.snapshot, name))
        if value is None:
            mapping.pop(key, None)
        else:
            mapping[key] = value
        fields: dict[str, Any] = {name: mapping}
        self.snapshot = replace(self.snapshot, **fields)

    def _a_pod(self) -> tuple[str, k8s.Pod] | None:
        return self.pick.choice(list(self.snapshot.pods.items())) if self.snapshot.pods else None

    def _owned(self, pod: k8s.Pod) -> k8s.Pod:
        """With an owner and a readiness, so that replicas and budgets are concerned."""
        owners = None
        if self.pick.random() < 0.6:
            kind, name = self.pick.choice(OWNERS)
            owners = [k8s.OwnerReference(kind, name, f"uid-{name}", "apps/v1", True)]
        status = "True" if self.pick.random() < 0.8 else "False"
        return self._edit(
            pod, metadata={"owner_references": owners}, status={"conditions": [k8s.Condition("Ready", status)]}
        )

    @staticmethod
    def _edit(one: Any, **parts: dict[str, Any]) -> Any:
        change = {part: msgspec.structs.replace(getattr(one, part), **fields) for part, fields in parts.items()}
        return msgspec.structs.replace(one, **change)

    def _put_pod(self, pod: k8s.Pod) -> None:
        self._set("pods", f"{pod.metadata.namespace}/{pod.metadata.name}", pod)

    def _add_pod(self) -> str:
        self._number += 1
        builder = self._spare._pod(f"a{self._number}")
        if self.pick.random() < 0.05:  # a term of a kind that was not there before
            wanted = {"matchLabels": {self.pick.choice(["tier", "app"]): "db"}}
            spaces = {"namespaceSelector": {"matchLabels": {"env": "prod"}}} if self.pick.random() < 0.5 else {}
            builder = builder.labels(app="web", tier="db").apart(term(HOST, wanted, **spaces))
        if self.pick.random() < 0.8:
            builder = builder.on(self._a_node_name())
        pod = self._owned(builder.build())
        self._put_pod(pod)
        return f"added {pod.metadata.name}"

    def _a_node_name(self) -> str:
        if self.pick.random() < 0.05 or not self.snapshot.nodes:
            return f"n{self.pick.randrange(12)}"
        return self.pick.choice(list(self.snapshot.nodes))

    def _move_pod(self) -> str:
        """Deleted and created again elsewhere between two looks: most often seen as another node."""
        found = self._a_pod()
        if found is None:
            return "nothing"
        node = self._a_node_name()
        uid = found[1].metadata.uid + ("x" if self.pick.random() < 0.5 else "")
        self._put_pod(self._edit(found[1], metadata={"uid": uid}, spec={"node_name": node}))
        return f"moved {found[0]} to {node}"

    def _bind_pod(self) -> str:
        waiting = [pod for pod in self.snapshot.pods.values() if not pod.spec.node_name]
        if not waiting:
            return self._add_pod()
        pod = self.pick.choice(waiting)
        self._put_pod(self._edit(pod, spec={"node_name": self._a_node_name()}))
        return f"bound {pod.metadata.name}"

    def _remove_pod(self) -> str:
        found = self._a_pod()
        if found is None or len(self.snapshot.pods) < 15:
            return self._add_pod()
        self._set("pods", found[0], None)
        return f"removed {found[0]}"

    def _change_pod(self) -> str:
        found = self._a_pod()
        if found is None:
            return "nothing"
        key, pod = found
        kind = self.pick.randrange(5)
        if kind == 0:
            labels = {"app": self.pick.choice(["web", "db", "cache", "new"]), "pod": key}
            pod = self._edit(pod, metadata={"labels": _raw(labels)})
        elif kind == 1:
            gone = None if pod.metadata.deletion_timestamp else "2026-01-01T01:00:00Z"
            pod = self._edit(pod, metadata={"deletion_timestamp": gone})
        elif kind == 2:
            pod = self._edit(pod, status={"phase": self.pick.choice(["Succeeded", "Running", "Failed"])})
        elif kind == 3:
            pod = self._owned(pod)
        else:
            pod = self._edit(pod, spec={"containers": [k8s.Container("c", "app:1", _raw({"requests": {"cpu": "2"}}))]})
        self._put_pod(pod)
        return f"changed {key} ({kind})"

    # ------------------------------------------------------------------------------------------------------ nodes
    def _change_node(self) -> str:
        if not self.snapshot.nodes:
            return self._add_node()
        name = self.pick.choice(list(self.snapshot.nodes))
        node, other = self.snapshot.nodes[name], self._spare._node(name).build()
        kind = self.pick.randrange(6)
        if kind == 0:
            node = self._edit(node, metadata={"labels": other.metadata.labels})
        elif kind == 1:
            node = self._edit(node, spec={"taints": other.spec.taints})
        elif kind == 2:
            node = self._edit(node, spec={"unschedulable": not node.spec.unschedulable})
        elif kind == 3:
            node = self._edit(node, status={"allocatable": other.status.allocatable})
        elif kind == 4:
            node = self._edit(node, status={"images": other.status.images})
        else:
            node = other
        self._set("nodes", name, node)
        return f"changed node {name} ({kind})"

    def _add_node(self) -> str:
        name = f"n{self.pick.randrange(12)}"
        self._set("nodes", name, self._spare._node(name).build())
        return f"added node {name}"

    def _remove_node(self) -> str:
        if len(self.snapshot.nodes) < 4:
            return self._add_node()
        name = self.pick.choice(list(self.snapshot.nodes))
        self._set("nodes", name, None)
        return f"removed node {name}"

    # ------------------------------------------------------------------------------------------------------ hosts
    def _with_hosts(self, snapshot: Snapshot) -> Snapshot:
        if not self.has_hosts:
            return snapshot
        hosts = {name: Host(id=name, name=f"esx-{name}", cluster="C0") for name in ("h1", "h2", "h3")}
        return replace(snapshot, hosts=hosts, vsphere=True)

    def _move_vm(self, name: str = "") -> str:
        if not self.has_hosts or not self.snapshot.nodes:
            return "nothing"
        name = name or self.pick.choice(list(self.snapshot.nodes))
        host = self.pick.choice(["h1", "h2", "h3", ""])
        known = host and f"esx-{host}"
        joined = NodeHost(node=name, vm=f"vm-{name}", host=host, host_name=known, joined_by="name")
        self._set("node_hosts", name, None if self.pick.random() < 0.1 else joined)
        return f"moved VM of {name} to {host}"

    def _change_host(self) -> str:
        if not self.has_hosts:
            return "nothing"
        name = self.pick.choice(list(self.snapshot.hosts))
        state = self.pick.choice(["connected", "maintenance"])
        cluster = self.pick.choice(["C0", "C0", "C0", "C1"])
        self._set("hosts", name, msgspec.structs.replace(self.snapshot.hosts[name], state=state, cluster=cluster))
        return f"host {name} of {cluster} is {state}"

    # ----------------------------------------------------------------------------------------------------- others
    def _change_namespace(self) -> str:
        name = self.pick.choice(["shop", "other"])
        labels = {"env": self.pick.choice(["prod", "test"])}
        metadata = k8s.Metadata(name=name, labels=_raw(labels))
        self._set("namespaces", name, None if self.pick.random() < 0.2 else k8s.Namespace(metadata))
        return f"changed namespace {name}"

    def _change_service(self) -> str:
        selector = {"app": self.pick.choice(["web", "db"])}
        service = k8s.Service(k8s.Metadata(name="web", namespace="shop"), k8s.ServiceSpec(_raw(selector)))
        self._set("services", "shop/web", None if self.pick.random() < 0.3 else service)
        return "changed the service"

    def _change_workload(self) -> str:
        kind, name = self.pick.choice(OWNERS[:3])
        over = [k8s.OwnerReference("Deployment", "web", "uid-web", "apps/v1", True)]
        metadata = k8s.Metadata(
            name=name,
            namespace=self.pick.choice(["shop", "other"]),
            uid=f"uid-{name}",
            owner_references=over if kind == "ReplicaSet" and self.pick.random() < 0.7 else None,
        )
        selector = _raw({"matchLabels": {"app": self.pick.choice(["web", "db"])}})
        spec = k8s.WorkloadSpec(replicas=self.pick.randrange(4), selector=selector)
        key = f"{kind}/{metadata.namespace}/{name}"
        gone = self.pick.random() < 0.2
        self._set("workloads", key, None if gone else k8s.Workload(kind, metadata, "apps/v1", spec))
        return f"changed workload {key}"

    def _change_budget(self) -> str:
        name = self.pick.choice(["one", "two", "three"])
        selector = self.pick.choice([None, {}, {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}])
        bound = self.pick.choice([0, 1, "50%", "100%", "30%"])
        least = self.pick.random() < 0.5
        spec = k8s.BudgetSpec(
            min_available=bound if least else None, max_unavailable=None if least else bound, selector=_raw(selector)
        )
        metadata = k8s.Metadata(name=name, namespace="shop", generation=1)
        gone = self.pick.random() < 0.15
        self._set("budgets", f"shop/{name}", None if gone else k8s.Budget(metadata, spec=spec))
        return f"changed budget {name}"

    def _change_quorum(self) -> str:
        """A workload, a pod or a node asks for a quorum or does not any more; or etcd and API servers come and go."""
        asked = k8s.Annotations(quorum=self.pick.choice([None, "true", "true", "1", "2", "false", "most"]))
        kind = self.pick.randrange(4)
        if kind < 2:
            mapping = "workloads" if kind == 0 else "pods"
            there = getattr(self.snapshot, mapping)
            if not there:
                return "nothing"
            key = self.pick.choice(list(there))
            self._set(mapping, key, self._edit(there[key], metadata={"annotations": asked}))
            return f"{key} asks for {asked.quorum}"
        name = self._a_node_name()
        if kind == 2 and name in self.snapshot.nodes:
            node = self.snapshot.nodes[name]
            labels = msgspec.json.decode(node.metadata.labels)
            role = f"node-role.kubernetes.io/{self.pick.choice(['control-plane', 'etcd', 'master', 'worker'])}"
            labels.update({role: ""} if role not in labels else {})
            self._set("nodes", name, self._edit(node, metadata={"annotations": asked, "labels": _raw(labels)}))
            return f"node {name} has {role} and asks for {asked.quorum}"
        component = self.pick.choice(["etcd", "etcd", "kube-apiserver", "kube-scheduler"])
        metadata = k8s.Metadata(
            name=f"{component}-{name}",
            namespace=self.pick.choice(["kube-system", "kube-system", "shop"]),
            labels=_raw({"component": component, "app": "static"}),
            annotations=k8s.Annotations(mirror="static"),
            owner_references=[k8s.OwnerReference("Node", name, f"uid-{name}", "v1", True)],
        )
        self._put_pod(k8s.Pod(metadata, k8s.PodSpec(node_name=name), k8s.PodStatus(phase="Running")))
        return f"static pod {component} on {name}"
