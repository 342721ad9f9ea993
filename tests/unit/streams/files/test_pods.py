"""Pods of a list are read the quick way: what comes out, and every complaint, is as if each were read as any object."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.memory import traced

from underhost.schemas.errors import InputError
from underhost.streams.files import documents as files_documents
from underhost.streams.files.objects import Objects
from underhost.streams.files.pods import ListedPods
from underhost.streams.files.reader import load_files

SPEC = {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}


def a_pod(name: str = "a", meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A pod as a cluster gives it."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "labels": {"app": name}, **(meta or {})}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SPEC, "status": {"phase": "Running"}}
    return {key: value for key, value in {**whole, **fields}.items() if value is not ...}


def replica(at: int, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """One of a StatefulSet's pods."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u1", "controller": True}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if at % 3 else "False"}]}
    whole = {**SPEC, "nodeName": f"n{at}", "affinity": {"podAntiAffinity": {}}, **spec}
    labels = {"app": "db", "statefulset.kubernetes.io/pod-name": f"db-{at}"}
    more = {"labels": labels, "ownerReferences": [owner], **(meta or {})}
    return a_pod(f"db-{at}", more, spec=whole, status=status)


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
LISTS: dict[str, dict[str, Any]] = {
    "pods": {"kind": "List", "items": [a_pod(), a_pod("b")]},
    "pods among others": {"kind": "List", "items": [NODE, a_pod(), {**NODE, "metadata": {"name": "n2"}}]},
    "a PodList, whose items do not say what they are": {
        "kind": "PodList", "apiVersion": "v1", "items": [a_pod(kind=..., apiVersion=...)],
    },
    "a List, whose items do not say what they are": {"kind": "List", "items": [a_pod(kind=..., apiVersion=...)]},
    "a NodeList with a pod": {"kind": "NodeList", "apiVersion": "v1", "items": [a_pod(), a_pod("b", kind=...)]},
    "another Pod": {"kind": "List", "items": [a_pod(apiVersion="example.com/v1"), a_pod("b", kind="Pods")]},
    "the kind at the end": {"kind": "List", "items": [dict(reversed(a_pod().items()))]},
    "no uid, and wrong capitals": {
        "kind": "List", "items": [a_pod(meta={"uid": ""}, spec={**SPEC, "nodeselector": {}})],
    },
    "no namespace": {"kind": "List", "items": [a_pod(meta={"namespace": ""})]},
    "only a generateName": {"kind": "List", "items": [a_pod(meta={"name": "", "generateName": "web-"})] * 2},
    "no containers": {"kind": "List", "items": [a_pod(spec={}), a_pod("b", spec=None), a_pod("c", spec=...)]},
    "no status": {"kind": "List", "items": [a_pod(status=None), a_pod("b", status=...)]},
    "a pod twice": {"kind": "List", "items": [a_pod(), a_pod("b"), a_pod(status={"phase": "Failed"})]},
    "a list in a list": {"kind": "List", "items": [{"kind": "PodList", "items": [a_pod(kind=...)]}, a_pod("b")]},
    "a slash in the name": {"kind": "List", "items": [a_pod("a/b"), a_pod("c")]},
    "a name that is too long": {"kind": "List", "items": [a_pod("a" * 254), a_pod(meta={"namespace": "n" * 254})]},
    "no name": {"kind": "List", "items": [a_pod(meta={"name": None}), a_pod(metadata=...)]},
    "labels that are no text": {"kind": "List", "items": [a_pod(meta={"labels": {"app": 1}}), a_pod("b")]},
    "a label that is too long": {"kind": "List", "items": [a_pod(meta={"labels": {"app": "x" * 64}})]},
    "a label's key that is too long": {"kind": "List", "items": [a_pod(meta={"labels": {"x" * 318: "a"}})]},
    "labels that are null": {"kind": "List", "items": [a_pod(meta={"labels": None})]},
    "replicas": {"kind": "List", "items": [replica(at) for at in range(8)]},
    "replicas that differ": {
        "kind": "List",
        "items": [
            replica(1), replica(2, tolerations=[{"operator": "Exists"}]), replica(4, schedulerName="other"),
            replica(5, volumes=[{"name": "token"}]), replica(7, {"labels": {"app": "db"}}), replica(8, {"labels": {}}),
            replica(10, {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            replica(11, {"ownerReferences": [{"uid": "u1"}]}),
            replica(13, containers=[{"name": "c", "image": "i:2"}]), replica(14),
        ],
    },
    "replicas with faults": {
        "kind": "List",
        "items": [
            replica(1), replica(2, {"labels": {"app": 1}}), replica(4, {"labels": []}), replica(5, volumes={}),
            replica(7, {"labels": {"app": "x" * 64}}), replica(8, affinity=1), replica(10, volumes=None), replica(11),
        ],
    },
    "wrong shapes": {
        "kind": "List",
        "items": [
            a_pod("a", spec={**SPEC, "affinity": []}), a_pod("b", spec={**SPEC, "volumes": {}}),
            a_pod("c", spec={**SPEC, "tolerations": [1]}), a_pod("d", spec={**SPEC, "nodeSelector": {"a": 1}}),
            a_pod("e", spec={**SPEC, "containers": [{"name": "c", "resources": 1}]}), a_pod("f", spec=[]),
            a_pod("g", spec={**SPEC, "initContainers": [{"name": "i", "resources": []}]}), a_pod("h"),
            a_pod("i", spec={**SPEC, "overhead": []}), a_pod("j", spec={**SPEC, "resources": "x"}), None, 1,
        ],
    },
}  # fmt: skip


def read(files: list[Path]) -> Objects | tuple[str, ...]:
    try:
        return load_files(files)
    except InputError as error:
        return tuple(error.faults)


@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS)
def test_the_quick_way_reads_and_says_what_the_other_does(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "nodes.json", tmp_path / "pods.json"
    first.write_text(json.dumps(NODE), encoding="utf-8")
    second.write_text(json.dumps(content), encoding="utf-8")
    quick = read([first, second])
    monkeypatch.setattr(ListedPods, "of_items", lambda _, items: items)
    assert quick == read([first, second])


def test_what_was_read_of_a_large_list_does_not_hold_the_text_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_documents, "HELD", 1 << 20)
    resized = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    volumes = [{"name": "token"}]
    pods = [a_pod("alone"), *(replica(at, volumes=volumes) for at in range(3)), {**replica(4), "status": resized}]
    large = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": {"text": "x" * 5_000_000}}
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"kind": "List", "items": [NODE, *pods, large]}), encoding="utf-8")
    load_files([file])  # what is made once for all
    with traced() as used:
        read = load_files([file])
    assert len(read.pods) == 5
    assert used.held < 100_000


def test_replicas_share_the_parts_that_are_equal(tmp_path: Path) -> None:
    file = tmp_path / "pods.json"
    file.write_text(json.dumps(LISTS["replicas"]), encoding="utf-8")
    first, second, *_ = load_files([file]).pods.values()
    assert first.spec.containers is second.spec.containers
    assert first.metadata.owner_references is second.metadata.owner_references
    assert (first.spec.node_name, second.spec.node_name) == ("n0", "n1")
    assert first.status != second.status
