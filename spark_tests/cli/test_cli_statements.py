"""Scripts of SQL are split into statements, and what Spark answers is JSON."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, VariantType
from pyspark.sql.variant_utils import VariantUtils

from icebergds import InvalidOptionError
from icebergds.cli.sql import _refuse_doubled, statements_of
from icebergds.cli.values import json_rows


@pytest.mark.parametrize(
    ("text", "whole", "rest"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT 1; -- one\nSELECT 2", ["SELECT 1"], "-- one\nSELECT 2"),
        ("SELECT 1;\n-- the end; of it\n", ["SELECT 1"], ""),
        (";;\n;", [], ""),
        (
            "SELECT ';', \"a;\", `b;`, r'\\' /* ; */;",
            ["SELECT ';', \"a;\", `b;`, r'\\' /* ; */"],
            "",
        ),
        ("SELECT 1; SELECT 'a; ", [], "SELECT 1; SELECT 'a; "),
        ("SELECT 1; /* a;", [], "SELECT 1; /* a;"),
        (
            "BEGIN SELECT CASE WHEN a THEN 1 END; IF a THEN SELECT 2; END IF; END; SELECT 3",
            ["BEGIN SELECT CASE WHEN a THEN 1 END; IF a THEN SELECT 2; END IF; END"],
            "SELECT 3",
        ),
        ("BEGIN BEGIN SELECT 1; END; ", [], "BEGIN BEGIN SELECT 1; END;"),
        ("BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; END name; x", None, "x"),
    ],
)
def test_semicolons_end_statements(text: str, whole: list[str] | None, rest: str) -> None:
    found, left = statements_of(text)
    assert left == rest
    assert whole is None or found == whole
    assert whole is not None or len(found) == 1


def test_variants_that_spark_hands_over_are_what_they_hold() -> None:
    value, metadata = VariantUtils.parse_json('{"a": [1, "x", null]}')
    one = {"value": value, "metadata": metadata}
    rows = pa.table(
        {
            "v": pa.array([one, None], to_arrow_type(VariantType())),
            "l": pa.array([[one], []], to_arrow_type(ArrayType(VariantType()))),
        }
    )
    held = {"a": [1, "x", None]}
    assert json_rows(rows) == [{"v": held, "l": [held]}, {"v": None, "l": []}]


def test_a_column_is_not_lost_in_json() -> None:
    _refuse_doubled(["a", "b"])
    with pytest.raises(InvalidOptionError, match=r"several columns 'b'.*with AS"):
        _refuse_doubled(["a", "b", "b"])
