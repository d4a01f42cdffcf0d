"""Binding: columns found, literals exact."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.expressions import values_of

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind, field_ids
from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import (
    FALSE,
    TRUE,
    And,
    BoundPredicate,
    Expr,
    Not,
    Operation,
    Or,
    Predicate,
    and_,
    not_,
    or_,
)
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
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

DAY = 86_400_000_000
DECIMAL = DecimalType(9, 2)
UUID_NUMBER = 0xF79C3E09677C4BBDA4793F349CB785E7


def schema_of(of: IcebergType) -> Schema:
    return Schema((NestedField(1, "x", of), NestedField(2, "y", of)))


def bound(of: IcebergType, op: str, *values: Any, time_zone: str | None = None) -> Expr:
    return bind(Predicate(Operation(op), "x", values, time_zone), schema_of(of))


def shown(of: IcebergType, op: str, *values: Any, time_zone: str | None = None) -> str:
    return str(bound(of, op, *values, time_zone=time_zone))


# Exact values


@pytest.mark.parametrize(
    ("of", "literal", "value"),
    [
        (BOOLEAN, True, True),
        (BOOLEAN, "TRUE", True),
        (INT, 5, 5),
        (INT, 5.0, 5),
        (INT, Decimal("5.00"), 5),
        (INT, "-5", -5),
        (LONG, 2**53 + 1, 2**53 + 1),
        (LONG, float(2**60), 2**60),
        (FLOAT, 1.5, 1.5),
        (FLOAT, 16777216, 16777216.0),
        (DOUBLE, 5, 5.0),
        (DOUBLE, Decimal("0.1"), 0.1),
        (DOUBLE, "1e3", 1000.0),
        (DOUBLE, "-Infinity", -math.inf),
        (DECIMAL, 5, Decimal("5.00")),
        (DECIMAL, 0.1, Decimal("0.10")),
        (DECIMAL, "1.5", Decimal("1.50")),
        (DecimalType(38, 0), 10**38 - 1, Decimal(10**38 - 1)),
        (DecimalType(38, 38), "0." + "1" * 38, Decimal("0." + "1" * 38)),
        (DATE, date(1970, 1, 3), 2),
        (DATE, "1969-12-31", -1),
        (DATE, datetime(1970, 1, 3), 2),
        (DATE, "+10000-01-01", 2932897),
        (TIME, time(1, 0, 0, 7), 3_600_000_007),
        (TIME, "01:00:00.000007", 3_600_000_007),
        (TIMESTAMP, datetime(1970, 1, 2, 0, 0, 0, 1), DAY + 1),
        (TIMESTAMP, date(1970, 1, 2), DAY),
        (TIMESTAMP, "1970-01-02", DAY),
        (TIMESTAMP, "1970-01-02T00:00:01", DAY + 10**6),
        (TIMESTAMP, "1970-01-02 00:00", DAY),
        (TIMESTAMP, datetime.max, 253402300799999999),
        (TIMESTAMP_NS, "1970-01-01 00:00:00.000000001", 1),
        (TIMESTAMP_NS, datetime(1970, 1, 1, 0, 0, 1), 10**9),
        (TIMESTAMPTZ, datetime(1970, 1, 1, tzinfo=UTC), 0),
        (TIMESTAMPTZ, datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=-1))), 3600 * 10**6),
        (TIMESTAMPTZ, "1970-01-01T01:00:00+01:00", 0),
        (TIMESTAMPTZ, "1970-01-01 00:00:00Z", 0),
        (TIMESTAMPTZ, "1970-01-01 01:00:00 Europe/Paris", 0),
        (TIMESTAMPTZ_NS, "1970-01-01 00:00:00.5Z", 500_000_000),
        (STRING, "a", "a"),
        (UUID, "F79C3E09-677c-4bbd-a479-3f349cb785e7", uuid.UUID(int=UUID_NUMBER).bytes),
        (UUID, uuid.UUID(int=1), bytes(15) + b"\1"),
        (UUID, bytes(16), bytes(16)),
        (FixedType(2), b"ab", b"ab"),
        (BINARY, b"", b""),
    ],
)  # fmt: skip
def test_literals_become_values_of_the_column(of, literal, value):
    assert bound(of, "eq", literal) == BoundPredicate(Operation.EQ, 1, of, (value,))


@pytest.mark.parametrize(
    ("zone", "value"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("+02:00", -7200),
        ("-00:30", 1800),
        ("GMT+1", -3600),
        ("Europe/Paris", -3600),
        ("America/New_York", 18000),
    ],
)
@pytest.mark.parametrize("literal", [datetime(1970, 1, 1), date(1970, 1, 1), "1970-01-01 00:00:00"])
def test_the_time_zone_is_that_of_literals_without_one(zone, value, literal):
    expected = BoundPredicate(Operation.EQ, 1, TIMESTAMPTZ, (value * 10**6,))
    assert bound(TIMESTAMPTZ, "eq", literal, time_zone=zone) == expected


def test_the_time_zone_is_not_that_of_columns_without_one():
    assert shown(TIMESTAMP, "eq", "1970-01-01 00:00:00", time_zone="Europe/Paris") == "#1 eq 0"
    assert shown(TIMESTAMPTZ, "eq", "1970-01-01 00:00:00Z", time_zone="+05:00") == "#1 eq 0"


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2024-10-27 02:30:00", "2024-10-27 00:30:00Z"),  # shown twice: the first
        ("2024-03-31 02:30:00", "2024-03-31 01:30:00Z"),  # skipped: moved by what is skipped
    ],
)
def test_times_when_clocks_are_set(local, utc):
    zoned = bound(TIMESTAMPTZ, "eq", local, time_zone="Europe/Paris")
    assert zoned == bound(TIMESTAMPTZ, "eq", utc)


# Literals between and beyond the values of the type


@pytest.mark.parametrize(
    ("of", "literal", "below", "above"),
    [
        (INT, 1.5, "1", "2"),
        (INT, -1.5, "-2", "-1"),
        (INT, Decimal("0.1"), "0", "1"),
        (INT, Decimal("-1e-999999"), "-1", "0"),
        (LONG, 0.1, "0", "1"),
        (FLOAT, 16777217, "16777216.0", "16777218.0"),
        (FLOAT, 0.1, "0.09999999403953552", "0.10000000149011612"),
        (FLOAT, -1e-50, "-1.401298464324817e-45", "-0.0"),
        (FLOAT, 1e39, "3.4028234663852886e+38", "inf"),
        (FLOAT, -1e39, "-inf", "-3.4028234663852886e+38"),
        (DOUBLE, 2**53 + 1, "9007199254740992.0", "9007199254740994.0"),
        (DOUBLE, 10**400, "1.7976931348623157e+308", "inf"),
        (DECIMAL, Decimal("0.001"), "Decimal('0.00')", "Decimal('0.01')"),
        (DATE, datetime(1970, 1, 1, 12), "0", "1"),
        (DATE, datetime(1969, 12, 31, 23, 59, 59, 999999), "-1", "0"),
        (TIME, "00:00:00.000000001", "0", "1"),
        (TIMESTAMP, "1970-01-01 00:00:00.000000001", "0", "1"),
        (TIMESTAMP, "1969-12-31 23:59:59.999999999", "-1", "0"),
    ],
)
def test_literals_between_values(of, literal, below, above):
    assert shown(of, "lt", literal) == shown(of, "lt_eq", literal) == f"#1 lt_eq {below}"
    assert shown(of, "gt", literal) == shown(of, "gt_eq", literal) == f"#1 gt_eq {above}"
    assert shown(of, "eq", literal) == "false"
    assert shown(of, "not_eq", literal) == "#1 not_null"


@pytest.mark.parametrize(
    ("of", "beyond"),
    [
        (INT, 10**12),
        (INT, 2**31),
        (INT, math.inf),
        (INT, math.nan),
        (LONG, 2**63),
        (LONG, Decimal("1e999999999")),
        (DECIMAL, 10**7),
        (DECIMAL, math.inf),
        (DATE, "+9999999-01-01"),
        (TIMESTAMP_NS, "2300-01-01"),
        (TIMESTAMP, "+300000-01-01"),
    ],
)
def test_literals_beyond_the_type_ask_only_for_null(of, beyond):
    assert shown(of, "lt", beyond) == shown(of, "lt_eq", beyond) == "#1 not_null"
    assert shown(of, "gt", beyond) == shown(of, "gt_eq", beyond) == "false"
    assert shown(of, "eq", beyond) == "false"
    assert shown(of, "not_eq", beyond) == "#1 not_null"


@pytest.mark.parametrize(
    ("of", "beneath"), [(INT, -(10**12)), (LONG, -math.inf), (TIMESTAMP_NS, "1600-01-01")]
)
def test_literals_beneath_the_type_ask_only_for_null(of, beneath):
    assert shown(of, "gt", beneath) == shown(of, "gt_eq", beneath) == "#1 not_null"
    assert shown(of, "lt", beneath) == shown(of, "lt_eq", beneath) == "false"


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("eq", "#1 is_nan"),
        ("not_eq", "(#1 not_null and #1 not_nan)"),
        ("lt", "(#1 not_null and #1 not_nan)"),
        ("lt_eq", "#1 not_null"),
        ("gt", "false"),
        ("gt_eq", "#1 is_nan"),
        ("in", "#1 is_nan"),
        ("not_in", "(#1 not_null and #1 not_nan)"),
    ],
)
@pytest.mark.parametrize("nan", [math.nan, "NaN", Decimal("NaN")])
def test_nan_literals(op, expected, nan):
    assert shown(DOUBLE, op, nan) == expected


# Null literals and lists


@pytest.mark.parametrize("op", ["eq", "not_eq", "lt", "gt_eq", "starts_with", "not_starts_with"])
def test_comparisons_with_null_select_nothing_nor_do_their_negations(op):
    predicate = Predicate(Operation(op), "x", (None,))
    assert bind(predicate, schema_of(STRING)) == FALSE
    assert bind(not_(predicate), schema_of(STRING)) == FALSE


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("in", (3, 1, 3), "#1 in (1, 3)"),
        ("in", (1,), "#1 eq 1"),
        ("in", (1, None), "#1 eq 1"),
        ("in", (None,), "false"),
        ("in", (1.5, 10**12), "false"),
        ("in", (), "false"),
        ("not_in", (3, 1), "#1 not_in (1, 3)"),
        ("not_in", (1,), "#1 not_eq 1"),
        ("not_in", (1, None), "false"),
        ("not_in", (1.5,), "#1 not_null"),
        ("not_in", (1.5, 2), "#1 not_eq 2"),
        ("not_in", (), "true"),
    ],
)
def test_lists(op, values, expected):
    assert shown(INT, op, *values) == expected


@pytest.mark.parametrize(
    ("op", "prefix", "expected"),
    [
        ("starts_with", "ab", "#1 starts_with 'ab'"),
        ("starts_with", "", "#1 not_null"),
        ("not_starts_with", "", "false"),
    ],
)
def test_prefixes(op, prefix, expected):
    assert shown(STRING, op, prefix) == expected


# Trees


def test_not_is_moved_into_the_operations():
    a, b = Predicate(Operation.LT, "x", (1,)), Predicate(Operation.IS_NULL, "y")
    expr = bind(Not(Or(a, Not(b))), schema_of(INT))
    assert str(expr) == "(#1 gt_eq 1 and #2 is_null)"


def test_not_of_what_the_type_decides_keeps_nulls_out():
    assert bind(Not(Predicate(Operation.LT, "x", (10**12,))), schema_of(INT)) == FALSE
    assert str(bind(Not(Predicate(Operation.EQ, "x", (1.5,))), schema_of(INT))) == "#1 not_null"


def test_chains_of_thousands_bind():
    chain: Expr = Predicate(Operation.EQ, "x", (0,))
    for value in range(1, 3000):
        chain = Or(chain, Predicate(Operation.EQ, "x", (value,)))
    assert matches(bind(chain, schema_of(INT)), {1: 2999}.__getitem__)
    assert matches(bind(Not(chain), schema_of(INT)), {1: 3000}.__getitem__)


def test_constants_bind():
    assert bind(And(TRUE, Not(FALSE)), schema_of(INT)) == TRUE


def test_bound_filters_are_not_bound_again():
    with pytest.raises(TypeError, match="already bound"):
        bind(BoundPredicate(Operation.IS_NULL, 1, INT), schema_of(INT))


def test_field_ids():
    expr = and_(
        Predicate(Operation.EQ, "x", (1,)),
        or_(Predicate(Operation.EQ, "y", (1,)), Predicate(Operation.EQ, "x", (2,))),
    )
    assert field_ids(bind(expr, schema_of(INT))) == {1, 2}
    assert field_ids(TRUE) == frozenset()
    with pytest.raises(TypeError, match="bind it to a schema first"):
        field_ids(expr)


def test_nested_fields_and_case():
    schema = Schema((NestedField(1, "s", StructType((NestedField(2, "In", INT),))),))
    assert str(bind(Predicate(Operation.EQ, "s.In", (1,)), schema)) == "#2 eq 1"
    assert str(bind(Predicate(Operation.EQ, "S.IN", (1,)), schema, False)) == "#2 eq 1"
    with pytest.raises(InvalidFilterError, match="did you mean"):
        bind(Predicate(Operation.EQ, "s.IN", (1,)), schema)


# Types


@pytest.mark.parametrize(
    "of",
    [VARIANT, GeometryType(), StructType(()), ListType(3, INT), MapType(3, INT, 4, INT)],
)
def test_types_without_order_answer_only_whether_they_are_null(of):
    assert shown(of, "is_null") == "#1 is_null"
    assert shown(of, "not_null") == "#1 not_null"
    for op, values in (("eq", (1,)), ("in", (1, 2)), ("in", ()), ("is_nan", ())):
        with pytest.raises(InvalidFilterError, match="does not support"):
            bound(of, op, *values)


def test_columns_of_unknown_type_are_null():
    assert bound(UNKNOWN, "is_null") == TRUE
    assert bound(UNKNOWN, "not_null") == FALSE
    assert bound(UNKNOWN, "eq", 5) == FALSE
    assert bound(UNKNOWN, "not_eq", 5) == FALSE
    assert bound(UNKNOWN, "is_nan") == FALSE
    assert bound(UNKNOWN, "not_nan") == TRUE


@pytest.mark.parametrize("of", [INT, LONG, DECIMAL])
def test_exact_numbers_are_never_nan(of):
    assert bound(of, "is_nan") == FALSE
    assert bound(of, "not_nan") == TRUE


@pytest.mark.parametrize(
    ("of", "op", "values"),
    [
        (BOOLEAN, "eq", (1,)),
        (BOOLEAN, "eq", ("yes",)),
        (INT, "eq", (True,)),
        (INT, "eq", ("1.0",)),
        (INT, "eq", ("a",)),
        (INT, "eq", (b"a",)),
        (INT, "eq", (Decimal("Infinity"),)),
        (INT, "starts_with", ("1",)),
        (INT, "eq", (1, 2)),
        (INT, "eq", ()),
        (INT, "is_null", (1,)),
        (DOUBLE, "eq", ("1_000",)),
        (DECIMAL, "eq", ("x",)),
        (DECIMAL, "eq", (Decimal("NaN"),)),
        (DATE, "eq", (5,)),
        (DATE, "eq", ("2020-02-30",)),
        (DATE, "eq", ("20200101",)),
        (DATE, "eq", ("2020-01-01 00:00:00",)),
        (DATE, "lt", (datetime(2020, 1, 1, tzinfo=UTC),)),
        (TIME, "eq", ("25:00:00",)),
        (TIME, "eq", (time(1, tzinfo=UTC),)),
        (TIME, "eq", (datetime(2020, 1, 1),)),
        (TIMESTAMP, "eq", ("2020-01-01T00:00:00Z",)),
        (TIMESTAMP, "eq", (datetime(2020, 1, 1, tzinfo=UTC),)),
        (TIMESTAMP, "eq", ("2020-01-01 nowhere",)),
        (TIMESTAMPTZ, "eq", (datetime(2020, 1, 1),)),
        (TIMESTAMPTZ, "eq", (date(2020, 1, 1),)),
        (TIMESTAMPTZ, "eq", ("2020-01-01 00:00:00",)),
        (TIMESTAMPTZ, "eq", ("2020-01-01 00:00:00 Mars/Olympus",)),
        (STRING, "eq", (5,)),
        (STRING, "is_nan", ()),
        (STRING, "starts_with", (5,)),
        (UUID, "eq", ("f79c3e09677c4bbda4793f349cb785e7",)),
        (UUID, "eq", (b"short",)),
        (UUID, "starts_with", ("f7",)),
        (FixedType(2), "eq", (b"abc",)),
        (BINARY, "eq", ("a",)),
    ],
)
def test_literals_that_do_not_fit_are_refused_by_name(of, op, values):
    with pytest.raises(InvalidFilterError, match=r"filter .*\bx\b"):
        bound(of, op, *values)


def test_refusals_say_what_the_column_is():
    with pytest.raises(InvalidFilterError, match=r"column x is timestamptz.*no time zone"):
        bound(TIMESTAMPTZ, "lt", datetime(2020, 1, 1))
    with pytest.raises(InvalidFilterError, match="time zone 'Nowhere' is unknown"):
        bound(TIMESTAMPTZ, "lt", datetime(2020, 1, 1), time_zone="Nowhere")


# Laws


NUMBERS = st.one_of(
    st.integers(-12, 12),
    st.sampled_from([2**31, -(2**31) - 1, 2**53 + 1, 2**63, 10**30, 16777217]),
    st.floats(-12, 12, allow_nan=False).map(lambda value: round(value * 4) / 4),
    st.sampled_from([0.1, math.inf, -math.inf, math.nan, 1e300, -0.0, 2.0**63]),
    st.decimals(-12, 12, places=3, allow_nan=False),
    st.sampled_from([Decimal("99.995"), Decimal("1e30"), Decimal("-0.00")]),
)
NUMERIC_TYPES = (INT, LONG, DecimalType(4, 2), FLOAT, DOUBLE)


def order_key(number: Any, of: IcebergType, literal: bool = False) -> tuple[int, Any]:
    """A place in the order of all numbers, with Spark's conversions of literals."""
    if literal and of in (FLOAT, DOUBLE) and isinstance(number, Decimal):
        number = float(number)
    if literal and isinstance(of, DecimalType) and isinstance(number, float):
        number = Decimal(repr(number))
    if not math.isfinite(number):
        return (2, 0) if math.isnan(number) else (1 if number > 0 else -1, 0)
    return (0, Fraction(number))


