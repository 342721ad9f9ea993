"""Helm itself on a real API server: install, upgrade, roll back, uninstall, as docs/how-to/deploy.md says."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processes.kube import start_kube
from support.processes.manifests import ROOT, has
from support.processes.world import KubeApi, eventually

pytestmark = pytest.mark.real

CHART = ROOT / "compose" / "kubernetes" / "chart"
WORKER = "/apis/apps/v1/namespaces/underhost/statefulsets/underhost-worker"
TOKEN = "/api/v1/namespaces/underhost/secrets/underhost-web"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/underhost-underhost-worker"
OURS = "app.kubernetes.io%2Fname%3Dunderhost"

Helm = Callable[..., str]


@pytest.fixture
def api(parts: Path, tmp_path: Path) -> Iterator[KubeApi]:
    """An API server that helm's kubeconfig leads to."""
    with start_kube(tmp_path / "kube", parts) as kube:
        api = KubeApi(kube)
        eventually("the default namespace is there", lambda: has(api, "/api/v1/namespaces/default"))
        yield api


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Runs helm, which has to succeed."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("needs helm 3, which Debian does not have: go install helm.sh/helm/v3/cmd/helm@v3.18.6")

    def run(*arguments: str) -> str:
        flags = ["--kubeconfig", str(tmp_path / "kube" / "kubeconfig"), "--namespace", "underhost"]
        done = subprocess.run([program, *arguments, *flags], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def chart(tmp_path: Path) -> str:
    """The chart, but for the least version of Kubernetes: an API server that is built from its module has none."""
    copy = shutil.copytree(CHART, tmp_path / "chart")
    about = copy / "Chart.yaml"
    about.write_text("".join(line for line in about.open() if not line.startswith("kubeVersion:")))
    return str(copy)


def may_patch_nodes(api: KubeApi) -> bool:
    return any("nodes" in rule["resources"] and "patch" in rule["verbs"] for rule in api.ask("GET", ROLE)["rules"])


def left(api: KubeApi) -> list[str]:
    """What there is of ours, by kind and name."""
    groups = {
        "/api/v1/namespaces/underhost": ("serviceaccounts", "configmaps", "secrets", "services"),
        "/apis/apps/v1/namespaces/underhost": ("statefulsets", "deployments"),
        "/apis/policy/v1/namespaces/underhost": ("poddisruptionbudgets",),
        "/apis/networking.k8s.io/v1/namespaces/underhost": ("networkpolicies",),
        "/apis/rbac.authorization.k8s.io/v1": ("clusterroles", "clusterrolebindings"),
    }
    return [
        f"{plural}/{item['metadata']['name']}"
        for prefix, plurals in groups.items()
        for plural in plurals
        for item in api.ask("GET", f"{prefix}/{plural}?labelSelector={OURS}")["items"]
    ]


def test_it_is_installed_upgraded_rolled_back_and_uninstalled(helm: Helm, api: KubeApi, chart: str) -> None:
    said = helm("install", "underhost", chart, "--create-namespace")
    assert "Underhost watches site default, without a vSphere side" in said
    assert "labels is a dry run" in said
    token = api.ask("GET", TOKEN)["data"]["token"]
    before = api.ask("GET", WORKER)["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    assert not may_patch_nodes(api)
    assert "labels writes" in helm("upgrade", "underhost", chart, "--set", "config.sinks.labels=true")
    assert may_patch_nodes(api)
    assert api.ask("GET", WORKER)["spec"]["template"]["metadata"]["annotations"]["checksum/config"] != before
    assert api.ask("GET", TOKEN)["data"]["token"] == token
    helm("rollback", "underhost")
    assert not may_patch_nodes(api)
    assert api.ask("GET", TOKEN)["data"]["token"] == token
    assert len(left(api)) == 10
    helm("uninstall", "underhost")
    assert left(api) == []
