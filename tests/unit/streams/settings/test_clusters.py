"""The table of sources: every row can be opened, and its setting is one of its side."""

from pkgutil import resolve_name

import pytest

from underhost.streams.settings.clusters import SOURCES, SourceKind, VSphereSettings
from underhost.streams.settings.model import Settings


@pytest.mark.parametrize("row", SOURCES, ids=lambda row: f"{row.side} by {row.setting or 'default'}")
def test_a_row_names_what_makes_the_source_and_a_setting_of_its_side(row: SourceKind) -> None:
    assert callable(resolve_name(row.factory))
    assert not row.setting or row.setting in type(getattr(Settings(), row.side)).model_fields


@pytest.mark.parametrize("setting", [row.setting for row in SOURCES if row.side == "vsphere"])
def test_every_source_of_the_table_makes_a_vsphere_side_and_is_named_at_the_start(setting: str) -> None:
    settings = VSphereSettings.model_validate({setting: "here"})
    assert (settings.configured, settings.watched) == (True, "here")


def test_a_simulated_site_has_a_vsphere_side_though_no_source_of_it_is_named() -> None:
    settings = VSphereSettings(simulated="demo")
    assert (settings.configured, settings.watched, VSphereSettings().configured) == (True, "", False)
