"""What the evaluator found as polars frames: the tables that programs read and that plans are compared by.

In: finding records, as `check` and `lint` list them. Out: frames of `schemas/frames.py`.
"""

from collections.abc import Sequence

import polars as pl

from underhost.schemas import frames as fr
from underhost.schemas.records import Finding

_PLAIN = [name for name in fr.FINDINGS.polars_schema if name in Finding.__struct_fields__]


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """A row for each finding, in their order."""
    columns: dict[str, list[object]] = {name: [getattr(one, name) for one in findings] for name in _PLAIN}
    columns[fr.DOMAIN_KEY] = [one.domain and one.domain.key for one in findings]
    columns[fr.DOMAIN_VALUE] = [one.domain and one.domain.value for one in findings]
    return fr.FINDINGS.frame(columns)
