"""Files whose codecs, encodings or types Spark's own reader has not, or reads otherwise than ours.

They are read by icebergds, whoever asks.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import with_id
from built.tables import TableBuilder
from effort import some
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_reads import session_conf

from icebergds import Table, load_catalog, load_table, register
from icebergds.formats.file_tokens import is_marked
from icebergds.scan.plan import native_forms
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

_ROWS = 40
_DAY, _TIME = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 1, 2, 3, 456_000)
_NUMBERS = ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
_FLOATS = ("PLAIN", "BYTE_STREAM_SPLIT")
_TEXTS = ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
_FIXED = ("PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
_DICTIONARY = "DICTIONARY"
_NESTED = ("top", "struct", "list", "map")


@dataclass(frozen=True)
class _Kind:
    """A type of a table's column, how a file stores it, and its values."""

    table_type: IcebergType
    arrow_type: pa.DataType
    values: list[Any]
    encodings: tuple[str, ...]
    is_read_by_spark: bool = True


def _values(of: Any) -> list[Any]:
    return [None if row % 7 == 0 else of(row) for row in range(_ROWS)]


_INTS = _values(lambda row: row * 3 - 20)
_SMALL = _values(lambda row: row % 11)
_HALVES = _values(lambda row: row / 2)
_MONEY = _values(lambda row: Decimal(row) / 100)
_DAYS = _values(lambda row: _DAY + dt.timedelta(row))
_TIMES = _values(lambda row: _TIME + dt.timedelta(row))
_WORDS = _values(lambda row: f"é{row % 9}")
_CODES = _values(lambda row: bytes((97 + row % 9, 98, 99)))

_READ = [
    _Kind(BOOLEAN, pa.bool_(), _values(lambda row: row % 2 == 0), ("PLAIN", "RLE")),
    _Kind(INT, pa.int32(), _INTS, _NUMBERS),
    _Kind(INT, pa.int8(), _INTS, _NUMBERS),
    _Kind(INT, pa.uint16(), _SMALL, _NUMBERS),
    _Kind(LONG, pa.int64(), _INTS, _NUMBERS),
    _Kind(LONG, pa.int32(), _INTS, _NUMBERS),
    _Kind(LONG, pa.uint32(), _SMALL, _NUMBERS),
    _Kind(FLOAT, pa.float32(), _HALVES, _FLOATS),
    _Kind(DOUBLE, pa.float64(), _HALVES, _FLOATS),
    _Kind(DOUBLE, pa.float32(), _HALVES, _FLOATS),
    _Kind(DecimalType(9, 2), pa.decimal128(9, 2), _MONEY, _FIXED),
    _Kind(DecimalType(38, 2), pa.decimal128(12, 2), _MONEY, _FIXED),
    _Kind(DATE, pa.date32(), _DAYS, _NUMBERS),
    _Kind(TIMESTAMP, pa.timestamp("us"), _TIMES, _NUMBERS),
    _Kind(TIMESTAMP, pa.timestamp("ms"), _TIMES, _NUMBERS),
    _Kind(TIMESTAMPTZ, pa.timestamp("us", "UTC"), _TIMES, _NUMBERS),
    _Kind(STRING, pa.string(), _WORDS, _TEXTS),
    _Kind(BINARY, pa.binary(), _CODES, _TEXTS),
    _Kind(BINARY, pa.binary(3), _CODES, _FIXED),
    _Kind(FixedType(3), pa.binary(3), _CODES, _FIXED),
]
_UNREAD = [
    replace(kind, is_read_by_spark=False)
    for kind in (
        _Kind(INT, pa.int64(), _INTS, _NUMBERS),
        _Kind(INT, pa.uint32(), _SMALL, _NUMBERS),
        _Kind(LONG, pa.uint64(), _SMALL, _NUMBERS),
        _Kind(FLOAT, pa.float16(), _HALVES, _FLOATS),
        _Kind(DOUBLE, pa.float16(), _HALVES, _FLOATS),
        _Kind(TIMESTAMP, pa.timestamp("ns"), _TIMES, _NUMBERS),
        _Kind(TIMESTAMPTZ, pa.timestamp("ns", "UTC"), _TIMES, _NUMBERS),
        _Kind(STRING, pa.binary(), _CODES, _TEXTS),
        _Kind(STRING, pa.null(), [None] * _ROWS, ("PLAIN",)),
        _Kind(DATE, pa.null(), [None] * _ROWS, ("PLAIN",)),
        _Kind(DecimalType(9, 2), pa.decimal128(18, 2), _MONEY, _FIXED),
    )
]


