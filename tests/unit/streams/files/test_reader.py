"""Files: what each form of input is read as, and the one line for what cannot be used."""

import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from underhost.schemas.errors import BadObjectError, InputError
from underhost.streams.files import text as files_text
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import load_files

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file below the test's directory: text, bytes, or an object as JSON."""

    def written(content: Any, name: str = "input.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


def a_pod(name: str = "a", **fields: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]} | fields.pop("spec", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} | fields


def keys_of(objects: Objects) -> list[str]:
    """Everything that was read, as `Kind/key`."""
    named = {"Node": objects.nodes, "Pod": objects.pods, "Namespace": objects.namespaces, "Service": objects.services}
    found = [f"{kind}/{key}" for kind, table in named.items() for key in table]
    return found + [f"PodDisruptionBudget/{key}" for key in objects.budgets] + list(objects.others)


KYAML = """---
{
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "a", creationTimestamp: 2026-01-01T00:00:00Z, labels: { app: "x", }, },
  spec: { containers: [{ name: "c", resources: { requests: { cpu: 0.5, }, }, }], },
}
"""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(a_pod(), ["Pod/default/a"], id="one JSON object"),
        pytest.param({"kind": "List", "items": [a_pod("b"), a_pod()]}, ["Pod/default/b", "Pod/default/a"], id="a List"),
        pytest.param({"kind": "List", "items": []}, [], id="an empty List"),
        pytest.param({"kind": "List", "items": None}, [], id="a List of null"),
        pytest.param(
            {"kind": "PodList", "items": [{"metadata": {"name": "a", "namespace": "n"}}]},
            ["Pod/n/a"],
            id="a PodList whose items do not say their kind",
        ),
        pytest.param(
            {"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n1"}}]},
            ["Node/n1"],
            id="a NodeList",
        ),
        pytest.param(
            {"kind": "List", "items": [{"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}, a_pod()]},
            ["Node/n1", "Pod/default/a"],
            id="a list in a list",
        ),
        pytest.param([a_pod(), a_pod("b")], ["Pod/default/a", "Pod/default/b"], id="an array of objects"),
        pytest.param(
            "{}\n{}\n".format(*(json.dumps(a_pod(n)) for n in "ab")), ["Pod/default/a", "Pod/default/b"], id="NDJSON"
        ),
        pytest.param(
            f"{json.dumps(a_pod('a'), indent=4)}\n"
            '==== START logs for container c of pod default/a ====\n{"level": "info"}\nnot JSON\n'
            "==== END logs for container c of pod default/a ====\n"
            f"{json.dumps(a_pod('b'), indent=4)}\n"
            "==== START logs for container c of pod default/b ====\n",
            ["Pod/default/a", "Pod/default/b"],
            id="kubectl cluster-info dump, with logs between the lists",
        ),
        pytest.param(KYAML, ["Pod/default/a"], id="KYAML"),
        pytest.param(
            "kind: Pod\nmetadata: {name: a, labels: {equals: =}}\n", ["Pod/default/a"], id="an equals sign is text"
        ),
        pytest.param(
            "a: &a {labels: {x: y}}\nkind: Pod\nmetadata: {<<: *a, name: a}\n", ["Pod/default/a"], id="a merge key"
        ),
        pytest.param(KYAML[4:], ["Pod/default/a"], id="KYAML without its first line"),
        pytest.param(
            '{"kind": "Namespace", "metadata": {"name": "n"},}', ["Namespace/n"], id="a comma too many is YAML"
        ),
        pytest.param(
            "---\n---\nkind: Pod\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Namespace\nmetadata: {name: n}\n",
            ["Pod/default/a", "Namespace/n"],
            id="several YAML documents, some empty",
        ),
        pytest.param(b"\xef\xbb\xbf" + json.dumps(a_pod()).encode(), ["Pod/default/a"], id="a byte order mark"),
        pytest.param(json.dumps(a_pod()).encode("utf-16"), ["Pod/default/a"], id="UTF-16, as PowerShell writes it"),
        pytest.param(gzip.compress(KYAML.encode()), ["Pod/default/a"], id="gzip"),
        pytest.param(
            {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"generateName": "j-"}, "spec": {}},
            ["Job/default/j-0"],
            id="only a generateName",
        ),
        pytest.param(
            a_pod(spec={"nodeName": None, "schedulerName": None, "containers": None}),
            ["Pod/default/a"],
            id="null is the same as absent",
        ),
        pytest.param(
            {"kind": "Deployment", "apiVersion": "extensions/v1beta1", "metadata": {"name": "d"}, "spec": {}},
            ["Deployment/default/d"],
            id="the old API group of a Deployment",
        ),
    ],
)
def test_every_form_of_input_is_read(write: Write, content: Any, expected: list[str]) -> None:
    assert keys_of(load_files([write(content)])) == expected


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param("", "is empty", id="an empty file"),
        pytest.param("---\n---\n", "is empty", id="only empty documents"),
        pytest.param(
            '{"kind": "List", "items": [{"kind": "Pod"',
            "not valid JSON: input data was truncated (line 1)",
            id="truncated",
        ),
        pytest.param(
            '{"kind": "List",\n "items": ]}', "not valid JSON: invalid character (line 2, column 11)", id="broken"
        ),
        pytest.param(
            json.dumps(a_pod()) + "\nerror: the connection was lost",
            "not valid JSON: invalid character (line 2, column 1)",
            id="prose after the objects",
        ),
        pytest.param(
            "kind: Pod\n\tmetadata: 1",
            "not valid YAML: found a tab character that violates indentation (line 2",
            id="a tab in YAML",
        ),
        pytest.param("a: 1\na: 2\n", "not valid YAML: the key 'a' is given twice (line 2, column 1)", id="a key twice"),
        *(
            pytest.param(f"a: {value}", "not valid YAML: a value does not fit its tag", id=f"the tag of {value}")
            for value in ('!!int ""', "!!timestamp x", "!!bool maybe")
        ),
        pytest.param("a: !!python/object:os.system x", "not valid YAML: could not determine a constructor", id="a tag"),
        pytest.param(
            "kind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n",
            "a chart template ({{ … }}), not a manifest: render it first",
            id="a chart template",
        ),
        pytest.param("just text", "expected an object, got a string", id="prose"),
        pytest.param(b"\x00\x01", "not valid YAML: unacceptable character #x0000", id="binary"),
        pytest.param(b'{"kind": "Pod",\n "metadata": {"name": "\xda"}}', "not UTF-8 (line 2, byte 24)", id="not UTF-8"),
        pytest.param(gzip.compress(b"kind: Pod")[:-9], "the gzip file is damaged or truncated", id="truncated gzip"),
        pytest.param('{"a":' * 100_000, "nested too deeply", id="JSON nested 100,000 levels"),
        pytest.param("a: " + "[" * 100_000, "nested deeper than 200 levels (line 1)", id="YAML nested 100,000 levels"),
        pytest.param(
            "".join(f"{' ' * i}a:\n" for i in range(2000)),
            "nested deeper than 200 levels (line 201)",
            id="YAML indented 2,000 levels",
        ),
        pytest.param(
            "a0: &a0 [x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 8}]\n" for i in range(1, 20)),
            "aliases that expand to far more than the file holds",
            id="a bomb of aliases",
        ),
        pytest.param("a: &a [*a]", "an anchor that holds itself", id="an anchor that holds itself"),
        pytest.param(
            "a0: &a0 {x: 1, y: 2}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 60)),
            "has no kind: not a Kubernetes object",
            id="a bomb of merge keys that has only two entries",
        ),
        pytest.param(
            "a: &a {"
            + ",".join(f"k{i}: 1" for i in range(1001))
            + "}\n"
            + "".join(f"b{i}: {{<<: *a}}\n" for i in range(100)),
            "not valid YAML: merge keys (<<) that add more than 100000 entries",
            id="merge keys that add too much",
        ),
        pytest.param("a: &a {<<: *a}", "an anchor that holds itself", id="a mapping that merges itself"),
        pytest.param(
            "a: {<<: 1}", "not valid YAML: a mapping or a list of mappings is expected", id="a merge of a number"
        ),
        pytest.param("a: *b", "not valid YAML: found undefined alias 'b' (line 1, column 4)", id="an alias of nothing"),
        pytest.param("? [a]\n: 1", "not valid YAML: a key that is a list or a mapping", id="a list as a key"),
        pytest.param(
            "{{ if .Values.on }}\nkind: Pod\n{{ end }}\n",
            "a chart template ({{ … }}), not a manifest: render it first",
            id="a chart template that begins so",
        ),
        pytest.param(
            "{{- range .Values.all }}\nkind: Pod\n{{- end }}\n",
            "a chart template ({{ … }}), not a manifest: render it first",
            id="a chart template that begins with a dash",
        ),
        pytest.param(
            "NAME   READY   STATUS    RESTARTS   AGE\ndb-0   1/1     Running   0          3d\n",
            "the table that kubectl get prints, without the objects: use `kubectl get … -o json`",
            id="the text of kubectl get",
        ),
        pytest.param(
            "NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE\nshop        db-0   1/1     Running   0          3d\n",
            "the table that kubectl get prints, without the objects: use `kubectl get … -o json`",
            id="the text of kubectl get of all namespaces",
        ),
        pytest.param(
            {"kind": "Table", "rows": []}, "is a Table, what the API server answers for printing", id="a Table"
        ),
        pytest.param(
            {"metadata": {}, "Items": [{"name": "a", "Spec": {}}]},
            "is in the old form of `kubectl cluster-info dump` (Items, Go field names)",
            id="the old cluster-info dump",
        ),
        pytest.param({"replicas": 3}, "has no kind: not a Kubernetes object (a chart's values, a patch", id="values"),
        pytest.param(
            {"metadata": {"name": "a"}, "spec": {}},
            "a: has no kind: an incomplete object (a patch?)",
            id="no kind at all",
        ),
        pytest.param(
            {"kind": "List", "items": [{"metadata": {"name": "a"}}]},
            "items[0] a: has no kind: an incomplete object",
            id="an item that does not say its kind",
        ),
        pytest.param(a_pod(metadata={}), "Pod: metadata.name: missing: an incomplete object", id="no name"),
        pytest.param(
            {"kind": "PodList", "items": [a_pod(), a_pod(metadata={})]},
            "Pod items[1]: metadata.name: missing",
            id="no name in a list",
        ),
        pytest.param(a_pod("a/b"), "Pod: metadata.name: not a valid name: 'default/a/b'", id="a slash in the name"),
        pytest.param(
            a_pod(metadata={"name": 5}), "Pod: metadata.name: expected a string, got an integer", id="a number as name"
        ),
        pytest.param(
            a_pod(metadata={"name": "a", "namespace": "n", "labels": {"app": 5}}),
            "Pod/n/a: metadata.labels[app]: expected a string, got an integer",
            id="a number as label",
        ),
        pytest.param(
            "kind: Pod\nmetadata: {name: a, labels: {enabled: yes}}",
            "Pod/default/a: metadata.labels[enabled]: expected a string, got true or false",
            id="a bare yes as label",
        ),
        pytest.param(
            a_pod(metadata={"name": "a", "labels": {"app": "x" * 2_000_000}}),
            "Pod/default/a: metadata.labels[app]: the value has 2000000 characters, at most 63 are allowed",
            id="a label of 2 MB",
        ),
        pytest.param(
            a_pod(metadata={"name": "a", "labels": ["app"]}),
            "Pod/default/a: metadata.labels: expected an object, got a list",
            id="labels as a list",
        ),
        pytest.param(
            a_pod(spec={"containers": [{"ports": [{"hostPort": "80"}]}]}),
            "Pod/default/a: spec.containers[0].ports[0].hostPort: expected an integer, got a string",
            id="a string as port",
        ),
        pytest.param(
            a_pod(spec={"affinity": []}), "Pod/default/a: spec.affinity: expected an object, got a list", id="affinity"
        ),
        pytest.param(
            a_pod(spec={"tolerations": {"key": "a"}}),
            "Pod/default/a: spec.tolerations: expected a list, got an object",
            id="tolerations",
        ),
        pytest.param(a_pod() | {"spec": 7}, "Pod/default/a: spec: expected an object, got an integer", id="a spec"),
        pytest.param(
            {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": ["4"]}}},
            "Node/n: status.capacity[cpu]: expected a number or a string, got a list",
            id="capacity",
        ),
        pytest.param(
            {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": ["4"]}}},
            "Node/n: status.allocatable[cpu]: expected a number or a string, got a list",
            id="allocatable",
        ),
        pytest.param(
            {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"minAvailable": [1]}},
            "PodDisruptionBudget/default/b: spec.minAvailable: expected an integer or a string, got a list",
            id="a budget",
        ),
        pytest.param(
            {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": "three"}},
            "Deployment/default/d: spec.replicas: expected an integer, got a string",
            id="replicas",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line_with_file_object_and_field(write: Write, content: Any, fault: str) -> None:
    path = write(content)
    with pytest.raises(InputError) as caught:
        load_files([path])
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(f"{path}: {fault}")
    assert "\n" not in caught.value.faults[0]
    assert len(caught.value.faults[0]) < 400


def test_all_faults_are_reported_together(write: Write, tmp_path: Path) -> None:
    first = write(
        {"kind": "List", "items": [a_pod(spec={"nodeName": 1}), a_pod("fine"), a_pod("b", metadata={})]}, "1.json"
    )
    second = write("{", "2.json")
    with pytest.raises(InputError) as caught:
        load_files([first, second, tmp_path / "missing.json"])
    assert list(caught.value.faults) == [
        f"{first}: Pod/default/a: spec.nodeName: expected a string, got an integer",
        f"{first}: Pod items[2]: metadata.name: missing: an incomplete object (a patch, or a template that was not "
        "rendered?)",
        f"{second}: not valid JSON: input data was truncated (line 1)",
        f"{tmp_path}/missing.json: No such file or directory",
    ]


def test_a_thousand_faults_are_cut_short(write: Write) -> None:
    with pytest.raises(InputError) as caught:
        load_files([write({"kind": "List", "items": [a_pod(spec={"nodeName": 1})] * 1000})])
    assert len(caught.value.faults) == 51
    assert caught.value.faults[-1] == "… and 950 more faults"


def test_a_fault_in_a_kind_that_nobody_reads_does_not_matter(write: Write) -> None:
    odd = {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": 5}, "spec": 7}
    objects = load_files([write({"kind": "List", "items": [odd, a_pod()]})])
    assert keys_of(objects) == ["Pod/default/a"]
    assert objects.notes == ("ignored, no rule reads them: 1 Thing",)


@pytest.mark.parametrize(
    ("kind", "api_version", "name"),
    [
        ("Service", "serving.knative.dev/v1", "Service.serving.knative.dev"),
        ("Job", "batch.volcano.sh/v1alpha1", "Job.batch.volcano.sh"),
        ("VirtualMachine", "vmoperator.vmware.com/v1alpha1", "VirtualMachine.vmoperator.vmware.com"),
        ("ConfigMap", "v1", "ConfigMap"),
    ],
)
def test_a_namesake_of_another_api_group_is_ignored_and_counted(
    write: Write, kind: str, api_version: str, name: str
) -> None:
    item = {"kind": kind, "apiVersion": api_version, "metadata": {"name": "a"}, "spec": {}}
    objects = load_files([write({"kind": "List", "items": [item, item]})])
    assert keys_of(objects) == []
    assert objects.notes == (f"ignored, no rule reads them: 2 {name}",)


def test_the_last_of_two_equal_names_counts_at_its_own_place(write: Write) -> None:
    first = write({"kind": "List", "items": [a_pod(spec={"nodeName": "old"}), a_pod("b")]}, "1.json")
    second = write(a_pod(spec={"nodeName": "new"}), "2.json")
    objects = load_files([first, second])
    assert [(key, pod.spec.node_name) for key, pod in objects.pods.items()] == [("default/b", ""), ("default/a", "new")]
    assert objects.notes == (f"given twice, the last one counts: Pod/default/a ({first}, then {second})",)


def test_a_patch_does_not_take_the_place_of_the_object_it_patches(write: Write) -> None:
    template = {"spec": {"containers": [{"name": "c"}]}}
    full = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2, "template": template}}
    patch = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 9}}
    path = write(patch, "2.json")
    objects = load_files([write(full, "1.json"), path])
    assert objects.workloads["Deployment/default/d"].spec.replicas == 2
    assert objects.notes == (
        f"{path}: Deployment/default/d: spec.template: there is none: incomplete, not expanded into pods",
    )


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"metadata": {"name": "n1", "labels": {"gpu": "nvidia"}}}, id="labels"),
        pytest.param({"metadata": {"name": "n1"}, "spec": {"taints": []}}, id="taints"),
        pytest.param({"metadata": {"name": "n1"}}, id="a name"),
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_a_patch_of_a_node_does_not_take_the_place_of_the_node(write: Write, patch: Any, first: bool) -> None:
    live = {"kind": "Node", "metadata": {"name": "n1", "uid": "u"}, "status": {"allocatable": {"cpu": "4"}}}
    paths = [write(live, "1.json"), write({"kind": "Node"} | patch, "2.json")]
    objects = load_files(paths[::-1] if first else paths)
    assert objects.nodes["n1"].metadata.uid == "u"


