"""Files that are not added because other engines would read other values in them, or none."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from built.api_tables import new_table
from built.damage import change_footer
from built.orc_files import mark_hybrid_calendar
from built.schemas import optional

from icebergds import Table, load_catalog
from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.parquet.thrift import I64, Struct
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, TIME, ListType, StructType

_OLD, _NEW = dt.datetime(1500, 1, 1), dt.datetime(1950, 1, 1)
_OF_1850 = dt.datetime(1850, 1, 1)
_OF_SPARK = {"org.apache.spark.version": "4.1.0"}
_IN_JULIAN = {
    **_OF_SPARK,
    "org.apache.spark.legacyDateTime": "",
    "org.apache.spark.legacyINT96": "",
}


@pytest.mark.parametrize("int96", [False, True], ids=["micros", "int96"])
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
@pytest.mark.parametrize("value", [_OLD, _NEW, _OLD.date(), _NEW.date(), None])
@pytest.mark.parametrize("told", [{}, _OF_SPARK, {"org.apache.spark.version": "2.4.8"}, _IN_JULIAN])
def test_old_dates_in_the_calendar_of_old_sparks_are_refused(
    tmp_path: Path, told: dict[str, str], value: Any, nested: bool, int96: bool
) -> None:
    kind = pa.timestamp("us") if isinstance(value, dt.datetime) else pa.date32()
    values = pa.array([[value]], pa.list_(kind)) if nested else pa.array([value], kind)
    rows = pa.table({"id": pa.array([1], pa.int64()), "d": values}).replace_schema_metadata(told)
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("t", rows.schema)
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path, use_deprecated_int96_timestamps=int96)
    if told in ({}, _OF_SPARK) or value not in (_OLD, _OLD.date()):
        table.add_files(path)
        assert len(rows) == len(table.scan().to_arrow())
        return
    with pytest.raises(InvalidDataError, match=r"a\.parquet cannot .* column 'd' in the Julian"):
        table.add_files(path)


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
@pytest.mark.parametrize("value", [_OLD, _OF_1850, _NEW, _OLD.date(), _NEW.date(), None])
@pytest.mark.parametrize("hybrid", [False, True], ids=["not marked", "hybrid"])
def test_old_dates_of_the_hybrid_calendar_are_refused_in_orc(
    tmp_path: Path, hybrid: bool, value: Any, nested: bool
) -> None:
    kind = pa.timestamp("us") if isinstance(value, dt.datetime) else pa.date32()
    values = pa.array([[value]], pa.list_(kind)) if nested else pa.array([value], kind)
    rows = pa.table({"id": pa.array([1], pa.int64()), "d": values})
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("t", rows.schema)
    path = tmp_path / "a.orc"
    orc.write_table(rows, path)
    if hybrid:
        mark_hybrid_calendar(path)
    if not hybrid or value not in (_OLD, _OLD.date()):
        table.add_files(path)
        assert rows.to_pylist() == table.scan().to_arrow().to_pylist()
        return
    with pytest.raises(
        InvalidDataError, match=r"a\.orc cannot be added: .* column 'd' in the Julian"
    ):
        table.add_files(path)


def _renamed_and_new(table: Table) -> None:
    table.update_schema().rename_column("s", "old").commit()
    table.update_schema().add_column("s", "string").commit()


def _deleted_and_new(table: Table) -> None:
    table.update_schema().delete_column("s").commit()
    table.update_schema().add_column("s", "string").commit()


def _nested_deleted_and_new(table: Table) -> None:
    table.update_schema().delete_column("n.s").commit()
    table.update_schema().add_column("n.s", "string").commit()


def _swapped(table: Table) -> None:
    for old, new in (("s", "between"), ("t", "s"), ("between", "t")):
        table.update_schema().rename_column(old, new).commit()


@pytest.mark.parametrize(
    ("change", "of"),
    [
        (_renamed_and_new, "column 'old'"),
        (_deleted_and_new, "a column that was deleted"),
        (_nested_deleted_and_new, "a column that was deleted"),
        (_swapped, "column 't'"),
    ],
)
def test_files_are_refused_whose_names_once_were_those_of_other_columns(
    tmp_path: Path, change: Callable[[Table], None], of: str
) -> None:
    rows = pa.table({"id": [1], "s": ["a"], "t": ["b"], "n": [{"s": "c", "x": 1}]})
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("t", rows.schema)
    for name in ("a", "b"):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    table.add_files(tmp_path / "a.parquet")
    change(table)
    with pytest.raises(InvalidDataError, match=rf"'(n\.)?s' is a name of {of}"):
        table.add_files(tmp_path / "b.parquet")


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
@pytest.mark.parametrize(
    ("kind", "values", "fits"),
    [
        (pa.uint32(), [2**31 - 1], True),
        (pa.uint32(), [1, 2**31], False),
        (pa.uint64(), [2**63 - 1], True),
        (pa.uint16(), [2**16 - 1], True),
        (pa.uint32(), [None], True),
        (pa.uint32(), [], True),
    ],
)
def test_unsigned_numbers_are_taken_as_far_as_all_engines_read_them_right(
    tmp_path: Path, kind: pa.DataType, values: list[int | None], fits: bool, nested: bool
) -> None:
    column = pa.array([[each] for each in values], pa.list_(kind)) if nested else None
    column = pa.array(values, kind) if column is None else column
    field_type = ListType(2, LONG) if nested else LONG
    table = new_table(tmp_path, Schema((optional(1, "n", field_type),)))
    pq.write_table(pa.table({"n": column}), tmp_path / "a.parquet")
    if fits:
        table.add_files(tmp_path / "a.parquet")
        assert table.scan().to_arrow()["n"].to_pylist() == column.to_pylist()
        return
    with pytest.raises(InvalidDataError, match="numbers of column 'n' without a sign"):
        table.add_files(tmp_path / "a.parquet")


def test_unsigned_numbers_beyond_the_type_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, Schema((optional(1, "n", LONG),)))
    pq.write_table(pa.table({"n": pa.array([2**63], pa.uint64())}), tmp_path / "a.parquet")
    with pytest.raises(InvalidDataError, match="stored as uint64 does not fit long"):
        table.add_files(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("field_type", "column", "why"),
    [
        (TIME, pa.array([1], pa.time64("ns")), "which other engines cannot read"),
        (
            StructType((optional(2, "a", LONG),)),
            pa.array([{"z": 1}]),
            "has none of the fields that it has in the table",
        ),
    ],
)
def test_columns_that_other_engines_cannot_read_are_refused(
    tmp_path: Path, field_type: Any, column: pa.Array, why: str
) -> None:
    table = new_table(tmp_path, Schema((optional(1, "c", field_type),)))
    pq.write_table(pa.table({"c": column}), tmp_path / "a.parquet")
    with pytest.raises(InvalidDataError, match=why):
        table.add_files(tmp_path / "a.parquet")


def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, Schema((optional(1, "p", LONG),)))
    pq.write_table(pa.table({"P": [1], "p": [2]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidDataError, match="'P' and 'p' differ by case alone"):
        table.add_files(tmp_path / "a.parquet")


def test_a_name_in_another_case_is_refused(tmp_path: Path) -> None:
    table = load_catalog("lake", warehouse=str(tmp_path / "lake"))
    table.create_namespace("db")
    made = table.create_table("db.t", "id bigint, s struct<a: int>")
    for found, name in (
        (pa.table({"ID": [1]}), "'ID' has the name of column 'id'"),
        (pa.table({"id": [1], "s": [{"A": 1}]}), "'s.A' has the name of column 's.a'"),
        (pa.table({"foo": [1]}), "none of its columns"),
    ):
        pq.write_table(found, tmp_path / "odd.parquet")
        with pytest.raises(InvalidDataError, match=name):
            made.add_files(str(tmp_path / "odd.parquet"))
    assert made.refresh().current_snapshot() is None


def _chunk(footer: Struct) -> Struct:
    """The metadata of the first column of the first row group."""
    chunk: Struct = footer[4][1].values[0][1][1].values[0][3][1]
    return chunk


def _set(struct: Struct, field_id: int, value: int) -> None:
    struct[field_id] = (I64, value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda footer: _set(footer, 3, 0), "counts 0 rows, its row groups 4 rows"),
        (lambda footer: _set(footer[4][1].values[0], 3, 1), "counts 4 rows, its row groups 3 rows"),
        (
            lambda footer: _set(_chunk(footer), 5, 1),
            "'id' of row group 0 has 1 value, but the row group 2 rows",
        ),
        (lambda footer: _set(_chunk(footer)[12][1], 3, 7), "'id' .* 7 nulls among 2 values"),
        (lambda footer: _set(_chunk(footer), 7, 10**6), "the 1000000 bytes from 4 on"),
        (lambda footer: _set(_chunk(footer), 7, 0), "the 0 bytes from 4 on"),
        (lambda footer: _set(_chunk(footer), 9, 10**6), "bytes from 1000000 on"),
    ],
    ids=["rows", "row group", "values", "nulls", "size", "no size", "offset"],
)
def test_parquet_files_whose_footers_contradict_themselves_are_refused(
    tmp_path: Path, change: Callable[[Struct], None], problem: str
) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64())})
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("t", rows.schema)
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path, row_group_size=2, use_dictionary=False)
    change_footer(path, change)
    with pytest.raises(CorruptFileError, match=rf"a\.parquet: .* itself: .*{problem}"):
        table.add_files(path)
    assert table.scan().to_arrow().num_rows == 0


def test_orc_files_that_count_other_rows_than_their_stripes_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(1000), pa.int64())})
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("t", rows.schema)
    path = tmp_path / "a.orc"
    orc.write_table(rows, path, compression="uncompressed")
    data = path.read_bytes()
    # The footer's number of rows, field 6, follows the types: 1000 is E8 07.
    at = data.rindex(b"\x30\xe8\x07")
    path.write_bytes(data[:at] + b"\x30\xe7\x07" + data[at + 3 :])
    with pytest.raises(CorruptFileError, match=r"a\.orc: .*with 999 rows, but .*with 1,000 rows"):
        table.add_files(path)
