"""Files with position deletes and deletion vectors that Spark's own reader reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_reads import session_conf

from icebergds import load_table
from icebergds.spark import native_deletes
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField

pytestmark = pytest.mark.spark

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))
_ROWS = 300


def _table(directory: Path, deleted: list[list[int]], version: int) -> TableBuilder:
    """A file for each list of deleted positions, with ids that tell file and position."""
    builder = TableBuilder(directory, _SCHEMA, format_version=version)
    files = [
        builder.data_file(
            [(number * _ROWS + at, f"n{at % 7}" if at % 5 else None) for at in range(_ROWS)],
            row_group_size=50,
        )
        for number in range(len(deleted))
    ]
    builder.commit(*files)
    hit = [(file, at) for file, at in zip(files, deleted, strict=True) if at]
    if hit and version == 3:
        builder.commit(*builder.deletion_vectors(hit))
    elif hit:
        builder.commit(builder.position_deletes({file.file_path: sorted(at) for file, at in hit}))
    return builder


def _live(deleted: list[list[int]]) -> list[int]:
    gone = {number * _ROWS + at for number, found in enumerate(deleted) for at in found}
    return [row for row in range(len(deleted) * _ROWS) if row not in gone]


def _ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


def _is_native(df: DataFrame) -> bool:
    return "BatchScan" not in df._jdf.queryExecution().executedPlan().toString()


_deletes = st.lists(
    st.one_of(
        st.lists(st.integers(0, _ROWS - 1), max_size=20),
        st.integers(0, _ROWS).map(lambda count: list(range(count))),
        st.integers(0, _ROWS - 1).map(lambda first: list(range(first, _ROWS))),
    ),
    min_size=1,
    max_size=4,
)


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    deleted=_deletes,
    version=st.sampled_from((2, 3)),
    low=st.integers(0, 4 * _ROWS),
    is_large=st.booleans(),
)
def test_rows_are_those_that_are_not_deleted(
    front: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    deleted: list[list[int]],
    version: int,
    low: int,
    is_large: bool,
) -> None:
    builder = _table(tmp_path_factory.mktemp("t"), deleted, version)
    with pytest.MonkeyPatch.context() as patch:
        if is_large:
            patch.setattr(native_deletes, "_MOST_BYTES_OF_FILTER", -1)
        df = front.read.format("icebergpy").load(str(builder.location))
        expected = _live(deleted)
        assert _ids(df) == expected
        assert _is_native(df)
        assert _ids(df.where(f.col("id") >= low)) == [row for row in expected if row >= low]
        nulls = [row for row in expected if row % _ROWS % 5 == 0]
        assert _ids(df.where("name is null").select("id")) == nulls
        assert df.groupBy().count().first()[0] == len(expected)


@pytest.mark.parametrize("version", [2, 3])
def test_the_size_is_that_of_the_files(front: SparkSession, tmp_path: Path, version: int) -> None:
    """Spark broadcasts small tables in joins, although these have deletes."""
    builder = _table(tmp_path / "t", [[1, 2], []], version)
    df = front.read.format("icebergpy").load(str(builder.location))
    other = front.range(1000)
    plan = other.join(df, "id")._jdf.queryExecution().executedPlan().toString()
    assert plan.count("BroadcastHashJoin") == 1
    assert df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() < 1 << 20


def test_statements_find_rows_beside_deleted_ones(front: SparkSession, tmp_path: Path) -> None:
    builder = _table(tmp_path / "t", [[0, 5], [7]], 3)
    table = load_table(builder.location)
    table.update({"name": "'new'"}, "id in (0, 1, 5, 6, 307, 308)")
    table.delete("id in (0, 2, 307, 309)")
    df = front.read.format("icebergpy").load(str(builder.location))
    assert _ids(df.where("name = 'new'")) == [1, 6, 308]
    assert _ids(df) == [row for row in _live([[0, 5], [7]]) if row not in (2, 309)]


def test_a_file_with_all_rows_deleted(front: SparkSession, tmp_path: Path) -> None:
    builder = _table(tmp_path / "t", [list(range(_ROWS))], 3)
    assert _ids(front.read.format("icebergpy").load(str(builder.location))) == []


def test_a_column_named_like_a_metadata_column_of_spark(
    front: SparkSession, tmp_path: Path
) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "_metadata", LONG)))
    builder = TableBuilder(tmp_path / "t", schema)
    builder.commit(file := builder.data_file([(1, 1), (2, 2)]))
    builder.commit(builder.position_deletes({file.file_path: [0]}))
    df = front.read.format("icebergpy").load(str(builder.location))
    assert [tuple(row) for row in df.collect()] == [(2, 2)]


def test_large_bitmaps_are_broadcast_in_any_session(
    front: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_deletes, "_MOST_BYTES_OF_FILTER", 0)
    builder = _table(tmp_path / "t", [[3], [4]], 3)
    with session_conf(front, "spark.sql.autoBroadcastJoinThreshold", "-1"):
        df = front.read.format("icebergpy").load(str(builder.location))
        assert _ids(df) == _live([[3], [4]])
        assert "BroadcastHashJoin" in df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("codegen", ["true", "false"])
@pytest.mark.parametrize("condition", ["cast(text as int) > 1", "id > 0 and 6 / (id - 3) > 0"])
def test_conditions_are_not_evaluated_for_deleted_rows(
    front: SparkSession, tmp_path: Path, condition: str, codegen: str
) -> None:
    """As a row may be deleted because a condition fails for it."""
    columns = (NestedField(1, "id", LONG), NestedField(2, "text", STRING))
    builder = TableBuilder(tmp_path / "t", Schema(columns), format_version=3)
    rows = [(1, "1"), (2, "2"), (3, "x"), (4, "4")]
    file, other = builder.data_file(rows), builder.data_file([(5, "5")])
    builder.commit(file, other)
    builder.commit(*builder.deletion_vectors([(file, [2])]))
    with session_conf(front, "spark.sql.codegen.wholeStage", codegen):
        df = front.read.format("icebergpy").load(str(builder.location))
        live = front.createDataFrame([row for row in [*rows, (5, "5")] if row[0] != 3], df.schema)
        assert _is_native(df)
        expected = _ids(live.where(condition))
        assert _ids(df.where(condition)) == expected
        assert _ids(df.toDF("id", "text").distinct().where(condition)) == expected
        same = df.alias("a").join(live.alias("b"), f.expr("cast(a.text as int) = b.id"))
        assert sorted(row[0] for row in same.select("a.id").collect()) == [1, 2, 4, 5]


@pytest.mark.parametrize("count", [2, 6])
def test_files_of_one_size(front: SparkSession, tmp_path: Path, count: int) -> None:
    builder = TableBuilder(tmp_path / "t", Schema((NestedField(1, "id", LONG),)))
    rows = [[1000 * (file + 1) + at for at in range(8)] for file in range(count)]
    files = [builder.data_file([(row,) for row in each]) for each in rows]
    assert len({file.file_size_in_bytes for file in files}) == 1
    builder.commit(*files)
    at = {file.file_path: [number] for number, file in enumerate(files)}
    builder.commit(builder.position_deletes(at))
    df = front.read.format("icebergpy").load(str(builder.location))
    gone = {each[number] for number, each in enumerate(rows)}
    assert _ids(df) == [row for each in rows for row in each if row not in gone]
    assert _is_native(df)


def test_a_path_that_begins_with_the_path_of_another_file_of_its_size(
    front: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path / "t", Schema((NestedField(1, "id", LONG),)))
    first = builder.data_file([(1,), (2,)])
    second = builder.data_file([(3,), (4,)])
    assert first.file_size_in_bytes == second.file_size_in_bytes
    renamed = replace(second, file_path=f"{first.file_path}-1")
    Path(second.file_path).rename(renamed.file_path)
    builder.commit(first, renamed)
    builder.commit(builder.position_deletes({first.file_path: [0]}))
    builder.commit(builder.position_deletes({renamed.file_path: [1]}))
    df = front.read.format("icebergpy").load(str(builder.location))
    assert _ids(df) == [2, 3]
    assert _is_native(df)


@pytest.mark.parametrize("listed", ["", "avro,csv"])
def test_a_session_that_has_another_reader_of_parquet(
    front: SparkSession, tmp_path: Path, listed: str
) -> None:
    builder = _table(tmp_path / "t", [[0, 5], [7]], 3)
    with session_conf(front, "spark.sql.sources.useV1SourceList", listed):
        table = load_table(builder.location)
        table.update({"name": "'new'"}, "pmod(id, 300) = 1", spark=front)
        table.delete("pmod(id, 300) = 2", spark=front)
        table.delete_keys(pa.table({"id": [3]}), ["id"])
        df = front.read.format("icebergpy").load(str(builder.location))
        assert _ids(df.where("name = 'new'")) == [1, 301]
        assert _ids(df) == [row for row in _live([[0, 5], [7]]) if row not in (2, 302, 3)]
        assert _is_native(df)