def truth(expr: Expr, row: dict[str, Any], of: IcebergType) -> bool | None:
    """SQL's three-valued logic on an unbound filter."""
    match expr:
        case And(left, right):
            sides = {truth(left, row, of), truth(right, row, of)}
            return False if False in sides else None if None in sides else True
        case Or(left, right):
            sides = {truth(left, row, of), truth(right, row, of)}
            return True if True in sides else None if None in sides else False
        case Not(child):
            inner = truth(child, row, of)
            return None if inner is None else not inner
        case Predicate(op, name, values):
            return predicate_truth(op, row[name], values, of)
    raise AssertionError(expr)


def predicate_truth(op: Operation, value: Any, values: Any, of: IcebergType) -> bool | None:
    if op.startswith("not_"):
        inner = predicate_truth(Operation(op.replace("not_", "", 1)), value, values, of)
        return None if inner is None else not inner
    is_nan = isinstance(value, float) and math.isnan(value)
    match op:
        case Operation.IS_NULL:
            return value is None
        case Operation.IS_NAN:
            return is_nan
    if value is None or (op is not Operation.IN and None in values):
        return None
    key = order_key(value, of)
    keys = [order_key(literal, of, True) for literal in values if literal is not None]
    match op:
        case Operation.LT:
            return key < keys[0]
        case Operation.LT_EQ:
            return key <= keys[0]
        case Operation.GT:
            return key > keys[0]
        case Operation.GT_EQ:
            return key >= keys[0]
        case Operation.EQ:
            return key == keys[0]
    return True if key in keys else None if None in values else False


