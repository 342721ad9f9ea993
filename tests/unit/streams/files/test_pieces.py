"""A long list is read in pieces: what comes out, and every complaint, is as if its text were read whole."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.memory import traced

from underhost.schemas.errors import InputError
from underhost.streams.files import pieces
from underhost.streams.files.objects import Objects
from underhost.streams.files.pieces import LongList
from underhost.streams.files.reader import InputReader, load_files

Read = Objects | tuple[str, ...]


def a_pod(at: int, **more: Any) -> dict[str, Any]:
    """One of a StatefulSet's pods, as a cluster gives it, with what looks like the place between two objects in it."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u1", "controller": True}
    metadata = {
        **{"name": f"db-{at}", "namespace": "shop", "uid": f"uid-{at}"},
        **{"labels": {"app": "db", "statefulset.kubernetes.io/pod-name": f"db-{at}"}},
        "ownerReferences": [owner, {"apiVersion": "v1", "kind": "Node", "name": "é", "uid": "u2"}],
    }
    spec = {"nodeName": f"n{at}", "containers": [{"name": "c", "image": "i"}, {"name": '}, {"apiVersion": "v1"'}]}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
    return {**whole, **more}


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
PODS = [a_pod(at) for at in range(30)]
HUGE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"x": [1] * 260_000}}
LISTS: dict[str, dict[str, Any]] = {
    "kind before the items": {"kind": "List", "apiVersion": "v1", "items": PODS},
    "kind behind the items": {"items": PODS, "kind": "List", "metadata": {"resourceVersion": "1"}},
    "a PodList": {
        "kind": "PodList", "metadata": {"x": "[é]"},
        "items": [{**pod, "kind": None, "apiVersion": None} for pod in PODS],
    },
    "no kind": {"items": PODS},
    "of another kind": {"kind": "Inventory", "items": PODS},
    "a list in it": {"kind": "List", "items": [*PODS, {"apiVersion": "v1", "kind": "List", "items": PODS[:3]}, NODE]},
    "a list behind it": {"kind": "List", "items": PODS, "more": [1, "]", {"items": []}]},
    "one item": {"kind": "List", "items": PODS[:1]},
    "no item": {"kind": "List", "items": []},
    "nodes and pods": {"kind": "List", "items": [NODE, {**NODE, "metadata": {"name": "n2"}}, *PODS, NODE]},
    "other keys first": {"kind": "List", "items": [NODE, NODE, *({"kind": "Pod", **pod} for pod in PODS)]},
    "no objects": {"kind": "List", "items": [1, 2, *PODS]},
    "faults": {
        "kind": "List",
        "items": [
            *PODS[:9], a_pod(9, spec=[]), *PODS[10:20], a_pod(20, metadata={"labels": {"a": 1}}), None, *PODS[21:],
        ],
    },
    "a pod twice": {"kind": "List", "items": [*PODS, a_pod(3, status={"phase": "Failed"})]},
    "a huge object": {"kind": "List", "items": [*PODS, HUGE, a_pod(40)]},
}  # fmt: skip
FORMS: dict[str, Callable[[object], str]] = {
    "kubectl": lambda value: json.dumps(value, indent=4, ensure_ascii=False),
    "jq -c": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    "json.dumps": json.dumps,
}
TEXT = FORMS["kubectl"](LISTS["kind behind the items"])
MIDDLE = len(TEXT) // 2
FIRST = FORMS["kubectl"](LISTS["kind before the items"])
BROKEN = {
    "not JSON in the middle": (TEXT[:MIDDLE] + "}" + TEXT[MIDDLE:], True, "not valid JSON"),
    "a comma too many": (
        TEXT[:MIDDLE] + TEXT[MIDDLE:].replace('"status": {', '"status": {,', 1), True, "not valid JSON",
    ),
    "nested too deeply": (
        TEXT[:MIDDLE] + TEXT[MIDDLE:].replace('"é"', "[" * 5000 + "]" * 5000, 1), True, "nested too deeply",
    ),
    "nested as deeply as can be decoded, where it is not read": (
        TEXT[:MIDDLE] + TEXT[MIDDLE:].replace('"é"', "[" * 600 + "]" * 600, 1), True, "list.json: ",
    ),
    "two lists": (FIRST + "\n" + FORMS["kubectl"]({"kind": "List", "items": [NODE, a_pod(50)]}), True, ""),
    "cut off in an item": (TEXT[:MIDDLE], False, "not valid JSON"),
    "cut off between two": (TEXT[: TEXT.index("}\n        },\n", MIDDLE)], False, "not valid JSON"),
    "more behind it": (TEXT + "x", False, "not valid JSON"),
}  # fmt: skip
"""The text, whether its beginning is read in pieces (it is, where its end can be seen), and the fault."""


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Read]], tuple[Read, int]]:
    """Does something while every list is long, and says how many pieces were read."""

    def do(something: Callable[[], Read]) -> tuple[Read, int]:
        count = 0

        def counted(self: LongList, take: Callable[[bytes], bool]) -> bool:
            nonlocal count

            def one(text: bytes) -> bool:
                nonlocal count
                taken = take(text)
                count += taken
                return taken

            return hand_on(self, one)

        hand_on = LongList.hand_on
        with monkeypatch.context() as context:
            context.setattr(pieces, "LONG", 0)
            context.setattr(pieces, "BLOCK", 3000)
            context.setattr(LongList, "hand_on", counted)
            return something(), count

    return do


