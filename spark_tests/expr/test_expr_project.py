"""Projections onto partitions: what a filter on rows says of partition tuples."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.expressions import DAY, Row, filters, predicates, rows, value_of

from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import (
    FALSE,
    SETS,
    TRUE,
    BoundPredicate,
    InBuckets,
    Operation,
    Predicate,
    and_,
    or_,
    relaxed,
)
from icebergds.expr.project import project, project_strict
from icebergds.expr.residual import residual, residual_evaluator
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    apply,
    can_transform,
)
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
)

TYPES: tuple[IcebergType, ...] = (
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DecimalType(4, 2),
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    STRING,
    UUID,
    FixedType(2),
    BINARY,
)
CALENDAR = (YearTransform(), MonthTransform(), DayTransform(), HourTransform())
TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(4),
    TruncateTransform(1),
    TruncateTransform(2),
    TruncateTransform(10),
    *CALENDAR,
    VoidTransform(),
    UnknownTransform("zorder"),
)
PAIRS = [(t, of) for t in TRANSFORMS for of in TYPES if can_transform(t, of)]


def spec_of(*transforms: Transform, sources: tuple[int, ...] = (1,)) -> PartitionSpec:
    return PartitionSpec(
        1,
        tuple(
            PartitionField(sources, 1000 + at, transform, f"p{at}")
            for at, transform in enumerate(transforms)
        ),
    )


def schema_of(columns: dict[int, IcebergType]) -> Schema:
    return Schema(tuple(NestedField(i, f"c{i}", of) for i, of in columns.items()))


def partition_value(transform: Transform, of: IcebergType, value: Any) -> Any:
    if isinstance(transform, UnknownTransform):
        return "anything"
    return apply(transform, of, value)


def ask(op: str, *literals: Any, of: IcebergType) -> BoundPredicate:
    return BoundPredicate(Operation(op), 1, of, literals)


def projected(predicate: BoundPredicate, transform: Transform) -> str:
    schema = schema_of({1: predicate.field_type})
    return str(project(predicate, spec_of(transform), schema))


def projected_strictly(predicate: BoundPredicate, transform: Transform) -> str:
    schema = schema_of({1: predicate.field_type})
    return str(project_strict(predicate, spec_of(transform), schema))


def check_laws(predicate: Any, of: IcebergType, transform: Transform, value: Any, part: Any):
    spec, schema = spec_of(transform), schema_of({1: of})
    selected = matches(predicate, {1: value}.__getitem__)
    partition = {1000: part}.__getitem__
    if selected:
        assert matches(project(predicate, spec, schema), partition)
    if matches(project_strict(predicate, spec, schema), partition):
        assert selected
    left = residual(predicate, spec, schema, (part,))
    assert matches(left, {1: value}.__getitem__) == selected


@examples(600)
@given(st.data())
def test_projections_hold_for_every_transform(data):
    transform, of = data.draw(st.sampled_from(PAIRS))
    predicate = data.draw(predicates(1, of))
    (row,) = data.draw(rows({1: of}, min_size=1, max_size=1))
    check_laws(predicate, of, transform, row[1], partition_value(transform, of, row[1]))


@examples(300)
@given(st.data())
def test_projections_hold_for_dates_before_1970_one_too_late(data):
    """Java Iceberg up to 0.10 rounded towards zero."""
    pairs = [(t, of) for t, of in PAIRS if t in CALENDAR and (t, of) != (DayTransform(), DATE)]
    transform, of = data.draw(st.sampled_from(pairs))
    predicate = data.draw(predicates(1, of))
    (row,) = data.draw(rows({1: of}, min_size=1, max_size=1, nulls=False))
    part = apply(transform, of, row[1])
    if part < 0 and apply(transform, of, row[1] - 1) == part:
        part += 1
    check_laws(predicate, of, transform, row[1], part)


@examples(300)
@given(st.data())
def test_projections_hold_for_longs_that_were_ints_when_written(data):
    transform = data.draw(st.sampled_from([TruncateTransform(w) for w in (2, 3, 10)]))
    predicate = data.draw(predicates(1, LONG))
    (row,) = data.draw(rows({1: INT}, min_size=1, max_size=1))
    check_laws(predicate, LONG, transform, row[1], apply(transform, INT, row[1]))


WIDE = [2**30, 2**30 + 1, 2**31 - 1]
COMPARISONS = [
    Operation(op) for op in ("lt", "lt_eq", "gt", "gt_eq", "eq", "not_eq", *sorted(SETS))
]


def java_truncated(width: int, bits: int, value: int) -> int:
    """The specification's `v - (((v % W) + W) % W)` in integers of a size, as Java has them."""

    def wrapped(number: int) -> int:
        return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    def remainder(number: int) -> int:
        return abs(number) % width * (-1 if number < 0 else 1)

    return wrapped(value - remainder(wrapped(remainder(value) + width)))


