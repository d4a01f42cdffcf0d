"""Pruning by column metrics: never a file with a matching row."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.expressions import SCALAR_TYPES, filters, predicates, rows, value_of

from icebergds.expr.evaluate import holds, matches
from icebergds.expr.metrics import might_match, must_match
from icebergds.expr.nodes import FALSE, TRUE, BoundPredicate, Operation, Predicate
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UUID,
    VARIANT,
    DecimalType,
    IcebergType,
    ListType,
    StructType,
)
from icebergds.spec.values.binary import to_bytes


@dataclass(frozen=True)
class Metrics:
    record_count: int
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)


def ask(op: str, *literals: Any, of: IcebergType = INT) -> BoundPredicate:
    return BoundPredicate(Operation(op), 1, of, literals)


def column(
    lower: Any = None,
    upper: Any = None,
    *,
    of: IcebergType = INT,
    rows: int = 10,
    nulls: int | None = 0,
    nans: int | None = None,
    values: int | None = None,
) -> Metrics:
    """A file of one column, field 1; None leaves a metric out, bounds may be bytes already."""

    def encoded(bound: Any) -> dict[int, bytes]:
        if bound is None:
            return {}
        raw = isinstance(bound, bytes) and of != BINARY
        return {1: bound if raw else to_bytes(of, bound)}

    return Metrics(
        rows,
        {1: rows if values is None else values},
        {} if nulls is None else {1: nulls},
        {} if nans is None else {1: nans},
        encoded(lower),
        encoded(upper),
    )


def metrics_of(columns: dict[int, IcebergType], table: list[dict[int, Any]]) -> Metrics:
    """Exact and complete metrics of rows."""
    metrics = Metrics(len(table))
    for field_id, field_type in columns.items():
        values = [row[field_id] for row in table]
        numbers = [v for v in values if v is not None and v == v]
        metrics.value_counts[field_id] = len(values)
        metrics.null_value_counts[field_id] = sum(v is None for v in values)
        metrics.nan_value_counts[field_id] = sum(v is not None and v != v for v in values)
        if numbers:
            metrics.lower_bounds[field_id] = to_bytes(field_type, min(numbers))
            metrics.upper_bounds[field_id] = to_bytes(field_type, max(numbers))
    return metrics


def loosened(draw: st.DrawFn, metrics: Metrics, columns: dict[int, IcebergType]) -> Metrics:
    """What some writer might have written instead: less, or less exactly."""
    out = replace(
        metrics,
        **{
            name: {k: v for k, v in getattr(metrics, name).items() if draw(st.integers(0, 4))}
            for name in Metrics.__dataclass_fields__
            if name != "record_count"
        },
    )
    for field_id, field_type in columns.items():
        how = draw(st.sampled_from(["exact", "exact", "truncated", "nan", "negative", "promoted"]))
        if how == "truncated" and field_type in (STRING, BINARY):
            _truncate_bounds(out, field_id, field_type)
        elif how == "nan" and field_type in (FLOAT, DOUBLE):
            out.lower_bounds[field_id] = to_bytes(field_type, float("nan"))
            out.upper_bounds[field_id] = to_bytes(field_type, float("nan"))
        elif how == "negative":
            out.value_counts[field_id] = -1
            out.null_value_counts[field_id] = -1
        elif how == "promoted" and field_type == LONG:
            for bounds in (out.lower_bounds, out.upper_bounds):
                if -(2**31) <= struct.unpack("<q", bounds.get(field_id, bytes(8)))[0] < 2**31:
                    bounds.update({k: v[:4] for k, v in bounds.items() if k == field_id})
    return out


def _truncate_bounds(metrics: Metrics, field_id: int, field_type: IcebergType) -> None:
    lower, upper = metrics.lower_bounds.get(field_id), metrics.upper_bounds.get(field_id)
    if lower is not None:
        metrics.lower_bounds[field_id] = (
            lower.decode()[:2].encode() if field_type == STRING else lower[:2]
        )
    if upper is not None:
        raised = (_raised_text if field_type == STRING else _raised_bytes)(upper)
        if raised is None:
            del metrics.upper_bounds[field_id]
        else:
            metrics.upper_bounds[field_id] = raised


def _raised_text(data: bytes) -> bytes | None:
    text = data.decode()
    if len(text) <= 2:
        return data
    for at in (1, 0):
        code = ord(text[at]) + 1
        code = 0xE000 if code == 0xD800 else code
        if code <= 0x10FFFF:
            return (text[:at] + chr(code)).encode()
    return None


def _raised_bytes(data: bytes) -> bytes | None:
    if len(data) <= 2:
        return data
    for at in (1, 0):
        if data[at] < 0xFF:
            return data[:at] + bytes([data[at] + 1])
    return None


@examples(400)
@given(st.data())
def test_pruning_never_drops_a_file_with_a_matching_row(data):
    columns = {1: data.draw(st.sampled_from([*SCALAR_TYPES, FLOAT, DOUBLE, STRING, BINARY]))}
    table = data.draw(rows(columns, max_size=4))
    row_filter = data.draw(filters(columns, max_leaves=2))
    metrics = loosened(data.draw, metrics_of(columns, table), columns)
    selected = [matches(row_filter, value_of(row)) for row in table]
    assert might_match(row_filter, metrics) or not any(selected)
    assert all(selected) or not must_match(row_filter, metrics)


@examples(200)
@given(st.data())
def test_exact_metrics_of_single_valued_files_decide_every_predicate(data):
    """So that the laws above are not kept by never pruning."""
    field_type = data.draw(st.sampled_from([t for t in SCALAR_TYPES if t != UUID]))
    (row,) = data.draw(rows({1: field_type}, min_size=1, max_size=1))
    predicate = data.draw(predicates(1, field_type))
    metrics = metrics_of({1: field_type}, [row] * 3)
    selected = holds(predicate, row[1])
    assert might_match(predicate, metrics) is selected
    if row[1] == row[1]:
        assert must_match(predicate, metrics) is selected


@given(st.data())
def test_uuid_bounds_of_any_order_never_drop_a_matching_row(data):
    """Java orders uuids as signed longs, Parquet by bytes; Java merges row groups' bounds."""

    def signed(value: bytes) -> tuple[int, int]:
        return struct.unpack(">qq", value)

    groups = [
        [row[1] for row in data.draw(rows({1: UUID}, min_size=1, nulls=False))]
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    values = [value for group in groups for value in group]
    orders = [(bytes, bytes), (signed, signed), (bytes, signed)]
    within, between = data.draw(st.sampled_from(orders))
    metrics = column(
        min((min(group, key=within) for group in groups), key=between),
        max((max(group, key=within) for group in groups), key=between),
        of=UUID,
        rows=len(values),
    )
    predicate = data.draw(predicates(1, UUID))
    selected = [holds(predicate, value) for value in values]
    assert might_match(predicate, metrics) or not any(selected)
    assert all(selected) or not must_match(predicate, metrics)


def test_files_without_rows_hold_nothing():
    assert not might_match(TRUE, Metrics(0))
    assert must_match(FALSE, Metrics(0))


def test_files_of_an_unknown_number_of_rows_are_read():
    unknown = column(1, 2, rows=-1)
    assert might_match(ask("eq", 5), unknown)
    assert not must_match(ask("lt", 5), unknown)


@pytest.mark.parametrize("op", list(Operation))
def test_columns_without_metrics_may_hold_anything(op):
    of = STRING if "with" in op else DOUBLE
    literals = () if "null" in op or "nan" in op else ("a",) if of == STRING else (1.0,)
    predicate = BoundPredicate(op, 7, of, literals)
    assert might_match(predicate, column(1.0, 2.0, of=DOUBLE, nans=0))
    assert not must_match(predicate, column(1.0, 2.0, of=DOUBLE, nans=0))


@pytest.mark.parametrize(
    ("predicate", "possible"),
    [
        (ask("lt", 5), False),
        (ask("lt", 6), True),
        (ask("lt_eq", 4), False),
        (ask("lt_eq", 5), True),
        (ask("gt", 9), False),
        (ask("gt", 8), True),
        (ask("gt_eq", 10), False),
        (ask("gt_eq", 9), True),
        (ask("eq", 4), False),
        (ask("eq", 7), True),
        (ask("eq", 10), False),
        (ask("in", 1, 4, 10), False),
        (ask("in", 1, 7), True),
        (ask("not_eq", 7), True),
        (ask("is_null"), False),
        (ask("not_null"), True),
    ],
)
def test_bounds_exclude_files(predicate, possible):
    assert might_match(predicate, column(5, 9)) is possible


@pytest.mark.parametrize(
    ("predicate", "certain"),
    [
        (ask("lt", 10), True),
        (ask("lt", 9), False),
        (ask("gt_eq", 5), True),
        (ask("gt", 5), False),
        (ask("not_eq", 4), True),
        (ask("not_in", 1, 10), True),
        (ask("not_in", 1, 7), False),
        (ask("eq", 7), False),
        (ask("not_null"), True),
        (ask("is_null"), False),
    ],
)
def test_bounds_include_whole_files(predicate, certain):
    assert must_match(predicate, column(5, 9)) is certain


def test_a_thousand_values_still_prune():
    many = ask("in", *range(0, 4000, 4))
    assert not might_match(many, column(1, 3))
    assert might_match(many, column(1, 4))


@pytest.mark.parametrize("nulls", [None, 1])
def test_possible_nulls_are_never_certain_to_match(nulls):
    assert not must_match(ask("lt", 10), column(5, 9, nulls=nulls))
    assert not must_match(ask("not_null"), column(5, 9, nulls=nulls))
    assert might_match(ask("is_null"), column(5, 9, nulls=nulls))


def test_files_of_nulls_alone():
    nulls = column(nulls=10)
    assert not might_match(ask("eq", 5), nulls)
    assert not might_match(ask("not_eq", 5), nulls)
    assert not might_match(ask("not_null"), nulls)
    assert must_match(ask("is_null"), nulls)
    assert not might_match(ask("is_nan", of=DOUBLE), nulls)
    assert must_match(ask("not_nan", of=DOUBLE), nulls)


@pytest.mark.parametrize("values", [-1, 0, 9, 11])
def test_counts_of_other_than_all_rows_prove_nothing_about_nulls(values):
    """Rows in which a struct around a column is null are not counted by all writers."""
    assert might_match(ask("is_null"), column(5, 9, values=values))
    assert not must_match(ask("not_null"), column(5, 9, values=values))
    assert might_match(ask("not_null"), column(nulls=values, values=values))


@pytest.mark.parametrize("op", ["gt", "gt_eq"])
def test_upper_bounds_say_nothing_about_nan(op):
    assert might_match(ask(op, 5.0, of=DOUBLE), column(1.0, 2.0, of=DOUBLE))
    assert might_match(ask(op, 5.0, of=DOUBLE), column(1.0, 2.0, of=DOUBLE, nans=1))
    assert not might_match(ask(op, 5.0, of=DOUBLE), column(1.0, 2.0, of=DOUBLE, nans=0))


def test_nan_is_not_below_an_upper_bound():
    assert not must_match(ask("lt", 5.0, of=DOUBLE), column(1.0, 2.0, of=DOUBLE))
    assert must_match(ask("lt", 5.0, of=DOUBLE), column(1.0, 2.0, of=DOUBLE, nans=0))


@pytest.mark.parametrize(("op", "nans", "possible"), [("not_eq", 1, True), ("not_eq", 0, False)])
def test_equal_bounds_say_nothing_about_nan(op, nans, possible):
    metrics = column(1.0, 1.0, of=DOUBLE, nans=nans)
    assert might_match(ask(op, 1.0, of=DOUBLE), metrics) is possible
    assert must_match(ask("eq", 1.0, of=DOUBLE), metrics) is not possible


def test_files_of_nan_alone():
    nans = column(of=DOUBLE, nans=10)
    assert not might_match(ask("lt", 5.0, of=DOUBLE), nans)
    assert might_match(ask("gt", 5.0, of=DOUBLE), nans)
    assert must_match(ask("is_nan", of=DOUBLE), nans)
    assert not might_match(ask("not_nan", of=DOUBLE), nans)


@pytest.mark.parametrize("bounds", [(float("nan"), 2.0), (1.0, float("nan"))])
def test_nan_bounds_are_not_used(bounds):
    spoilt = column(*bounds, of=DOUBLE, nans=0)
    assert might_match(ask("eq", 99.0, of=DOUBLE), spoilt)
    assert might_match(ask("eq", -99.0, of=DOUBLE), spoilt)


@pytest.mark.parametrize(
    ("of", "lower", "upper"),
    [
        (INT, b"\x01", b"\x02"),
        (STRING, b"\xff\xfe", b"\xff\xff"),
        (INT, 9, 5),
        (DecimalType(4, 2), b"", b""),
    ],
)
def test_bounds_that_cannot_be_right_are_not_used(of, lower, upper):
    literal = {STRING: "zzz", INT: 7}.get(of, 7)
    assert might_match(ask("eq", literal, of=of), column(lower, upper, of=of))


@pytest.mark.parametrize(
    ("of", "lower", "upper", "inside", "outside"),
    [
        (LONG, struct.pack("<i", 5), struct.pack("<i", 9), 7, 2**40),
        (DOUBLE, struct.pack("<f", 1.5), struct.pack("<f", 2.5), 2.0, -1.0),
        (DecimalType(20, 2), b"\x05", b"\x64", 1, 5),
        (TIMESTAMP, struct.pack("<i", 1), struct.pack("<i", 2), 86_400_000_001, 3),
        (TIMESTAMP_NS, struct.pack("<i", 1), struct.pack("<i", 2), 86_400_000_000_001, 3),
    ],
)
def test_bounds_from_before_a_type_promotion(of, lower, upper, inside, outside):
    metrics = column(lower, upper, of=of)
    assert might_match(ask("eq", inside, of=of), metrics)
    assert not might_match(ask("eq", outside, of=of), metrics)


def test_truncated_text_bounds():
    metrics = column("abc", "abe", of=STRING)  # "abcdef" to "abdxyz", cut to three
    assert might_match(ask("eq", "abdxyz", of=STRING), metrics)
    assert might_match(ask("starts_with", "abcdef", of=STRING), metrics)
    assert might_match(ask("starts_with", "abd", of=STRING), metrics)
    assert might_match(ask("starts_with", "ab", of=STRING), metrics)
    assert might_match(ask("starts_with", "abe", of=STRING), metrics)
    assert not might_match(ask("starts_with", "abf", of=STRING), metrics)
    assert not might_match(ask("starts_with", "abb", of=STRING), metrics)
    assert not might_match(ask("not_starts_with", "ab", of=STRING), metrics)
    assert must_match(ask("starts_with", "ab", of=STRING), metrics)
    assert must_match(ask("not_starts_with", "x", of=STRING), metrics)


@pytest.mark.parametrize("of", [StructType(()), ListType(2, INT)])
def test_counts_of_nested_columns_are_not_used(of):
    assert might_match(ask("is_null", of=of), column(rows=10, nulls=0))
    assert might_match(ask("not_null", of=of), column(rows=10, nulls=10))
    assert not must_match(ask("not_null", of=of), column(rows=10, nulls=0))


def test_null_counts_of_types_without_order_are_used():
    assert not might_match(ask("is_null", of=VARIANT), column(nulls=0))


@pytest.mark.parametrize("op", ["is_null", "not_null"])
def test_stored_row_ids_are_not_the_row_ids(op):
    """A null among them is inherited from the manifest entry."""
    field_id = ROW_ID.field_id
    predicate = BoundPredicate(Operation(op), field_id, LONG)
    for nulls in (0, 10):
        metrics = Metrics(10, {field_id: 10}, {field_id: nulls})
        assert might_match(predicate, metrics)
        assert not must_match(predicate, metrics)
    bounded = BoundPredicate(Operation.EQ, field_id, LONG, (5,))
    some = Metrics(10, {field_id: 10}, {field_id: 5}, {}, *(({field_id: bytes(8)},) * 2))
    assert might_match(bounded, some)


def test_constants():
    assert might_match(TRUE, column(1, 2))
    assert must_match(TRUE, column(1, 2))
    assert not might_match(FALSE, column(1, 2))
    assert not must_match(FALSE, column(1, 2))


def test_dates_prune():
    assert not might_match(ask("lt", 100, of=DATE), column(100, 200, of=DATE))


def test_unbound_filters_are_refused():
    with pytest.raises(TypeError, match="bind"):
        might_match(Predicate(Operation.EQ, "a", (1,)), column(1, 2))
