"""Tables with a name mapping, of which some files have field ids: Spark's own reader reads both."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.tables import TableBuilder
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_reads import session_conf

from icebergds import load_table
from icebergds.spark import native_groups
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
    StructType,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_ID, _NAME = NestedField(1, "id", INT), NestedField(2, "name", STRING)
_AB = Schema((_ID, _NAME))


def _table(
    directory: Path, schema: Schema, mapping: Mapping[int, Sequence[str]], **options: Any
) -> TableBuilder:
    fields = [{"field-id": field_id, "names": list(names)} for field_id, names in mapping.items()]
    properties = {"schema.name-mapping.default": json.dumps(fields)}
    return TableBuilder(directory, schema, properties=properties, **options)


def _stored(builder: TableBuilder, table: pa.Table, *, partition: Any = (), **how: Any) -> DataFile:
    """A file of any columns, without metrics, such as other engines write and tables import."""
    file = builder.data_file([], with_metrics=False, partition=partition)
    pq.write_table(table, file.file_path, **how)
    size = Path(file.file_path).stat().st_size
    return replace(file, record_count=len(table), file_size_in_bytes=size, split_offsets=())


def _load(spark: SparkSession, builder: TableBuilder) -> DataFrame:
    return spark.read.format("icebergpy").load(str(builder.location))


def _native_files(df: DataFrame) -> int:
    return len(df.inputFiles())


def _is_native(df: DataFrame) -> bool:
    return "BatchScan" not in df._jdf.queryExecution().executedPlan().toString()


def _ours(spark: SparkSession, builder: TableBuilder) -> DataFrame:
    with session_conf(spark, "spark.icebergpy.native-scans", "false"):
        return load_table(str(builder.location)).scan().to_df(spark)


def _rows(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


def _met(df: DataFrame, conditions: Sequence[str]) -> list[tuple[Any, ...]]:
    """The ids of the rows that meet each condition."""
    found = [df.where(text).select(f.lit(text), "id") for text in conditions]
    return sorted(map(tuple, reduce(DataFrame.union, found).collect()), key=repr)


def test_files_with_ids_by_ids_and_others_by_mapped_names(
    front: SparkSession, tmp_path: Path
) -> None:
    """Columns exchanged their names: each file has them under others."""
    builder = _table(tmp_path / "t", _AB, {1: ["id", "key"], 2: ["name", "was.name"]})
    builder.commit(builder.data_file([(1, "a"), (2, None)]))
    builder.evolve(Schema((NestedField(2, "id", STRING), NestedField(1, "name", INT)), 1))
    ints = pa.array([3, 4], pa.int32())
    builder.commit(
        builder.data_file([("b", 5)]),
        _stored(builder, pa.table({"id": ints, "name": ["x", None], "other": [1, 2]})),
        _stored(builder, pa.table({"other": ["x", "y"], "key": ints, "was.name": ["y", "z"]})),
        _stored(builder, pa.table({"name": ["n", "m"]})),
    )
    df, expected = _load(front, builder), _ours(front, builder)
    assert _is_native(df)
    assert _rows(df) == _rows(expected)
    assert df.count() == 9
    conditions = ["name = 3", "name is null", "id = 'y'", "id is null", "id <=> 'x'", "name > 3"]
    assert _met(df, conditions) == _met(expected, conditions)
    frame = load_table(str(builder.location)).scan().to_df(front)
    assert _met(frame, conditions) == _met(expected, conditions)


def test_values_of_partitions_that_imported_files_lack(front: SparkSession, tmp_path: Path) -> None:
    part = NestedField(3, "day", DATE)
    spec = PartitionSpec(1, (PartitionField((3,), 1000, IdentityTransform(), "day"),))
    mapping = {1: ["id"], 2: ["name"], 3: ["day"]}
    builder = _table(tmp_path / "t", Schema((_ID, _NAME, part)), mapping, spec=spec)
    ids = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    with_day = ids.append_column("day", pa.array([7, 8], pa.date32()))
    builder.commit(
        _stored(builder, ids, partition=(19_000,)),
        _stored(builder, ids, partition=(19_001,)),
        _stored(builder, ids, partition=(None,)),
        _stored(builder, with_day, partition=(19_000,)),
    )
    df, expected = _load(front, builder), _ours(front, builder)
    assert _is_native(df)
    assert _rows(df) == _rows(expected)
    conditions = ["day is null", "day = date'2022-01-08'", "day < '2000-01-01'", "day <=> null"]
    # Planning for a condition would leave out the file that is not of its partition.
    frame = load_table(str(builder.location)).scan().to_df(front)
    assert _met(frame, conditions) == _met(expected, conditions)


def test_position_deletes_of_files_without_ids(front: SparkSession, tmp_path: Path) -> None:
    builder = _table(tmp_path / "t", _AB, {1: ["id"], 2: ["n"]})
    names = [f"n{i}" for i in range(50)]
    table = pa.table({"n": names, "id": pa.array(range(50), pa.int32())})
    builder.commit(file := _stored(builder, table))
    builder.commit(builder.position_deletes({file.file_path: [0, 7, 49]}))
    df = _load(front, builder)
    assert _is_native(df)
    assert sorted(row.id for row in df.collect()) == [i for i in range(49) if i not in (0, 7)]
    load_table(str(builder.location)).update({"name": "'new'"}, "id + 0 = 3", spark=front)
    assert _load(front, builder).where("name = 'new'").collect() == [(3, "new")]


def test_nan_of_files_without_ids_is_found(front: SparkSession, tmp_path: Path) -> None:
    builder = _table(
        tmp_path / "t", Schema((_ID, NestedField(2, "x", DOUBLE))), {1: ["id"], 2: ["x"]}
    )
    numbers = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "x": [1.0, math.nan, 2.0]})
    builder.commit(_stored(builder, numbers))
    df = _load(front, builder)
    assert _is_native(df)
    assert [row.id for row in df.where("x > 20").collect()] == [2]
    assert [row.id for row in df.where("isnan(x) or x = 1").collect()] == [1, 2]


def test_every_scalar_type_by_name(front: SparkSession, tmp_path: Path) -> None:
    types = [INT, LONG, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMPTZ, DecimalType(9, 2)]
    fields = [NestedField(i, f"c{i}", each) for i, each in enumerate(types, 2)]
    mapping = {field.field_id: [field.name] for field in (_ID, *fields)}
    builder = _table(tmp_path / "t", Schema((_ID, *fields)), mapping)
    rows = [(i, i, -i, i / 7, f"s{i}", i - 9, i - 10**12, i * 10**9, i) for i in range(40)]
    file = builder.data_file([(*row[:-1], None) for row in rows], with_metrics=False)
    stored = pq.read_table(file.file_path)
    numbers = pa.array([Decimal(row[-1]) for row in rows], pa.decimal128(9, 2))
    stored = stored.set_column(8, "c9", numbers)
    plain = pa.schema([pa.field(each.name, each.type) for each in stored.schema])
    builder.commit(_stored(builder, stored.cast(plain), row_group_size=10))
    df, expected = _load(front, builder), _ours(front, builder)
    assert _is_native(df)
    assert _rows(df) == _rows(expected)
    conditions = ["c2 = 7", "c3 < -30", "c4 > 5", "c5 = 's3'", "c6 < '1970-01-01'", "c9 >= 38"]
    conditions += ["c7 < timestamp_ntz'1970-01-01'", "c8 > timestamp'1970-01-01 10:00:00Z'"]
    assert _met(df, conditions) == _met(expected, conditions)


_INTS = pa.array([1, 2], pa.int32())
_OLD_SPARK = {"org.apache.spark.version": "2.4.8"}
_OTHERWISE = {
    "another type": pa.table({"id": pa.array([1, 2], pa.int16()), "name": ["a", "b"]}),
    "dictionary": pa.table({"id": _INTS, "name": pa.array(["a", "b"]).dictionary_encode()}),
    "names that differ by case": pa.table({"id": _INTS, "name": ["a", "b"], "Name": ["x", "y"]}),
    "name of Spark's own column": pa.table({"id": _INTS, "_metadata": ["a", "b"]}),
    "old Spark": pa.table({"id": _INTS, "name": ["a", "b"]}).replace_schema_metadata(_OLD_SPARK),
    "reserved name": pa.table({"id": _INTS, "name": ["a", "b"], "_icebergds_2": ["x", "y"]}),
    "name beyond ASCII": pa.table({"id": _INTS, "nämé": ["a", "b"]}),
}


@pytest.mark.parametrize("case", _OTHERWISE)
def test_files_without_ids_that_spark_might_read_otherwise_are_read_by_us(
    front: SparkSession, tmp_path: Path, case: str
) -> None:
    names = ["name", "_metadata", "nämé"]
    builder = _table(tmp_path / "t", _AB, {1: ["id"], 2: names})
    builder.commit(builder.data_file([(3, "c")]), _stored(builder, _OTHERWISE[case]))
    df = _load(front, builder)
    assert _native_files(df) == 1
    assert sorted(map(tuple, df.collect())) == [(1, "a"), (2, "b"), (3, "c")]


def test_nested_and_legacy_columns_of_files_without_ids_are_read_by_us(
    front: SparkSession, tmp_path: Path
) -> None:
    point = StructType((NestedField(4, "x", INT),))
    fields = (_ID, NestedField(2, "t", TIMESTAMP), NestedField(3, "p", point))
    builder = _table(tmp_path / "t", Schema(fields), {1: ["id"], 2: ["t"], 3: ["p"]})
    times = pa.array([5, 6], pa.timestamp("us"))
    stored = pa.table({"id": _INTS, "t": times, "p": [{"x": 1}, {"x": 2}]})
    builder.commit(_stored(builder, stored, use_deprecated_int96_timestamps=True))
    table = load_table(str(builder.location))
    for names, is_native in ((["id"], True), (["id", "t"], False), (["id", "p"], False)):
        df = table.scan(columns=names).to_df(front)
        assert _is_native(df) is is_native
        assert [row.id for row in df.orderBy("id").collect()] == [1, 2]


def test_files_of_many_different_names_are_read_by_us(
    front: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names that most files have are read by Spark."""
    builder = _table(tmp_path / "t", _AB, {1: ["id", "key"], 2: ["name"]})
    stored = pa.table({"id": _INTS, "name": ["a", "b"]})
    other = stored.rename_columns(["key", "name"])
    builder.commit(*(_stored(builder, each) for each in (other, stored, stored)))
    assert _native_files(_load(front, builder)) == 3
    monkeypatch.setattr(native_groups, "_MOST_GROUPS", 1)
    df = _load(front, builder)
    assert _native_files(df) == 2
    assert sorted(map(tuple, df.collect())) == sorted([(1, "a"), (2, "b")] * 3)


def test_a_damaged_file_is_an_error_of_the_query(front: SparkSession, tmp_path: Path) -> None:
    builder = _table(tmp_path / "t", _AB, {1: ["id"], 2: ["name"]})
    builder.commit(builder.data_file([(3, "c")]), bad := builder.data_file([(4, "d")]))
    Path(bad.file_path).write_bytes(b"PAR1 nothing PAR1")
    df = _load(front, builder)
    with pytest.raises(Exception, match=Path(bad.file_path).name):
        df.collect()
