"""The page and the picture of the architecture are drawn from the tree: every room is in them, and nothing else."""

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs/images/architecture.svg").read_text(encoding="utf-8")
ROOMS = sorted(
    str(path.parent.relative_to(ROOT))
    for top in ("agents", "streams")
    for path in (ROOT / top).glob("*/**/__init__.py")
)


def test_every_room_has_its_row_on_the_page() -> None:
    assert [room for room in ROOMS if f"`{room}`" not in PAGE] == []


def test_every_module_and_room_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:agents|streams|schemas)/[\w/]+(?:\.py)?)`", PAGE))
    assert len(named) > len(ROOMS)
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_room_that_the_picture_names_exists() -> None:
    named = re.findall(r'class="path"[^>]*>([^<]+)<', PICTURE)
    assert len(named) > 15
    assert [name for name in named if not ((ROOT / name).is_dir() or (ROOT / "agents" / name).is_dir())] == []


@pytest.mark.parametrize("step", ["sources", "topics", "tables", "evaluation", "deciders", "gates", "sinks"])
def test_the_picture_and_the_page_show_each_step_of_the_flow(step: str) -> None:
    assert re.search(rf"\d · (Change )?{step}", PICTURE, re.IGNORECASE)
    assert re.search(rf"\d {step}", PAGE)


def test_the_rows_of_agents_are_in_the_order_of_the_layers() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = [line.split(" | ") for line in contracts["importlinter:contract:rooms"]["layers"].split("\n") if line]
    layer_of = {room.strip(): len(layers) - at for at, layer in enumerate(layers) for room in layer}
    rows = re.findall(r"^\| (`agents/.*?`) \|", PAGE, re.MULTILINE)
    shown = [layer_of[re.findall(r"agents/(\w+)`", row)[0]] for row in rows]
    assert len(shown) > 10
    assert shown == sorted(shown)


def test_the_gates_are_told_in_the_order_in_which_they_are_asked() -> None:
    run = (ROOT / "agents/pipeline/run.py").read_text(encoding="utf-8")
    body = run[run.index("def _gates") : run.index("def _look_on")]
    asked = [body.index(gate) for gate in ("InventoryGate(", "run.wanted", "MembershipGate(", "WriteLimits(")]
    told = [
        PAGE.index(words) for words in ("believed and\n", "stand by the command", "still a member", "how many writes")
    ]
    assert (asked, told) == (sorted(asked), sorted(told))
