"""Open findings as their topic has them: one mapping until a finding changes."""

from pathlib import Path

import msgspec
from support.fakes.tables import StoredTables
from support.published import a_finding

from underhost.agents.pipeline.tables.held_findings import HeldFindings
from underhost.schemas.topics import VIOLATIONS

SITE = "prod"


def test_open_findings_are_those_of_the_table_and_then_of_the_topic(tmp_path: Path) -> None:
    tables = StoredTables(tmp_path, (), (VIOLATIONS,))
    first, second = a_finding("f1", "shop/a"), a_finding("f2", "shop/b")
    tables._tables[VIOLATIONS.short][f"{SITE}/f1".encode()] = msgspec.json.encode(first)
    held = HeldFindings(tables)
    held.begin(SITE)
    assert held.of(SITE) == {"f1": first}
    assert held.of(SITE) is held.of(SITE)
    held.observe(SITE, second)
    held.observe(SITE, msgspec.structs.replace(first, state="resolved"))
    assert held.of(SITE) == {"f2": second}
    assert held.of("another") == {}
