"""How large the JSON of a body is, before it is parsed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underhost.agents.http.budgets.shape import PIECE, Bounds, check, has_more_values
from underhost.schemas.errors import InputError

BOUNDS = Bounds(depth=3, values=6)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"a": [1, 2, {"b": 3}]}', id="three levels, five values"),
        pytest.param(b'{"a": "[[[[[[{{{{{{,,,,,,,,"}', id="brackets and commas in a string"),
        pytest.param(b'{"a\\\\": "\\"[[[[,,,,,,,", "b": "\\\\"}', id="quotes and backslashes that are escaped"),
        pytest.param(b"]]]]}}}}", id="ends without a beginning are left to the parser"),
        pytest.param(b'"[[[[', id="a string without an end is left to the parser"),
    ],
)
def test_a_body_within_the_bounds_is_let_through(body: bytes) -> None:
    check(body, BOUNDS)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"[[[[", "nests deeper than 3 levels", id="too deep"),
        pytest.param(b'{"a":{"b":{"c":{}}}}', "nests deeper than 3 levels", id="too deep, and closed"),
        pytest.param(b"[1,1,1,1,1,1,1]", "more than 6 values", id="too many items"),
        pytest.param(b'[{},{},{},{"a":1e999}]', "more than 6 values", id="too many objects"),
        pytest.param(b"[[],[],[],[],[],[],[]]", "more than 6 values", id="too many lists"),
    ],
)
def test_a_body_beyond_the_bounds_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        check(body, BOUNDS)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='"\\[]{},:a'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='"\\[{,'), inner, max_size=3),
    max_leaves=8,
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def size_of(value: Any) -> int:
    """Commas, and lists and objects."""
    if not isinstance(value, (dict, list)):
        return 0
    inner = list(value.values() if isinstance(value, dict) else value)
    return 1 + max(0, len(inner) - 1) + sum(map(size_of, inner))


@given(values)
def test_depth_and_size_are_those_of_the_parsed_document(value: Any) -> None:
    body, depth, size = json.dumps(value).encode(), depth_of(value), size_of(value)
    check(body, Bounds(depth, size))
    for less, why in ((Bounds(depth - 1, size), "deeper"), (Bounds(depth, size - 1), "values")):
        if min(less) >= 0:
            with pytest.raises(InputError, match=why):
                check(body, less)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        pytest.param(b"", False, id="nothing"),
        pytest.param(b"[1,2,3]", False, id="three"),
        pytest.param(b"[1,2,3,4]", True, id="four"),
        pytest.param(b"[1" + b" " * PIECE + b",2,3]", False, id="three over two pieces"),
        pytest.param(b"[1,2,3" + b" " * PIECE + b",4]", True, id="four over two pieces"),
        pytest.param(bytearray(b'["a,b,c,d"]'), True, id="in strings, too"),
        pytest.param(memoryview(b"[1,2,3]"), False, id="a part of a text"),
    ],
)
def test_values_of_a_large_text_are_counted_in_pieces(text: bytes | bytearray | memoryview, more: bool) -> None:
    assert has_more_values(text, 3) is more
