"""Inventories of other tools are refused in one line, which names the way to ours."""

import io
import zipfile
from pathlib import Path

import pytest

from underhost.schemas.errors import InputError
from underhost.streams.files.reader import load_files

WAY = "not an inventory of hosts and VMs: `underhost inventory` writes one from vCenter"
INI = "# our machines\n\n[masters]\nmaster-1 ansible_host=10.0.0.1\n\n[workers:children]\nracks\n"
AGAIN = "master-1 ansible_host=10.0.0.1\nmaster-2 ansible_host=10.0.0.2\n"
BARE = "master-1\nmaster-2\n\n[masters]\nmaster-1\n"
ANSIBLE = "all:\n  hosts:\n    a: {ansible_host: 10.0.0.1}\n  children:\n    w: {hosts: {b: }}\n"
RVTOOLS = "VM,Powerstate,Template,Host\nworker-1,poweredOn,False,esx-1\n"


def workbook() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(INI, f"is an INI file (an Ansible inventory?), {WAY}", id="Ansible's INI"),
        pytest.param(AGAIN, f"is an INI file (an Ansible inventory?), {WAY}", id="Ansible's INI without groups"),
        pytest.param(BARE, f"is an INI file (an Ansible inventory?), {WAY}", id="Ansible's INI, names first"),
        pytest.param(INI.replace("\n", "\r\n"), f"is an INI file (an Ansible inventory?), {WAY}", id="with CRLF"),
        pytest.param(ANSIBLE, f"is an Ansible inventory, {WAY}", id="Ansible's YAML"),
        pytest.param(RVTOOLS, f"is a list of RVTools, {WAY}", id="RVTools, as CSV"),
        pytest.param(workbook(), f"is a workbook (RVTools?), {WAY}", id="RVTools, as a workbook"),
        pytest.param(
            "hosts: [{name: e1}]\nvms: []\n", "has no kind, but hosts and VMs: give it with --inventory", id="ours"
        ),
    ],
)
def test_an_inventory_that_is_none_names_the_way_to_ours(tmp_path: Path, content: str | bytes, line: str) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load_files([path])
    assert caught.value.faults == (f"{path}: {line}",)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("hosts: [chart.example]\nreplicas: 2\n", id="names of hosts"),
        pytest.param("ingress: {hosts: [{host: chart.example}]}\n", id="an ingress"),
        pytest.param("all: {}\n", id="a word of Ansible's"),
    ],
)
def test_the_values_of_a_chart_are_no_inventory(tmp_path: Path, content: str) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match="has no kind: not a Kubernetes object"):
        load_files([path])


@pytest.mark.parametrize("content", [INI, AGAIN, RVTOOLS], ids=["INI", "INI without groups", "RVTools"])
def test_so_it_is_where_an_inventory_is_asked_for(tmp_path: Path, content: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_files([], inventory=path)
    [line] = caught.value.faults
    assert line.endswith(WAY)


def test_in_a_folder_it_is_noted(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(INI)
    (tmp_path / "node.yaml").write_text("kind: Node\nmetadata: {name: n1, uid: u}\n")
    objects = load_files([tmp_path])
    assert list(objects.nodes) == ["n1"]
    assert objects.notes == (f"{tmp_path}/hosts.yaml: is an INI file (an Ansible inventory?), {WAY}: left out",)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("[mysqld]\n    port = 3306\n", id="indented in a ConfigMap"),
        pytest.param("a ansible_host=b\n", id="an Ansible line in a ConfigMap"),
    ],
)
def test_an_ini_file_inside_an_object_is_its_text(tmp_path: Path, data: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: ConfigMap\ndata:\n  my.cnf: |\n    {data}---\nkind: Node\nmetadata: {{name: n1, uid: u}}\n")
    assert list(load_files([path]).nodes) == ["n1"]
