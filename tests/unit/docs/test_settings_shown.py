"""Every configuration that README and docs show is one that the program takes."""

import re
from pathlib import Path

import pytest
import yaml

from underhost.streams.settings.load import load
from underhost.streams.settings.model import Settings

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.M | re.S)
OURS = {field.alias or name for name, field in Settings.model_fields.items()}
OTHERS = {
    "docs/binder.md": "a pod", "docs/extender.md": "kube-scheduler's", "docs/findings.md": "a workload",
    "docs/how-to/deploy.md": "the chart's values"
}  # fmt: skip
"""Pages that show YAML of somebody else, and whose."""


def shown(page: Path) -> list[str]:
    """The blocks of YAML, without the indent of the list that they may stand in."""
    return [
        "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))
        for indent, text in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


ALL = [(str(page.relative_to(ROOT)), text) for page in PAGES for text in shown(page)]
CONFIGURATIONS = [
    pytest.param(text, id=f"{page}: {' '.join(text.split())[:50]}") for page, text in ALL if page not in OTHERS
]


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_configuration_that_is_shown_is_taken(text: str, tmp_path: Path) -> None:
    file = tmp_path / "underhost.yaml"
    file.write_text(text)
    load(file, environ={})
    assert set(yaml.safe_load(text)) <= OURS


def test_there_is_something_to_load_and_every_exception_is_needed() -> None:
    assert len(CONFIGURATIONS) >= 6
    assert set(OTHERS) <= {page for page, _ in ALL}
