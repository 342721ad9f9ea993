"""Bundles of support tools, as folders and as archives: their objects are read, what is foreign in them is noted."""

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.memory import traced

from underhost.schemas.errors import InputError
from underhost.streams.files import archives
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import load_files
from underhost.streams.files.text import BadText

Tree = dict[str, bytes]
OPS = [{"op": "add", "path": "/spec/replicas", "value": 3}]


def an_object(kind: str, name: str, namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    """An object of a cluster; "" for an object that does not say its kind."""
    named = {"name": name, "uid": f"uid-{name}"} | ({"namespace": namespace} if namespace else {})
    return ({"apiVersion": "v1", "kind": kind} if kind else {}) | {"metadata": named, "spec": spec}


def a_pod(kind: str = "Pod", name: str = "db-0", namespace: str = "shop") -> dict[str, Any]:
    return an_object(kind, name, namespace, nodeName="n1", containers=[{"name": "c"}])


def text(value: Any, *, as_yaml: bool = False) -> bytes:
    return yaml.safe_dump(value).encode() if as_yaml else json.dumps(value).encode()


MUST_GATHER: Tree = {
    "must-gather.local/event-filter.html": b"<html>",
    "must-gather.local/quay/etcd_info/endpoint_health.json": text([{"endpoint": "https://10.0.0.1", "health": True}]),
    "must-gather.local/quay/etcd_info/alarm_list.json": text({"header": {"cluster_id": 1}}),
    "must-gather.local/quay/cluster-scoped-resources/core/nodes/n1.yaml": text(an_object("Node", "n1"), as_yaml=True),
    "must-gather.local/quay/namespaces/shop/core/pods.yaml": text(
        {"apiVersion": "v1", "kind": "PodList", "items": [a_pod()]}, as_yaml=True
    ),
    "must-gather.local/quay/namespaces/shop/pods/db-0/c/c/logs/current.log": b"{ not JSON",
}
SUPPORT_BUNDLE: Tree = {
    "bundle/cluster-resources/nodes.json": text([an_object("", "n1")]),
    "bundle/cluster-resources/pods/shop.json": text({"items": [a_pod("")]}),
    "bundle/cluster-resources/pods-errors.json": text(["pods is forbidden"]),
    "bundle/cluster-resources/resources.json": text([{"groupVersion": "v1", "resources": []}]),
    "bundle/cluster-resources/auth-cani-list/shop.json": text(
        {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
    ),
}
SONOBUOY: Tree = {
    "meta/config.json": text({"UUID": "u", "Version": "v0.10"}),
    "resources/cluster/Nodes.json": text([an_object("", "n1")]),
    "resources/ns/shop/Pods.json": text([a_pod("")]),
    "resources/ns/shop/core_v1_services.json": text([an_object("", "db", "shop")]),
    "servergroups.json": text([{"name": "apps", "versions": []}]),
    "plugins/e2e/results/e2e.log": b"\x00\x01",
}
INSIGHTS: Tree = {
    "config/node/n1.json": text(an_object("", "n1")),
    "config/pod/shop/db-0.json": text(a_pod("")),
    "config/version.json": text({"metadata": {"name": "version", "uid": "u"}, "spec": {}}),
    "insights-operator/gathers.json": text({"status_reports": []}),
}
CLUSTER_INFO: Tree = {
    "dump/nodes.json": text({"kind": "NodeList", "apiVersion": "v1", "items": [an_object("", "n1")]}),
    "dump/shop/pods.json": text({"kind": "PodList", "apiVersion": "v1", "items": [a_pod("")]}),
    "dump/shop/events.json": text({"kind": "EventList", "apiVersion": "v1", "items": []}),
    "dump/shop/db-0/logs.txt": b"==== START logs",
}
BUNDLES = [
    pytest.param(MUST_GATHER, id="must-gather"),
    pytest.param(SUPPORT_BUNDLE, id="support bundle"),
    pytest.param(SONOBUOY, id="Sonobuoy"),
    pytest.param(INSIGHTS, id="Insights"),
    pytest.param(CLUSTER_INFO, id="cluster-info dump"),
]


def a_tar(tree: Tree) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in tree.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def a_zip(tree: Tree) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in tree.items():
            archive.writestr(name, content)
    return packed.getvalue()


FORMS: dict[str, Callable[[Tree], bytes]] = {
    "bundle.tar": a_tar,
    "bundle.tar.gz": lambda tree: gzip.compress(a_tar(tree)),
    "bundle.tar.xz": lambda tree: lzma.compress(a_tar(tree)),
    "bundle.zip": a_zip,
    "bundle": lambda tree: gzip.compress(a_tar(tree)),
}


def read(objects: Objects) -> tuple[list[str], list[str]]:
    return list(objects.nodes), list(objects.pods)


@pytest.mark.parametrize("tree", BUNDLES)
def test_a_bundle_is_read_as_a_folder(tmp_path: Path, tree: Tree) -> None:
    for name, content in tree.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert read(load_files([tmp_path])) == (["n1"], ["shop/db-0"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tree", BUNDLES)
def test_a_bundle_is_read_as_an_archive(tmp_path: Path, tree: Tree, form: str) -> None:
    path = tmp_path / form
    path.write_bytes(FORMS[form](tree))
    objects = load_files([path])
    assert read(objects) == (["n1"], ["shop/db-0"])
    assert objects.first_file.startswith(f"{path}:")


@pytest.mark.parametrize("form", ["bundle.tar.gz", "bundle.zip"])
def test_the_files_of_an_archive_are_held_once_and_one_at_a_time(tmp_path: Path, form: str) -> None:
    cut_off = b'{"kind": "Pod", "apiVersion": ' + b" " * 8_000_000
    path = tmp_path / form
    path.write_bytes(FORMS[form]({"a/pods.json": cut_off, "b/pods.json": cut_off}))
    with traced() as used, pytest.raises(InputError) as caught:
        load_files([path])
    assert [fault.split(": ")[1] for fault in caught.value.faults] == ["not valid JSON", "not valid JSON"]
    assert used.most < path.stat().st_size + 1.5 * len(cut_off)


def test_an_archive_is_read_from_standard_input() -> None:
    assert read(load_files(["-"], stdin=io.BytesIO(a_zip(SONOBUOY)))) == (["n1"], ["shop/db-0"])


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(OPS, id="a patch of operations"),
        pytest.param({"items": OPS}, id="items that are none"),
        pytest.param(["a"], id="words"),
        pytest.param({"metadata": {"name": "d"}, "spec": {"replicas": 2}}, id="an object without kind"),
        pytest.param("text", id="one word"),
        pytest.param([{"metadata": {"name": "n2", "uid": "u"}}], id="objects whose place tells nothing"),
    ],
)
def test_what_is_foreign_in_a_folder_is_noted_and_refused_by_itself(tmp_path: Path, foreign: Any) -> None:
    (tmp_path / "n.json").write_bytes(text(an_object("Node", "n1")))
    path = tmp_path / "p.json"
    path.write_bytes(text(foreign))
    objects = load_files([tmp_path])
    assert list(objects.nodes) == ["n1"]
    assert objects.notes == (
        f"ignored, not a Kubernetes object (a chart's values, a patch, or another format?): {path}",
    )
    with pytest.raises(InputError):
        load_files([path])


def test_operations_in_a_folder_named_after_a_kind_are_no_objects_of_it(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "patch.json").write_bytes(text(OPS))
    (tmp_path / "n.json").write_bytes(text(an_object("Node", "n1")))
    assert list(load_files([tmp_path]).nodes) == ["n1"]


def test_a_chart_template_and_a_refusal_in_a_folder_are_noted(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_bytes(text(an_object("Node", "n1")))
    (tmp_path / "t.yaml").write_text("{{ if .Values.on }}\nkind: Pod\n{{ end }}\n")
    (tmp_path / "s.json").write_bytes(text({"kind": "Status", "apiVersion": "v1", "message": "pods is forbidden"}))
    objects = load_files([tmp_path])
    assert list(objects.nodes) == ["n1"]
    assert objects.notes == (
        f"{tmp_path}/s.json: is a Status, what the API server answers instead of objects: 'pods is forbidden': "
        "left out",
        f"{tmp_path}/t.yaml: a chart template ({{{{ … }}}}), not a manifest: render it first, e.g. with helm template "
        "(line 1, column 2): left out",
    )


def test_a_dump_in_a_folder_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_bytes(text(an_object("Node", "n1")))
    (tmp_path / "p.json").write_text('{"kind": "PodList", "items": [{"metadata"')
    with pytest.raises(InputError, match=r"p\.json: not valid JSON: input data was truncated"):
        load_files([tmp_path])


BOUNDS = archives.Unpacking(size=100_000, ratio=10, always=20_000, file=5_000, files=3)


@pytest.mark.parametrize("pack", [a_tar, lambda tree: gzip.compress(a_tar(tree)), a_zip], ids=["tar", "tar.gz", "zip"])
@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        pytest.param({"a.json": b" " * 5001}, "a.json in the archive has more than 5000 bytes", id="a large file"),
        pytest.param(
            dict.fromkeys(("a.json", "b.json", "c.json", "d.json"), b""), "has more than 3 files", id="many files"
        ),
    ],
)
def test_what_an_archive_may_hold_is_bounded(pack: Callable[[Tree], bytes], tree: Tree, fault: str) -> None:
    with pytest.raises(BadText, match=fault):
        list(archives.files_of(pack(tree), lambda name: True, BOUNDS))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_what_is_unpacked_to_be_read_over_is_bounded_too(pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BadText, match="the archive becomes more than 20000 bytes"):
        list(archives.files_of(pack(a_tar({"a.log": b" " * 30_000})), lambda name: False, BOUNDS))


def test_what_a_zip_becomes_is_bounded() -> None:
    bounds = BOUNDS._replace(always=9_000)
    with pytest.raises(BadText, match="the archive becomes more than 9000 bytes"):
        list(archives.files_of(a_zip({"a.json": b" " * 4_900, "b.json": b" " * 4_900}), lambda name: True, bounds))


@pytest.mark.parametrize("form", ["bundle.tar.gz", "bundle.tar.xz", "bundle.zip"])
def test_an_archive_that_is_cut_off_is_refused_in_a_line(tmp_path: Path, form: str) -> None:
    path = tmp_path / form
    path.write_bytes(FORMS[form](SONOBUOY)[:-40])
    with pytest.raises(InputError, match=rf"{form}: the archive (is damaged or truncated|cannot be read): ") as caught:
        load_files([path])
    assert len(caught.value.faults) == 1


def test_links_in_an_archive_are_left_out(tmp_path: Path) -> None:
    packed = io.BytesIO(a_tar({"n.json": text(an_object("Node", "n1"))}))
    with tarfile.open(fileobj=packed, mode="a") as archive:
        link = tarfile.TarInfo("secret.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    path = tmp_path / "b.tar"
    path.write_bytes(packed.getvalue())
    assert list(load_files([path]).nodes) == ["n1"]