@examples(600)
@given(
    st.data(),
    st.sampled_from([(INT, 32), (LONG, 32), (LONG, 64)]),
    st.one_of(st.integers(1, 30), st.integers(1, 2**31 - 1), st.sampled_from(WIDE)),
)
def test_no_filter_misses_integers_next_to_the_ends_of_their_type(data, stored, width):
    of, bits = stored
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    ends = [least, least % width + least, 0, most - most % width, most]
    near = st.sampled_from([n for n in ends if least <= n <= most])
    near = st.builds(lambda n, d: min(max(n + d, least), most), near, st.integers(-40, 40))
    op = data.draw(st.sampled_from(COMPARISONS))
    literals = data.draw(st.lists(near, min_size=1, max_size=3 if op in SETS else 1))
    predicate = BoundPredicate(op, 1, of, tuple(literals))
    value = data.draw(near)
    part = java_truncated(width, bits, value)
    check_laws(predicate, of, TruncateTransform(width), value, part)
    if width <= 2**30 and bits == (32 if of == INT else 64):
        assert apply(TruncateTransform(width), of, value) == part


def test_widths_that_overflow_on_the_way_tell_nothing():
    """Java truncates 5 to 2147483647 as -2147483647."""
    assert projected(ask("eq", 5, of=INT), TruncateTransform(2**31 - 1)) == "true"
    assert projected_strictly(ask("gt", 5, of=INT), TruncateTransform(2**31 - 1)) == "false"


@examples(150)
@given(st.data())
def test_projections_hold_for_whole_filters_and_several_partition_fields(data):
    columns = {1: data.draw(st.sampled_from(TYPES)), 2: data.draw(st.sampled_from(TYPES))}
    parts = []
    for at in range(data.draw(st.integers(0, 3))):
        source = data.draw(st.sampled_from(list(columns)))
        possible = [t for t in TRANSFORMS if can_transform(t, columns[source])]
        transform = data.draw(st.sampled_from(possible))
        parts.append(PartitionField((source,), 1000 + at, transform, f"p{at}"))
    spec, schema = PartitionSpec(1, tuple(parts)), schema_of(columns)
    row_filter = data.draw(filters(columns))
    evaluator = residual_evaluator(row_filter, spec, schema)
    for row in data.draw(rows(columns)):
        partition = tuple(
            partition_value(part.transform, columns[part.source_id], row[part.source_id])
            for part in parts
        )
        by_id: Row = {part.field_id: v for part, v in zip(parts, partition, strict=True)}
        selected = matches(row_filter, value_of(row))
        if selected:
            assert matches(project(row_filter, spec, schema), value_of(by_id))
        if matches(project_strict(row_filter, spec, schema), value_of(by_id)):
            assert selected
        assert matches(evaluator(partition), value_of(row)) == selected


@given(st.data())
def test_identity_leaves_nothing_of_a_filter(data):
    of = data.draw(st.sampled_from(TYPES))
    predicate = data.draw(predicates(1, of))
    (row,) = data.draw(rows({1: of}, min_size=1, max_size=1))
    left = residual(predicate, spec_of(IdentityTransform()), schema_of({1: of}), (row[1],))
    assert left in (TRUE, FALSE)


