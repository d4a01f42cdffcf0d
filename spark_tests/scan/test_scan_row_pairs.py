"""Fingerprints of rows, and pairs of rows that have equal ones."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icebergds.formats.arrow.types import to_array
from icebergds.scan.read.changes import FingerprintCounts, RowMatcher
from icebergds.scan.read.row_fingerprints import Fingerprinter, Fingerprints
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
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_POINT = StructType((NestedField(1, "x", INT), NestedField(2, "y", STRING)))
_LISTS = ListType(3, ListType(4, INT))
# Of each type, values that are all different.
_DISTINCT: list[tuple[IcebergType, list[Any]]] = [
    (BOOLEAN, [None, True, False]),
    (INT, [None, 0, -1, 2**31 - 1]),
    (LONG, [None, 0, -1, 2**40]),
    (FLOAT, [None, 0.0, -0.0, math.nan, math.inf]),
    (DOUBLE, [None, 0.0, -0.0, math.nan, -math.inf]),
    (DATE, [None, 0, 1]),
    (TIME, [None, 0, 1]),
    (TIMESTAMPTZ, [None, 0, 1]),
    (STRING, [None, "", "a", "a\x00", "b" * 100, "b" * 99 + "c"]),
    (BINARY, [None, b"", b"\x00", b"\x00\x00"]),
    (FixedType(3), [None, b"abc", b"abd"]),
    (UUID, [None, bytes(16), bytes(15) + b"\x01"]),
    (DecimalType(5, 2), [None, Decimal("1.00"), Decimal("-1.00")]),
    (DecimalType(38, 2), [None, Decimal("1.00"), Decimal(10) ** 30]),
    (GeometryType(), [None, b"", b"\x01"]),
    (_POINT, [None, (None, None), (0, None), (0, ""), (None, "")]),
    (_LISTS, [None, [], [None], [[]], [[None]], [[1], [2]], [[2], [1]], [[1, 2]], [[1, 2], []]]),
    (
        MapType(5, STRING, 6, _POINT),
        [None, [], [("a", None)], [("a", (1, None))], [("a", None), ("b", (1, "x"))]],
    ),
    (MapType(5, INT, 6, INT), [None, [], [(1, 2)], [(2, 1)], [(1, 2), (2, 1)]]),
]


@pytest.mark.parametrize(("field_type", "values"), _DISTINCT, ids=lambda each: str(each)[:20])
def test_fingerprints_tell_values_apart_wherever_they_stand(
    field_type: IcebergType, values: list[Any]
) -> None:
    maker = Fingerprinter.of([NestedField(9, "c", field_type)])
    column = to_array(field_type, [*values, *values])
    found = _pairs(maker.fingerprints([column], len(column)))
    assert found[: len(values)] == found[len(values) :]
    assert len(set(found)) == len(values)
    assert len({high for high, _ in found}) == len({low for _, low in found}) == len(values)
    for start in range(len(column)):
        part = column.slice(start, 3)
        assert _pairs(maker.fingerprints([part], len(part))) == found[start : start + 3]
        taken = column.take(pa.array([start]))
        assert _pairs(maker.fingerprints([taken], 1)) == [found[start]]


def test_maps_are_equal_in_any_order_and_all_nans_are_equal() -> None:
    as_map = MapType(5, STRING, 6, INT)
    column = to_array(as_map, [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]])
    first, second = _pairs(
        Fingerprinter.of([NestedField(9, "c", as_map)]).fingerprints([column], 2)
    )
    assert first == second
    nans = np.array([0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0001], np.uint64).view(np.float64)
    first, second = _pairs(
        Fingerprinter.of([NestedField(9, "c", DOUBLE)]).fingerprints([pa.array(nans)], 2)
    )
    assert first == second


def test_values_of_columns_are_not_exchanged() -> None:
    maker = Fingerprinter.of([NestedField(1, "a", INT), NestedField(2, "b", INT)])
    columns = [pa.array([1, 2, None, 0], pa.int32()), pa.array([2, 1, 0, None], pa.int32())]
    assert len(set(_pairs(maker.fingerprints(columns, 4)))) == 4


def test_what_has_no_values_or_several_parts_has_a_fingerprint() -> None:
    variant = pa.StructArray.from_arrays(
        [pa.array([b"m", b"m"]), pa.array([b"1", b"2"])], names=["metadata", "value"]
    )
    maker = Fingerprinter.of([NestedField(1, "u", UNKNOWN), NestedField(2, "v", VARIANT)])
    first, second = _pairs(maker.fingerprints([pa.nulls(2), variant], 2))
    assert first != second


_HALVES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12)


@given(_HALVES, st.lists(_HALVES, max_size=4))
def test_rows_are_paired_as_multisets_are_subtracted(
    held: list[tuple[int, int]], batches: list[list[tuple[int, int]]]
) -> None:
    counts = FingerprintCounts([_of(held[:5]), _of(held[5:])])
    matcher = RowMatcher(counts)
    left = Counter(held)
    for batch in batches:
        matched = matcher.match(_of(batch)).tolist()
        for row, is_matched in zip(batch, matched, strict=True):
            assert is_matched == (left[row] > 0)
            left[row] -= is_matched
    again = RowMatcher(counts, counts.counts - matcher.remaining)
    unmatched = [row for row, m in zip(held, again.match(_of(held)), strict=True) if not m]
    assert Counter(unmatched) == +left


def _of(rows: list[tuple[int, int]]) -> Fingerprints:
    return Fingerprints(
        np.array([high for high, _ in rows], np.uint64),
        np.array([low for _, low in rows], np.uint64),
    )


def _pairs(found: Fingerprints) -> list[tuple[int, int]]:
    return list(zip(found.high.tolist(), found.low.tolist(), strict=True))
