"""Partition transforms, one value at a time."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from spec_vectors import case_id, cases, value_of
from strategies.spec_values import (
    INT32,
    INT64,
    TEXT,
    decimal_types,
    scalar_types,
    typed_values,
    values_of,
)

from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.spec.json.types import parse_scalar
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
    bucket_hash,
    can_transform,
    parse_transform,
    preserves_order,
    result_type,
    to_human,
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
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeometryType,
    IcebergType,
    ListType,
)
from icebergds.spec.values.decimals import unscaled

WIDTHS = st.integers(1, 1000)
KNOWN: list[Transform] = [
    IdentityTransform(),
    BucketTransform(16),
    TruncateTransform(10),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
]
TIMES = [TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS]


@pytest.mark.parametrize("case", cases("bucket_hash"), ids=case_id)
def test_hashes_are_the_published_ones(case: dict[str, Any]) -> None:
    field_type = parse_scalar(case["type"])
    assert bucket_hash(field_type, value_of(field_type, case["value"])) == case["hash"]


@pytest.mark.parametrize("case", cases("transforms"), ids=case_id)
def test_results_and_their_texts_are_the_published_ones(case: dict[str, Any]) -> None:
    transform, source_type = parse_transform(case["transform"]), parse_scalar(case["type"])
    result = apply(transform, source_type, value_of(source_type, case["value"]))
    of_type = result_type(transform, source_type)
    assert of_type == parse_scalar(case["result_type"])
    assert result == value_of(of_type, case["result"])
    assert to_human(transform, source_type, result) == case["human"]


@pytest.mark.parametrize("case", cases("transform_strings"), ids=case_id)
def test_texts_are_known_or_kept(case: dict[str, Any]) -> None:
    transform = parse_transform(case["text"])
    assert isinstance(transform, UnknownTransform) is not case["valid"]
    assert str(transform) == case["text"]


@pytest.mark.parametrize("case", cases("result_types"), ids=case_id)
def test_result_types_are_the_published_ones(case: dict[str, Any]) -> None:
    text = case["transform"].replace("[N]", "[4]").replace("[W]", "[4]")
    # The vectors quote the spec's older int for day; its values are dates since.
    expected = {"bucket[4]": INT, "year": INT, "month": INT, "hour": INT, "day": DATE}
    for source_type in (DATE, TIMESTAMP, STRING, DecimalType(9, 2)):
        transform = parse_transform(text)
        assert result_type(transform, source_type) == expected.get(text, source_type)
    assert ("source" in case["result"]) is (text not in expected)


@pytest.mark.parametrize(
    ("field_type", "value", "expected"),
    [
        (INT, 34, 2017239379),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DATE, 17486, -653330422),
        (TIME, 81_068_000_000, -662762989),
        (TIMESTAMP, 1_510_871_468_000_000, -2047944441),
        (TIMESTAMP_NS, 1_510_871_468_000_001_001, -1207196810),
        (STRING, "iceberg", 1210000089),
        (UUID, bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), 1488055340),
        (FixedType(4), b"\x00\x01\x02\x03", -188683207),
        (BOOLEAN, True, 1392991556),
        (FLOAT, 1.0, -142385009),
    ],
    ids=str,
)
def test_hashes_are_those_of_appendix_b(field_type: IcebergType, value: Any, expected: int) -> None:
    assert bucket_hash(field_type, value) == expected


def test_the_sign_of_a_hash_is_dropped_before_the_remainder() -> None:
    # -500754589 without its sign bit is 1646729059.
    assert apply(BucketTransform(100), DecimalType(9, 2), Decimal("14.20")) == 59


@pytest.mark.parametrize(
    ("field_type", "value", "text"),
    [
        (TIME, 36_720_000_000, "10:12"),
        (TIME, 36_000_500_000, "10:00:00.500"),
        (TIME, 36_000_000_001, "10:00:00.000001"),
        (TIMESTAMPTZ, -1, "1969-12-31T23:59:59.999999+00:00"),
        (BINARY, b"\x00\xff\x3e", "AP8+"),
        (BOOLEAN, False, "false"),
        (DecimalType(38, 10), Decimal("0E-10"), "0E-10"),
        (UUID, bytes(16), "00000000-0000-0000-0000-000000000000"),
    ],
    ids=str,
)
def test_values_are_shown_as_java_shows_them(
    field_type: IcebergType, value: Any, text: str
) -> None:
    assert to_human(IdentityTransform(), field_type, value) == text


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[-1]", "bucket[1.5]", ""])
def test_widths_are_positive_or_the_transform_is_unknown(text: str) -> None:
    assert parse_transform(text) == UnknownTransform(text)


def test_case_does_not_matter() -> None:
    assert parse_transform("Bucket[16]") == BucketTransform(16)
    assert parse_transform("YEAR") == YearTransform()


@pytest.mark.parametrize("transform", KNOWN, ids=str)
def test_null_stays_null(transform: Transform) -> None:
    source_type = INT if isinstance(transform, BucketTransform | TruncateTransform) else TIMESTAMP
    assert apply(transform, source_type, None) is None
    assert to_human(transform, source_type, None) == "null"


@given(typed_values(scalar_types()))
def test_void_forgets_and_identity_keeps(typed_value: tuple[IcebergType, Any]) -> None:
    field_type, value = typed_value
    assert apply(VoidTransform(), field_type, value) is None
    assert apply(IdentityTransform(), field_type, value) == value


@given(st.integers(1, 10_000), typed_values(scalar_types().filter(lambda t: _buckets(t))))
def test_buckets_are_in_range(count: int, typed_value: tuple[IcebergType, Any]) -> None:
    assert 0 <= apply(BucketTransform(count), *typed_value) < count


@given(INT32)
def test_int_and_long_hash_alike(value: int) -> None:
    assert bucket_hash(INT, value) == bucket_hash(LONG, value)


@given(INT64)
def test_nanoseconds_hash_as_the_microsecond_they_are_in(value: int) -> None:
    assert bucket_hash(TIMESTAMP_NS, value) == bucket_hash(TIMESTAMP, value // 1000)


def test_every_zero_and_every_nan_hash_alike() -> None:
    assert bucket_hash(DOUBLE, -0.0) == bucket_hash(DOUBLE, 0.0)
    assert bucket_hash(FLOAT, float("nan")) == bucket_hash(DOUBLE, -float("nan"))


@given(WIDTHS, st.integers(-(2**31) + 1000, 2**31 - 1))
def test_truncated_integers_are_the_multiple_below(width: int, value: int) -> None:
    result = apply(TruncateTransform(width), INT, value)
    assert result % width == 0
    assert result <= value < result + width


def test_truncation_below_the_minimum_wraps_around() -> None:
    assert apply(TruncateTransform(10), INT, -(2**31)) == 2**31 - 2
    assert apply(TruncateTransform(10), LONG, -(2**63)) == 2**63 - 2


@given(WIDTHS, typed_values(decimal_types()))
def test_truncated_decimals_are_the_multiple_below_in_their_last_digit(
    width: int, typed_value: tuple[DecimalType, Any]
) -> None:
    field_type, value = typed_value
    result = apply(TruncateTransform(width), field_type, value)
    assert result.as_tuple().exponent == -field_type.scale
    number = unscaled(result, field_type.scale)
    assert number % width == 0
    assert number <= unscaled(value, field_type.scale) < number + width


@given(st.integers(1, 10), TEXT)
def test_truncated_texts_are_beginnings_of_so_many_code_points(width: int, value: str) -> None:
    result = apply(TruncateTransform(width), STRING, value)
    assert value.startswith(result)
    assert len(result) == min(width, len(value))


@given(st.integers(1, 10), st.binary(max_size=20))
def test_truncated_bytes_are_beginnings_of_so_many_bytes(width: int, value: bytes) -> None:
    result = apply(TruncateTransform(width), BINARY, value)
    assert value.startswith(result)
    assert len(result) == min(width, len(value))


@pytest.mark.parametrize("transform", [t for t in KNOWN if preserves_order(t)], ids=str)
@given(data=st.data())
def test_order_is_preserved_where_it_is_said(transform: Transform, data: st.DataObject) -> None:
    types = [t for t in (DATE, *TIMES, STRING, BINARY, DecimalType(9, 2)) if _takes(transform, t)]
    source_type = data.draw(st.sampled_from(types))
    low, high = sorted(data.draw(st.tuples(values_of(source_type), values_of(source_type))))
    assert apply(transform, source_type, low) <= apply(transform, source_type, high)


def test_order_is_not_promised_elsewhere() -> None:
    for transform in (BucketTransform(4), VoidTransform(), UnknownTransform("zorder")):
        assert not preserves_order(transform)


@given(st.sampled_from(TIMES), INT64)
def test_time_transforms_nest(source_type: IcebergType, value: int) -> None:
    hour = apply(HourTransform(), source_type, value)
    day = apply(DayTransform(), source_type, value)
    month = apply(MonthTransform(), source_type, value)
    year = apply(YearTransform(), source_type, value)
    assert day == hour // 24
    assert month == apply(MonthTransform(), DATE, day)
    assert year == month // 12
    texts = [
        to_human(transform, source_type, result)
        for transform, result in (
            (YearTransform(), year),
            (MonthTransform(), month),
            (DayTransform(), day),
            (HourTransform(), hour),
        )
    ]
    assert all(long.startswith(short) for short, long in itertools.pairwise(texts))


@pytest.mark.parametrize(
    ("transform", "accepted", "refused"),
    [
        (IdentityTransform(), [BOOLEAN, DOUBLE, UUID], [VARIANT, GeometryType()]),
        (BucketTransform(4), [INT, UUID, FixedType(3), DATE], [BOOLEAN, FLOAT, DOUBLE, VARIANT]),
        (TruncateTransform(4), [INT, STRING, BINARY], [DATE, UUID, FixedType(3), DOUBLE]),
        (DayTransform(), [DATE, *TIMES], [INT, STRING]),
        (HourTransform(), TIMES, [DATE, INT]),
        (VoidTransform(), [INT, VARIANT, ListType(1, INT)], []),
        (UnknownTransform("zorder"), [INT, ListType(1, INT)], []),
    ],
    ids=str,
)
def test_transforms_accept_the_types_of_the_spec(
    transform: Transform, accepted: list[IcebergType], refused: list[IcebergType]
) -> None:
    assert all(can_transform(transform, source_type) for source_type in accepted)
    assert not any(can_transform(transform, source_type) for source_type in refused)
    if not isinstance(transform, VoidTransform | UnknownTransform):
        assert not can_transform(transform, ListType(1, INT))


def test_a_type_that_is_not_accepted_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="hour does not accept type date"):
        apply(HourTransform(), DATE, 0)
    with pytest.raises(InvalidDataError, match="no bucket hash"):
        bucket_hash(VARIANT, b"")


def test_unknown_transforms_are_never_computed() -> None:
    transform = parse_transform("zorder")
    assert result_type(transform, INT) == UNKNOWN
    with pytest.raises(UnsupportedFeatureError, match="'zorder'"):
        apply(transform, INT, 1)


def _buckets(field_type: IcebergType) -> bool:
    return can_transform(BucketTransform(1), field_type)


def _takes(transform: Transform, source_type: IcebergType) -> bool:
    return can_transform(transform, source_type)
