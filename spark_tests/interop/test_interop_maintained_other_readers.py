"""Tables that icebergds maintained or repaired, as other readers read them."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from built.damage import spoil_bounds
from effort import examples
from hypothesis import HealthCheck, Phase, given, strategies as st
from oracles.duckdb_reader import DuckDBError, DuckDBReader, connect
from our_tables import Writer
from pyiceberg.table import StaticTable
from strategies.maintenance_steps import maintain
from strategies.random_tables import RandomTable

from icebergds.api.table import Table, load_table

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader
        # It is an oracle only if it reads most tables.
        assert reader.succeeded > reader.failed


def test_pyiceberg_and_duckdb_read_what_they_read_before(
    duckdb: DuckDBReader, tmp_path: Path
) -> None:
    """DuckDB reads no table that was once of version 1."""
    numbers = count()
    compared = 0

    # The same tables each time: a fault of another reader must not come up at random.
    @examples(
        60, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        nonlocal compared
        location = tmp_path / f"t{next(numbers)}"
        made = RandomTable(data.draw, location, is_plain=True, format_versions=(2, 3))
        for _ in range(data.draw(st.integers(3, 10))):
            made.step()
        table = load_table(str(location))
        rows = _read_by_us(table)
        before = _read_by_pyiceberg(table), _read_by_duckdb(duckdb, table)
        for _ in range(data.draw(st.integers(1, 2))):
            maintain(data.draw, table)
        assert _read_by_us(table) == rows
        by_pyiceberg, by_duckdb = _read_by_pyiceberg(table), _read_by_duckdb(duckdb, table)
        if before[0] == rows:
            compared += 1
            assert by_pyiceberg == rows
        # DuckDB 1.5.5 drops rows next to files whose rows are all deleted by vectors.
        may_err = table.metadata.format_version > 2 and by_pyiceberg == rows
        if before[1] == rows:
            assert by_duckdb == rows or may_err

    check()
    assert compared > next(numbers) // 2


# By column: wrong bounds, and a condition that all rows fulfil.
_SPOILT = {
    "id": (1, struct.pack("<q", -2), struct.pack("<q", -1), "id >= 1"),
    "name": (3, b"a", b"b", "name >= 'n'"),
    # Milliseconds, where microseconds belong.
    "ts": (
        2,
        struct.pack("<q", 1_714_953_600_000),
        struct.pack("<q", 1_714_953_600_000),
        "ts >= '2024-05-06T00:00:00'",
    ),
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("column", _SPOILT)
@pytest.mark.parametrize("reader", ["pyiceberg", "duckdb", "java"])
def test_readers_find_the_rows_that_wrong_bounds_lost_after_a_repair(
    our_writer: Writer, request: pytest.FixtureRequest, reader: str, column: str, version: int
) -> None:
    field_id, lower, upper, where = _SPOILT[column]
    name = f"spoilt_{column}_{version}_{reader}"
    columns = [("id", "long"), ("ts", "timestamp"), ("name", "string")]
    table = our_writer.create(name, columns, version=version)
    table.append([_row(1), _row(2)])
    spoil_bounds(table.table, field_id, lower, upper)
    table.record("replace").append([_row(3)])
    java = request.getfixturevalue("java_process") if reader == "java" else None

    def found() -> list[int]:
        location = table.table.refresh().metadata_location
        if reader == "pyiceberg":
            scan = StaticTable.from_metadata(location).scan(row_filter=where)
            read = scan.to_arrow()["id"].to_pylist()
        elif reader == "duckdb":
            with connect() as connection:
                scan = f"SELECT id FROM iceberg_scan('{location}') WHERE {where}"
                read = [row[0] for row in connection.sql(scan).fetchall()]
        else:
            java.ask("sql", statement=f"REFRESH TABLE oracle.db.{name}")
            scan = f"SELECT id FROM oracle.db.{name} WHERE {where}"
            read = [row[0] for row in java.ask("sql", statement=scan)]
        return sorted(read)

    assert found() == [3]
    assert table.table.verify("footers", repair=True).repaired > 0
    assert found() == [1, 2, 3]


def _row(number: int) -> dict[str, Any]:
    moment = dt.datetime(2024, 5, 6, 7, 8, 9) + dt.timedelta(minutes=number)
    return {"id": number, "ts": moment, "name": f"n{number}"}


def _read_by_us(table: Table) -> list[str]:
    return _plain_rows(_values(table.scan().to_arrow()))


def _read_by_pyiceberg(table: Table) -> list[str] | None:
    """The rows; None if PyIceberg cannot read the table."""
    try:
        read = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    except Exception:
        return None
    return _plain_rows(_values(read))


def _read_by_duckdb(duckdb: DuckDBReader, table: Table) -> list[str] | None:
    """The rows; None if DuckDB cannot read the table."""
    try:
        return _plain_rows(duckdb.read(table.metadata_location))
    except DuckDBError:
        return None


def _values(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _plain_rows(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows as texts, whatever a reader takes uuids for."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(inner) for name, inner in value.items()}
        return value.bytes if isinstance(value, UUID) else value

    return sorted(repr(tuple(map(plain, row))) for row in rows)
