"""Which of the rows of a key is the last, by the values of a column."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from built.api_tables import new_table, rows

from icebergds import NestedField, Schema, load_catalog
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.types import DOUBLE, LONG, STRING, IcebergType


@pytest.mark.parametrize(
    ("rank_type", "ranks", "last"),
    [
        (LONG, [3, None, 2], 0),
        (LONG, [None, None, None], 2),
        (LONG, [1, 1, 0], 1),
        (STRING, ["b", "", None], 0),
        (DOUBLE, [1.0, math.nan, math.inf], 1),
        (DOUBLE, [None, -math.inf, None], 1),
        (DOUBLE, [0.0, -0.0, None], 1),
    ],
)
def test_greatest_rank_wins(
    tmp_path: Path, rank_type: IcebergType, ranks: list[object], last: int
) -> None:
    """As Spark orders values: null is the least and NaN the greatest; of equal ones the later."""
    columns = (("id", LONG), ("rank", rank_type), ("number", LONG))
    schema = Schema(tuple(NestedField(at + 1, *column) for at, column in enumerate(columns)))
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("db.t", schema)
    ranked = [{"id": 7, "rank": rank, "number": at} for at, rank in enumerate(ranks)]
    given = pa.Table.from_pylist(ranked, schema_to_arrow(schema))
    table.upsert(given, ["id"], order_by="rank")
    assert table.scan(columns="number").to_arrow()["number"].to_pylist() == [last]


def test_row_kinds_are_written_where_the_table_has_a_column_for_them(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    # `name` says what a row does, and is a column of the table.
    kinds = pa.array(["+U", "-D", "+I"])
    changes = rows(1, 2, 3).set_column(2, "name", kinds)
    counts = table.delta(changes, "name", ["id"])
    assert (counts.inserted, counts.updated, counts.deleted) == (1, 1, 1)
    found = table.scan(columns="id,name").to_arrow().to_pylist()
    assert sorted((row["id"], row["name"]) for row in found) == [(1, "+U"), (3, "+I")]