@st.composite
def unbound_predicates(draw: st.DrawFn, of: IcebergType) -> Expr:
    name = draw(st.sampled_from("xy"))
    ops = ["lt", "lt_eq", "gt", "gt_eq", "eq", "not_eq", "in", "not_in"]
    op = draw(st.sampled_from(ops))
    literal = st.one_of(NUMBERS, values_of(of), st.none())
    size = {"min_size": 1, "max_size": 3} if "in" in op else {"min_size": 1, "max_size": 1}
    if draw(st.integers(0, 5)) == 0:
        unary = ["is_null", "is_nan"] if of in (FLOAT, DOUBLE) else ["is_null"]
        return Predicate(Operation(draw(st.sampled_from(unary))), name)
    return Predicate(Operation(op), name, tuple(draw(st.lists(literal, **size))))


def unbound_filters(of: IcebergType) -> st.SearchStrategy[Expr]:
    return st.recursive(
        unbound_predicates(of),
        lambda inner: st.one_of(
            st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)
        ),
        max_leaves=4,
    )


@examples(400)
@given(st.data())
def test_binding_keeps_three_valued_logic_and_exact_numbers(data):
    of = data.draw(st.sampled_from(NUMERIC_TYPES))
    expr = data.draw(unbound_filters(of))
    column = st.none() | values_of(of)
    row = {"x": data.draw(column), "y": data.draw(column)}
    by_id = {1: row["x"], 2: row["y"]}
    selected = matches(bind(expr, schema_of(of)), by_id.__getitem__)
    assert selected is (truth(expr, row, of) is True)