@dataclass(frozen=True)
class _Stored:
    """A column of a table, as a file stores it."""

    field: NestedField
    arrow: pa.Field
    values: list[Any]
    leaf: str
    encoding: str
    is_read_by_spark: bool


def _columns() -> Iterator[_Stored]:
    """A column for each type, encoding and way of nesting, the latter two in turn."""
    ids = count(2)
    for kind in _READ + _UNREAD:
        turn = list(zip((_DICTIONARY, *kind.encodings), (*_NESTED, *_NESTED), strict=False))
        for encoding, nesting in turn:
            number = next(ids)
            name = f"c{number}"
            inner = next(ids)
            is_read = kind.is_read_by_spark and encoding != "BYTE_STREAM_SPLIT"
            table_type: IcebergType = kind.table_type
            arrow_type, leaf, values = kind.arrow_type, name, kind.values
            match nesting:
                case "struct":
                    table_type = StructType((NestedField(inner, "f", table_type),))
                    arrow_type = pa.struct([with_id("f", arrow_type, inner)])
                    leaf, values = f"{name}.f", [{"f": value} for value in values]
                case "list":
                    table_type = ListType(inner, table_type)
                    arrow_type = pa.list_(with_id("element", arrow_type, inner))
                    leaf, values = f"{name}.list.element", [[value, None] for value in values]
                case "map":
                    key = next(ids)
                    table_type = MapType(key, STRING, inner, table_type)
                    arrow_type = pa.map_(
                        with_id("key", pa.string(), key, False), with_id("value", arrow_type, inner)
                    )
                    leaf = f"{name}.key_value.value"
                    values = [[("k", value)] for value in values]
            yield _Stored(
                NestedField(number, name, table_type),
                with_id(name, arrow_type, number),
                values,
                leaf,
                encoding,
                is_read,
            )


_COLUMNS = list(_columns())
_ID = NestedField(1, "id", INT)


def _table(location: Path, columns: list[_Stored], **options: Any) -> Table:
    """A table of one file that pyarrow wrote."""
    builder = TableBuilder(location, Schema((_ID, *(column.field for column in columns))))
    file = builder.data_file([(1, *[None] * len(columns))])
    arrays = [pa.array(column.values, column.arrow.type) for column in columns]
    schema = pa.schema([with_id("id", pa.int32(), 1), *(column.arrow for column in columns)])
    builder.commit(
        _rewritten(
            file,
            pa.table([pa.array(range(_ROWS), pa.int32()), *arrays], schema=schema),
            use_dictionary=[each.leaf for each in columns if each.encoding == _DICTIONARY],
            column_encoding={
                each.leaf: each.encoding for each in columns if each.encoding != _DICTIONARY
            },
            **options,
        )
    )
    return load_table(str(location))


def _rewritten(file: DataFile, rows: pa.Table, **options: Any) -> DataFile:
    """A file with other rows, and without metrics."""
    pq.write_table(rows, file.file_path, **options)
    return replace(
        file,
        record_count=rows.num_rows,
        file_size_in_bytes=Path(file.file_path).stat().st_size,
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=(),
    )


def _is_native(df: DataFrame) -> bool:
    return "BatchScan" not in df._jdf.queryExecution().executedPlan().toString()