def test_a_node_that_is_only_labels_is_no_node(write: Write) -> None:
    path = write({"kind": "Node", "metadata": {"name": "n1", "labels": {"gpu": "nvidia"}}})
    objects = load_files([path])
    assert (objects.nodes, objects.notes) == (
        {},
        (f"{path}: Node/n1: status.allocatable: there is none: incomplete, not counted as a node",),
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, {"kubernetes.io/metadata.name": "data"}, id="none"),
        pytest.param({"labels": None}, {"kubernetes.io/metadata.name": "data"}, id="null"),
        pytest.param(
            {"labels": {"team": "a"}}, {"team": "a", "kubernetes.io/metadata.name": "data"}, id="one of its own"
        ),
        pytest.param(
            {"labels": {"kubernetes.io/metadata.name": "other"}},
            {"kubernetes.io/metadata.name": "data"},
            id="another name, which the API server overrides",
        ),
    ],
)
def test_a_namespace_has_the_label_with_its_name_as_the_api_server_sets_it(
    write: Write, labels: dict[str, Any], expected: dict[str, str]
) -> None:
    objects = load_files([write({"kind": "Namespace", "metadata": {"name": "data"} | labels})])
    assert json.loads(bytes(objects.namespaces["data"].metadata.labels)) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"capacity": {"cpu": "8"}}, {"cpu": "8"}, id="not given"),
        pytest.param({"capacity": {"cpu": "8"}, "allocatable": None}, {"cpu": "8"}, id="null"),
        pytest.param({"capacity": {"cpu": "8"}, "allocatable": {"cpu": "7"}}, {"cpu": "7"}, id="given"),
        pytest.param({"capacity": {"cpu": "8"}, "allocatable": {}}, {}, id="given as nothing"),
        pytest.param({"capacity": None}, {}, id="no capacity either"),
    ],
)
def test_a_node_of_which_only_the_capacity_is_given_can_allocate_all_of_it(
    write: Write, status: dict[str, Any], expected: dict[str, str]
) -> None:
    objects = load_files([write({"kind": "Node", "metadata": {"name": "n1"}, "status": status})])
    assert json.loads(bytes(objects.nodes["n1"].status.allocatable)) == expected


