"""The line on which each object of a file begins."""

import gzip
from pathlib import Path

import pytest

from underhost.streams.files.lines import lines_of

POD = "kind: Pod\nmetadata: {name: a, namespace: n, ownerReferences: [{kind: Job, name: j}]}\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(POD, {"Pod/n/a": 1}, id="one object"),
        pytest.param(
            f"---\n# a comment\n{POD}---\nmetadata:\n  name: x\nkind: Node\n", {"Pod/n/a": 3, "Node/x": 6}, id="two"
        ),
        pytest.param(
            "kind: List\nitems:\n- kind: Pod\n  metadata:\n    name: a\n- metadata: {name: b}\n  kind: Service\n",
            {"Pod/default/a": 3, "Service/default/b": 6},
            id="items of a List",
        ),
        pytest.param(
            "apiVersion: v1\nitems:\n- metadata: {name: a}\n  spec: {containers: [{name: c}]}\nkind: PodList\n",
            {"Pod/default/a": 3},
            id="items that do not say their kind",
        ),
        pytest.param(
            '{\n "items": [\n  {\n   "kind": "Pod",\n   "metadata": {"name": "a"}\n  }\n ],\n "kind": "List"\n}\n',
            {"Pod/default/a": 3},
            id="JSON",
        ),
        pytest.param(f"{POD}---\na: [\n", {"Pod/n/a": 1}, id="what is broken further below"),
        pytest.param("just text", {}, id="text"),
        pytest.param(b"\xff\xfe\x00", {}, id="no text"),
        pytest.param(gzip.compress(POD.encode()), {"Pod/n/a": 1}, id="gzip"),
    ],
)
def test_lines(text: str | bytes, lines: dict[str, int], tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    assert lines_of(str(file)) == lines


def test_what_is_no_file_of_text_has_no_lines(tmp_path: Path) -> None:
    assert lines_of("stdin") == lines_of(str(tmp_path)) == lines_of("bundle.tgz:pods.json") == {}
