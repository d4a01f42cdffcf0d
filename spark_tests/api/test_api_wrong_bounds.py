"""Bounds in a manifest that a file's values are outside of, such as those in another unit."""

from __future__ import annotations

import datetime as dt
import logging
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.schemas import optional
from built.tables import TableBuilder

from icebergds import load_table
from icebergds.formats import wrong_counts
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, TIMESTAMP

SCHEMA = Schema((optional(1, "id", LONG), optional(2, "ts", TIMESTAMP)))
MAPPING = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["ts"]}]'
NEWEST = dt.datetime(2024, 5, 6, 7, 8, 9, 123000)


@pytest.mark.parametrize("in_millis", [True, False])
def test_bounds_in_the_wrong_unit_are_named_in_a_warning_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, in_millis: bool
) -> None:
    wrong_counts._warn_of_bounds.cache_clear()
    builder = TableBuilder(
        tmp_path / "t", SCHEMA, properties={"schema.name-mapping.default": MAPPING}
    )
    times = pa.array([dt.datetime(2024, 1, 1), NEWEST], pa.timestamp("ms"))
    path = tmp_path / "ms.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64()), "ts": times}), path)
    scale = 1 if in_millis else 1000
    lower, upper = (struct.pack("<q", each * scale) for each in times.cast(pa.int64()).to_pylist())
    added = replace(
        builder.data_file([(1, 0), (2, 0)]),
        file_path=str(path),
        file_size_in_bytes=path.stat().st_size,
        split_offsets=(),
        lower_bounds={2: lower},
        upper_bounds={2: upper},
    )
    builder.commit(added)
    table = load_table(str(builder.location))
    with caplog.at_level(logging.WARNING, "icebergds"):
        for _ in range(2):
            assert table.scan().to_arrow()["ts"].to_pylist() == [dt.datetime(2024, 1, 1), NEWEST]
    warned = [record.message for record in caplog.records if "wrong bounds" in record.message]
    if not in_millis:
        assert not warned
        return
    (message,) = warned
    assert "ms.parquet" in message
    assert "column 'ts': from 1970-01-20T" in message
    assert "values from 2024-01-01T00:00:00 to 2024-05-06T07:08:09.123" in message