def _rows(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


def _assert_same(spark: SparkSession, table: Table, columns: list[str], *, native: bool) -> None:
    df = table.scan(columns=columns).to_df(spark)
    assert _is_native(df) == native
    with session_conf(spark, "spark.icebergpy.native-scans", "false"):
        expected = _rows(table.scan(columns=columns).to_df(spark))
    assert _rows(df) == expected
    assert len(expected) == _ROWS


_CODECS = ("snappy", "brotli", "zstd", "gzip", "lz4", "none")
_FILES = list(product(_CODECS, ("1.0", "2.0"), (False, True)))


@pytest.mark.parametrize(("codec", "version", "as_integer"), some(_FILES, 3))
def test_spark_reads_no_other_columns_than_it_reads_as_icebergds(
    front: SparkSession, tmp_path: Path, codec: str, version: str, as_integer: bool
) -> None:
    columns = _COLUMNS
    if as_integer:
        # Decimal numbers of up to 18 digits, which have another physical type then.
        columns = [each for each in columns if each.encoding in (_DICTIONARY, "PLAIN")]
    table = _table(
        tmp_path / "t",
        columns,
        compression=codec,
        data_page_version=version,
        store_decimal_as_integer=as_integer,
    )
    every = ["id", *(each.field.name for each in columns)]
    read = ["id", *(each.field.name for each in columns if each.is_read_by_spark)]
    for each in columns:
        summary = table.scan(columns=[each.field.name]).plan_summary(front)
        is_native = each.is_read_by_spark and codec != "brotli"
        assert summary.native_files == is_native, (each, summary.not_native)
    _assert_same(front, table, read, native=codec != "brotli")
    _assert_same(front, table, every, native=False)


def test_no_statement_leaves_to_spark_what_it_cannot_read(
    front: SparkSession, tmp_path: Path
) -> None:
    floats = [each for each in _COLUMNS if each.arrow.type == pa.float16()][:1]
    table = _table(tmp_path / "t", floats)
    name = floats[0].field.name
    df = front.read.format("icebergpy").load(table.location())
    assert df.count() == _ROWS
    assert df.where(f"{name} >= 3").count() == _ROWS - 6 - len(range(7, _ROWS, 7))
    table.delete(f"{name} = 0.5", spark=front)
    table.update({name: f"{name} + 100"}, where=f"{name} between 1 and 2", spark=front)
    source = front.createDataFrame([(5,), (6,)], "id int")
    table.merge(source, on="id").when_matched_delete().execute()
    rows = front.read.format("icebergpy").load(table.location()).where("id < 9").collect()
    expected = {0: None, 2: 101.0, 3: 101.5, 4: 102.0, 7: None, 8: 4.0}
    assert {row["id"]: row[name] for row in rows} == expected


def test_spark_reads_no_keys_of_deletes_that_it_reads_otherwise(
    front: SparkSession, tmp_path: Path
) -> None:
    schema = Schema((_ID, NestedField(2, "name", STRING)))
    builder = TableBuilder(tmp_path / "t", schema)
    builder.commit(builder.data_file([(1, "a"), (2, "b"), (3, "c")]))
    keys = pa.table([pa.array([2], pa.int64())], schema=pa.schema([with_id("id", pa.int64(), 1)]))
    builder.commit(_rewritten(builder.equality_deletes(["id"], [(9,)]), keys))
    table = load_table(str(builder.location))
    df = table.scan().to_df(front)
    assert sorted(map(tuple, df.collect())) == [(1, "a"), (3, "c")]
    assert dict(table.scan().plan_summary(front).not_native) == {"equality deletes": 1}


@pytest.mark.parametrize("codec", ["brotli", "gzip"])
def test_files_of_our_own_are_known_by_their_names(
    front: SparkSession, tmp_path: Path, codec: str
) -> None:
    schema = Schema((_ID, NestedField(2, "name", STRING)))
    properties = {"write.parquet.compression-codec": codec}
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    table = catalog.create_table("db.t", schema, properties=properties)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]}))
    (file,) = table.scan().plan_files()
    assert is_marked(file.file.file_path) == (codec != "brotli")
    df = table.scan().to_df(front)
    assert _is_native(df) == (codec != "brotli")
    assert sorted(map(tuple, df.collect())) == [(1, "a"), (2, "b")]


