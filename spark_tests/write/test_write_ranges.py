"""Ranges of sorted rows: one after the other they are all rows in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cmp_to_key, partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from built.rows import record_batch
from built.schemas import spec_of
from effort import examples
from hypothesis import given, strategies as st
from test_write_sorting import asc, compare, tables

from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import BucketTransform, IdentityTransform, apply
from icebergds.spec.types import DOUBLE, LONG, STRING, NestedField, StructType
from icebergds.write.rows.arrangement import (
    Arranging,
    Curve,
    RowKeys,
    column_ranks,
    plan_keys,
)
from icebergds.write.rows.curve_keys import CurveName
from icebergds.write.rows.ranges import in_order, ranges_of

UNPARTITIONED = PartitionSpec()
SCHEMA = Schema((NestedField(1, "x", LONG), NestedField(2, "y", STRING)))
BY_X = SortOrder(1, (asc(1),))
ALL_AT_ONCE = 1 << 30


def keys_of(
    arranging: Arranging, schema: Schema = SCHEMA, sample: pa.RecordBatch | None = None
) -> RowKeys:
    ranks = [] if sample is None else column_ranks(arranging, schema, sample)
    return plan_keys(arranging, schema, ranks, table="db.t")


def arranged(
    keys: RowKeys,
    sample: pa.RecordBatch,
    count: int,
    batches: Sequence[pa.RecordBatch],
    limit: int = ALL_AT_ONCE,
) -> list[list[dict[str, Any]]]:
    """The sorted rows of each of some ranges, whose bounds come from a sample."""
    ranges = ranges_of(keys.of(sample), count)
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(ranges.count)]
    for batch in batches:
        for number, rows in ranges.split(batch, keys.of):
            parts[number].append(rows)
    return [
        [row for batch in in_order(part, keys.of, limit) for row in batch.to_pylist()]
        for part in parts
    ]


def longs(*values: int | None) -> pa.RecordBatch:
    return record_batch(SCHEMA, [(value, str(value)) for value in values])


@examples(300)
@given(tables(), st.data())
def test_sorted_ranges_are_all_rows_in_order(table, data) -> None:  # type: ignore[no-untyped-def]
    schema, order, rows = table
    several = st.lists(st.sampled_from(rows), max_size=30) if rows else st.just([])
    sample, batches = data.draw(several), data.draw(st.lists(several, max_size=3))
    keys = keys_of(Arranging(UNPARTITIONED, order), schema)
    made = partial(record_batch, schema)
    limit = data.draw(st.sampled_from([1, 100, ALL_AT_ONCE]))
    count = data.draw(st.integers(1, 9))
    parts = arranged(keys, made(sample), count, [made(batch) for batch in batches], limit)
    names = [field.name for field in schema.fields]
    found = [tuple(row[name] for name in names) for part in parts for row in part]
    given_rows = [row for batch in batches for row in batch]
    assert Counter(map(repr, found)) == Counter(map(repr, given_rows))
    assert all(compare(schema, order, a, b) <= 0 for a, b in pairwise(found))
    expected = sorted(given_rows, key=cmp_to_key(lambda a, b: compare(schema, order, a, b)))
    assert all(compare(schema, order, a, b) == 0 for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("direction", SortDirection)
@pytest.mark.parametrize("nulls", NullOrder)
def test_ranges_of_a_sample_have_about_as_many_rows(
    direction: SortDirection, nulls: NullOrder
) -> None:
    order = SortOrder(1, (SortField((1,), IdentityTransform(), direction, nulls),))
    rows = longs(*(number * 7919 % 1000 for number in range(1000)))
    parts = arranged(keys_of(Arranging(UNPARTITIONED, order)), rows.slice(0, 500), 10, [rows])
    assert all(80 <= len(part) <= 120 for part in parts)
    found = [row["x"] for part in parts for row in part]
    assert found == sorted(range(1000), reverse=direction is SortDirection.DESC)


@pytest.mark.parametrize("other", [[], [None]])
def test_a_key_of_most_rows_is_spread_over_ranges(other: list[None]) -> None:
    rows = longs(*range(50), *[50] * 900, *range(51, 101), *other)
    parts = arranged(keys_of(Arranging(UNPARTITIONED, BY_X)), rows, 10, [rows, rows])
    assert max(map(len, parts)) <= 300
    found = [row["x"] for part in parts for row in part if row["x"] is not None]
    assert found == sorted(found)


def test_the_same_rows_are_split_the_same_way() -> None:
    keys = keys_of(Arranging(UNPARTITIONED, BY_X))
    rows = longs(*[1] * 100, *range(100))
    first, second = (arranged(keys, rows, 7, [rows]) for _ in range(2))
    assert first == second


def test_rows_are_kept_together_by_partition() -> None:
    spec = spec_of((2, IdentityTransform()), (1, BucketTransform(3)))
    rows = record_batch(SCHEMA, [(number, "ab"[number % 2]) for number in range(100)])
    (part,) = arranged(keys_of(Arranging(spec, BY_X)), rows, 1, [rows])
    buckets = [(row["y"], apply(BucketTransform(3), LONG, row["x"])) for row in part]
    changes = sum(a != b for a, b in pairwise(buckets))
    assert changes == len(set(buckets)) - 1


def test_keys_may_be_fields_of_structs() -> None:
    inner = StructType((NestedField(2, "b.c", DOUBLE),))
    schema = Schema((NestedField(1, "a", inner),))
    rows = record_batch(schema, [((value,),) for value in (2.5, None, -1.0)] + [(None,)])
    order = SortOrder(1, (asc(2),))
    parts = arranged(keys_of(Arranging(UNPARTITIONED, order), schema), rows, 2, [rows])
    found = [row["a"] and row["a"]["b.c"] for part in parts for row in part]
    assert found == [None, None, -1.0, 2.5]


@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_ranges_along_a_curve_are_narrow_in_each_column(curve: CurveName) -> None:
    rows = record_batch(SCHEMA, [(at % 64, f"prefix-{at // 64:05}") for at in range(4096)])
    arranging = Arranging(UNPARTITIONED, SortOrder(), Curve(curve, (1, 2)))
    parts = arranged(keys_of(arranging, SCHEMA, rows), rows, 16, [rows])
    assert sum(map(len, parts)) == 4096
    for column in ("x", "y"):
        assert all(len({row[column] for row in part}) <= 33 for part in parts)


def test_without_a_sample_there_is_one_range() -> None:
    rows = longs(3, 1, 2)
    keys = keys_of(Arranging(UNPARTITIONED, BY_X))
    assert [[row["x"] for row in part] for part in arranged(keys, longs(), 5, [rows])] == [
        [1, 2, 3]
    ]
