"""The committed manifests, and a real API server that takes them: what tests and the run of the stack share."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from support.processes.kube import ADMIN_TOKEN, Kube
from support.processes.world import KubeApi, eventually

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "kubernetes"
PLAIN, SINKS, SPLIT = ROOT / "compose" / "kubernetes" / "underhost.yaml", DATA / "sinks.yaml", DATA / "split.yaml"
NAMESPACES = {PLAIN: "plain", SINKS: "sinks", SPLIT: "underhost"}
"""All are written for the namespace `underhost`; two move, so that they fit into one cluster."""
COLLECTIONS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
}


def objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, in the namespace that it is given here."""
    text = path.read_text().replace("namespace: underhost\n", f"namespace: {NAMESPACES[path]}\n")
    text = text.replace("name: underhost-underhost-", f"name: {NAMESPACES[path]}-underhost-")
    return [one for one in yaml.safe_load_all(text) if one]


def config_of(path: Path) -> dict[str, Any]:
    """The configuration that the ConfigMap of these manifests holds."""
    config = next(one for one in objects(path) if one["kind"] == "ConfigMap")
    return dict(yaml.safe_load(config["data"]["underhost.yaml"]))


def put(kube: Kube, path: str, body: Mapping[str, Any]) -> list[str]:
    """Create an object; what the API server warns of it. Raises urllib.error.HTTPError."""
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(kube.server + path, json.dumps(body).encode(), headers, method="POST")
    tls = ssl.create_default_context(cafile=str(kube.ca))
    with urllib.request.urlopen(request, timeout=20, context=tls) as answer:
        return [f"{body['kind']}: {warning}" for warning in answer.headers.get_all("Warning") or []]


def apply(kube: Kube, path: Path) -> list[str]:
    """Create what a file holds, in a namespace that enforces `restricted`; no field may be unknown. The warnings."""
    api, namespace = KubeApi(kube), NAMESPACES[path]
    eventually("the default roles are there", lambda: has(api, "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"))
    eventually("the default namespace is there", lambda: has(api, "/api/v1/namespaces/default"))
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
    warnings = []
    for one in objects(path):
        collection = COLLECTIONS[one["kind"]].format(namespace=namespace)
        warnings += put(kube, f"{collection}?fieldValidation=Strict", one)
    return warnings


def has(api: KubeApi, path: str) -> bool:
    """Whether there is such an object."""
    try:
        return bool(api.ask("GET", path))
    except urllib.error.HTTPError:
        return False


def token_of(api: KubeApi, account: str) -> str:
    """A token of the account `namespace/name`, as its pods would have it."""
    namespace, name = account.split("/")
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    return str(api.ask("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])
