"""Which row groups of a Parquet file are read, and where their rows stand in the file."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.damage import change_footer
from built.data_files import (
    open_file,
    read_batches,
    read_rows,
    rows_of,
    with_id,
    write_parquet,
)
from built.schemas import optional
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import CorruptFileError
from icebergds.expr.bind import bind
from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import Operation, Predicate, or_
from icebergds.formats.parquet import reader as parquet_reader
from icebergds.formats.parquet.thrift import I64
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
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    ListType,
    StructType,
)

NUMBERS = Schema((optional(1, "n", LONG),))


def numbers(path: Path, count: int = 95, group: int = 10) -> str:
    """A file of the numbers 0, 1, ..., in row groups of `group`."""
    return write_parquet(
        path / "n.parquet", [with_id("n", pa.int64(), 1)], [range(count)], row_group_size=group
    )


def positions_and_values(reads):
    """Every row's position in the file with its only value."""
    return [
        (read.first_position + offset, row[0])
        for read in reads
        for offset, row in enumerate(rows_of(read))
    ]


def kept(location: str, field, op: Operation, *values) -> list:
    """Rows that remain after row groups are skipped by a predicate on a column."""
    schema = Schema((field,))
    bound = bind(Predicate(op, field.name, values), schema)
    return [row[0] for row in read_rows(location, schema, row_filter=bound)]


def test_positions_count_over_row_groups_and_batches(tmp_path):
    location = numbers(tmp_path)
    for batch_size in (3, 10, 64, 1000):
        reads = read_batches(location, NUMBERS, batch_size=batch_size)
        assert positions_and_values(reads) == [(n, n) for n in range(95)]
        assert all(read.num_rows == read.batch.num_rows <= batch_size for read in reads)


@examples(60)
@given(cuts=st.lists(st.integers(0, 5000), max_size=8), group=st.integers(1, 40))
def test_every_row_is_in_exactly_one_of_any_splits(tmp_path_factory, cuts, group):
    location = numbers(tmp_path_factory.mktemp("splits"), 95, group)
    size = Path(location).stat().st_size
    bounds = sorted({0, size, *(cut for cut in cuts if cut < size)})
    found = []
    for start, end in itertools.pairwise(bounds):
        reads = read_batches(location, NUMBERS, split=(start, end - start))
        found += positions_and_values(reads)
    assert found == [(n, n) for n in range(95)]


@pytest.mark.parametrize("fetch_limit", [0, 2000, 10**9])
def test_remote_files_are_read_whatever_is_fetched_at_once(tmp_path, monkeypatch, fetch_limit):
    monkeypatch.setattr(parquet_reader, "_FETCH_LIMIT", fetch_limit)
    store = fsspec.filesystem("memory")
    store.pipe("/parquet/n.parquet", Path(numbers(tmp_path)).read_bytes())
    try:
        reads = read_batches("memory:///parquet/n.parquet", NUMBERS)
    finally:
        store.rm("/parquet", recursive=True)
    assert positions_and_values(reads) == [(n, n) for n in range(95)]


def test_a_split_at_a_row_groups_start_owns_that_row_group(tmp_path):
    location = numbers(tmp_path)
    metadata = pq.ParquetFile(location).metadata
    chunk = metadata.row_group(3).column(0)
    start = min(chunk.data_page_offset, chunk.dictionary_page_offset)
    first = [row[0] for row in read_rows(location, NUMBERS, split=(start, 1))]
    assert first == list(range(30, 40))
    assert read_rows(location, NUMBERS, split=(start + 1, 1)) == []


def test_skipped_row_groups_leave_positions_right(tmp_path):
    location = numbers(tmp_path)
    row_filter = bind(
        or_(Predicate(Operation.EQ, "n", (35,)), Predicate(Operation.GT_EQ, "n", (88,))), NUMBERS
    )
    reads = read_batches(location, NUMBERS, row_filter=row_filter)
    assert positions_and_values(reads) == [(n, n) for n in (*range(30, 40), *range(80, 95))]


def test_filters_on_columns_that_are_not_read_skip_too(tmp_path):
    fields = [with_id("n", pa.int64(), 1), with_id("s", pa.string(), 2)]
    location = write_parquet(
        tmp_path / "f.parquet", fields, [range(20), ["x"] * 20], row_group_size=10
    )
    row_filter = bind(Predicate(Operation.LT, "n", (5,)), NUMBERS)
    assert (
        len(read_rows(location, Schema((optional(2, "s", STRING),)), row_filter=row_filter)) == 10
    )
    assert sum(r.num_rows for r in read_batches(location, Schema(()), row_filter=row_filter)) == 10