def read(file: Path, *, compact: bool = False) -> Read:
    try:
        return load_files([file], compact=compact)
    except InputError as error:
        return tuple(error.faults)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS)
def test_a_list_in_pieces_reads_as_a_whole_one(
    content: dict[str, Any],
    form: Callable[[object], str],
    tmp_path: Path,
    in_pieces: Callable[[Callable[[], Read]], tuple[Read, int]],
) -> None:
    file = tmp_path / "list.json"
    file.write_text(form(content), encoding="utf-8")
    found, _ = in_pieces(lambda: read(file))
    assert found == read(file)


@pytest.mark.parametrize(("text", "begins", "fault"), BROKEN.values(), ids=BROKEN)
def test_a_broken_list_in_pieces_is_refused_with_the_same_line_and_column(
    text: str,
    begins: bool,
    fault: str,
    tmp_path: Path,
    in_pieces: Callable[[Callable[[], Read]], tuple[Read, int]],
) -> None:
    file = tmp_path / "list.json"
    file.write_text(text, encoding="utf-8")
    found, count = in_pieces(lambda: read(file))
    assert found == read(file)
    assert (count > 2, count == 0) == (begins, not begins)
    lines = found if isinstance(found, tuple) else ()
    assert [fault in line for line in lines] == [True] * bool(fault)


def test_a_byte_that_is_no_utf_8_is_refused_with_the_same_line(
    tmp_path: Path, in_pieces: Callable[[Callable[[], Read]], tuple[Read, int]]
) -> None:
    file = tmp_path / "list.json"
    file.write_bytes(TEXT[:MIDDLE].encode() + TEXT[MIDDLE:].encode().replace("é".encode(), b"\xff", 1))
    found, count = in_pieces(lambda: read(file))
    assert found == read(file)
    assert isinstance(found, tuple) and "not UTF-8" in found[0]
    assert count > 2


@pytest.mark.parametrize("form", ["kubectl", "json.dumps"])
def test_the_pieces_are_small(
    form: str, tmp_path: Path, in_pieces: Callable[[Callable[[], Read]], tuple[Read, int]]
) -> None:
    file = tmp_path / "list.json"
    file.write_text(FORMS[form](LISTS["kind before the items"]), encoding="utf-8")
    found, count = in_pieces(lambda: read(file))
    assert isinstance(found, Objects) and len(found.pods) == 30
    assert count > 5


def test_a_folder_an_archive_and_standard_input_are_read_in_pieces_too(
    tmp_path: Path, in_pieces: Callable[[Callable[[], Read]], tuple[Read, int]]
) -> None:
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "pods.json").write_text(TEXT, encoding="utf-8")
    packed = tmp_path / "pods.json.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))

    def of_stdin() -> Read:
        reading = InputReader(io.BytesIO(TEXT.encode()))
        reading.read("-")
        return reading.result()

    for one in (lambda: read(folder), lambda: read(packed), of_stdin):
        found, count = in_pieces(one)
        assert isinstance(found, Objects) and list(found.pods) == [f"shop/db-{at}" for at in range(30)]
        assert count > 5


def test_raw_parts_of_records_have_no_blanks_though_the_list_has(
    tmp_path: Path, in_pieces: Callable[[Callable[[], Read]], tuple[Read, int]]
) -> None:
    file = tmp_path / "list.json"
    file.write_text(TEXT, encoding="utf-8")
    found, _ = in_pieces(lambda: read(file, compact=True))
    assert isinstance(found, Objects)
    labels = bytes(found.pods["shop/db-7"].metadata.labels)
    assert labels == b'{"app":"db","statefulset.kubernetes.io/pod-name":"db-7"}'


def test_the_text_of_a_long_list_is_never_in_memory_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LONG", 1 << 20)
    pods = [a_pod(at, spec={**PODS[0]["spec"], "unread": "x" * 10_000}) for at in range(500)]
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"kind": "List", "items": pods}), encoding="utf-8")
    load_files([file])  # what is made once for all
    with traced() as used:
        found = load_files([file])
    assert len(found.pods) == 500
    assert used.held < 1_000_000
    assert used.most < 3_500_000 < file.stat().st_size
