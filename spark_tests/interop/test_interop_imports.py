"""Imported and copied tables, as Java Iceberg reads them."""

from __future__ import annotations

import csv
import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
import written_tables  # noqa: F401  (registers the tables)
from built.api_tables import new_table
from built.schemas import optional
from built.tables import TableBuilder
from effort import IS_NIGHTLY
from java_process import JavaProcess, java_agrees
from our_tables import OUR_TABLES, Writer

from icebergds import Schema, load_table
from icebergds.spec.types import DATE, DOUBLE, LONG, STRING, DecimalType

pytestmark = pytest.mark.interop

# Java's generic reader has no value of its own for a constant of these types.
_JAVA_CANNOT = {"identity_of_fixed", "identity_of_nanoseconds", "empty"}
# Its data files are not in its directory.
_ELSEWHERE = {"object_storage"}
_WRITTEN = [name for name in OUR_TABLES if name not in _JAVA_CANNOT | _ELSEWHERE]
_COLUMNS = Schema(
    (
        optional(1, "id", LONG),
        optional(2, "name", STRING),
        optional(3, "price", DecimalType(9, 2)),
        optional(4, "number", DOUBLE),
        optional(5, "day", DATE),
    )
)


def test_java_reads_files_that_were_added(java_process: JavaProcess, tmp_path: Path) -> None:
    table = new_table(tmp_path, _COLUMNS, partition_by="day")
    days = [dt.date(1969, 12, 31), dt.date(2026, 1, 1), None]
    for at, day in enumerate(days):
        rows = pa.table(
            {
                "id": pa.array([at, None], pa.int64()),
                "name": ["a" * 40, None],
                "price": pa.array([Decimal("-1.50"), None], pa.decimal128(9, 2)),
                "number": [float("nan"), 1.5],
            }
        )
        folder = tmp_path / "in" / f"day={day or '__HIVE_DEFAULT_PARTITION__'}"
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "a.parquet")
        orc.write_table(rows, folder / "b.orc")
    table.add_files(tmp_path / "in")
    java_agrees(java_process, table.location())


@pytest.mark.parametrize("name", _WRITTEN if IS_NIGHTLY else _WRITTEN[::9])
def test_java_reads_a_copy_by_the_list_of_its_files(
    java_process: JavaProcess, our_writer: Writer, tmp_path: Path, name: str
) -> None:
    table = OUR_TABLES[name](our_writer, f"copied_{name}").table
    _move(table, tmp_path / "a place with a longer name")
    java_agrees(java_process, str(tmp_path / "a place with a longer name"))


@pytest.mark.parametrize("version", [2, 3])
def test_java_applies_deletes_of_a_copy(
    java_process: JavaProcess, tmp_path: Path, version: int
) -> None:
    builder = TableBuilder(tmp_path / "table", _COLUMNS, format_version=version)
    rows = [(i, f"n{i}", Decimal("1.00"), 0.5, 1) for i in range(4)]
    files = [builder.data_file(rows) for _ in range(3)]
    builder.commit(*files)
    if version == 2:
        deletes = [
            builder.position_deletes({file.file_path: [1] for file in files}),
            builder.position_deletes({files[0].file_path: [2]}),
            builder.equality_deletes(["id"], [(3,)]),
        ]
    else:
        deletes = builder.deletion_vectors([(file, [at]) for at, file in enumerate(files)])
    builder.commit(*deletes, operation="delete")
    _move(load_table(tmp_path / "table"), tmp_path / "elsewhere")
    assert java_agrees(java_process, str(tmp_path / "elsewhere")) == (5 if version == 2 else 9)


def _move(table: Any, target: Path) -> None:
    """Copies a table by its list of files, and hides the table."""
    place = Path(table.location().removeprefix("file:"))
    done = table.rewrite_table_path(table.location(), str(target))
    with Path(done.file_list_location.removeprefix("file:")).open() as lines:
        for source, to in csv.reader(lines):
            Path(to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.removeprefix("file:"), to)
    place.rename(place.with_name(f"gone_{place.name}"))
