"""Scans in which Spark's own Parquet reader takes part."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from pyspark.sql.types import IntegerType, StringType, StructField, StructType
from spark_reads import session_conf
from spark_tables import LIVE_PEOPLE, people

from icebergds import Table, load_table, register
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType as IcebergStruct,
)

pytestmark = pytest.mark.spark

_NATIVE_SCANS = "spark.icebergpy.native-scans"
_READ_BY_ID = "spark.sql.parquet.fieldId.read.enabled"
_AB = Schema((NestedField(1, "a", INT), NestedField(2, "b", STRING)))


@pytest.fixture(autouse=True)
def _native_scans(spark: SparkSession) -> Iterator[None]:
    register(spark, reader=False)
    yield
    spark.conf.unset(_NATIVE_SCANS)


def _frame(spark: SparkSession, builder: TableBuilder, **scan: Any) -> DataFrame:
    """A scan that is native, in whole or in part."""
    df = load_table(str(builder.location)).scan(**scan).to_df(spark)
    assert _is_native(df)
    return df


def _is_native(df: DataFrame) -> bool:
    return bool(df.inputFiles())


def _rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, df.collect()), key=repr)


def test_files_that_spark_reads_otherwise_are_read_by_us_and_the_others_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    ours = builder.data_file([(3, "z"), (4, None)], file_format=FileFormat.AVRO)
    kept = builder.data_file([(1, "x"), (2, "y")])
    builder.commit(ours)
    builder.commit(builder.equality_deletes(["a"], [(3,)]))
    builder.commit(kept)
    df = _frame(spark, builder)
    assert [path.removeprefix("file://") for path in df.inputFiles()] == [kept.file_path]
    assert _rows(df) == [(1, "x"), (2, "y"), (4, None)]
    assert df.count() == 3
    assert _rows(df.select("b").where("b is null")) == [(None,)]


def test_scans_that_no_file_is_native_in(spark: SparkSession, tmp_path: Path) -> None:
    people(tmp_path / "t")
    df = load_table(str(tmp_path / "t")).scan(columns="id, _file").to_df(spark)
    assert not _is_native(df)
    assert sorted(row.id for row in df.collect()) == LIVE_PEOPLE
    empty = TableBuilder(tmp_path / "e", _AB)
    assert load_table(str(empty.location)).scan().to_df(spark).collect() == []


def test_sessions_that_did_not_ask_have_none(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(builder.data_file([(1, "x")]))
    scan = load_table(str(builder.location)).scan()
    with session_conf(spark, _NATIVE_SCANS, "false"):
        assert not _is_native(scan.to_df(spark))
    assert not _is_native(replace(scan, options={"pushdown": "true"}).to_df(spark))
    assert _is_native(scan.to_df(spark))


def test_a_filter_on_a_column_that_took_the_name_of_a_dropped_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(builder.data_file([(1, "x"), (2, "y")]))
    builder.evolve(Schema((NestedField(2, "b", STRING), NestedField(3, "a", INT)), 1))
    builder.commit(builder.data_file([("z", 9)]))
    df = _frame(spark, builder)
    assert _rows(df.where("a is null")) == [("x", None), ("y", None)]
    assert _rows(df.where("a = 9")) == [("z", 9)]
    assert _rows(df.where("a = 1")) == []


def test_columns_that_swapped_their_names(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", Schema((_AB.fields[0], NestedField(2, "b", INT))))
    builder.commit(builder.data_file([(1, 10), (2, 20)]))
    builder.evolve(Schema((NestedField(1, "b", INT), NestedField(2, "a", INT)), 1))
    builder.commit(builder.data_file([(3, 30)]))
    df = _frame(spark, builder)
    assert df.columns == ["b", "a"]
    assert _rows(df) == [(1, 10), (2, 20), (3, 30)]
    assert _rows(df.where("a = 10")) == [(1, 10)]
    assert _rows(df.where("b > 2")) == [(3, 30)]


def test_promoted_columns(spark: SparkSession, tmp_path: Path) -> None:
    def columns(*types: Any) -> tuple[NestedField, ...]:
        return tuple(NestedField(i, f"c{i}", t) for i, t in enumerate(types, 1))

    builder = TableBuilder(
        tmp_path / "t", Schema(columns(INT, DecimalType(5, 2), DATE)), format_version=3
    )
    builder.commit(builder.data_file([(7, Decimal("123.45"), 18_321)]))
    builder.evolve(Schema(columns(LONG, DecimalType(20, 2), TIMESTAMP), 1))
    builder.commit(builder.data_file([(2**40, Decimal("1e16"), -62_000_000_000_000_000)]))
    table = load_table(str(builder.location))
    assert _rows(_frame(spark, builder)) == _ours(spark, table)
    assert _rows(_frame(spark, builder).where("c1 > 100").select("c1")) == [(2**40,)]


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("c < 10000000000", True),
        ("c > -42949672.96", True),
        ("c in (123.45, 99999999999.99)", True),
        ("c = 42949796.41", False),
        ("s.c < 10000000000", True),
        ("s.c <> 42949796.41", True),
    ],
)
def test_filters_on_decimals_that_do_not_fit_the_type_of_a_file(
    spark: SparkSession, tmp_path: Path, condition: str, is_met: bool
) -> None:
    """Spark fails for them, or takes them for other numbers, if they reach the file."""

    def schema(precision: int, schema_id: int) -> Schema:
        number = DecimalType(precision, 2)
        inner = IcebergStruct((NestedField(3, "c", number),))
        return Schema((NestedField(1, "c", number), NestedField(2, "s", inner)), schema_id)

    builder = TableBuilder(tmp_path / "t", schema(5, 0))
    value = Decimal("123.45")
    builder.commit(builder.data_file([(value, (value,))]))
    builder.evolve(schema(30, 1))
    assert _frame(spark, builder).where(condition).count() == int(is_met)


_DEFAULTS: list[tuple[IcebergType, Any]] = [
    (BOOLEAN, True),
    (INT, -(2**31)),
    (LONG, -(2**63)),
    (FLOAT, 0.1),
    (DOUBLE, float("-inf")),
    (DecimalType(38, 3), Decimal("-0.001")),
    (DATE, -700_000),
    (TIMESTAMP, -62_000_000_000_000_001),
    (TIMESTAMPTZ, 1_700_000_000_123_456),
    (STRING, "it's a \\ 'ü\n"),
    (STRING, ""),
    (DOUBLE, float("nan")),
]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_defaults_of_columns_that_files_lack(
    spark: SparkSession, tmp_path: Path, vectorized: str
) -> None:
    added = tuple(
        NestedField(number, f"c{number}", field_type, initial_default=default)
        for number, (field_type, default) in enumerate(_DEFAULTS, 3)
    )
    builder = TableBuilder(tmp_path / "t", _AB, format_version=3)
    builder.commit(old := builder.data_file([(1, "x"), (2, None)]))
    builder.evolve(Schema((*_AB.fields, *added), 1))
    builder.commit(
        builder.data_file([(3, "z", *(None for _ in added)), (4, None, *(d for _, d in _DEFAULTS))])
    )
    builder.commit(*builder.deletion_vectors([(old, [0])]))
    with (
        session_conf(spark, "spark.sql.parquet.enableVectorizedReader", vectorized),
        session_conf(spark, "spark.sql.session.timeZone", "America/St_Johns"),
    ):
        df = _frame(spark, builder)
        assert _is_native(df)
        assert repr(_rows(df)) == repr(_ours(spark, load_table(str(builder.location))))
        assert df.schema["c3"].metadata == {}
        conditions = [f.col(field.name).isNull() for field in added]
        conditions += [f.col(field.name).isNotNull() for field in added]
        conditions += [
            f.col(field.name) == default
            for field, (field_type, default) in zip(added, _DEFAULTS, strict=True)
            if field_type in (INT, LONG, STRING)
        ]
        found = [
            df.where(condition).select(f.lit(number), "a")
            for number, condition in enumerate(conditions)
        ]
        by_condition = _rows(reduce(DataFrame.union, found))
    expected = [(number, 3) for number in range(len(added))]
    for number in range(len(added), len(conditions)):
        expected += [(number, 2), (number, 4)]
    assert by_condition == sorted(expected, key=repr)


def _ours(spark: SparkSession, table: Table) -> list[tuple[Any, ...]]:
    with session_conf(spark, _NATIVE_SCANS, "false"):
        return _rows(table.scan().to_df(spark))


_INNER = IcebergStruct((NestedField(11, "x", INT), NestedField(12, "y", STRING)))


def test_nested_columns_renamed_added_and_dropped(spark: SparkSession, tmp_path: Path) -> None:
    def schema(inner: IcebergStruct, schema_id: int = 0) -> Schema:
        return Schema(
            (
                NestedField(9, "id", INT),
                NestedField(1, "s", inner),
                NestedField(2, "l", ListType(21, inner_of(inner, 22))),
                NestedField(3, "m", MapType(31, STRING, 32, inner_of(inner, 33))),
            ),
            schema_id,
        )

    builder = TableBuilder(tmp_path / "t", schema(_INNER))
    value = (1, "one")
    rows = [(1, value, [value, None], [("k", value)]), (2, None, [], []), (3, None, None, None)]
    builder.commit(builder.data_file(rows))
    renamed = IcebergStruct(
        (NestedField(13, "x", STRING), NestedField(11, "was_x", LONG), NestedField(14, "z", DATE))
    )
    builder.evolve(schema(renamed, 1))
    builder.commit(builder.data_file([(4, ("new", 5, 6), [("n", 1, None)], [("q", None)])]))
    only_new = IcebergStruct((NestedField(15, "w", INT),))
    table = load_table(str(builder.location))
    df = _frame(spark, builder)
    assert _rows(df) == _ours(spark, table)
    assert _rows(df.where("s.was_x = 1").select("s.was_x", "s.x")) == [(1, None)]
    builder.evolve(schema(only_new, 2))
    assert _rows(_frame(spark, builder)) == _ours(spark, load_table(str(builder.location)))


def inner_of(inner: IcebergStruct, first_id: int) -> IcebergStruct:
    """The struct under ids of its own."""
    return IcebergStruct(
        tuple(replace(field, field_id=first_id * 100 + field.field_id) for field in inner.fields)
    )


def test_names_and_comments_are_those_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    odd = ("a`b", "with.dot", "ünï")
    columns = [NestedField(i, name, INT, doc=f"d{i}") for i, name in enumerate(odd, 1)]
    builder = TableBuilder(tmp_path / "t", Schema((*columns, NestedField(9, "s", _INNER))))
    builder.commit(builder.data_file([(1, 2, 3, (4, "five"))]))
    inner = StructType([StructField("x", IntegerType()), StructField("y", StringType())])
    assert _frame(spark, builder).schema == StructType(
        [
            *(StructField(c.name, IntegerType(), True, {"comment": c.doc}) for c in columns),
            StructField("s", inner),
        ]
    )


def test_paths_with_blanks_percent_signs_and_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "a b%20c" / "a=7", _AB)
    builder.commit(builder.data_file([(1, "x")]))
    assert _rows(_frame(spark, builder)) == [(1, "x")]


def test_hidden_directories(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / ".cache" / "_t" / "...", _AB)
    builder.commit(builder.data_file([(1, "x")]))
    assert _rows(_frame(spark, builder)) == [(1, "x")]


def test_files_without_ids_are_read_by_us(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    file = builder.data_file([(1, "x")])
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), file.file_path)
    builder.commit(file)
    df = load_table(str(builder.location)).scan().to_df(spark)
    assert not _is_native(df)
    assert _rows(df) == [(1, "x")]


def test_types_that_spark_refuses_are_read_by_us(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (NestedField(1, "a", INT), NestedField(2, "u", UUID), NestedField(3, "t", TIME))
    )
    builder = TableBuilder(tmp_path / "t", schema)
    builder.commit(builder.data_file([(1, b"\1" * 16, 5)]))
    table = load_table(str(builder.location))
    assert not _is_native(table.scan(columns=["a", "u"]).to_df(spark))
    assert not _is_native(table.scan(columns=["a", "t"]).to_df(spark))
    assert _is_native(table.scan(columns=["a"]).to_df(spark))


def test_no_setting_of_the_session_changes_how_columns_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(builder.data_file([(None, "x"), (2, "y")]))
    renamed = Schema((NestedField(1, "c", INT), NestedField(2, "a", STRING)), 1)
    builder.evolve(renamed)
    df = _frame(spark, builder)
    for by_id, ignoring in (("false", "false"), ("true", "true"), ("false", "true")):
        with (
            session_conf(spark, _READ_BY_ID, by_id),
            session_conf(spark, "spark.sql.parquet.fieldId.read.ignoreMissing", ignoring),
        ):
            for frame in (df, _frame(spark, builder)):
                assert _rows(frame) == [(2, "y"), (None, "x")]
    assert spark.conf.get(_READ_BY_ID) == "false"


def test_other_reads_of_parquet_match_columns_by_name(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    file = builder.data_file([(1, "x")])
    builder.commit(file)
    assert _rows(_frame(spark, builder)) == [(1, "x")]
    by_id = StructType([StructField("z", IntegerType(), True, {"parquet.field.id": 1})])
    assert _rows(spark.read.schema(by_id).parquet(file.file_path)) == [(None,)]


_ROW_READERS = [
    ("spark.sql.parquet.enableVectorizedReader", "false"),
    ("spark.sql.parquet.enableNestedColumnVectorizedReader", "false"),
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.codegen.maxFields", "2"),
]


@pytest.mark.parametrize(("setting", "value"), _ROW_READERS, ids=dict(_ROW_READERS))
def test_sessions_that_do_not_read_columns_in_batches(
    spark: SparkSession, tmp_path: Path, setting: str, value: str
) -> None:
    """Spark's reader of rows would find no column that has another name in the file."""
    fields = (_AB.fields[0], NestedField(2, "x", DOUBLE), NestedField(3, "s", _INNER))
    builder = TableBuilder(tmp_path / "t", Schema(fields))
    builder.commit(builder.data_file([(1, 0.5, (7, "y")), (2, None, None)]))
    renamed = replace(fields[0], name="b")
    builder.evolve(Schema((renamed, *fields[1:]), 1))
    with session_conf(spark, setting, value):
        assert _rows(_frame(spark, builder)) == [(1, 0.5, (7, "y")), (2, None, None)]


