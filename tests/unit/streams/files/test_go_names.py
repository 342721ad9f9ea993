"""The old form of `kubectl cluster-info dump`, with Go's field names, is read as the API's objects that it shows.

tests/data/cluster_info holds the same objects twice, written by Kubernetes' own Go structs: `objects.jsonl` as the API
has them, and `dump.txt` as kubectl before 1.11 printed them.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from underhost.schemas.errors import InputError
from underhost.streams.files.reader import load_files

DATA = Path(__file__).parents[3] / "data" / "cluster_info"
DUMP, OBJECTS = DATA / "dump.txt", DATA / "objects.jsonl"
EMPTY: tuple[Any, ...] = (None, "", {}, [], 0, False)
NODES = {"Items": [{"name": "n1", "uid": "u", "labels": {"App": "X"}, "Spec": {"ProviderID": "vsphere://42"}}]}


def told(value: Any) -> Any:
    """What is said, as plain values: without what is empty, which Go writes and the API leaves out."""
    if isinstance(value, Raw):
        return told(msgspec.json.decode(value))
    if isinstance(value, msgspec.Struct):
        return told(msgspec.structs.asdict(value))
    if isinstance(value, dict):
        parts = {key: told(part) for key, part in value.items() if key != "api_version"}
        return {key: part for key, part in parts.items() if part not in EMPTY}
    return [told(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("table", ["nodes", "pods", "others", "workloads"])
def test_the_old_form_says_what_the_api_says(table: str) -> None:
    old, new = (told(getattr(load_files([path]), table)) for path in (DUMP, OBJECTS))
    assert old == new
    assert old


def test_the_old_form_is_read_with_its_labels_rules_and_logs() -> None:
    objects = load_files([DUMP])
    assert told(objects.nodes["n1"].metadata.labels) == {"App": "X", "kubernetes.io/hostname": "n1"}
    pod = objects.pods["shop/db-0"]
    assert (pod.metadata.uid, pod.spec.node_name, pod.spec.host_network) == ("u-db-0", "n1", True)
    assert told(pod.spec.node_selector) == {"Disk": "SSD"}
    selector = {"matchLabels": {"App": "Db"}, "matchExpressions": [{"key": "Tier", "operator": "Exists"}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert told(pod.spec.affinity)["podAntiAffinity"] == {
        required: [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]
    }
    assert objects.notes == ("ignored, no rule reads them: 1 events",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("nodes.json", NODES, id="by the name of the file"),
        pytest.param("all.json", NODES | {"selfLink": "/api/v1/nodes"}, id="by the list's address"),
        pytest.param("all.json", NODES | {"metadata": {"selfLink": "/api/v1/nodes"}}, id="by its metadata's"),
    ],
)
def test_a_list_of_the_old_form_tells_of_what_it_is(tmp_path: Path, name: str, content: dict[str, Any]) -> None:
    (tmp_path / name).write_text(json.dumps(content))
    nodes = load_files([tmp_path]).nodes
    assert {name: node.spec.provider_id for name, node in nodes.items()} == {"n1": "vsphere://42"}


def test_a_list_of_the_old_form_that_does_not_tell_is_refused_or_noted(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    untold = tmp_path / "all.json"
    untold.write_text(json.dumps({"Items": [{"name": "a", "Spec": {}}]}))
    line = f"{untold}: is in the old form of `kubectl cluster-info dump` (Items, Go field names) and does not say of"
    with pytest.raises(InputError) as caught:
        load_files([untold])
    assert [fault.startswith(line) for fault in caught.value.faults] == [True]
    [note] = load_files([tmp_path]).notes
    assert note.startswith(line)
    assert note.endswith("left out")


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        pytest.param([{"name": "n1", "Spec": []}], "Node/n1: spec: expected an object, got a list", id="a wrong shape"),
        pytest.param([5], "items[0]: expected an object, got an integer", id="a number"),
        pytest.param([{"Spec": {}}], "Node items[0]: metadata.name: missing", id="no name"),
    ],
)
def test_a_fault_in_the_old_form_names_object_and_field(tmp_path: Path, items: Any, fault: str) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"selfLink": "/api/v1/nodes", "Items": items}))
    with pytest.raises(InputError) as caught:
        load_files([path])
    [line] = caught.value.faults
    assert fault in line


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param({"Items": {"a": 1}}, "has no kind: not a Kubernetes object", id="no list"),
        pytest.param({"Items": [{"name": "a"}], "selfLink": 5}, "does not say of what it is a list", id="no address"),
    ],
)
def test_what_only_looks_like_the_old_form_is_refused(tmp_path: Path, content: dict[str, Any], fault: str) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=fault):
        load_files([path])


def test_an_empty_list_of_the_old_form_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text('{"Items": null}\n{"Items": []}')
    assert load_files([path]).nodes == {}
