"""The selector table finds, through its index, exactly the pods that each selector matches by itself."""

import random

import pytest

from underhost.agents.site.selectors import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement, SelectorTable

KEYS, VALUES = ("app", "tier", "track"), ("a", "b", "c", "d")


def requirement(chance: random.Random) -> Requirement:
    operator = chance.choice((IN, IN, NOT_IN, EXISTS, DOES_NOT_EXIST))
    values = tuple(chance.choices(VALUES, k=chance.randint(1, 3))) if operator in (IN, NOT_IN) else ()
    return chance.choice(KEYS), operator, values


@pytest.mark.parametrize("seed", range(20))
def test_the_index_finds_every_selector_once(seed: int) -> None:
    chance = random.Random(seed)
    table = SelectorTable()
    for _ in range(40):
        namespaces = chance.choice((None, frozenset({"shop"}), frozenset({"shop", "prod"})))
        table.add(namespaces, tuple(requirement(chance) for _ in range(chance.randint(0, 3))))
    pods = [
        (chance.choice(("shop", "prod", "dev")), {key: chance.choice(VALUES) for key in KEYS if chance.random() < 0.7})
        for _ in range(30)
    ]
    matched = table.match(pods)
    for (namespace, labels), mine in zip(pods, matched, strict=True):
        assert sorted(one.id for one in mine) == [one.id for one in table.selectors if one.matches(namespace, labels)]
    for one in table.selectors:
        assert one.classes == tuple(at for at, mine in enumerate(matched) if one in mine)


def test_a_value_that_is_named_twice_counts_once() -> None:
    table = SelectorTable()
    selector = table.add(None, (("app", IN, ("a", "a", "b")),))
    assert table.match([("shop", {"app": "a"}), ("shop", {"app": "c"})]) == [[selector], []]
    assert selector.classes == (0,)
