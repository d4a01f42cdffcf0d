"""Pruning of manifest entries by columns: what `might_match` says of each of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, filters, literals_of, rows, value_of, values_of

from icebergds.expr.evaluate import matches
from icebergds.expr.metrics import might_match, must_match
from icebergds.expr.nodes import FALSE, TRUE, BoundPredicate, Expr, Operation, and_, or_
from icebergds.formats.arrow.types import to_array
from icebergds.formats.manifests.columns import ColumnStats, EntryColumns
from icebergds.scan.plan.prune import matching_entries
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    DecimalType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icebergds.spec.values.binary import to_bytes

# What bounds may have been written as before the column was promoted.
_WRITTEN_AS: dict[IcebergType, tuple[IcebergType, ...]] = {
    LONG: (INT, LONG),
    DOUBLE: (FLOAT, DOUBLE),
    TIMESTAMP: (DATE, TIMESTAMP),
    TIMESTAMP_NS: (DATE, TIMESTAMP_NS),
    DecimalType(38, 0): (DecimalType(4, 0), DecimalType(38, 0)),
}
_UNPARTITIONED = StructType(())
_COLUMNS = st.dictionaries(st.integers(1, 3), st.sampled_from(SCALAR_TYPES), min_size=1, max_size=3)


@given(st.data())
def test_entries_are_kept_exactly_as_their_metrics_say(data: st.DataObject) -> None:
    types = data.draw(_COLUMNS)
    files = data.draw(st.lists(_files(types), max_size=5))
    row_filter = data.draw(filters(types))
    expected = [file for file in files if might_match(row_filter, file)]
    assert _kept(files, row_filter, types) == expected


@given(st.sampled_from(SCALAR_TYPES), st.data())
def test_no_file_with_a_matching_row_is_dropped(field_type: IcebergType, data: Any) -> None:
    stored = data.draw(st.lists(rows({1: field_type}, min_size=1), min_size=1, max_size=5))
    row_filter = data.draw(filters({1: field_type}))
    files = [_exact_file(str(at), field_type, [r[1] for r in rs]) for at, rs in enumerate(stored)]
    wanted = {
        str(at)
        for at, rs in enumerate(stored)
        if any(matches(row_filter, value_of(row)) for row in rs)
    }
    assert wanted <= {file.file_path for file in _kept(files, row_filter, {1: field_type})}


@pytest.mark.parametrize(
    ("of", "written", "outside", "inside"),
    [
        (LONG, struct.pack("<i", -5), -4, -5),
        (DOUBLE, struct.pack("<f", 1.5), 1.6, 1.5),
        (TIMESTAMP, struct.pack("<i", 1), 86_400_000_001, 86_400_000_000),
    ],
)
def test_bounds_written_before_a_promotion_prune(
    of: IcebergType, written: bytes, outside: Any, inside: Any
) -> None:
    file = _file("f", 1, {1: 1}, {1: 0}, {}, {1: written}, {1: written})
    assert _kept([file], BoundPredicate(Operation.EQ, 1, of, (outside,)), {1: of}) == []
    assert _kept([file], BoundPredicate(Operation.EQ, 1, of, (inside,)), {1: of}) == [file]


def test_bounds_of_two_widths_that_contradict_each_other_prove_nothing() -> None:
    lower, upper = {1: struct.pack("<i", 0)}, {1: struct.pack("<q", -5)}
    file = _file("f", 1, {1: 1}, {1: 0}, {}, lower, upper)
    predicate = BoundPredicate(Operation.EQ, 1, TIMESTAMP, (3,))
    assert _kept([file], predicate, {1: TIMESTAMP}) == [file]


def test_many_values_prune_without_an_object_per_entry() -> None:
    # Statistics decide on columns: an entry that is dropped is never made.
    files = [_exact_file(str(i), INT, [i]) for i in range(100)]
    wanted = BoundPredicate(Operation.IN, 1, INT, tuple(range(0, 100_000, 50)))
    assert [file.file_path for file in _kept(files, wanted, {1: INT})] == ["0", "50"]


@pytest.mark.parametrize("bound", [b"\xff", b"a\xc3", b"\xed\xa0\x80"])
def test_text_bounds_that_are_no_text_prove_nothing(bound: bytes) -> None:
    low = _file("low", 1, {1: 1}, {1: 0}, {}, {1: bound}, {})
    high = _file("high", 1, {1: 1}, {1: 0}, {}, {}, {1: bound})
    for op, value in [(Operation.EQ, "b"), (Operation.LT, "A"), (Operation.GT, "\uffff")]:
        predicate = BoundPredicate(op, 1, STRING, (value,))
        assert _kept([low, high], predicate, {1: STRING}) == [low, high]


def test_files_of_an_unknown_number_of_rows_are_kept() -> None:
    file = _file("f", -1, {}, {}, {}, {1: to_bytes(INT, 1)}, {1: to_bytes(INT, 2)})
    assert _kept([file], BoundPredicate(Operation.GT, 1, INT, (5,)), {1: INT}) == [file]


def test_files_without_rows_are_dropped_by_any_filter() -> None:
    file = _file("f", 0, {}, {}, {}, {}, {})
    assert _kept([file], BoundPredicate(Operation.GT, 1, INT, (5,)), {1: INT}) == []
    assert _kept([file], TRUE, {}) == [file]


def test_stored_row_ids_are_not_the_row_ids() -> None:
    stored = _exact_file("f", LONG, [7], ROW_ID.field_id)
    predicate = BoundPredicate(Operation.EQ, ROW_ID.field_id, LONG, (1000,))
    assert _kept([stored], predicate, {ROW_ID.field_id: LONG}) == [stored]


@pytest.mark.parametrize(("of", "per_day"), [(DATE, 1), (TIMESTAMP, 86_400_000_000)])
def test_early_bounds_of_orc_files_prove_nothing(of: IcebergType, per_day: int) -> None:
    """Those of imported files may be of the Julian calendar: 0001-01-01 is two days earlier."""
    julian, gregorian, later = -719_164 * per_day, -719_162 * per_day, 100 * per_day
    early, late = _exact_file("early", of, [julian]), _exact_file("late", of, [later])
    files = [replace(file, file_format=FileFormat.ORC) for file in (early, late)]
    wanted = BoundPredicate(Operation.EQ, 1, of, (gregorian,))
    assert _kept(files, wanted, {1: of}) == files[:1]
    assert _kept([early, late], wanted, {1: of}) == []
    unwanted = BoundPredicate(Operation.LT, 1, of, (gregorian,))
    assert [must_match(unwanted, file) for file in (files[0], early)] == [False, True]


@pytest.mark.parametrize(
    "of", [ListType(9, INT), StructType((NestedField(9, "x", INT),))], ids=["list", "struct"]
)
def test_counts_of_nested_columns_are_not_used(of: IcebergType) -> None:
    file = _file("f", 2, {1: 2}, {1: 2}, {}, {}, {})
    assert _kept([file], BoundPredicate(Operation.NOT_NULL, 1, of), {1: of}) == [file]


def test_constants_and_mixed_trees() -> None:
    files = [_exact_file(str(i), INT, [i]) for i in range(4)]
    is_one = BoundPredicate(Operation.EQ, 1, INT, (1,))
    assert _kept(files, FALSE, {}) == []
    assert _kept(files, or_(is_one, and_(is_one, TRUE)), {1: INT}) == [files[1]]


@given(st.sampled_from(SCALAR_TYPES), st.data())
def test_partitions_prune_as_their_values_match(field_type: IcebergType, data: Any) -> None:
    values = data.draw(st.lists(st.none() | values_of(field_type), max_size=5))
    partition_filter = data.draw(filters({1000: field_type}))
    columns = _columns(
        [_file(str(at), 1, {}, {}, {}, {}, {}) for at in range(len(values))],
        {},
        StructType((NestedField(1000, "p", field_type),)),
        (to_array(field_type, values),),
    )
    kept = [int(e.data_file.file_path) for e in matching_entries(columns, partition_filter, TRUE)]
    assert kept == [
        at for at, value in enumerate(values) if matches(partition_filter, {1000: value}.get)
    ]


def test_partition_and_metrics_both_prune() -> None:
    files = [_exact_file(str(i), INT, [i % 2]) for i in range(4)]
    columns = _columns(
        files,
        {1: INT},
        StructType((NestedField(1000, "p", INT),)),
        (pa.array([0, 0, 1, 1], pa.int32()),),
    )
    kept = matching_entries(
        columns,
        BoundPredicate(Operation.EQ, 1000, INT, (1,)),
        BoundPredicate(Operation.EQ, 1, INT, (1,)),
    )
    assert [entry.data_file.file_path for entry in kept] == ["3"]


def _kept(
    files: Sequence[DataFile], row_filter: Expr, types: Mapping[int, IcebergType]
) -> list[DataFile]:
    by_path = {file.file_path: file for file in files}
    kept = matching_entries(_columns(files, types), TRUE, row_filter)
    return [by_path[entry.data_file.file_path] for entry in kept]


@st.composite
def _files(draw: st.DrawFn, types: Mapping[int, IcebergType]) -> DataFile:
    """Files of any metrics at all, also ones that contradict each other."""
    record_count = draw(st.integers(-1, 3))
    counts = st.dictionaries(st.sampled_from(sorted(types)), st.integers(-1, 3))
    values = draw(st.just(dict.fromkeys(types, record_count)) | counts)
    lower, upper = {}, {}
    for field_id, field_type in types.items():
        for bounds in (lower, upper):
            bound = draw(st.none() | _bound(field_type))
            if bound is not None:
                bounds[field_id] = bound
    file = _file(
        draw(st.uuids()).hex, record_count, values, draw(counts), draw(counts), lower, upper
    )
    return replace(file, file_format=draw(st.sampled_from([FileFormat.PARQUET, FileFormat.ORC])))


def _bound(field_type: IcebergType) -> st.SearchStrategy[bytes]:
    """Also NaN, bytes of the type before a promotion, and bytes that are no value."""

    def written(as_type: IcebergType) -> st.SearchStrategy[bytes]:
        # A NaN that a writer took for the least or greatest value is bytes all the same.
        nan = [struct.pack("<f" if as_type == FLOAT else "<d", float("nan"))]
        plain = literals_of(as_type).map(lambda value: to_bytes(as_type, value))
        return plain | st.sampled_from(nan) if as_type in (FLOAT, DOUBLE) else plain

    kinds = _WRITTEN_AS.get(field_type, (field_type,))
    return st.one_of(*map(written, kinds)) | st.binary(max_size=9)


def _exact_file(
    path: str, field_type: IcebergType, values: Sequence[Any], field_id: int = 1
) -> DataFile:
    ordered = sorted(v for v in values if v is not None and v == v)
    bounds = [to_bytes(field_type, v) for v in ordered]
    return _file(
        path,
        len(values),
        {field_id: len(values)},
        {field_id: values.count(None)},
        {field_id: sum(v != v for v in values)},
        {field_id: bounds[0]} if bounds else {},
        {field_id: bounds[-1]} if bounds else {},
    )


def _file(
    path: str,
    record_count: int,
    values: Mapping[int, int],
    nulls: Mapping[int, int],
    nans: Mapping[int, int],
    lower: Mapping[int, bytes],
    upper: Mapping[int, bytes],
) -> DataFile:
    return DataFile(
        FileContent.DATA,
        path,
        FileFormat.PARQUET,
        0,
        (),
        record_count,
        100,
        {},
        values,
        nulls,
        nans,
        lower,
        upper,
    )


def _columns(
    files: Sequence[DataFile],
    stats_ids: Mapping[int, IcebergType],
    partition_type: StructType = _UNPARTITIONED,
    partition: tuple[pa.Array, ...] = (),
) -> EntryColumns:
    count = len(files)
    zeros = np.zeros(count, np.int64)
    integers = pa.nulls(count, pa.int64())
    lists = pa.nulls(count, pa.list_(pa.int64()))
    return EntryColumns(
        spec_id=0,
        partition_type=partition_type,
        status=zeros,
        snapshot_id=zeros,
        data_sequence_number=zeros,
        file_sequence_number=zeros,
        content=zeros,
        file_path=pa.array([file.file_path for file in files], pa.string()),
        file_format=pa.array([file.file_format for file in files], pa.string()),
        partition=partition,
        record_count=np.array([file.record_count for file in files], np.int64),
        file_size_in_bytes=zeros,
        key_metadata=pa.nulls(count, pa.binary()),
        split_offsets=lists,
        equality_ids=lists,
        sort_order_id=integers,
        first_row_id=integers,
        referenced_data_file=pa.nulls(count, pa.string()),
        content_offset=integers,
        content_size_in_bytes=integers,
        stats={field_id: _stats(files, field_id) for field_id in stats_ids},
        all_stats={},
    )


def _stats(files: Sequence[DataFile], field_id: int) -> ColumnStats:
    def column(name: str, of: pa.DataType) -> pa.Array:
        return pa.array([getattr(file, name).get(field_id) for file in files], of)

    return ColumnStats(
        column("value_counts", pa.int64()),
        column("null_value_counts", pa.int64()),
        column("nan_value_counts", pa.int64()),
        column("lower_bounds", pa.binary()),
        column("upper_bounds", pa.binary()),
    )