def test_a_file_that_is_gone_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    file, other = builder.data_file([(1, "x")]), builder.data_file([(2, "y")])
    builder.commit(file, other)
    with session_conf(spark, "spark.sql.files.ignoreMissingFiles", "true"):
        df = _frame(spark, builder)
        Path(other.file_path).unlink()
        with pytest.raises(Exception, match=Path(other.file_path).name):
            df.collect()


def test_every_scan_is_pinned_to_the_state_of_its_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    first = builder.data_file([(1, "x"), (2, "y")])
    builder.commit(first)
    table = load_table(str(builder.location))
    before = table.scan().to_df(spark)
    builder.commit(builder.data_file([(3, "z")]), builder.position_deletes({first.file_path: [0]}))
    assert _rows(before) == [(1, "x"), (2, "y")]
    assert _rows(table.refresh().scan().to_df(spark)) == [(2, "y"), (3, "z")]
    earlier = table.scan(snapshot_id=table.snapshots()[0].snapshot_id).to_df(spark)
    assert _rows(earlier) == [(1, "x"), (2, "y")]


def test_columns_that_exchanged_their_names_keep_their_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark takes the types of stored columns from columns of the same names that are asked for."""
    short, long = DecimalType(5, 2), DecimalType(9, 4)
    row_id = NestedField(3, "id", INT)
    first = Schema((NestedField(1, "a", short), NestedField(2, "b", long), row_id))
    builder = TableBuilder(tmp_path / "t", first)
    builder.commit(builder.data_file([(Decimal("1.50"), Decimal("2.5000"), 1)]))
    builder.evolve(Schema((NestedField(1, "b", short), NestedField(2, "a", long), row_id), 1))
    builder.commit(builder.data_file([(Decimal("3.50"), Decimal("4.5000"), 2)]))
    df = _frame(spark, builder)
    assert _rows(df) == [
        (Decimal("1.50"), Decimal("2.5000"), 1),
        (Decimal("3.50"), Decimal("4.5000"), 2),
    ]


def test_columns_whose_names_all_changed_hands(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(builder.data_file([(1, "x")]))
    builder.evolve(Schema((NestedField(1, "B", INT), NestedField(2, "A", STRING)), 1))
    df = _frame(spark, builder)
    assert _rows(df) == _rows(df.where("A = 'x' and B = 1")) == [(1, "x")]


def test_files_that_were_written_with_schemas_that_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """They may have columns under any names."""
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(builder.data_file([(1, "x")]))
    builder.evolve(Schema((NestedField(1, "a", INT), NestedField(2, "c", STRING)), 2))
    df = _frame(spark, builder)
    assert _rows(df) == _rows(df.where("c = 'x'")) == [(1, "x")]
    assert "EqualTo(c,x)" not in _plan(df.where("c = 'x'"))


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_a_schema_that_was_removed_from_the_end_of_the_history(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    """Names changed hands and back; then no snapshot needed the schema in between."""
    first = Schema((NestedField(1, "a", INT), NestedField(2, "b", INT)))
    builder = TableBuilder(tmp_path / "t", first, format_version=version)
    builder.commit(builder.data_file([(1, 100)]))
    builder.evolve(Schema((NestedField(1, "b", INT), NestedField(2, "a", INT)), 1))
    builder.commit(builder.data_file([(2, 200)]))
    gone = replace(builder.metadata, schemas=(first,), current_schema_id=0)
    snapshots = tuple(replace(snapshot, schema_id=0) for snapshot in gone.snapshots)
    builder._replace_metadata(replace(gone, snapshots=snapshots))
    df = _frame(spark, builder)
    assert _rows(df) == [(1, 100), (2, 200)]
    assert _rows(df.where("a = 2")) == _rows(df.where("b > 150")) == [(2, 200)]


def test_filters_are_pushed_to_files_on_columns_that_alone_ever_had_their_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(builder.data_file([(1, "x"), (2, "y")]))
    assert "EqualTo(b,x)" in _plan(_frame(spark, builder).where("b = 'x'"))
    builder.evolve(Schema((NestedField(1, "a", INT), NestedField(3, "b", STRING)), 1))
    df = _frame(spark, builder)
    assert "IsNull(b)" not in _plan(df.where("b is null"))
    assert _rows(df.where("b is null")) == [(1, None), (2, None)]
    assert "EqualTo(a,1)" in _plan(df.where("a = 1"))


def _plan(df: DataFrame) -> str:
    return df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("files", [40, 260])
def test_a_scan_of_many_files_starts_no_job_to_list_them(
    spark: SparkSession, tmp_path: Path, files: int
) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    builder.commit(*(builder.data_file([(i, "x")]) for i in range(files)))
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("listing", "")
    try:
        df = _frame(spark, builder)
        assert len(df.inputFiles()) == files
        assert list(tracker.getJobIdsForGroup("listing")) == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_spark_knows_when_files_were_last_modified(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", _AB)
    file = builder.data_file([(1, "x")])
    builder.commit(file)
    os.utime(file.file_path, (1_700_000_000, 1_700_000_000))
    found = _frame(spark, builder).select(f.unix_seconds("_metadata.file_modification_time"))
    assert found.first() == (1_700_000_000,)


def test_spark_sees_that_a_scan_of_few_columns_is_small(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = tuple(NestedField(at, f"c{at}", STRING) for at in range(1, 10))
    builder = TableBuilder(tmp_path / "t", Schema(columns))
    builder.commit(builder.data_file([("x",) * 9] * 1000))
    whole = _estimated_bytes(_frame(spark, builder))
    assert _estimated_bytes(_frame(spark, builder, columns="c1")) < whole / 4


def test_columns_that_are_not_read_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    names = ("a", "A", "_metadata", "b")
    columns = tuple(NestedField(at, name, INT) for at, name in enumerate(names, 1))
    builder = TableBuilder(tmp_path / "t", Schema(columns))
    builder.commit(builder.data_file([(1, 2, 3, 4)]))
    df = _frame(spark, builder, columns="b")
    assert _rows(df) == [(4,)]
    assert df.select("_metadata.row_index").first() == (0,)


def _estimated_bytes(df: DataFrame) -> int:
    plan: Any = df._jdf.queryExecution().optimizedPlan()
    return int(str(plan.stats().sizeInBytes()))
