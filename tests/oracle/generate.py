"""Random clusters as List documents, each from its seed: small, valid, and full of the scheduler's traps.

Called by `parity.py` and the parity test. Objects are as an API server would have stored them: upstream's plugins do no
defaulting. kubernetes#141526 is left out on purpose (docs/parity.md).
"""

from oracle.generate_pods import IMAGES, pod
from oracle.generate_storage import storage
from oracle.generate_terms import APPS, HOST, NAMESPACES, REGION, TAINTS, ZONE, Chance, Json

NODES, RUNNING, PENDING = 12, 50, 12
FEATURES = ("InPlacePodLevelResourcesVerticalScaling", "RestartAllContainersOnContainerExits")
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
CPU_COUNTS = ("2", "4", "8", "16", "007", "abc", "9223372036854775807", "9223372036854775808")


def document(seed: int, storage: float = 0.0, stored: bool = True) -> Json:
    """The List of one seed. `storage` is the share of documents with claims, volumes and attach limits.

    Not `stored`: pods are manifests, without uid, that the API server's defaulting still has to complete.
    """
    return _Cluster(seed, storage, stored).document()


class _Cluster:
    def __init__(self, seed: int, storage: float, stored: bool) -> None:
        self.chance = Chance(seed)
        self.chance.stored = stored
        self._seed, self._made = seed, 0
        self.nodes = self.chance.randint(1, NODES)
        self.storage = self.chance.often(storage)

    def document(self) -> Json:
        chance, names = self.chance, [f"n{i:02d}" for i in range(self.nodes)]
        items = [self._node(name) for name in names]
        for i in range(chance.randint(1, RUNNING)):
            node = chance.choice(names) if not chance.often(0.02) else "gone"
            items.append(pod(chance, self._metadata(f"e{i:03d}"), self.nodes, node, self.storage))
        for i in range(chance.randint(1, PENDING)):
            items.append(pod(chance, self._metadata(f"p{i:03d}"), self.nodes, None, self.storage))
        for item in items[self.nodes :] if not chance.stored else ():
            del item["metadata"]["uid"]
        items += (
            self._namespaces()
            + self._owners()
            + (storage(self.chance, self._metadata, self.nodes) if self.storage else [])
        )
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _metadata(self, name: str, namespace: str = "", **labels: str) -> Json:
        self._made += 1
        created = f"2026-01-01T00:{self.chance.randint(0, 3):02d}:{self.chance.choice((0, 0, 7, 30)):02d}Z"
        uid = f"{self._seed & 0xFFFFFFFF:08x}-0000-4000-8000-{self._made:012x}"
        metadata: Json = {"name": name, "uid": uid, "creationTimestamp": created}
        return metadata | ({"namespace": namespace} if namespace else {}) | ({"labels": labels} if labels else {})

    def _node(self, name: str) -> Json:
        chance = self.chance
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": chance.choice(("amd64", "amd64", "arm64"))}
        if not chance.often(0.08):
            labels[HOST] = name if not chance.often(0.05) else f"host-{chance.choice('ab')}"
        if not chance.often(0.15):
            labels[ZONE] = chance.choice(("z1", "z1", "z2", "z3", *([""] if chance.often(0.1) else [])))
        for key, missing, values in (
            (REGION, 0.3, ("r1", "r2")),
            ("rack", 0.4, ("rack-1", "rack-2", "rack-3")),
            ("disktype", 0.4, ("ssd", "hdd", "")),
            ("cpu-count", 0.4, CPU_COUNTS),
        ):
            if not chance.often(missing):
                labels[key] = chance.choice(values)
        spec: Json = {}
        taints: dict[tuple[str, str], Json] = {}
        if chance.often(0.08):
            spec["unschedulable"] = True
            if not chance.often(0.2):
                taints["", ""] = UNSCHEDULABLE
        for key, value in chance.some(TAINTS, 1, 2) if chance.often(0.35) else ():
            effect = chance.choice(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"))
            taints[key, effect] = {"key": key, "effect": effect} | ({"value": value} if value else {})
        if taints:
            spec["taints"] = list(taints.values())
        status = {"allocatable": self._allocatable(), "conditions": [{"type": "Ready", "status": "True"}]}
        if chance.often(0.6):
            status["declaredFeatures"] = list(chance.choice((FEATURES, FEATURES[:1], FEATURES[1:])))
        metadata = self._metadata(name) | {"labels": labels}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "spec": spec,
            "status": status | self._images(),
        }

    def _allocatable(self) -> dict[str, str]:
        chance = self.chance
        found = {
            "cpu": chance.choice(("1", "8", "3920m", "16", "32", "7920m")),
            "memory": chance.choice(("2Gi", "16Gi", "16266656Ki", "4000M", "64Gi")),
            "ephemeral-storage": chance.choice(("20Gi", "100Gi", "47093746742")),
            "pods": chance.choice(("110", "110", "110", "110", "8", "3")),
        }
        if chance.often(0.3):
            found["nvidia.com/gpu"] = chance.choice(("1", "2", "8", "0"))
        if chance.often(0.2):
            found["example.com/foo"] = "5"
        if chance.often(0.2):
            found["hugepages-2Mi"] = "256Mi"
        if chance.often(0.04):
            del found["ephemeral-storage"]
        return found

    def _images(self) -> Json:
        """Images on the node; some carry the tag that their pods leave out, some sizes differ from node to node."""
        chance, images = self.chance, []
        for name, size in chance.some(sorted(IMAGES.items()), 0, 4):
            tagged = name if ":" in name or not chance.often(0.6) else f"{name}:latest"
            full = f"docker.io/library/{tagged}" if name == "busybox" and chance.often(0.5) else tagged
            images.append({"names": [full], "sizeBytes": size // 2 if chance.often(0.1) else size})
        return {"images": images} if images else {}

    def _namespaces(self) -> list[Json]:
        """The namespaces; sometimes the document lacks them all."""
        if self.chance.often(0.05):
            return []
        made = []
        for name in NAMESPACES:
            labels = {"kubernetes.io/metadata.name": name}
            if name != "default":
                labels["team"] = name[-1]
            if self.chance.often(0.6):
                labels["env"] = self.chance.choice(("prod", "dev"))
            made.append(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": self._metadata(name) | {"labels": labels}}
            )
        return made

    def _owners(self) -> list[Json]:
        """Services and workloads, from whose selectors the scheduler's default spreading is made; budgets."""
        chance, made = self.chance, []
        for namespace in NAMESPACES:
            for app in chance.some(APPS, 0, 2):
                selector = {"app": app} if not chance.often(0.2) else {"app": app, "tier": "front"}
                made.append(self._object("v1", "Service", app, namespace, {"selector": selector}))
            for app in chance.some(APPS, 0, 2):
                made.append(self._workload("ReplicaSet", app, namespace))
            if chance.often(0.2):
                made.append(self._workload("StatefulSet", "db", namespace))
            if chance.often(0.3):
                selector = {"matchLabels": {"app": chance.choice(APPS)}}
                budget = {"minAvailable": 1, "selector": selector}
                made.append(self._object("policy/v1", "PodDisruptionBudget", "pdb", namespace, budget))
        return made

    def _object(self, api_version: str, kind: str, name: str, namespace: str, spec: Json) -> Json:
        return {"apiVersion": api_version, "kind": kind, "metadata": self._metadata(name, namespace), "spec": spec}

    def _workload(self, kind: str, app: str, namespace: str) -> Json:
        labels = {"app": app}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        made = self._object("apps/v1", kind, app, namespace, spec)
        made["metadata"]["uid"] = f"owner-{app}"
        return made
