"""Files that store other values in a partition column than their partition, as Java adds them."""

from __future__ import annotations

import logging
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import new_table
from built.schemas import optional
from built.tables import TableBuilder

from icebergds import Table, load_table
from icebergds.errors import ValidationError
from icebergds.spec.manifest import FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    IcebergType,
)
from icebergds.spec.values.binary import to_bytes

BY_C = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "c"),))


def schema_of(kind: IcebergType) -> Schema:
    return Schema((optional(1, "id", LONG), optional(2, "c", kind)))


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """Partitions 1 and 2; of the rows in partition 1, one says 5."""
    builder = TableBuilder(tmp_path / "t", schema_of(INT), spec=BY_C)
    builder.commit(
        builder.data_file([(1, 1), (2, 5)], partition=(1,)),
        builder.data_file([(3, 2)], partition=(2,)),
        builder.data_file([(4, 1)], partition=(1,)),
    )
    return builder


def opened(builder: TableBuilder) -> Table:
    return load_table(str(builder.location))


def ids(table: Table, condition: str | None = None) -> list[int]:
    found = table.scan(filter=condition).to_arrow() if condition else table.scan().to_arrow()
    return sorted(found["id"].to_pylist())


CONDITIONS = [
    ("c = 5", [2]),
    ("c = 1", [1, 4]),
    ("c <> 1", [2, 3]),
    ("c > 1", [2, 3]),
    ("c in (2, 5)", [2, 3]),
    ("id < 9", [1, 2, 3, 4]),
    ("c = 5 or id = 4", [2, 4]),
]


@pytest.mark.parametrize(("condition", "wanted"), CONDITIONS)
def test_filters_select_by_the_values_in_the_file(
    builder: TableBuilder, condition: str, wanted: list[int]
) -> None:
    table = opened(builder)
    assert ids(table, condition) == wanted
    assert table.scan(filter=condition).count() == len(wanted)
    values = table.scan(filter=condition).to_arrow()["c"].to_pylist()
    assert sorted(values) == sorted({1: 1, 2: 5, 3: 2, 4: 1}[key] for key in wanted)


def test_deletes_of_the_partition_apply_whatever_a_filter_says(builder: TableBuilder) -> None:
    whole = builder.data_file([(7, 8), (8, 8)], partition=(1,))
    builder.commit(whole)
    builder.commit(builder.position_deletes({whole.file_path: [0]}, partition=(1,)))
    builder.commit(builder.equality_deletes(["id"], [(2,)], partition=(1,)))
    table = opened(builder)
    assert ids(table, "c = 8") == [8]
    assert ids(table, "c = 5") == []
    assert table.scan(filter="c = 8").count() == 1


def test_an_overwrite_by_a_filter_removes_whole_files_only_by_their_values(
    builder: TableBuilder,
) -> None:
    table = opened(builder)
    new = pa.table({"id": pa.array([9], pa.int64()), "c": pa.array([1], pa.int32())})
    matching = table.scan("c = 1").to_arrow()["id"].to_pylist()
    table.overwrite(new, overwrite_filter="c = 1")
    assert 0 < len(matching) < 4
    assert ids(opened(builder)) == sorted({1, 2, 3, 4, 9} - set(matching))


def test_partitions_with_rows_of_others_are_not_replaced(builder: TableBuilder) -> None:
    table = opened(builder)
    rows = pa.table({"id": pa.array([9], pa.int64()), "c": pa.array([1], pa.int32())})
    with pytest.raises(ValidationError, match="stores other values in partition columns"):
        table.dynamic_partition_overwrite(rows)
    assert ids(opened(builder)) == [1, 2, 3, 4]
    table = opened(builder)
    table.dynamic_partition_overwrite(rows.set_column(1, "c", pa.array([2], pa.int32())))
    assert ids(opened(builder)) == [1, 2, 4, 9]


@pytest.mark.parametrize("mode", ["positions", "equality-deletes"])
def test_changes_by_key_delete_rows_by_the_values_in_the_file(tmp_path: Path, mode: str) -> None:
    """If the keys do not determine the partition, and so are not limited to one."""
    by_id = PartitionField((1,), 1001, IdentityTransform(), "id")
    spec = PartitionSpec(0, (*BY_C.fields, by_id))
    builder = TableBuilder(tmp_path / "t", schema_of(INT), spec=spec)
    builder.commit(builder.data_file([(2, 5)], partition=(1, 2)), with_summaries=True)
    builder.commit(builder.data_file([(3, 2)], partition=(2, 3)), with_summaries=True)
    keys = pa.table({"c": pa.array([5], pa.int32())})
    opened(builder).delete_keys(keys, "c", options={"write.upsert.mode": mode})
    assert ids(opened(builder)) == [3]


def test_such_files_are_named_in_a_warning(
    builder: TableBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "icebergds"):
        ids(opened(builder), "c > 0")
        (record,) = [r for r in caplog.records if "partition columns" in r.message]
    assert "1 data file with other values in partition columns" in record.message
    assert ".parquet (partition (1,))" in record.message


