"""Files with equality deletes that Spark's own reader reads."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from icebergds import load_table
from icebergds.scan.plan import native_keys
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
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

_SCHEMA = Schema(
    (NestedField(1, "day", INT), NestedField(2, "id", LONG), NestedField(3, "name", STRING))
)
_BY_DAY = PartitionSpec(1, (PartitionField((1,), 1000, IdentityTransform(), "day"),))
_EVERYWHERE = PartitionSpec(2)


def _rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, df.collect()), key=repr)


def _ours(builder: TableBuilder, **scan: Any) -> list[tuple[Any, ...]]:
    """The rows that icebergds reads by itself."""
    found = load_table(str(builder.location)).scan(**scan).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def _is_native(df: DataFrame) -> bool:
    return "BatchScan" not in df._jdf.queryExecution().executedPlan().toString()


def _load(front: SparkSession, builder: TableBuilder, **options: str) -> DataFrame:
    return front.read.format("icebergpy").options(**options).load(str(builder.location))


_day = st.sampled_from((1, 2))
_id = st.one_of(st.none(), st.integers(0, 5))
_name = st.sampled_from((None, "a", "b"))
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), _day, st.lists(st.tuples(_id, _name), max_size=8)),
        st.tuples(st.just("id"), _day, st.lists(_id, min_size=1, max_size=3)),
        st.tuples(st.just("id, name"), _day, st.lists(st.tuples(_id, _name), min_size=1)),
        st.tuples(st.just("id everywhere"), _day, st.lists(_id, min_size=1, max_size=3)),
        st.tuples(st.just("position"), _day, st.integers(0, 7)),
    ),
    min_size=1,
    max_size=10,
)


def _take(builder: TableBuilder, steps: list[tuple[str, int, Any]], partitioned: bool) -> None:
    last: Any = None
    for what, day, values in steps:
        partition, spec_id = ((day,), 1) if partitioned else ((), None)
        placed: dict[str, Any] = {"partition": partition, "spec_id": spec_id}
        match what:
            case "rows":
                last = builder.data_file([(day, *row) for row in values], **placed)
                builder.commit(last)
            case "id":
                keys = [(value,) for value in values]
                builder.commit(builder.equality_deletes(["id"], keys, **placed))
            case "id, name":
                builder.commit(builder.equality_deletes(["id", "name"], values, **placed))
            case "id everywhere" if partitioned:
                keys = [(value,) for value in values]
                builder.commit(builder.equality_deletes(["id"], keys, spec_id=2))
            case "position" if last is not None and values < last.record_count:
                placed = {"partition": last.partition, "spec_id": last.spec_id}
                builder.commit(builder.position_deletes({last.file_path: [values]}, **placed))


@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps, partitioned=st.booleans())
def test_rows_are_those_that_are_not_deleted(
    front: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, Any]],
    partitioned: bool,
) -> None:
    spec = _BY_DAY if partitioned else None
    builder = TableBuilder(tmp_path_factory.mktemp("t"), _SCHEMA, spec=spec)
    if partitioned:
        builder.evolve(spec=_EVERYWHERE)
    _take(builder, steps, partitioned)
    df = _load(front, builder)
    assert _rows(df) == _ours(builder)
    assert _rows(df.where("id > 2").select("day")) == _ours(builder, filter="id > 2", columns="day")
    assert _rows(_load(front, builder, columns="name")) == _ours(builder, columns="name")


def test_deletes_of_a_commit_leave_later_files_alone(front: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", Schema(_SCHEMA.fields[1:]))
    for deleted in (3, 5):
        builder.commit(builder.data_file([(at, f"before {deleted}") for at in range(10)]))
        builder.commit(builder.equality_deletes(["id"], [(deleted,)]))
    df = _load(front, builder)
    assert _is_native(df)
    kept = [(at, "before 3") for at in range(10) if at not in (3, 5)]
    kept += [(at, "before 5") for at in range(10) if at != 5]
    assert _rows(df) == sorted(kept, key=repr)


def test_deletes_of_a_partition_leave_others_alone(front: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    days = [
        builder.data_file([(day, at, "") for at in range(9)], partition=(day,)) for day in (3, 5)
    ]
    builder.commit(*days)
    deletes = [builder.equality_deletes(["id"], [(day,)], partition=(day,)) for day in (3, 5)]
    builder.commit(*deletes)
    df = _load(front, builder)
    assert _is_native(df)
    assert _rows(df) == [(day, at, "") for day in (3, 5) for at in range(9) if at != day]


def _upserted(directory: Path, schema: Schema, keys: list[Any]) -> TableBuilder:
    """Ten rows whose first column numbers them, and deletes of keys in the second."""
    builder = TableBuilder(directory, schema)
    builder.commit(builder.data_file([(at, keys[at % len(keys)]) for at in range(10)]))
    builder.commit(builder.equality_deletes([schema.fields[1].name], [(keys[0],)]))
    return builder


@pytest.mark.parametrize(
    ("key_type", "keys"),
    [
        (BOOLEAN, [True, False, None]),
        (DATE, [0, -1, None]),
        (TIMESTAMPTZ, [0, 1, None]),
        (STRING, ["a", "A", "a ", None]),
        (DecimalType(20, 2), [Decimal("0.01"), Decimal("0.02"), None]),
        (BINARY, [b"\0", b"", None]),
    ],
)
def test_types_of_keys(
    front: SparkSession, tmp_path: Path, key_type: IcebergType, keys: list[Any]
) -> None:
    schema = Schema((NestedField(1, "at", INT), NestedField(2, "key", key_type)))
    builder = _upserted(tmp_path / "t", schema, keys)
    df = _load(front, builder, columns="at")
    assert _is_native(df)
    assert _rows(df) == _ours(builder, columns="at")
    assert len(_rows(df)) == 10 - len(range(0, 10, len(keys)))


def test_null_is_a_key(front: SparkSession, tmp_path: Path) -> None:
    builder = _upserted(tmp_path / "t", Schema(_SCHEMA.fields[1:]), [None, "a"])
    df = _load(front, builder)
    assert _is_native(df)
    assert [row.id for row in df.orderBy("id").collect()] == [1, 3, 5, 7, 9]


def test_numbers_with_two_zeros_are_left_to_us(front: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "at", INT), NestedField(2, "key", DOUBLE)))
    builder = _upserted(tmp_path / "t", schema, [0.0, -0.0, float("nan")])
    df = _load(front, builder)
    assert not _is_native(df)
    assert [row.at for row in df.orderBy("at").collect()] == [1, 2, 4, 5, 7, 8]


def test_keys_that_were_renamed_or_dropped(front: SparkSession, tmp_path: Path) -> None:
    builder = _upserted(tmp_path / "t", Schema(_SCHEMA.fields[1:]), ["a", "b"])
    renamed = Schema((NestedField(2, "number", LONG), NestedField(3, "title", STRING)), 1)
    builder.evolve(renamed)
    df = _load(front, builder)
    assert _is_native(df)
    assert df.columns == ["number", "title"]
    assert [row.number for row in df.orderBy("number").collect()] == [1, 3, 5, 7, 9]
    builder.evolve(Schema((NestedField(2, "number", LONG),), 2))
    assert _rows(_load(front, builder)) == _ours(builder) == [(at,) for at in (1, 3, 5, 7, 9)]
    # Another column has the name of the key now.
    builder.evolve(Schema((NestedField(2, "number", LONG), NestedField(4, "title", LONG)), 3))
    assert _rows(_load(front, builder)) == _ours(builder)


def test_keys_in_structs_are_left_to_us(front: SparkSession, tmp_path: Path) -> None:
    point = StructType((NestedField(3, "x", INT),))
    builder = TableBuilder(
        tmp_path / "t", Schema((NestedField(1, "at", INT), NestedField(2, "point", point)))
    )
    builder.commit(builder.data_file([(at, (at % 2,)) for at in range(4)]))
    builder.commit(builder.equality_deletes(["point"], [((0,),)], equality_ids=[3]))
    df = _load(front, builder, columns="at")
    assert not _is_native(df)
    assert _rows(df) == [(1,), (3,)]


def test_many_keys_are_left_to_us(
    front: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = _upserted(tmp_path / "t", Schema(_SCHEMA.fields[1:]), ["a", "b"])
    monkeypatch.setattr(native_keys, "_MOST_TEXTS", 0)
    df = _load(front, builder)
    assert not _is_native(df)
    assert _rows(df) == _ours(builder)


def test_a_stream_of_upserts_leaves_large_files_to_spark(
    front: SparkSession, tmp_path: Path
) -> None:
    """Of more commits than Spark has relations for."""
    builder = TableBuilder(tmp_path / "t", Schema(_SCHEMA.fields[1:]))
    builder.commit(builder.data_file([(at, "old") for at in range(2000)]))
    for at in range(20):
        deletes = builder.equality_deletes(["id"], [(at,)])
        # Its ids lie around those of later deletes, which may apply to it therefore.
        builder.commit(builder.data_file([(at, "new"), (5000 + at, "new")]), deletes)
    df = _load(front, builder)
    assert "FileScan parquet" in df._jdf.queryExecution().executedPlan().toString()
    assert not _is_native(df)
    assert _rows(df) == _ours(builder)
    assert df.where("name = 'new'").count() == 40
    assert df.count() == 2020


def test_a_column_with_a_star_for_a_name(front: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "at", INT), NestedField(2, "*", STRING)))
    builder = _upserted(tmp_path / "t", schema, ["a", "b"])
    builder.commit(builder.equality_deletes(["at"], [(1,)]))
    df = _load(front, builder)
    assert _is_native(df)
    assert _rows(df) == [(at, "b") for at in (3, 5, 7, 9)]


def test_a_delete_file_of_another_size_is_left_to_us(front: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", Schema(_SCHEMA.fields[1:]))
    builder.commit(builder.data_file([(at, "a") for at in range(4)]))
    deletes = builder.equality_deletes(["id"], [(1,), (2,)])
    builder.commit(deletes)
    other = builder.equality_deletes(["id"], [(1,)])
    Path(other.file_path).replace(deletes.file_path)
    with pytest.raises(PythonException, match=r"CorruptFileError.*its manifest says 2 rows"):
        _rows(_load(front, builder))


def test_statements_find_rows_beside_deleted_ones(front: SparkSession, tmp_path: Path) -> None:
    builder = _upserted(tmp_path / "t", Schema(_SCHEMA.fields[1:]), ["a", "b"])
    table = load_table(builder.location)
    table.update({"name": "'new'"}, "id in (0, 1, 2, 3)")
    table.delete("id in (4, 5)")
    df = _load(front, builder)
    assert _rows(df) == [(1, "new"), (3, "new"), (7, "b"), (9, "b")]
