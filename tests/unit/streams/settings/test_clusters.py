"""The table of sources: every row can be opened, and its setting is one of its side."""

from pkgutil import resolve_name

import pytest

from underhost.streams.settings.clusters import SOURCES, SourceKind
from underhost.streams.settings.model import Settings


@pytest.mark.parametrize("row", SOURCES, ids=lambda row: f"{row.side} by {row.setting or 'default'}")
def test_a_row_names_what_makes_the_source_and_a_setting_of_its_side(row: SourceKind) -> None:
    assert callable(resolve_name(row.factory))
    assert not row.setting or row.setting in type(getattr(Settings(), row.side)).model_fields