LONG_TEXT = "a text that is longer than bounds"
VALUES: list[tuple[IcebergType, Any, Any]] = [
    (INT, 1, 5),
    (DATE, -200_000, 3),
    (TIMESTAMP, 1_000, 2_000),
    (DOUBLE, float("nan"), 0.5),
    (DOUBLE, 0.5, float("nan")),
    (DOUBLE, -0.0, 1.0),
    (BOOLEAN, True, False),
    (STRING, "ab", "b"),
    (STRING, "", "b"),
    (STRING, LONG_TEXT, "a text that is"),
    (STRING, LONG_TEXT, "b" + LONG_TEXT),
    (BINARY, b"\x00\xff", b"\x01"),
    (UUID, bytes(16), bytes(15) + b"\x01"),
    (DecimalType(20, 2), Decimal("1.25"), Decimal("-7.00")),
    (INT, None, 5),
    (INT, 5, None),
    (STRING, None, "x"),
]


@pytest.mark.parametrize(("kind", "partition", "stored"), VALUES)
def test_values_of_every_type_are_compared(
    tmp_path: Path,
    kind: IcebergType,
    partition: Any,
    stored: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    builder = TableBuilder(tmp_path / "t", schema_of(kind), spec=BY_C)
    builder.commit(builder.data_file([(1, partition)], partition=(partition,)))
    with caplog.at_level(logging.WARNING, "icebergds"):
        assert opened(builder).scan(filter="c is null or c is not null").count() == 1
        assert "partition columns" not in caplog.text
        builder.commit(builder.data_file([(2, stored)], partition=(partition,)))
        assert ids(opened(builder), "c is null or c is not null") == [1, 2]
        assert "partition columns" in caplog.text


def test_bounds_of_long_texts_do_not_contradict(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table(tmp_path, schema_of(STRING), partition_by="c")
    texts = [LONG_TEXT, "\U0010ffff" * 21]
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "c": texts}))
    table = load_table(table.location())
    with caplog.at_level(logging.WARNING, "icebergds"):
        assert ids(table, f"c = '{LONG_TEXT}'") == [1]
        assert ids(table, f"c = '{texts[1]}'") == [2]
    assert "partition columns" not in caplog.text


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_bounds_of_uuids_do_not_contradict(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, file_format: str
) -> None:
    properties = {"write.format.default": file_format}
    table = new_table(tmp_path, schema_of(UUID), partition_by="c", properties=properties)
    texts = ["000139e8-62f1-509b-a9c7-4345f78771c1", "ffffffff-ffff-ffff-ffff-fffffffffff1"]
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "c": texts}))
    with caplog.at_level(logging.WARNING, "icebergds"):
        assert [ids(load_table(table.location()), f"c = '{text}'") for text in texts] == [[1], [2]]
    assert "partition columns" not in caplog.text


def test_rewriting_moves_rows_to_the_partitions_of_their_values(builder: TableBuilder) -> None:
    table = opened(builder)
    table.rewrite_data_files(options={"rewrite-all": "true"})
    partitions = table.refresh().inspect.partitions().to_pylist()
    assert {row["partition"]["c"]: row["record_count"] for row in partitions} == {1: 2, 2: 1, 5: 1}
    assert ids(table, "c = 5") == [2]


@pytest.mark.parametrize("rounded", [(0, 1000), (-456, 543), (-1456, 543)])
def test_bounds_of_times_in_orc_files_are_rounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rounded: tuple[int, int]
) -> None:
    builder = TableBuilder(tmp_path / "t", schema_of(TIMESTAMP), spec=BY_C)
    # The last file has another time, too.
    times = [1_123_456, 2_123_456, 3_123_456]
    last = [(2, times[2]), (3, times[2] + 5000)]
    files = [
        builder.data_file(rows, partition=(rows[0][1],), file_format=FileFormat.ORC)
        for rows in ([(0, times[0])], [(1, times[1])], last)
    ]
    below, above = rounded
    builder.commit(
        *(
            replace(
                file,
                lower_bounds={2: to_bytes(TIMESTAMP, least + below)},
                upper_bounds={2: to_bytes(TIMESTAMP, most + above)},
            )
            for file, least, most in zip(files, times, [*times[:2], last[1][1]], strict=True)
        )
    )
    table = opened(builder)
    assert ids(table, "c = timestamp_ntz'1970-01-01 00:00:01.123456'") == [0]
    # Without Spark: the file is dropped.
    assert table.delete("c = timestamp_ntz'1970-01-01 00:00:01.123456'").deleted == 1
    assert ids(table.refresh(), "c < timestamp_ntz'1970-01-01 00:00:03.125'") == [1, 2]
    assert "1 data file with other values" in caplog.text
    assert "2 data files" not in caplog.text
