"""Names that come and go, read in order."""

import random

import pytest

from underhost.agents.site.sorted_names import SortedNames


@pytest.mark.parametrize("between", [1, 5, 200], ids=["read at once", "few come and go", "many come and go"])
def test_names_are_read_in_order_whatever_comes_and_goes(between: int) -> None:
    draw, names, expected = random.Random(7), SortedNames(), set[str]()
    for _ in range(50):
        for _ in range(between):
            name, there = f"pod-{draw.randrange(300)}", draw.random() < 0.6
            names.put(name, there)
            (expected.add if there else expected.discard)(name)
        assert names.listed() == sorted(expected)
        assert len(names) == len(expected)


def test_what_was_read_is_the_readers() -> None:
    names = SortedNames()
    names.put("b", True)
    before = names.listed()
    names.put("a", True)
    assert (before, names.listed()) == (["b"], ["a", "b"])
