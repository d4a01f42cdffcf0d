"""ORC files of the Julian calendar, as Hive and Spark write them, in tables."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
from built.orc_files import mark_hybrid_calendar
from built.schemas import optional
from built.tables import TableBuilder

from icebergds import load_table
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import DATE, INT
from icebergds.spec.values.binary import to_bytes

# 0001-01-01 of the Julian calendar, in days since 1970.
JULIAN = -719_164


def test_filters_find_the_dates_that_are_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", Schema((optional(1, "id", INT), optional(2, "d", DATE))))
    path = tmp_path / "imported.orc"
    days = pa.array([JULIAN], pa.int32()).view(pa.date32())
    orc.write_table(pa.table({"id": pa.array([1], pa.int32()), "d": days}), path)
    mark_hybrid_calendar(path)
    # Java takes bounds from the file's own statistics, which are of its calendar.
    bounds = {2: to_bytes(DATE, JULIAN)}
    imported = replace(
        table.data_file([(1, JULIAN)]),
        file_path=str(path),
        file_format=FileFormat.ORC,
        file_size_in_bytes=path.stat().st_size,
        lower_bounds=bounds,
        upper_bounds=bounds,
    )
    table.commit(imported)
    scan = load_table(str(table.location)).scan
    rows = [{"id": 1, "d": dt.date(1, 1, 1)}]
    assert scan().to_arrow().to_pylist() == rows
    assert scan("d = '0001-01-01'").to_arrow().to_pylist() == rows
    assert scan("d < '0001-01-01'").to_arrow().to_pylist() == []