@pytest.mark.parametrize(
    ("predicate", "transform", "inclusive", "strict"),
    [
        (ask("eq", 34, of=INT), BucketTransform(16), "#1000 in (3)", "false"),
        (ask("not_eq", 34, of=INT), BucketTransform(16), "true", "#1000 not_in (3)"),
        (ask("lt", 34, of=INT), BucketTransform(16), "true", "false"),
        (ask("is_null", of=INT), BucketTransform(16), "#1000 is_null", "#1000 is_null"),
        (ask("lt", 100, of=LONG), TruncateTransform(8), "#1000 lt_eq 96", "#1000 lt 96"),
        (ask("lt_eq", 103, of=LONG), TruncateTransform(8), "#1000 lt_eq 96", "#1000 lt 104"),
        (ask("gt", 103, of=LONG), TruncateTransform(8), "#1000 gt_eq 104", "#1000 gt 96"),
        (ask("gt_eq", 104, of=LONG), TruncateTransform(8), "#1000 gt_eq 104", "#1000 gt 96"),
        (ask("eq", -1, of=LONG), TruncateTransform(8), "#1000 in (-8)", "false"),
        (
            ask("lt", Decimal("10.00"), of=DecimalType(4, 2)),
            TruncateTransform(50),
            "#1000 lt_eq Decimal('9.50')",
            "#1000 lt Decimal('10.00')",
        ),
        (ask("lt", "abcd", of=STRING), TruncateTransform(2), "#1000 lt_eq 'ab'", "#1000 lt 'ab'"),
        (ask("eq", "abcd", of=STRING), TruncateTransform(2), "#1000 in ('ab')", "false"),
        (ask("lt", DAY, of=TIMESTAMP), DayTransform(), "#1000 lt_eq 0", "#1000 lt 1"),
        (ask("lt_eq", DAY - 1, of=TIMESTAMP), DayTransform(), "#1000 lt_eq 0", "#1000 lt 1"),
        (ask("gt", 5 * DAY, of=TIMESTAMP), DayTransform(), "#1000 gt_eq 5", "#1000 gt 5"),
        (ask("eq", 400, of=DATE), YearTransform(), "#1000 in (1)", "false"),
        (ask("eq", -400, of=DATE), YearTransform(), "#1000 in (-2, -1)", "false"),
        (ask("not_eq", 400, of=DATE), MonthTransform(), "true", "#1000 not_in (13)"),
        (ask("eq", 400, of=DATE), DayTransform(), "#1000 eq 400", "#1000 eq 400"),
        (ask("eq", -400, of=DATE), DayTransform(), "#1000 eq -400", "#1000 eq -400"),
        (ask("gt", 0, of=TIMESTAMP), VoidTransform(), "true", "false"),
        (ask("is_null", of=INT), VoidTransform(), "true", "false"),
        (ask("eq", 0, of=INT), UnknownTransform("zorder"), "true", "false"),
        (ask("is_nan", of=DOUBLE), IdentityTransform(), "#1000 is_nan", "#1000 is_nan"),
    ],
)
def test_projection_of(predicate, transform, inclusive, strict):
    assert projected(predicate, transform) == inclusive
    assert projected_strictly(predicate, transform) == strict


@pytest.mark.parametrize(
    ("op", "prefix", "inclusive", "strict"),
    [
        ("starts_with", "a", "#1000 starts_with 'a'", "#1000 starts_with 'a'"),
        ("starts_with", "abc", "#1000 starts_with 'abc'", "#1000 starts_with 'abc'"),
        ("starts_with", "abcd", "#1000 eq 'abc'", "false"),
        ("not_starts_with", "abc", "#1000 not_starts_with 'abc'", "#1000 not_starts_with 'abc'"),
        ("not_starts_with", "abcd", "true", "#1000 not_eq 'abc'"),
    ],
)
def test_prefixes_shorter_and_longer_than_truncated_text(op, prefix, inclusive, strict):
    predicate = ask(op, prefix, of=STRING)
    assert projected(predicate, TruncateTransform(3)) == inclusive
    assert projected_strictly(predicate, TruncateTransform(3)) == strict


def test_truncated_text_is_cut_by_characters():
    predicate = ask("eq", "\U00010000bc", of=STRING)
    assert projected(predicate, TruncateTransform(2)) == "#1000 in ('\U00010000b')"


def test_integers_that_wrapped_around_are_found():
    """Java's truncation of -2147483648 to tens is 2147483646."""
    assert projected(ask("lt", 5, of=INT), TruncateTransform(10)) == (
        "(#1000 lt_eq 0 or #1000 in (2147483646))"
    )
    assert projected_strictly(ask("gt", 5, of=INT), TruncateTransform(10)) == (
        "(#1000 gt 0 and #1000 not_in (2147483646))"
    )
    assert projected(ask("eq", -(2**31), of=INT), TruncateTransform(10)) == (
        "#1000 in (-2147483650, 2147483646)"
    )


