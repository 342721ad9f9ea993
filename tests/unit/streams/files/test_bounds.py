"""What a file may cost: time and memory stay near its size, and reading ends."""

import io
import json
import os
from pathlib import Path

import pytest
from support.memory import traced

from underhost.schemas.errors import InputError
from underhost.streams.files import reader
from underhost.streams.files.reader import load_files

FOREIGN = "has no kind: not a Kubernetes object (a chart's values, a patch, or another format?)"
NO_NAME = "Pod items[0]: metadata.name: missing: an incomplete object (a patch, or a template that was not rendered?)"
SCALARS = b",".join([b"1"] * 750_000)
HUGE = "{}: has more than 16 MiB or 250,000 parts: no API server takes such an object"


@pytest.mark.parametrize(
    ("text", "fault", "more"),
    [
        pytest.param(b"[" + SCALARS + b"]", FOREIGN, None, id="an array of numbers"),
        pytest.param(
            b'[{"kind":"Pod"},' + SCALARS + b"]",
            NO_NAME,
            9950,
            id="a pod among numbers",
        ),
        pytest.param(
            b'{"kind":"List","items":[' + SCALARS + b"]}",
            "items[0]: expected an object, got an integer",
            9950,
            id="a List of numbers",
        ),
        pytest.param(
            b'{"kind":"PodList","items":[' + b"{}," * 500_000 + b"null]}",
            NO_NAME,
            9950,
            id="a PodList of nothing",
        ),
    ],
)
def test_a_list_of_foreign_things_takes_no_memory_for_each(
    tmp_path: Path, text: bytes, fault: str, more: int | None
) -> None:
    path = tmp_path / "input.json"
    path.write_bytes(text)
    with traced() as used, pytest.raises(InputError) as caught:
        load_files([path])
    assert caught.value.faults[0] == f"{path}: {fault}"
    assert caught.value.faults[-1] == (f"… and {more} more faults" if more else f"{path}: {fault}")
    assert len(caught.value.faults) == (51 if more else 1)
    assert used.most < 10 * len(text) + (1 << 20)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(b"# YAML\n[" + b"1," * 50_000 + b"1]", FOREIGN, id="a YAML list of numbers"),
        pytest.param(b"- 1\n" * 50_000, FOREIGN, id="a YAML list, an item a line"),
        pytest.param(b"a:\n" + b"  - {b: c}\n" * 20_000, FOREIGN, id="a YAML list of mappings"),
        pytest.param(
            b'{"kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":{"containers":['
            + b"{}," * 500_000
            + b"{}]}}",
            HUGE.format("n/p"),
            id="a pod of containers",
        ),
        pytest.param(
            b'{"kind":"List","items":[{"kind":"Pod","metadata":{"name":"p","namespace":"n","labels":{'
            + b",".join(b'"%d":"x"' % number for number in range(260_000))
            + b"}}}]}",
            HUGE.format("items[0] n/p"),
            id="a pod of labels in a List",
        ),
        pytest.param(
            b'{"kind":"Deployment","metadata":{"name":"d","namespace":"n"},"spec":[' + SCALARS + b"]}",
            HUGE.format("n/d"),
            id="a spec of another form",
        ),
    ],
)
def test_one_object_of_many_parts_takes_no_memory_for_each(tmp_path: Path, text: bytes, fault: str) -> None:
    path = tmp_path / "input.yaml"
    path.write_bytes(text)
    with traced() as used, pytest.raises(InputError) as caught:
        load_files([path])
    assert caught.value.faults == (f"{path}: {fault}",)
    assert used.most < 10 * len(text) + (1 << 20)


NESTED = b"[" + b",".join([b'{"a":' * 100 + b"[]" + b"}" * 100] * 2_000) + b"]"
TINY = "has more parts than an inventory of its size: `underhost inventory` writes one from vCenter"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(b'{"hosts":[],"more":' + NESTED + b"}", None, id="in a part that inventories do not have"),
        pytest.param(b'{"more":' + NESTED, "not valid JSON: input data was truncated (line 1)", id="cut off"),
        pytest.param(b'{"kind":' + NESTED + b"}", f"kind: {TINY}", id="in place of the kind"),
        pytest.param(b'{"hosts":' + NESTED + b"}", f"hosts: {TINY}", id="in place of hosts"),
    ],
)
def test_parts_of_an_inventory_take_no_memory_for_each(tmp_path: Path, text: bytes, fault: str | None) -> None:
    path = tmp_path / "inventory.json"
    path.write_bytes(text)
    said: list[str] = []
    with traced() as used:
        try:
            load_files([], inventory=path)
        except InputError as error:
            said = list(error.faults)
    assert said == ([f"{path}: {fault}"] if fault else [])
    assert used.most < 10 * len(text)


def test_what_is_no_regular_file_in_a_directory_is_noted(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text('{"kind": "Node", "metadata": {"name": "n1", "uid": "u"}}')
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    objects = load_files([tmp_path])
    assert list(objects.nodes) == ["n1"]
    assert objects.notes == (
        f"{tmp_path}/pipe.json: not a regular file, left out",
        f"{tmp_path}/zero.json: not a regular file, left out",
    )


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        pytest.param("/dev/zero", "/dev/zero: is a device, not a file", id="a device"),
        pytest.param("", "-f: is empty: name a file, a directory, or - for stdin", id="no name"),
        pytest.param("-", "stdin: is closed", id="standard input that is closed"),
    ],
)
def test_what_cannot_be_read_to_its_end_is_refused(path: str, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        load_files([path], stdin=None)
    assert caught.value.faults == (fault,)


@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_a_pipe_is_read_up_to_a_bound(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_BYTES", 1000)
    node = json.dumps({"kind": "Node", "metadata": {"name": "n1", "uid": "u"}}).encode()
    ours, theirs = os.pipe()
    os.write(theirs, node.ljust(size))
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        if size > 1000:
            with pytest.raises(InputError, match="stdin: has more than 0 GiB: give parts of it"):
                load_files(["-"], stdin=pipe)
        else:
            assert list(load_files(["-"], stdin=pipe).nodes) == ["n1"]


def test_a_text_in_memory_is_standard_input_too() -> None:
    assert list(load_files(["-"], stdin=io.BytesIO(b'{"kind": "Node", "metadata": {"name": "n1"}}')).nodes) == ["n1"]