@pytest.mark.parametrize(
    ("stored", "low", "high", "field_type", "asked"),
    [
        (pa.bool_(), False, True, BOOLEAN, True),
        (pa.int32(), -5, 5, INT, 5),
        (pa.int8(), -5, 5, LONG, 5),
        (pa.int32(), -5, 5, LONG, 5),
        (pa.uint32(), 5, 2**32 - 1, LONG, 2**32 - 1),
        (pa.float32(), -0.5, 0.5, DOUBLE, 0.5),
        (pa.date32(), dt.date(1960, 1, 1), dt.date(2020, 1, 1), DATE, dt.date(2020, 1, 1)),
        (
            pa.date32(),
            dt.date(1960, 1, 1),
            dt.date(2020, 1, 1),
            TIMESTAMP,
            dt.datetime(2020, 1, 1),
        ),
        (pa.time32("ms"), dt.time(1), dt.time(2), TIME, dt.time(2)),
        (
            pa.timestamp("ms"),
            dt.datetime(1960, 1, 1),
            dt.datetime(2020, 1, 1),
            TIMESTAMP,
            dt.datetime(2020, 1, 1),
        ),
        (
            pa.timestamp("ns"),
            dt.datetime(1960, 1, 1),
            dt.datetime(2020, 1, 1),
            TIMESTAMPTZ,
            dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        ),
        (
            pa.decimal128(9, 2),
            Decimal("-1.25"),
            Decimal("1.25"),
            DecimalType(20, 2),
            Decimal("1.25"),
        ),
        (
            pa.decimal128(38, 2),
            Decimal("-1.25"),
            Decimal("1.25"),
            DecimalType(38, 2),
            Decimal("1.25"),
        ),
        (pa.string(), "a", "\U0001f600", STRING, "\U0001f600"),
        (pa.binary(), b"a", b"\xff", BINARY, b"\xff"),
        (pa.binary(), b"a", "é".encode(), STRING, "é"),
    ],
)
@pytest.mark.parametrize("decimal_as_integer", [False, True])
def test_statistics_of_every_type_skip_row_groups(
    tmp_path, stored, low, high, field_type, asked, decimal_as_integer
):
    location = write_parquet(
        tmp_path / "f.parquet",
        [with_id("c", stored, 1)],
        [[low, low, high, high]],
        row_group_size=2,
        store_decimal_as_integer=decimal_as_integer,
    )
    field = optional(1, "renamed", field_type)
    assert len(kept(location, field, Operation.EQ, asked)) == 2
    # A float column may hold NaN, which is greater than any number.
    expected = 4 if field_type == DOUBLE else 2
    assert len(kept(location, field, Operation.GT_EQ, asked)) == expected
    assert len(kept(location, field, Operation.LT_EQ, asked)) == 4
    assert len(kept(location, field, Operation.IN, asked)) == 2


def test_counts_of_nulls_skip_row_groups(tmp_path):
    location = write_parquet(
        tmp_path / "f.parquet",
        [with_id("n", pa.int64(), 1)],
        [[None, None, 1, 2, 3, None]],
        row_group_size=2,
    )
    field = optional(1, "n", LONG)
    assert kept(location, field, Operation.IS_NULL) == [None, None, 3, None]
    assert kept(location, field, Operation.NOT_NULL) == [1, 2, 3, None]
    assert kept(location, field, Operation.LT, 100) == [1, 2, 3, None]


def test_nan_is_greater_than_statistics_say(tmp_path):
    location = write_parquet(
        tmp_path / "f.parquet",
        [with_id("x", pa.float32(), 1)],
        [[1.0, math.nan, 2.0, 3.0]],
        row_group_size=2,
    )
    field = optional(1, "x", FLOAT)
    assert [str(v) for v in kept(location, field, Operation.GT, 2.5)] == [
        "1.0",
        "nan",
        "2.0",
        "3.0",
    ]
    assert [str(v) for v in kept(location, field, Operation.LT, 1.5)] == ["1.0", "nan"]


def test_int96_and_missing_statistics_skip_nothing(tmp_path):
    fields = [with_id("t", pa.timestamp("us"), 1)]
    values = [dt.datetime(1960, 1, 1), dt.datetime(2020, 1, 1)]
    asked = dt.datetime(1900, 1, 1)
    field = optional(1, "t", TIMESTAMP)
    for name, options in {
        "int96": {"use_deprecated_int96_timestamps": True},
        "none": {"write_statistics": False},
    }.items():
        location = write_parquet(tmp_path / name, fields, [values], row_group_size=1, **options)
        assert kept(location, field, Operation.LT, asked) == values
    assert kept(write_parquet(tmp_path / "f", fields, [values]), field, Operation.LT, asked) == []


def test_statistics_are_found_by_id_not_by_name(tmp_path):
    fields = [with_id("a", pa.int64(), 1), with_id("b", pa.int64(), 2)]
    location = write_parquet(tmp_path / "f.parquet", fields, [[1, 2], [11, 12]], row_group_size=1)
    swapped = Schema((optional(2, "a", LONG), optional(1, "b", LONG)))
    row_filter = bind(Predicate(Operation.EQ, "a", (12,)), swapped)
    assert read_rows(location, swapped, row_filter=row_filter) == [(12, 2)]


