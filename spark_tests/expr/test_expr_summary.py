"""Pruning by partition summaries: never a manifest with a matching partition."""

from __future__ import annotations

from typing import Any

import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, filters, predicates, rows, value_of

from icebergds.expr.evaluate import holds, matches
from icebergds.expr.metrics import manifest_might_match
from icebergds.expr.nodes import FALSE, TRUE, BoundPredicate, Operation
from icebergds.spec.manifest import FieldSummary
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    INT,
    LONG,
    STRING,
    UUID,
    IcebergType,
    NestedField,
    StructType,
)
from icebergds.spec.values.binary import to_bytes


def struct_of(*types: IcebergType) -> StructType:
    return StructType(tuple(NestedField(1000 + at, f"p{at}", of) for at, of in enumerate(types)))


def ask(op: str, *literals: Any, of: IcebergType = INT) -> BoundPredicate:
    return BoundPredicate(Operation(op), 1000, of, literals)


def summary_of(of: IcebergType, values: list[Any]) -> FieldSummary:
    numbers = [v for v in values if v is not None and v == v]
    return FieldSummary(
        any(v is None for v in values),
        any(v is not None and v != v for v in values),
        to_bytes(of, min(numbers)) if numbers else None,
        to_bytes(of, max(numbers)) if numbers else None,
    )


def between(
    lower: Any, upper: Any, *, of: IcebergType = INT, nulls: Any = False, nans: Any = None
) -> list[FieldSummary]:
    return [FieldSummary(nulls, nans, to_bytes(of, lower), to_bytes(of, upper))]


@examples(200)
@given(st.data())
def test_pruning_never_drops_a_manifest_with_a_matching_partition(data):
    types = [data.draw(st.sampled_from(SCALAR_TYPES)) for _ in range(2)]
    columns = {1000 + at: of for at, of in enumerate(types)}
    partitions = data.draw(rows(columns))
    row_filter = data.draw(filters(columns))
    summaries = []
    for field_id, of in columns.items():
        exact = summary_of(of, [partition[field_id] for partition in partitions])
        unknown = data.draw(st.sets(st.sampled_from(["contains_null", "contains_nan", "bounds"])))
        known = {
            "contains_null": None if "contains_null" in unknown else exact.contains_null,
            "contains_nan": None if "contains_nan" in unknown else exact.contains_nan,
            "lower_bound": None if "bounds" in unknown else exact.lower_bound,
            "upper_bound": None if "bounds" in unknown else exact.upper_bound,
        }
        summaries.append(FieldSummary(**known))
    fewer = summaries[: data.draw(st.integers(0, 2))]
    if any(matches(row_filter, value_of(partition)) for partition in partitions):
        assert manifest_might_match(row_filter, struct_of(*types), fewer)


@examples(150)
@given(st.data())
def test_manifests_of_one_partition_are_decided(data):
    """So that the law above is not kept by never pruning."""
    of = data.draw(st.sampled_from([t for t in SCALAR_TYPES if t != UUID]))
    (row,) = data.draw(rows({1000: of}, min_size=1, max_size=1, nulls=False))
    value = row[1000]
    predicate = data.draw(predicates(1000, of))
    if value != value or predicate.op in (Operation.NOT_NULL, Operation.NOT_NAN):
        return
    summaries = [summary_of(of, [value])]
    assert manifest_might_match(predicate, struct_of(of), summaries) is holds(predicate, value)


def test_signed_uuid_bounds_are_not_taken_for_unsigned_ones():
    low, high = b"\x80" + bytes(15), b"\x7f" + bytes(15)
    signed = between(low, high, of=UUID)
    for first in (0x00, 0x7F, 0x80, 0xFF):
        value = bytes([first]) + bytes(15)
        assert manifest_might_match(ask("eq", value, of=UUID), struct_of(UUID), signed)


@pytest.mark.parametrize(
    ("predicate", "possible"),
    [
        (ask("lt", 5), False),
        (ask("lt_eq", 5), True),
        (ask("gt", 9), False),
        (ask("gt_eq", 9), True),
        (ask("eq", 4), False),
        (ask("in", 4, 10), False),
        (ask("in", 4, 6), True),
        (ask("is_null"), False),
        (ask("not_null"), True),
    ],
)
def test_bounds_exclude_manifests(predicate, possible):
    assert manifest_might_match(predicate, struct_of(INT), between(5, 9)) is possible


@pytest.mark.parametrize(
    ("contains_null", "possible"), [(True, True), (False, False), (None, True)]
)
def test_nulls(contains_null, possible):
    summaries = between(5, 9, nulls=contains_null)
    assert manifest_might_match(ask("is_null"), struct_of(INT), summaries) is possible


@pytest.mark.parametrize(("contains_nan", "possible"), [(True, True), (False, False), (None, True)])
def test_nan(contains_nan, possible):
    summaries = between(5.0, 9.0, of=DOUBLE, nans=contains_nan)
    types = struct_of(DOUBLE)
    assert manifest_might_match(ask("is_nan", of=DOUBLE), types, summaries) is possible
    assert manifest_might_match(ask("gt", 10.0, of=DOUBLE), types, summaries) is possible
    assert not manifest_might_match(ask("lt", 5.0, of=DOUBLE), types, summaries)


def test_missing_bounds_do_not_prove_nulls():
    assert manifest_might_match(ask("eq", 5), struct_of(INT), [FieldSummary(True)])
    assert manifest_might_match(ask("not_null"), struct_of(INT), [FieldSummary(True, False)])


def test_missing_summaries_prove_nothing():
    assert manifest_might_match(ask("eq", 5), struct_of(INT), [])
    second = BoundPredicate(Operation.EQ, 1001, INT, (5,))
    assert manifest_might_match(second, struct_of(INT, INT), between(6, 9))


def test_summaries_are_found_by_position_of_the_field():
    second = BoundPredicate(Operation.EQ, 1001, INT, (5,))
    types = struct_of(INT, INT)
    assert manifest_might_match(second, types, [*between(6, 9), *between(5, 5)])
    assert not manifest_might_match(second, types, [*between(5, 5), *between(6, 9)])


def test_bounds_from_before_a_type_promotion():
    summaries = between(5, 9, of=INT)
    assert manifest_might_match(ask("eq", 7, of=LONG), struct_of(LONG), summaries)
    assert not manifest_might_match(ask("eq", 70, of=LONG), struct_of(LONG), summaries)


@pytest.mark.parametrize("of", [STRING, BINARY])
def test_bounds_that_are_no_values_prove_nothing(of):
    broken = [FieldSummary(False, None, b"\xff\xfe", b"\xff\xfd")]
    literal = "a" if of == STRING else b"a"
    assert manifest_might_match(ask("eq", literal, of=of), struct_of(of), broken)


def test_constants():
    assert manifest_might_match(TRUE, struct_of(INT), [])
    assert not manifest_might_match(FALSE, struct_of(INT), [])
