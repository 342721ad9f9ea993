"""Which objects are not the same in two mappings, whatever the order that they come in."""

import random

import pytest

from underhost.agents.site.changes import Derived, changed_keys

A, B, C, D = (object() for _ in range(4))


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({"a": A, "b": B}, {"a": A, "b": B}, [], id="the same objects in another mapping"),
        pytest.param({"a": A, "b": B}, {"a": A, "b": C}, ["b"], id="another object"),
        pytest.param({"a": A}, {"a": B, "b": C, "c": D}, ["a", "b", "c"], id="changed and come"),
        pytest.param({"a": A, "b": B, "c": C}, {"a": A, "c": C}, ["b"], id="gone"),
        pytest.param({"a": A, "b": B}, {"b": B, "a": A}, [], id="in another order"),
        pytest.param({"a": A, "b": B}, {"b": C, "a": A, "d": D}, ["b", "d"], id="in another order, changed and come"),
        pytest.param({"a": A, "b": B}, {}, ["a", "b"], id="all gone"),
        pytest.param({}, {"a": A}, ["a"], id="all come"),
    ],
)
def test_what_has_changed(before: dict[str, object], now: dict[str, object], changed: list[str]) -> None:
    assert sorted(changed_keys(before, now)) == changed


@pytest.mark.parametrize("seed", range(30))
def test_random_changes_are_found_each_once(seed: int) -> None:
    pick = random.Random(seed)
    before = {name: object() for name in pick.sample("abcdefghij", pick.randrange(11))}
    now: dict[str, object] = dict(before) if pick.random() < 0.7 else {}
    for name in pick.sample("abcdefghij", pick.randrange(6)):
        if pick.random() < 0.4:
            now.pop(name, None)
        else:
            now[name] = object()
    expected = [name for name in {*before, *now} if before.get(name) is not now.get(name)]
    assert sorted(changed_keys(before, now)) == sorted(expected)


def test_a_value_is_derived_again_only_where_one_of_its_objects_is_another_one() -> None:
    derived, asked = Derived[str, int](), []

    def derive(key: str) -> int:
        asked.append(key)
        return len(asked)

    assert derived.of({"a": (A, B), "b": (B, C)}, derive) == {"a": 1, "b": 2}
    assert derived.of({"a": (A, D), "b": (B, C)}, derive) == {"a": 3, "b": 2}
    assert derived.of({"b": (B, C)}, derive) == {"b": 2}
    assert derived.of({"a": (A, D), "b": (B, C)}, derive) == {"a": 4, "b": 2}
    derived.clear()
    assert derived.of({"b": (B, C)}, derive) == {"b": 5}
    assert asked == ["a", "b", "a", "a", "b"]
