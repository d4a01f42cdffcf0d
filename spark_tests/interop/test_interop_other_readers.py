"""Tables that icebergds wrote, as PyIceberg and DuckDB read them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from filters import filters_of
from oracles.canon import canonical_rows
from oracles.comparison import difference
from oracles.duckdb_reader import connect
from our_tables import OUR_TABLES, OurTable
from pyiceberg.table import StaticTable

pytestmark = pytest.mark.interop

_ALL = [name for name in OUR_TABLES if name != "empty"]
# PyIceberg reads no Avro data, no uuid, nested value or nanosecond from ORC, neither geometry nor
# geography, cannot decode manifests of nanosecond partitions, and reads null lists and maps of
# structs as empty.
_NOT_PYICEBERG = (
    "nested",
    "evolved_columns",
    "geometries",
    "geographies",
    "identity_of_nanoseconds",
)
_UNFILTERED = ("default_values", "odd_names", "years", "months")
# DuckDB reads Parquet alone, and not these types.
_NOT_DUCKDB = (
    "nanosecond_",
    "identity_of_nano",
    "bucket_v3",
    "unknown_",
    "geographies",
    "types_v3",
)


def _reads_only_parquet(name: str) -> bool:
    return not name.endswith(("_avro", "_orc"))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in filter(_reads_only_parquet, _ALL)
        if name == "nested_source" or not name.startswith(_NOT_PYICEBERG)
    ],
)
def test_pyiceberg_reads_and_filters_the_rows_that_were_written(
    our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    static = StaticTable.from_metadata(table.table.metadata_location)
    read = canonical_rows(static.scan().to_arrow(), table.schema)
    problem = difference(read, table.expected(), name)
    assert problem is None, problem
    # PyIceberg compares UUIDs and dates of defaults with values of other types, has no literals of
    # nanoseconds, no filters on names with dots, and no year after 9999.
    # It reads doubles of partitions as floats.
    left_out = ("uuid", "double", "timestamp_ns", "timestamptz_ns")
    columns = {n: k for n, k in table.columns.items() if k not in left_out}
    conditions = filters_of(columns, table.rows) if name not in _UNFILTERED else []
    for condition in random.Random(name).sample(conditions, min(20, len(conditions))):
        scan = static.scan(row_filter=condition.pyiceberg(), selected_fields=("id",))
        unclear = {row["id"] for row in table.rows if condition.is_ambiguous(row)}
        expected = {row["id"] for row in table.rows if condition.matches(row)} - unclear
        assert set(scan.to_arrow()["id"].to_pylist()) - unclear == expected, str(condition)


@pytest.mark.parametrize(
    "name", [n for n in filter(_reads_only_parquet, _ALL) if not n.startswith(_NOT_DUCKDB)]
)
def test_duckdb_reads_the_rows_that_were_written(
    our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    # A connection of its own: after an error a database is of no use.
    with connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        scan = f"SELECT * FROM iceberg_scan('{table.table.metadata_location}')"
        read = canonical_rows(connection.sql(scan).to_arrow_table(), table.schema)
    problem = difference(read, table.expected(), name)
    assert problem is None, problem
