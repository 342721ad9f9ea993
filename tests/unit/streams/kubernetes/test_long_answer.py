"""A list that comes as one answer: its items as pages, and what is no list of the API."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from underhost.streams.kubernetes.long_answer import LONGEST, PAGE, LongAnswer

BLOCK = 1 << 16
LARGE = "x" * (PAGE // 20)


def a_list(items: Sequence[dict[str, Any]], separators: tuple[str, str] = (",", ":")) -> bytes:
    """As the API server writes it."""
    metadata = {"resourceVersion": "7"}
    text = json.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}, separators=separators
    )
    return text.encode() + b"\n"


def an_item(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {"large": LARGE}}, **more}


class Reader:
    """Reads a text as one answer; `pages` are the names in each page, `sizes` their bytes."""

    def __init__(self) -> None:
        self.pages, self.sizes = list[list[str]](), list[int]()
        self._list = LongAnswer(self._read)

    def _read(self, data: bytes) -> bool:
        try:
            page = json.loads(data)
        except ValueError:
            return False
        assert page["metadata"] == {"resourceVersion": "7"}
        self.pages.append([item["metadata"]["name"] for item in page["items"]])
        self.sizes.append(len(data))
        return True

    def reads(self, text: bytes) -> bool:
        """Whether it can be read."""
        blocks = (text[at : at + BLOCK] for at in range(0, len(text), BLOCK))
        return all(map(self._list.feed, blocks)) and self._list.end()


NAMES = [f"p{number}" for number in range(100)]
TEMPLATES = [{"metadata": {"name": name}} for name in ("data", "log", "index")]
"""They look as items do."""


def test_a_long_answer_is_read_as_pages_of_bounded_size_each_item_once_and_in_order() -> None:
    reader = Reader()
    assert reader.reads(a_list([an_item(name) for name in NAMES]))
    assert [name for page in reader.pages for name in page] == NAMES
    assert max(reader.sizes) < PAGE + 2 * BLOCK


def test_what_looks_as_the_end_of_an_item_within_one_ends_no_page() -> None:
    reader = Reader()
    items = [an_item(name, spec={"volumeClaimTemplates": TEMPLATES, "z": LARGE}) for name in NAMES]
    assert reader.reads(a_list(items))
    assert [name for page in reader.pages for name in page] == NAMES
    assert max(reader.sizes) < PAGE + 2 * BLOCK


@pytest.mark.parametrize("count", [0, 3])
def test_a_list_that_is_shorter_than_a_page_is_one(count: int) -> None:
    reader = Reader()
    assert reader.reads(a_list([an_item(name) for name in NAMES[:count]]))
    assert reader.pages == [NAMES[:count]]


@pytest.mark.parametrize("cut", [1000, -1000], ids=["in its first page", "in its last page"])
def test_a_list_that_is_cut_off_cannot_be_read(cut: int) -> None:
    assert not Reader().reads(a_list([an_item(name) for name in NAMES])[:cut])


def test_a_list_that_is_written_otherwise_is_given_up_in_time() -> None:
    items = [an_item(str(number)) for number in range(LONGEST // PAGE * 20)]
    reader = Reader()
    assert not reader.reads(a_list(items, separators=(", ", ": ")))
    assert reader.pages == []
