"""Files that have other values of a partition column than their partition says.

Some imports make them; what a file has is read, so its partition decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icebergds import Table, load_table
from icebergds.errors import ValidationError
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DATE, INT, LONG, STRING, IcebergType
from icebergds.testing.schemas import optional
from icebergds.testing.tables import TableBuilder

_SPEC = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
# Partition, and the days of the rows.
_FILES: list[tuple[int | None, list[int | None]]] = [
    (1, [1, 1]),
    (2, [3]),
    (4, [4, 5]),
    (None, [6]),
    (7, [None, 7]),
    (8, [None]),
]
_TYPES: dict[str, tuple[IcebergType, Callable[[int], Any], Callable[[int], str]]] = {
    "int": (INT, int, str),
    "date": (DATE, int, lambda day: f"date'1970-01-{day + 1:02}'"),
    "string": (STRING, lambda day: f"day {day}", lambda day: f"'day {day}'"),
}


@pytest.fixture(params=_TYPES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def imported(path: Path, kind: str) -> tuple[Table, list[tuple[int, int | None]]]:
    """The table, and the ids and days of its rows."""
    field_type, stored, _ = _TYPES[kind]
    schema = Schema((optional(1, "id", LONG), optional(2, "day", field_type)))
    table = TableBuilder(path / "t", schema, spec=_SPEC)
    files, rows = [], []
    for partition, days in _FILES:
        of_file = [(len(rows) + at, day) for at, day in enumerate(days)]
        rows += of_file
        values = [(row, None if day is None else stored(day)) for row, day in of_file]
        of_partition = None if partition is None else stored(partition)
        files.append(table.data_file(values, partition=(of_partition,)))
    table.commit(*files)
    return load_table(table.location), rows


def ids(table: Table, condition: str) -> list[int]:
    return sorted(table.scan(condition).to_arrow()["id"].to_pylist())


def test_filters_find_the_values_that_files_have(tmp_path: Path, kind: str) -> None:
    table, rows = imported(tmp_path, kind)
    literal = _TYPES[kind][2]
    for day in range(1, 9):
        wanted = [row for row, of_row in rows if of_row == day]
        assert ids(table, f"day = {literal(day)}") == wanted
        assert table.scan(f"day = {literal(day)}").count() == len(wanted)
        above = [row for row, of_row in rows if of_row is not None and of_row > day]
        assert ids(table, f"day > {literal(day)}") == above
    assert ids(table, "day is null") == [row for row, of_row in rows if of_row is None]


def test_such_files_are_named_once_a_plan(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    table, _ = imported(tmp_path, kind)
    table.scan(f"day = {_TYPES[kind][2](3)}").to_arrow()
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "data files have other values of a partition column" in warning.getMessage()
    assert ".parquet" in warning.getMessage()


def test_a_delete_of_metadata_drops_no_row_that_does_not_match(tmp_path: Path, kind: str) -> None:
    table, rows = imported(tmp_path, kind)
    literal = _TYPES[kind][2]
    everything = [row for row, _ in rows]
    table.delete(f"day = {literal(2)}")
    assert ids(table.refresh(), "true") == everything
    table.delete(f"day = {literal(3)}")
    assert ids(table.refresh(), "true") == [row for row, day in rows if day != 3]
