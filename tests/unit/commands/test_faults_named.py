"""A fault in a manifest names the object, the field and the key that a person wrote, not those made of them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.schemas.errors import InputError

HEAD = (
    "kind: {kind}\napiVersion: {group}\nmetadata: {{name: web, namespace: shop}}\n"
    "spec:\n  selector: {{matchLabels: {{app: web}}}}\n"
)
TEMPLATE = "  template:\n    metadata: {{labels: {labels}}}\n    spec: {spec}\n"
LIMITED = "{containers: [{name: a}, {name: c, resources: {limits: {cpu: %s}}}]}"
WANTED = "expected a number or a string, got a list"
IN_TEMPLATE = "spec.template.spec.containers[1].resources.limits[cpu]"


def a_manifest(kind: str = "Deployment", spec: str = "{containers: [{name: c}]}", labels: str = "{app: web}") -> str:
    group = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    return HEAD.format(kind=kind, group=group) + TEMPLATE.format(labels=labels, spec=spec)


def a_pod(spec: str) -> str:
    return f"kind: Pod\napiVersion: v1\nmetadata: {{name: web, namespace: shop}}\nspec: {spec}\n"


def asked(folder: Path, *texts: str) -> tuple[int, str]:
    """Exit code, and the fault in `schedule` of a file of these manifests."""
    file = folder / "m.yaml"
    file.write_text("---\n".join(texts))
    done = CliRunner().invoke(build(), ["schedule", "-f", str(file)])
    fault = str(done.exception) if isinstance(done.exception, InputError) else ""
    return done.exit_code, fault.removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        *(
            pytest.param(a_manifest(kind, LIMITED % "[1]"), f"{kind}/shop/web: {IN_TEMPLATE}: {WANTED}", id=kind)
            for kind in ("Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController")
        ),
        pytest.param(
            a_manifest(spec="{containers: [{name: c, resources: {limits: {cpu: 1}, requests: {cpu: x}}}]}"),
            "Deployment/shop/web: spec.template.spec.containers[0].resources.requests[cpu]: not a quantity: 'x' (a "
            "number and a suffix: n u m k M G T P E, Ki to Ei, or e3)",
            id="a request beside a limit",
        ),
        pytest.param(
            a_manifest(labels="{app: web, tier: 5}"),
            "Deployment/shop/web: spec.template.metadata.labels[tier]: expected a string, got an integer",
            id="a label of the template",
        ),
        pytest.param(
            a_manifest(spec="{containers: [{name: c}], tolerations: [{key: 5}]}"),
            "Deployment/shop/web: spec.template.spec.tolerations[0].key: expected a string, got an integer",
            id="a toleration",
        ),
        pytest.param(
            a_pod(LIMITED % "[1]"),
            f"Pod/shop/web: spec.containers[1].resources.limits[cpu]: {WANTED}",
            id="a limit of a pod",
        ),
    ],
)
def test_a_fault_is_named_as_it_is_written(tmp_path: Path, text: str, fault: str) -> None:
    assert asked(tmp_path, text) == (1, fault)


def test_of_two_workloads_the_one_whose_pod_it_is(tmp_path: Path) -> None:
    other = a_manifest("StatefulSet", LIMITED % "[1]").replace("name: web", "name: web-api")
    assert asked(tmp_path, a_manifest(), other) == (1, f"StatefulSet/shop/web-api: {IN_TEMPLATE}: {WANTED}")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(a_manifest(spec=LIMITED % "null"), id="a limit of a template"),
        pytest.param(a_manifest(labels="{app: web, tier: null}"), id="a label of a template"),
        pytest.param(a_pod(LIMITED % "null"), id="a limit of a pod"),
        pytest.param(a_pod("{containers: [{name: c, resources: {requests: {cpu: null}}}]}"), id="a request of a pod"),
        pytest.param(a_pod("{containers: [{name: c}], nodeSelector: {disk: null}}"), id="a selector of a pod"),
    ],
)
def test_a_null_is_absent(tmp_path: Path, text: str) -> None:
    code, fault = asked(tmp_path, text)
    assert (code, fault) == (1, "")  # it waits: there is no node
