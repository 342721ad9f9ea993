"""What rules remember is made once, and forgotten when what they declared changes."""

import pytest

from underhost.agents.compiled.memo import Depends, Memo


def test_a_value_is_made_once():
    memo, made = Memo(), []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [memo.remember("key", Depends.NODES, make) for _ in range(3)] == [1, 1, 1]


def test_none_is_a_value():
    memo, made = Memo(), []
    for _ in range(2):
        assert memo.remember("key", Depends.NODES, lambda: made.append(1)) is None
    assert made == [1]


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        pytest.param(Depends.NODES, {"classes", "nothing"}, id="nodes"),
        pytest.param(Depends.IMAGES, {"nodes", "classes", "nothing"}, id="images"),
        pytest.param(Depends.CLASSES, {"nodes", "images", "nothing"}, id="classes"),
        pytest.param(Depends.IMAGES | Depends.CLASSES, {"nodes", "nothing"}, id="two at once"),
    ],
)
def test_a_change_forgets_what_depends_on_it(changed, kept):
    declared = {
        "nodes": Depends.NODES,
        "images": Depends.NODES | Depends.IMAGES,
        "classes": Depends.CLASSES,
        "nothing": Depends.NOTHING,
    }
    memo = Memo()
    for key, depends in declared.items():
        memo.remember(key, depends, lambda: "before")
    memo.forget(changed)
    now = {key: memo.remember(key, depends, lambda: "after") for key, depends in declared.items()}
    assert {key for key, value in now.items() if value == "before"} == kept