def test_added_files_without_field_ids_are_looked_at_too(
    front: SparkSession, tmp_path: Path
) -> None:
    schema = Schema((_ID, NestedField(2, "x", FLOAT), NestedField(3, "at", TIMESTAMP)))
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("db.t", schema)
    rows = {
        "id": pa.array([1, 2], pa.int32()),
        "x": pa.array([0.5, 1.5], pa.float16()),
        "at": pa.array([1, 2], pa.timestamp("us")),
    }
    pq.write_table(pa.table(rows), tmp_path / "half.parquet")
    whole = {**rows, "x": rows["x"].cast(pa.float32())}
    pq.write_table(pa.table(whole), tmp_path / "brotli.parquet", compression="brotli")
    pq.write_table(pa.table(whole), tmp_path / "plain.parquet")
    for name in ("half", "brotli", "plain"):
        table.add_files(str(tmp_path / f"{name}.parquet"))
    summary = table.scan().plan_summary(front)
    assert summary.native_files == 1
    assert sorted(summary.not_native) == [
        "BROTLI, which Spark does not read everywhere",
        "column x is stored as FIXED_LEN_BYTE_ARRAY Float16",
    ]
    df = table.scan().to_df(front)
    assert sorted(row["id"] for row in df.where("x > 1").collect()) == [2, 2, 2]
    assert df.select("at").distinct().count() == 2


def test_texts_that_are_not_valid_are_shown_alike(front: SparkSession, tmp_path: Path) -> None:
    schema = Schema((_ID, NestedField(2, "name", STRING)))
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("db.t", schema)
    table.append(front.sql("select 1 id, cast(X'FF61' as string) name"))
    texts = [[("\ufffda",)], [(b"\xffa",)]]
    for native_scans in (True, False):
        register(front, native_scans=native_scans)
        df = table.scan(columns=["name"]).to_df(front)
        assert _is_native(df) == native_scans
        assert [df.collect(), df.selectExpr("cast(name as binary)").collect()] == texts


def test_a_file_by_duckdb_with_new_encodings(front: SparkSession, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    builder = TableBuilder(tmp_path / "t", Schema((_ID, NestedField(2, "x", DOUBLE))))
    file = builder.data_file([(1, 1.0)])
    duckdb.sql(
        f"""copy (select i::int id, random() x from range(5000) t(i)) to '{file.file_path}'
        (format parquet, parquet_version v2, field_ids {{id: 1, x: 2}})"""
    )
    size = Path(file.file_path).stat().st_size
    builder.commit(replace(file, record_count=5000, file_size_in_bytes=size, split_offsets=()))
    table = load_table(str(builder.location))
    (reason,) = table.scan().plan_summary(front).not_native
    assert reason == "BYTE_STREAM_SPLIT, which Spark does not read everywhere"
    assert table.scan(columns=["id"]).plan_summary(front).native_files == 1
    assert table.scan().to_df(front).where("x is not null").count() == 5000


def _commits(location: Path, brotli: list[list[bool]]) -> Table:
    """A table of small files, whose codecs are given for each commit."""
    builder = TableBuilder(location, Schema((_ID,)))
    for number, commit in enumerate(brotli):
        schema = pa.schema([with_id("id", pa.int32(), 1)])
        rows = pa.table([pa.array([number], pa.int32())], schema=schema)
        files = [builder.data_file([(1,)]) for _ in commit]
        codecs = ["brotli" if is_brotli else "zstd" for is_brotli in commit]
        builder.commit(
            *(_rewritten(file, rows, compression=c) for file, c in zip(files, codecs, strict=True))
        )
    return load_table(str(location))


def test_some_footers_of_a_commit_stand_for_its_files(
    front: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_forms, "MOST_FOOTERS", 8)
    table = _commits(tmp_path / "t", [[False] * 10, [True] * 10])
    assert table.scan().plan_summary(front).native_files == 10
    df = table.scan().to_df(front)
    assert (df.count(), df.where("id = 1").count()) == (20, 10)


def test_an_error_of_a_file_whose_footer_was_not_read_says_what_reads_it(
    front: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_forms, "MOST_FOOTERS", 2)
    table = _commits(tmp_path / "t", [[False, True, False]])
    df = table.scan().to_df(front)
    told = "icebergds.register(spark, native_scans=False)"
    for action in (
        df.collect,
        df.toArrow,
        front.read.format("icebergpy").load(str(table.location())).collect,
    ):
        with pytest.raises(PySparkException, match=re.escape(told)):
            action()
    with pytest.raises(PySparkException, match=re.escape(told)):
        table.delete("id > 0 or id * 2 = 0", spark=front)
    register(front, native_scans=False)
    assert table.scan().to_df(front).count() == 3
