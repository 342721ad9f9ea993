"""A cluster for the stories: manifests are applied, pods settle where the evaluator puts them, nodes are drained.

Everything goes the way of the offline commands: the files' reader, the expansion of manifests, `schedule`, `explain`.
"""

import io
import json
from typing import Any

import msgspec
import yaml
from support.build import NodeBuilder

from underhost.agents.evaluate.check import check
from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.load import snapshot_of
from underhost.agents.whatif.plan import what_if
from underhost.agents.whatif.steps import Step, parse
from underhost.schemas import kubernetes as k8s
from underhost.schemas.documents import NodeVerdict, Placements, Report, WhatIf
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import load_files

Json = dict[str, Any]
ROOM = {"cpu": "8", "memory": "32Gi"}
"""Of a node, where a story does not say another."""


class Cluster:
    """Nodes, manifests and running pods, all as plain API objects."""

    def __init__(self, *nodes: NodeBuilder) -> None:
        self.nodes = {node.name: {"spec": {"taints": []}} | node.sent() for node in nodes}
        self.manifests: list[Json] = []
        self.pods: dict[str, Json] = {}
        self.replica_sets: dict[str, Json] = {}

    def apply(self, text: str) -> None:
        """kubectl apply: an object of the same kind and name is replaced."""
        for document in yaml.safe_load_all(text):
            same = (document["kind"], document["metadata"]["name"])
            self.manifests = [one for one in self.manifests if (one["kind"], one["metadata"]["name"]) != same]
            self.manifests.append(document)

    def snapshot(self) -> Snapshot:
        """What the offline commands would judge."""
        return snapshot_of(self._objects())[0]

    def _objects(self) -> Objects:
        items = [*self.nodes.values(), *self.pods.values(), *self.replica_sets.values(), *self.manifests]
        return load_files(["-"], stdin=io.BytesIO(json.dumps({"kind": "List", "items": items}).encode()))

    def tried(self, *lines: str | Step) -> WhatIf:
        """What steps lead to, as the command line writes them; nothing of it happens."""
        steps = [parse(*line.split(" ", 1)) if isinstance(line, str) else line for line in lines]
        objects = self._objects()
        return what_if(snapshot_of(objects)[0], Options(), steps, objects.others).document

    def settle(self) -> Placements:
        """Every pending pod is placed and runs there from now on."""
        snapshot = self.snapshot()
        placed = schedule(snapshot, Options())
        for key, workload in snapshot.workloads.items():
            if workload.kind == "ReplicaSet":  # the Deployments' controller has made them
                self.replica_sets[key] = msgspec.json.decode(k8s.encode(workload))
                self.replica_sets[key]["metadata"]["uid"] = key
        for pod, node in placed.placements.items():
            if node is not None:
                self._run(pod, snapshot.pods[pod], node)
        return placed

    def _run(self, pod: str, value: k8s.Pod, node: str) -> None:
        running: Json = msgspec.json.decode(k8s.encode(value))
        running |= {"apiVersion": "v1", "kind": "Pod"}
        running["metadata"]["uid"] = pod
        running["spec"]["nodeName"] = node
        running["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.pods[pod] = running

    def where(self, prefix: str = "") -> dict[str, str]:
        """The node of every running pod whose name begins so."""
        names = {pod.partition("/")[2]: value["spec"]["nodeName"] for pod, value in self.pods.items()}
        return {name: node for name, node in sorted(names.items()) if name.startswith(prefix)}

    def cordon(self, node: str) -> None:
        """The node is marked, with the taint that goes with it."""
        spec = self.nodes[node]["spec"]
        spec["unschedulable"] = True
        spec["taints"].append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})

    def uncordon(self, node: str) -> None:
        """The mark is taken away."""
        spec = self.nodes[node]["spec"]
        del spec["unschedulable"]
        spec["taints"] = [taint for taint in spec["taints"] if taint["key"] != "node.kubernetes.io/unschedulable"]

    def drain(self, node: str) -> list[str]:
        """kubectl drain: the pods that went away."""
        self.cordon(node)
        gone = [pod for pod, value in self.pods.items() if value["spec"]["nodeName"] == node]
        for pod in gone:
            del self.pods[pod]
        return gone

    def delete(self, pod: str) -> None:
        """kubectl delete pod: its owner will make another."""
        del self.pods[f"default/{pod}"]

    def explain(self, pod: str) -> dict[str, NodeVerdict]:
        """Every node's verdict on a pod."""
        return explain(self.snapshot(), Options(), [f"default/{pod}"]).pods[f"default/{pod}"].nodes

    def feasible(self, pod: str) -> list[str]:
        """The nodes that would take a pod."""
        return [name for name, verdict in self.explain(pod).items() if verdict.feasible]

    def check(self, drift: bool = False) -> Report:
        """What is wrong with the running pods."""
        return check(self.snapshot(), Options(drift=drift))