def test_a_null_in_a_manifest_is_the_same_as_an_absent_field(write: Write) -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": None}, "requests": {"memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "x", "old": None}}, "spec": {"containers": [container]}}
    objects = load_files([write({"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}})])
    assert json.loads(bytes(objects.others["Deployment/default/d"].spec)) == {
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {}, "requests": {"memory": "1Gi"}}}]},
        }
    }


@pytest.mark.parametrize(
    ("replicas", "scaler", "uid", "expected"),
    [
        pytest.param(None, {"minReplicas": 3, "maxReplicas": 9}, "", 3, id="no replicas are the least"),
        pytest.param(5, {"minReplicas": 3, "maxReplicas": 9}, "", 5, id="replicas between"),
        pytest.param(12, {"minReplicas": 3, "maxReplicas": 9}, "", 9, id="too many"),
        pytest.param(0, {"minReplicas": 3, "maxReplicas": 9}, "", 0, id="0 turns it off"),
        pytest.param(None, {"maxReplicas": 9}, "", None, id="one, unless it says the least"),
        pytest.param(1, {"minReplicas": 3, "maxReplicas": 9}, "u", 1, id="a cluster has its replicas already"),
    ],
)
def test_an_autoscaler_says_how_many_replicas_a_manifest_has(
    write: Write, replicas: int | None, scaler: Any, uid: str, expected: int | None
) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "c"}]}}} | (
        {} if replicas is None else {"replicas": replicas}
    )
    web = {"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "uid": uid}, "spec": spec}
    of = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    scale = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "spec": of | scaler}
    objects = load_files([write([scale | {"metadata": {"name": "any", "namespace": "shop"}}, web])])
    assert json.loads(bytes(objects.others["Deployment/shop/web"].spec)).get("replicas") == expected
    assert objects.workloads["Deployment/shop/web"].spec.replicas == expected


