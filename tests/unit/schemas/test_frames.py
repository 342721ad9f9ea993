"""The schemas of the evaluator's tables: every column has a type that polars knows, and other frames are refused."""

import os
import subprocess
import sys

import polars as pl
import pytest

from underhost.schemas import frames as fr
from underhost.schemas.records import Finding

BUDGET = {"name": ["shop/db"], "expected": [3], "current": [3], "desired": [2], "allowed": [1]}


@pytest.mark.parametrize("table", (*fr.PUBLISHED, fr.PLACED, fr.SIDES, fr.MET), ids=lambda table: table.name)
def test_a_table_has_a_polars_type_and_a_meaning_for_every_column(table: fr.FrameSchema) -> None:
    assert len(table.polars_schema) == len(table.columns)
    assert all(column.meaning for column in table.columns)


def test_a_finding_has_a_column_for_each_of_its_fields() -> None:
    flat = ["domain_key", "domain_value"]
    fields = [name for field in Finding.__struct_fields__ for name in (flat if field == "domain" else [field])]
    assert list(fr.FINDINGS.polars_schema) == fields


def test_a_frame_is_made_of_columns_and_of_rows() -> None:
    columns = fr.BUDGETS.frame(BUDGET)
    assert columns.equals(fr.BUDGETS.rows([("shop/db", 3, 3, 2, 1)]))
    assert columns.schema == fr.BUDGETS.polars_schema


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        pytest.param(
            pl.DataFrame({**BUDGET, "allowed": ["1"]}),
            "budgets: column allowed is String, not Int64",
            id="another type",
        ),
        pytest.param(
            pl.DataFrame({**BUDGET, "colour": ["red"]}), "budgets: column colour is unknown", id="an unknown column"
        ),
        pytest.param(
            pl.DataFrame(BUDGET).drop("name", "desired"),
            "budgets: column name is missing; column desired is missing",
            id="two missing columns",
        ),
        pytest.param(
            pl.DataFrame({**BUDGET, "name": [None]}, schema=fr.BUDGETS.polars_schema),
            "budgets: column name holds nulls",
            id="a null where there must be a value",
        ),
        pytest.param(
            pl.DataFrame(BUDGET).select("expected", "name", "current", "desired", "allowed"),
            "budgets: columns are in the order expected, name, current, desired, allowed, "
            "not name, expected, current, desired, allowed",
            id="another order",
        ),
    ],
)
def test_a_frame_that_does_not_match_is_refused_with_every_difference(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        fr.BUDGETS.checked(frame)
    assert str(refused.value) == message


def test_a_frame_is_not_made_without_all_of_its_columns() -> None:
    with pytest.raises(ValueError, match=r"budgets: columns .*, not .*desired"):
        fr.BUDGETS.frame({"name": ["shop/db"]})


def test_the_schemas_are_read_without_polars() -> None:
    script = "import sys, underhost.schemas.frames; print('polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(("set_to", "threads"), [(None, "1"), ("2", "2")], ids=["nothing said", "a person said two"])
def test_polars_works_in_one_thread_unless_the_environment_says_otherwise(set_to: str | None, threads: str) -> None:
    code = "from underhost.schemas.frames import *; use_one_thread(); import polars; print(polars.thread_pool_size())"
    environment = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    environment |= {} if set_to is None else {"POLARS_MAX_THREADS": set_to}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == threads
