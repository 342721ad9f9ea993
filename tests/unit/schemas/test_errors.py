"""A decoder's words in plain ones, with the key of a map that the decoder leaves out."""

from typing import Any

import msgspec
import pytest

from underhost.schemas.errors import type_of, worded


class Part(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None
    labels: dict[str, str] = {}
    parts: list["Part"] = []


@pytest.mark.parametrize(
    ("text", "message", "path"),
    [
        pytest.param(b'{"labels": {"a": "x", "b": 5}}', "expected a string, got an integer", ".labels[b]", id="a key"),
        pytest.param(
            b'{"parts": [{}, {"requests": {"cpu": 1, "a.b/c": null}}]}',
            "expected a number or a string, got null",
            ".parts[1].requests[a.b/c]",
            id="a key in an item",
        ),
        pytest.param(b'{"labels": []}', "expected an object, got a list", ".labels", id="a field"),
        pytest.param(b"[]", "expected an object, got a list", "", id="all of it"),
    ],
)
def test_the_key_of_a_map_is_named(text: bytes, message: str, path: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(text, type=Part)
    assert worded(caught.value, text) == (message, path)


def test_without_the_text_the_key_stays_open() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(b'{"labels": {"b": 5}}', type=Part)
    assert worded(caught.value) == ("expected a string, got an integer", ".labels[]")


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "null"), (True, "true or false"), (5, "an integer"), (0.5, "a number"), ([], "a list"), ({}, "an object")],
    ids=str,
)
def test_a_value_has_the_name_that_json_gives_it(value: Any, words: str) -> None:
    assert type_of(value) == words
