"""Rows of other types become values of the table as Spark's ANSI store assignment makes them."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.write.rows.matching import plan_matching

BERLIN = "Europe/Berlin"
MOST = Context(prec=80)


def assigned(
    array: pa.Array, field_type: IcebergType, time_zone: str | None = None, **more: Any
) -> list[Any]:
    batch = pa.record_batch([array], names=["c"])
    schema = Schema((NestedField(1, "c", field_type),))
    plan = plan_matching(batch.schema, schema, table="db.t", time_zone=time_zone, **more)
    column = plan.apply(batch).column(0)
    column.validate(full=True)
    assert column.type == to_arrow(field_type)
    values: list[Any] = column.to_pylist()
    return values


def refused(array: pa.Array, field_type: IcebergType, **more: Any) -> str:
    with pytest.raises(InvalidDataError, match=r"^column 'c.*' of table db\.t has type") as error:
        assigned(array, field_type, **more)
    return str(error.value)


def decimals(precision: int, scale: int, *values: str | None) -> pa.Array:
    given = [None if value is None else Decimal(value) for value in values]
    return pa.array(given, pa.decimal128(precision, scale))


# Values


@pytest.mark.parametrize(
    ("array", "field_type", "expected"),
    [
        (pa.array([-(2**31), 2**31 - 1, None]), INT, [-(2**31), 2**31 - 1, None]),
        (pa.array([2**63 - 1], pa.uint64()), LONG, [2**63 - 1]),
        (pa.array([1.9, -1.9, 2147483647.9, None]), INT, [1, -1, 2147483647, None]),
        (pa.array([1.5], pa.float16()), INT, [1]),
        (pa.array([-(2.0**63)]), LONG, [-(2**63)]),
        (decimals(12, 2, "1.99", "-1.99", None), INT, [1, -1, None]),
        (decimals(38, 0, str(2**63 - 1)), LONG, [2**63 - 1]),
        (pa.array([2**24 + 1]), FLOAT, [2.0**24]),
        (pa.array([2**53 + 1]), DOUBLE, [2.0**53]),
        (pa.array([0.1, 1e300]), FLOAT, [struct.unpack("f", struct.pack("f", 0.1))[0], math.inf]),
        (decimals(38, 37, "0.1", None), DOUBLE, [0.1, None]),
        (pa.array([5]), DecimalType(3, 2), [Decimal("5.00")]),
        (decimals(13, 3, "1.005", "-1.005", None), DecimalType(12, 2), ["1.01", "-1.01", None]),
        (decimals(38, 38, "0." + 38 * "9"), DecimalType(1, 0), ["1"]),
        (pa.array([1.005, -0.125, 1e-300]), DecimalType(5, 2), ["1.01", "-0.13", "0.00"]),
        (pa.array([1.1], pa.float32()), DecimalType(9, 8), ["1.10000002"]),
        (pa.array([True, None]), STRING, ["true", None]),
        (pa.array([-5]), STRING, ["-5"]),
        (decimals(9, 8, "0.00000001", "-0.5", None), STRING, ["0.00000001", "-0.50000000", None]),
        (decimals(3, 0, "-12", "0"), STRING, ["-12", "0"]),
        (pa.array([b"\xc3\xa9", None]), STRING, ["é", None]),
        (pa.array([-1], pa.date32()), STRING, ["1969-12-31"]),
        (pa.array([-1], pa.date32()), TIMESTAMP, [datetime(1969, 12, 31)]),
        (pa.array([-1, None], pa.timestamp("us")), DATE, [date(1969, 12, 31), None]),
        (pa.array([-1, 0, 1_500_000], pa.timestamp("us")), STRING, [
            "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "1970-01-01 00:00:01.5"
        ]),
    ],
)  # fmt: skip
def test_values_are_converted_as_spark_does(
    array: pa.Array, field_type: IcebergType, expected: list[Any]
) -> None:
    if isinstance(field_type, DecimalType):
        expected = [None if value is None else Decimal(value) for value in expected]
    assert assigned(array, field_type) == expected
    tripled = pa.concat_arrays([array] * 3)
    assert assigned(tripled.slice(1), field_type) == (expected * 3)[1:]


@pytest.mark.parametrize(
    ("array", "field_type", "shown"),
    [
        (pa.array([1, None, 2**31, 2**40]), INT, "2147483648 of the incoming type int64"),
        (pa.array([2**63], pa.uint64()), LONG, str(2**63)),
        (pa.array([0.0, math.nan]), INT, "nan"),
        (pa.array([math.inf]), LONG, "inf"),
        # Spark stores the greatest long instead.
        (pa.array([2.0**63]), LONG, "9.223372036854776e+18"),
        (decimals(12, 2, "2147483648"), INT, "2147483648.00"),
        (pa.array([100]), DecimalType(4, 2), "100"),
        (decimals(13, 3, "9.994", "9999999999.995"), DecimalType(12, 2), "9999999999.995"),
        # Spark stores null instead.
        (pa.array([math.nan]), DecimalType(4, 2), "nan"),
        (pa.array([99.995]), DecimalType(4, 2), "99.995"),
        (pa.array([1e300]), DecimalType(38, 0), "1e+300"),
        (pa.array([b"\xff"]), STRING, r"b'\xff'"),
        (pa.array([2**31 - 1], pa.date32()), TIMESTAMP, str(2**31 - 1)),
        (pa.array([3_000_000], pa.date32()), STRING, "years 1 to 9999"),
    ],
)
def test_a_value_out_of_range_is_refused_by_column_and_value(
    array: pa.Array, field_type: IcebergType, shown: str
) -> None:
    assert shown in refused(array, field_type)


FINITE = st.decimals(allow_nan=False, allow_infinity=False, places=None)


@st.composite
def decimal_types(draw: st.DrawFn) -> DecimalType:
    precision = draw(st.integers(1, 38))
    return DecimalType(precision, draw(st.integers(0, precision)))


@st.composite
def decimals_of(draw: st.DrawFn, of: DecimalType) -> Decimal:
    unscaled = draw(st.integers(-(10**of.precision) + 1, 10**of.precision - 1))
    return Decimal(unscaled).scaleb(-of.scale, MOST)


def rounded(value: Decimal, wanted: DecimalType) -> Decimal | None:
    """The value of a column; None if it is out of range."""
    with localcontext(MOST):
        found = value.quantize(Decimal(1).scaleb(-wanted.scale), ROUND_HALF_UP)
        return found if abs(found) < Decimal(10) ** (wanted.precision - wanted.scale) else None


def check(array: pa.Array, wanted: IcebergType, expected: Any) -> None:
    if expected is None:
        refused(array, wanted)
    else:
        assert assigned(array, wanted) == [expected]


@examples(300)
@given(st.data(), decimal_types(), decimal_types())
def test_decimals_round_half_up(
    data: st.DataObject, incoming: DecimalType, wanted: DecimalType
) -> None:
    value = data.draw(decimals_of(incoming))
    check(pa.array([value], to_arrow(incoming)), wanted, rounded(value, wanted))


@examples(300)
@given(st.floats(), decimal_types())
def test_a_double_is_rounded_from_its_shortest_text(value: float, wanted: DecimalType) -> None:
    try:
        expected = rounded(Decimal(repr(value)), wanted)
    except InvalidOperation:
        expected = None
    check(pa.array([value]), wanted, expected)


@examples(200)
@given(st.integers(-(2**63), 2**63 - 1), decimal_types())
def test_integers_become_decimals(value: int, wanted: DecimalType) -> None:
    check(pa.array([value]), wanted, rounded(Decimal(value), wanted))


@examples(200)
@given(st.data(), decimal_types(), st.sampled_from([(INT, 32), (LONG, 64)]))
def test_decimals_lose_their_fraction_in_integers(
    data: st.DataObject, incoming: DecimalType, wanted: tuple[IcebergType, int]
) -> None:
    value, (field_type, bits) = data.draw(decimals_of(incoming)), wanted
    fits = -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1)
    check(pa.array([value], to_arrow(incoming)), field_type, int(value) if fits else None)


@examples(200)
@given(st.floats(), st.sampled_from([(INT, 32), (LONG, 64)]))
def test_doubles_lose_their_fraction_in_integers(
    value: float, wanted: tuple[IcebergType, int]
) -> None:
    field_type, bits = wanted
    fits = math.isfinite(value) and -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1)
    check(pa.array([value]), field_type, int(value) if fits else None)


@examples(200)
@given(st.data(), decimal_types())
def test_decimals_become_the_nearest_double(data: st.DataObject, incoming: DecimalType) -> None:
    value = data.draw(decimals_of(incoming))
    assert assigned(pa.array([value], to_arrow(incoming)), DOUBLE) == [float(value)]


@examples(200)
@given(st.data(), decimal_types())
def test_decimals_become_text_with_all_digits(data: st.DataObject, incoming: DecimalType) -> None:
    value = data.draw(decimals_of(incoming))
    assert assigned(pa.array([value], to_arrow(incoming)), STRING) == [f"{value:f}"]


# Time zones

NAIVE = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
ZONES = st.sampled_from(
    [
        BERLIN,
        "America/New_York",
        "America/Sao_Paulo",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "+05:30",
    ]
)


def zone_of(name: str) -> Any:
    return ZoneInfo(name) if "/" in name else datetime.strptime(name, "%z").tzinfo


@examples(300)
@given(st.lists(NAIVE, max_size=5), ZONES)
def test_instants_become_local_times_and_dates(moments: list[datetime], name: str) -> None:
    array = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    local = [
        moment.replace(tzinfo=UTC).astimezone(zone_of(name)).replace(tzinfo=None)
        for moment in moments
    ]
    assert assigned(array, TIMESTAMP, name) == local
    assert assigned(array, DATE, name) == [moment.date() for moment in local]


@examples(300)
@given(st.lists(NAIVE, max_size=5), ZONES)
def test_local_times_become_instants(moments: list[datetime], name: str) -> None:
    expected = [moment.replace(tzinfo=zone_of(name)).astimezone(UTC) for moment in moments]
    assert assigned(pa.array(moments, pa.timestamp("us")), TIMESTAMPTZ, name) == expected


@pytest.mark.parametrize(
    ("name", "local", "instant"),
    [
        # Set forward at 2:00, set back at 3:00; also after 2037.
        (BERLIN, "2026-03-29 02:30:00", "2026-03-29 01:30:00"),
        (BERLIN, "2026-10-25 02:30:00", "2026-10-25 00:30:00"),
        (BERLIN, "2099-07-01 00:00:00", "2099-06-30 22:00:00"),
    ],
)
def test_skipped_and_repeated_times(name: str, local: str, instant: str) -> None:
    array = pa.array([datetime.fromisoformat(local)], pa.timestamp("us"))
    expected = datetime.fromisoformat(instant).replace(tzinfo=UTC)
    assert assigned(array, TIMESTAMPTZ, name) == [expected]


@pytest.mark.parametrize(
    ("name", "day", "instant"),
    [
        (BERLIN, "2026-07-01", "2026-06-30 22:00:00"),
        # Clocks were set forward at midnight, and from 23:30 to 0:30.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04 03:00:00"),
        ("America/Toronto", "1919-03-31", "1919-03-31 04:30:00"),
        # The whole day was skipped.
        ("Pacific/Apia", "2011-12-30", "2011-12-30 10:00:00"),
    ],
)
def test_a_date_becomes_the_first_instant_of_the_day(name: str, day: str, instant: str) -> None:
    array = pa.array([date.fromisoformat(day), None], pa.date32())
    expected = datetime.fromisoformat(instant).replace(tzinfo=UTC)
    assert assigned(array, TIMESTAMPTZ, name) == [expected, None]


def test_without_a_zone_instants_have_that_of_their_column() -> None:
    array = pa.array([datetime(2026, 1, 1, 23)], pa.timestamp("us", "Asia/Tokyo"))
    assert assigned(array, DATE) == [date(2026, 1, 2)]
    assert assigned(array, STRING) == ["2026-01-02 08:00:00"]


@pytest.mark.parametrize("incoming", [pa.date32(), pa.timestamp("us")])
def test_without_a_zone_local_times_are_refused_with_the_option(incoming: pa.DataType) -> None:
    assert "time-zone" in refused(pa.array([], incoming), TIMESTAMPTZ)


@pytest.mark.parametrize("year", [-1, 10_001])
def test_zones_are_known_for_the_years_of_dates(year: int) -> None:
    micros = pa.array([int((year - 1970) * 365.2425 * 86_400) * 10**6], pa.timestamp("us"))
    assert "years 1 to 9999" in refused(micros, TIMESTAMPTZ, time_zone=BERLIN)


def test_an_unknown_zone_is_named() -> None:
    array = pa.array([0], pa.timestamp("us", "Mars/Olympus"))
    assert "(time zone 'Mars/Olympus' is unknown)" in refused(array, DATE)
    nothing = pa.array([[]], pa.list_(array.type))
    assert assigned(nothing, ListType(2, DATE)) == [[]]


def test_every_second_around_a_change_of_offsets() -> None:
    first = datetime(2026, 10, 24, 23, 59)
    moments = [first + timedelta(seconds=30 * at) for at in range(500)]
    array = pa.array(moments, pa.timestamp("us", "UTC"))
    local = [
        m.replace(tzinfo=UTC).astimezone(ZoneInfo(BERLIN)).replace(tzinfo=None) for m in moments
    ]
    assert assigned(array, TIMESTAMP, BERLIN) == local


# Types


def test_values_behind_nulls_do_not_count() -> None:
    numbers = pa.array([2**40, 5, math.nan])
    hidden = pa.array([True, False, True])
    behind = pa.Array.from_buffers(
        pa.float64(), 3, [pa.array([False, True, False]).buffers()[1], numbers.buffers()[1]]
    )
    assert assigned(behind, INT) == [None, 5, None]
    assert assigned(behind, DecimalType(3, 1)) == [None, Decimal("5.0"), None]
    structs = pa.StructArray.from_arrays([numbers], ["x"], mask=hidden)
    wanted = StructType((NestedField(2, "x", INT),))
    assert assigned(structs, wanted) == [None, {"x": 5}, None]


@pytest.mark.parametrize(
    ("incoming", "field_type"),
    [
        (pa.string(), INT),
        (pa.string(), DOUBLE),
        (pa.string(), DATE),
        (pa.string(), TIMESTAMPTZ),
        (pa.string(), BOOLEAN),
        (pa.bool_(), INT),
        (pa.int32(), BOOLEAN),
        (pa.int32(), DATE),
        (pa.int64(), TIMESTAMP),
        (pa.date32(), INT),
        (pa.timestamp("us"), LONG),
        # As Java writes them, which is not the same in all versions.
        (pa.float32(), STRING),
        (pa.float64(), STRING),
        (pa.time64("us"), STRING),
        (pa.struct({"x": pa.int32()}), STRING),
    ],
)
def test_other_types_are_refused(incoming: pa.DataType, field_type: IcebergType) -> None:
    assert "cast the incoming column" in refused(pa.array([], incoming), field_type)


def test_nested_values_are_assigned_by_name() -> None:
    incoming = pa.list_(pa.struct({"B": pa.decimal128(13, 3), "a": pa.int64()}))
    wanted = ListType(2, StructType((NestedField(3, "a", INT), NestedField(4, "b", DOUBLE))))
    rows = [[{"B": Decimal("1.5"), "a": 1}, None], None, []]
    assert assigned(pa.array(rows, incoming), wanted) == [[{"a": 1, "b": 1.5}, None], None, []]
    assert "2147483648" in refused(pa.array([[{"a": 2**31}]], incoming), wanted)
    values = pa.map_(pa.string(), pa.int64())
    assert assigned(pa.array([[("k", 5)]], values), MapType(2, STRING, 3, INT)) == [[("k", 5)]]


KEYS = [
    (pa.array([5, None]), INT, [5, None]),
    (decimals(13, 3, "1.250"), DecimalType(12, 2), [Decimal("1.25")]),
    (decimals(13, 3, "7.000"), LONG, [7]),
    (pa.array([7]), DecimalType(12, 2), [Decimal("7.00")]),
]


@pytest.mark.parametrize(("array", "field_type", "expected"), KEYS)
def test_keys_may_change_their_type(
    array: pa.Array, field_type: IcebergType, expected: list[Any]
) -> None:
    assert assigned(array, field_type, keys=frozenset([1])) == expected


@pytest.mark.parametrize(
    ("array", "field_type"),
    [
        (decimals(13, 3, "1.255"), DecimalType(12, 2)),
        (decimals(13, 3, "1.5"), INT),
        (pa.array([2**31]), INT),
        (pa.array([1.0]), INT),
        (pa.array([0], pa.timestamp("us")), DATE),
    ],
)
def test_keys_are_not_rounded(array: pa.Array, field_type: IcebergType) -> None:
    refused(array, field_type, keys=frozenset([1]))
    entries = pa.MapArray.from_arrays([0, len(array)], array, array)
    refused(entries, MapType(2, field_type, 3, field_type))