def test_fields_of_several_sources_tell_nothing():
    spec = spec_of(BucketTransform(4), sources=(1, 2))
    schema = schema_of({1: INT, 2: INT})
    assert project(ask("eq", 1, of=INT), spec, schema) == TRUE
    assert project_strict(ask("not_eq", 1, of=INT), spec, schema) == FALSE


def test_transforms_that_do_not_accept_the_column_tell_nothing():
    assert projected(ask("eq", "a", of=STRING), YearTransform()) == "true"


def test_specs_that_do_not_hold_the_column_tell_nothing():
    spec, schema = spec_of(IdentityTransform(), sources=(9,)), schema_of({1: INT})
    assert project(ask("eq", 1, of=INT), spec, schema) == TRUE
    assert project(ask("eq", 1, of=INT), PartitionSpec(), schema) == TRUE
    assert project_strict(ask("eq", 1, of=INT), PartitionSpec(), schema) == FALSE


def test_several_fields_of_a_column_add_up():
    predicate = ask("eq", 34, of=INT)
    spec = spec_of(IdentityTransform(), BucketTransform(16))
    assert str(project(predicate, spec, schema_of({1: INT}))) == ("(#1000 eq 34 and #1001 in (3))")
    assert str(project_strict(predicate, spec, schema_of({1: INT}))) == "#1000 eq 34"


def test_projection_carries_the_partition_fields_type():
    day = project(ask("lt", DAY, of=TIMESTAMP), spec_of(DayTransform()), schema_of({1: TIMESTAMP}))
    year = project(ask("lt", 0, of=DATE), spec_of(YearTransform()), schema_of({1: DATE}))
    assert isinstance(day, BoundPredicate)
    assert isinstance(year, BoundPredicate)
    assert (day.field_type, year.field_type) == (DATE, INT)


def test_residual_keeps_what_the_partition_does_not_decide():
    schema, spec = schema_of({1: TIMESTAMP, 2: INT}), spec_of(DayTransform())
    after = ask("gt_eq", DAY + 5, of=TIMESTAMP)
    other = BoundPredicate(Operation.EQ, 2, INT, (7,))
    assert residual(and_(after, other), spec, schema, (0,)) == FALSE
    assert residual(and_(after, other), spec, schema, (1,)) == and_(after, other)
    assert residual(and_(after, other), spec, schema, (2,)) == other
    assert residual(or_(after, other), spec, schema, (2,)) == TRUE
    assert residual(or_(after, other), spec, schema, (0,)) == other
    assert residual(after, spec, schema, (None,)) == FALSE
    assert residual(TRUE, spec, schema, (0,)) == TRUE


def test_unbound_filters_are_refused():
    unbound = Predicate(Operation.EQ, "a", (1,))
    for function in (project, project_strict):
        with pytest.raises(TypeError, match="bind"):
            function(unbound, PartitionSpec(), schema_of({1: INT}))
    with pytest.raises(TypeError, match="bind"):
        residual(unbound, PartitionSpec(), schema_of({1: INT}), ())


def test_residual_of_unpartitioned_files_is_the_filter():
    predicate = ask("eq", 1, of=INT)
    assert residual(predicate, PartitionSpec(), schema_of({1: INT}), ()) == predicate


_BY_BUCKET = PartitionSpec(0, (PartitionField((1,), 1000, BucketTransform(4), "b"),))
_ID = Schema((NestedField(1, "id", LONG), NestedField(2, "other", LONG)))


def test_chosen_buckets_are_those_of_a_partition_field_of_as_many() -> None:
    assert project(InBuckets(1, 4, (1, 3)), _BY_BUCKET, _ID) == BoundPredicate(
        Operation.IN, 1000, INT, (1, 3)
    )


@pytest.mark.parametrize("chosen", [InBuckets(1, 8, (1,)), InBuckets(2, 4, (1,))])
def test_other_buckets_say_nothing_of_partitions(chosen: InBuckets) -> None:
    assert project(chosen, _BY_BUCKET, _ID) == TRUE


def test_what_is_relaxed_chooses_no_buckets() -> None:
    predicate = BoundPredicate(Operation.EQ, 2, LONG, (5,))
    assert relaxed(and_(InBuckets(1, 4, (1,)), predicate)) == predicate
    assert relaxed(or_(InBuckets(1, 4, (1,)), predicate)) == TRUE
