"""Pods and nodes of the size that a cluster's have: with all that API server, controllers and kubelet add.

In: objects of `large.py`. Out: the same, a pod with some 5.8 KB of JSON, as etcd holds it.
"""

import hashlib
from typing import Any

Json = dict[str, Any]
WHEN = "2026-01-01T00:00:00Z"
SIDECAR = {"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "10m", "memory": "32Mi"}}


def real_pod(pod: Json) -> Json:
    """A pod that runs, as its API server stores it."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    uid = metadata["uid"]
    annotations = {
        "kubectl.kubernetes.io/restartedAt": WHEN,
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "checksum/config": f"{_digest(uid)}",
        "cni.projectcalico.org/containerID": f"{_digest(uid + 'cni')}",
        "cni.projectcalico.org/podIP": "10.42.17.23/32",
    }
    token = {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    mounts = [{"name": "config", "mountPath": "/etc/app"}, {**token, "readOnly": True}]
    app = {**spec["containers"][0], **_container(mounts)}
    sidecar = {"name": "proxy", "image": "registry.example/mesh/proxy:1.29.1", "resources": SIDECAR}
    containers = [app, {**sidecar, "env": app["env"][:2], "volumeMounts": mounts, "imagePullPolicy": "IfNotPresent"}]
    return {
        **pod,
        "metadata": {
            **metadata,
            "generateName": metadata["name"].rpartition("-")[0] + "-",
            "creationTimestamp": WHEN,
            "annotations": annotations,
            "labels": {
                **metadata["labels"],
                "app.kubernetes.io/managed-by": "Helm",
                "app.kubernetes.io/version": "4.17.2",
                "controller-revision-hash": "6d5f8c9b7d",
            },
            "managedFields": [_managed("kubelet")],
        },
        "spec": {
            **spec,
            "containers": containers,
            "volumes": _volumes(),
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001},
            "schedulerName": "default-scheduler",
            "tolerations": [_tolerated(key) for key in ("not-ready", "unreachable")],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {**status, **_status(uid, [one["name"] for one in containers])},
    }


def real_node(node: Json) -> Json:
    """A node, as its API server stores it."""
    return {**node, "metadata": {**node["metadata"], "creationTimestamp": WHEN}}


def _digest(of: str) -> str:
    return hashlib.sha256(of.encode()).hexdigest()


def _container(mounts: list[Json]) -> Json:
    fields = ("metadata.name", "metadata.namespace", "status.podIP", "spec.nodeName")
    env: list[Json] = [
        {"name": at.upper().replace(".", "_"), "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": at}}}
        for at in fields
    ]
    env += [{"name": f"SETTING_{number}", "value": f"value-of-setting-{number}"} for number in range(4)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    return {
        "env": env,
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": mounts,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _tolerated(key: str) -> Json:
    key = f"node.kubernetes.io/{key}"
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _volumes() -> list[Json]:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return [
        {"name": "config", "configMap": {"name": "app-config", "defaultMode": 420}},
        {"name": "kube-api-access-x7k2p", "projected": {"sources": sources, "defaultMode": 420}},
    ]


def _managed(manager: str) -> Json:
    keys = ("type", "status", "lastProbeTime", "lastTransitionTime")
    conditions = {f'k:{{"type":"{name}"}}': {f"f:{key}": {} for key in keys} for name in ("Ready", "Initialized")}
    fields = {"f:status": {"f:conditions": conditions, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:startTime": {}}}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": WHEN,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _status(uid: str, containers: list[str]) -> Json:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    held = {"status": "True", "lastProbeTime": None, "lastTransitionTime": WHEN}
    return {
        "conditions": [{**held, "type": kind} for kind in kinds],
        "hostIP": "10.0.3.17",
        "hostIPs": [{"ip": "10.0.3.17"}],
        "podIP": "10.42.17.23",
        "podIPs": [{"ip": "10.42.17.23"}],
        "startTime": WHEN,
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": WHEN}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "registry.example/team/app:4.17.2",
                "imageID": f"registry.example/team/app@sha256:{_digest(name)}",
                "containerID": f"containerd://{_digest(uid + name)}",
                "started": True,
            }
            for name in containers
        ],
        "qosClass": "Burstable",
    }