def test_a_directory_is_read_recursively_by_name(write: Write, tmp_path: Path) -> None:
    write(a_pod("b"), "dir/sub/b.json")
    write(gzip.compress(json.dumps(a_pod("c")).encode()), "dir/sub/c.json.gz")
    write(a_pod("a"), "dir/a.yml")
    write("not: [valid", "dir/.hidden/x.yaml")
    write("logs {", "dir/pod/logs.txt")
    values = write("replicas: 3", "dir/values.yaml")
    objects = load_files([tmp_path / "dir"])
    assert list(objects.pods) == ["default/a", "default/b", "default/c"]
    assert objects.notes == (
        f"ignored, not a Kubernetes object (a chart's values, a patch, or another format?): {values}",
    )


def test_a_directory_without_any_file_to_read_is_a_fault(write: Write, tmp_path: Path) -> None:
    write("x", "dir/readme.md")
    with pytest.raises(InputError, match="no file in it whose name ends in"):
        load_files([tmp_path / "dir"])


def test_stdin_is_read_once(write: Write) -> None:
    assert list(load_files(["-"], stdin=io.BytesIO(json.dumps(a_pod()).encode())).pods) == ["default/a"]
    with pytest.raises(InputError, match="stdin: is given twice"):
        load_files(["-", "-"], stdin=io.BytesIO(json.dumps(a_pod()).encode()))


def test_a_fault_that_the_engine_finds_later_gets_its_file(write: Write) -> None:
    first, second = write(a_pod("a"), "1.json"), write(a_pod("b"), "2.json")
    objects = load_files([first, second])
    for name, path in (("a", first), ("b", second)):
        for label in (f"Pod/default/{name}", f"Pod default/{name}"):
            fault = objects.within(BadObjectError("bad", object_=label, field="spec"))
            assert str(fault) == f"{path}: Pod/default/{name}: spec: bad"


@pytest.mark.parametrize("piece", range(1, 7))
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("añb😀c€".encode(), None, id="characters of one to four bytes"),
        pytest.param("añb😀c€".encode()[:-1], "not UTF-8 (line 1, byte 10)", id="cut inside the last one"),
        pytest.param("a\nñ".encode() + b"\xffz", "not UTF-8 (line 2, byte 3)", id="a byte of no character"),
    ],
)
def test_a_text_is_checked_in_pieces_wherever_these_end(
    text: bytes, fault: str | None, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_text, "_PIECE", piece)
    if fault is None:
        assert files_text.plain(text) == text
        return
    with pytest.raises(files_text.BadText, match=re.escape(fault)):
        files_text.plain(text)