def test_columns_in_structs_skip_row_groups_and_those_in_lists_do_not(tmp_path):
    struct = pa.struct([with_id("x", pa.int64(), 2)])
    fields = [
        with_id("s", struct, 1),
        with_id("l", pa.list_(with_id("element", struct_of_y(), 4)), 3),
    ]
    rows = [[{"x": 1}, {"x": 2}, None], [[{"y": 1}], [{"y": 2}], None]]
    location = write_parquet(tmp_path / "f.parquet", fields, rows, row_group_size=1)
    schema = Schema(
        (
            optional(1, "s", StructType((optional(2, "x", LONG),))),
            optional(3, "l", ListType(4, StructType((optional(5, "y", LONG),)))),
        )
    )
    row_filter = bind(Predicate(Operation.EQ, "s.x", (2,)), schema)
    assert [row[0] for row in read_rows(location, schema, row_filter=row_filter)] == [{"x": 2}]
    row_filter = bind(Predicate(Operation.IS_NULL, "s.x"), schema)
    assert [row[0] for row in read_rows(location, schema, row_filter=row_filter)] == [None]


def struct_of_y() -> pa.DataType:
    return pa.struct([with_id("y", pa.int64(), 5)])


def test_absent_columns_with_defaults_skip_nothing(tmp_path):
    location = numbers(tmp_path, 20)
    schema = Schema((optional(1, "n", LONG), optional(7, "d", LONG, initial_default=5)))
    for op, values in [(Operation.EQ, (5,)), (Operation.IS_NULL, ()), (Operation.GT, (9,))]:
        row_filter = bind(Predicate(op, "d", values), schema)
        assert len(read_rows(location, schema, row_filter=row_filter)) == 20


VALUES = st.one_of(st.none(), st.integers(-20, 20))


@examples(80)
@given(
    rows=st.lists(st.tuples(VALUES, st.one_of(st.none(), st.floats(width=32))), max_size=30),
    group=st.integers(1, 7),
    op=st.sampled_from(
        [op for op in Operation if op not in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH)]
    ),
    column=st.sampled_from(["n", "x"]),
    asked=st.integers(-20, 20),
)
def test_no_row_that_a_filter_selects_is_skipped(tmp_path_factory, rows, group, op, column, asked):
    path = tmp_path_factory.mktemp("groups") / "f.parquet"
    fields = [with_id("n", pa.int64(), 1), with_id("x", pa.float32(), 2)]
    location = write_parquet(
        path, fields, [[n for n, _ in rows], [x for _, x in rows]], row_group_size=group
    )
    schema = Schema((optional(1, "n", LONG), optional(2, "x", FLOAT)))
    unary = op in (Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN)
    if op in (Operation.IS_NAN, Operation.NOT_NAN):
        column = "x"
    bound = bind(Predicate(op, column, () if unary else (asked,)), schema)
    selected = [
        (position, repr(row))
        for position, row in enumerate(rows)
        if matches(bound, {1: row[0], 2: row[1]}.__getitem__)
    ]
    read = [
        (batch.first_position + offset, repr(row))
        for batch in read_batches(location, schema, row_filter=bound)
        for offset, row in enumerate(rows_of(batch))
    ]
    assert [pair for pair in selected if pair not in read] == []
    assert read == [(position, repr(rows[position])) for position, _ in read]


def test_a_footer_that_promises_more_rows_than_there_are_is_corrupt(tmp_path):
    location = numbers(tmp_path, 10)
    content = Path(location).read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # Counts of rows and values are 64-bit fields (0x16) of zigzag integers: 10 is 0x14.
    Path(location).write_bytes(
        content[:footer] + content[footer:].replace(b"\x16\x14", b"\x16\x18")
    )
    assert pq.ParquetFile(location).metadata.num_rows == 12
    with pytest.raises(CorruptFileError, match=r"n\.parquet"):
        read_rows(location, NUMBERS)


def test_rows_that_a_row_group_does_not_count_are_damage_not_lost(tmp_path):
    def count_less(footer):
        group = footer[4][1].values[0]
        group[3] = (I64, 7)

    location = numbers(tmp_path, 20)
    change_footer(location, count_less)
    what = r"n\.parquet: .* row group 0 has 7 rows, but 10 values of column 'n'"
    # The positions of rows in later row groups would be wrong, too.
    for split in ((None, None), (100, 10_000)):
        with pytest.raises(CorruptFileError, match=what):
            read_batches(location, NUMBERS, split=split)
    with pytest.raises(CorruptFileError, match=what):
        read_rows(location, Schema(()))


def test_rows_are_counted_as_row_groups_do(tmp_path):
    location = numbers(tmp_path, 20)
    change_footer(location, lambda footer: footer.update({3: (I64, 0)}))
    assert pq.ParquetFile(location).metadata.num_rows == 0
    with open_file(location) as reader:
        assert reader.num_rows == 20
    assert len(read_rows(location, NUMBERS)) == 20
