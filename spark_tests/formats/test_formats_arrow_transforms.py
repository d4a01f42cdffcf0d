"""Partition transforms of whole arrays equal those of single values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from corpus import corpus_tables, load_vectors
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.formats.arrow.murmur3 import hash_longs, hash_slices
from icebergds.formats.arrow.transforms import apply_transform
from icebergds.formats.arrow.types import to_array, to_arrow
from icebergds.spec.json.types import parse_scalar
from icebergds.spec.json.values import from_json
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
    parse_transform,
    result_type,
)
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
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
    DecimalType,
    FixedType,
    IcebergType,
    StructType,
)
from icebergds.spec.values.decimals import from_unscaled

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    INT: INT32,
    DATE: INT32,
    LONG: INT64,
    TIME: st.integers(0, 86_400_000_000 - 1),
    TIMESTAMP: INT64,
    TIMESTAMPTZ: INT64,
    TIMESTAMP_NS: INT64,
    TIMESTAMPTZ_NS: INT64,
    STRING: st.one_of(st.text(max_size=12), st.text("ab\U0001f600", min_size=60, max_size=300)),
    BINARY: st.binary(max_size=300),
    UUID: st.binary(min_size=16, max_size=16),
    FixedType(5): st.binary(min_size=5, max_size=5),
    DecimalType(9, 2): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: from_unscaled(n, 2)),
    DecimalType(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: from_unscaled(n, 10)),
}
WIDTHS = st.one_of(st.integers(1, 20), st.integers(1, 2**31 - 1))
TRANSFORMS: st.SearchStrategy[Transform] = st.one_of(
    st.builds(BucketTransform, WIDTHS),
    st.builds(TruncateTransform, WIDTHS),
    st.sampled_from(
        [
            IdentityTransform(),
            YearTransform(),
            MonthTransform(),
            DayTransform(),
            HourTransform(),
            VoidTransform(),
        ]
    ),
)


@st.composite
def columns(draw: st.DrawFn) -> tuple[Transform, IcebergType, list[Any]]:
    source = draw(st.sampled_from(list(VALUES)))
    transform = draw(TRANSFORMS.filter(lambda t: can_transform(t, source)))
    return transform, source, draw(st.lists(st.one_of(st.none(), VALUES[source]), max_size=12))


def in_memory(array: pa.Array) -> list[Any]:
    """An array's values in their in-memory representation."""
    stored = array.type
    if pa.types.is_date32(stored):
        return array.view(pa.int32()).to_pylist()
    if pa.types.is_timestamp(stored) or pa.types.is_time(stored):
        return array.view(pa.int64()).to_pylist()
    return array.to_pylist()


def _digits(value: Any) -> int:
    return len(value.as_tuple().digits) if isinstance(value, Decimal) else 0


@examples(400)
@given(columns(), st.integers(0, 4))
def test_transforming_an_array_is_transforming_its_values(column, cut):
    transform, source, values = column
    array = to_array(source, values)[cut:]
    expected = [apply(transform, source, value) for value in values[cut:]]
    if (
        any(isinstance(v, int) and not -(2**31) <= v < 2**31 for v in expected)
        and result_type(transform, source) == INT != source
    ):
        with pytest.raises(InvalidDataError, match="32 bits"):
            apply_transform(transform, source, array)
        return
    if isinstance(source, DecimalType) and any(_digits(v) > source.precision for v in expected):
        with pytest.raises(InvalidDataError, match="has more digits"):
            apply_transform(transform, source, array)
        return
    found = apply_transform(transform, source, array)
    assert found.type == to_arrow(result_type(transform, source))
    assert in_memory(found) == expected


def cases(name: str) -> list[dict[str, Any]]:
    return load_vectors()[name] if corpus_tables() else []


@pytest.mark.parametrize("case", cases("transforms"), ids=lambda c: f"{c['transform']} {c['type']}")
def test_transforms_of_java_are_matched(case):
    transform, source = parse_transform(case["transform"]), parse_scalar(case["type"])
    value = from_json(source, case["value"])
    result = result_type(transform, source)
    expected = from_json(result, case["result"])
    assert in_memory(apply_transform(transform, source, to_array(source, [None, value]))) == [
        None,
        expected,
    ]


BUCKETED = [
    case
    for case in cases("bucket_hash")
    if can_transform(BucketTransform(1), parse_scalar(case["type"]))
]


@pytest.mark.parametrize("case", BUCKETED, ids=lambda c: f"{c['type']} {c['value']}")
def test_published_hashes_are_matched(case):
    source = parse_scalar(case["type"])
    array = to_array(source, [from_json(source, case["value"])])
    most = 2**31 - 1
    found = apply_transform(BucketTransform(most), source, array).to_pylist()
    assert found == [(case["hash"] & most) % most]


@given(st.lists(INT64, max_size=20))
def test_hashes_of_integers_are_murmur3(values):
    expected = [mmh3.hash(v.to_bytes(8, "little", signed=True), 0, signed=False) for v in values]
    assert hash_longs(np.array(values, np.int64)).tolist() == expected


@given(st.lists(st.one_of(st.binary(max_size=12), st.binary(min_size=250, max_size=270))))
def test_hashes_of_slices_are_murmur3(values):
    data = np.frombuffer(b"".join(values), np.uint8)
    lengths = np.array([len(v) for v in values], np.int64)
    starts = np.cumsum(lengths) - lengths
    expected = [mmh3.hash(v, 0, signed=False) for v in values]
    assert hash_slices(data, starts, lengths).tolist() == expected


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 16, 29, 255, 257])
def test_hashes_of_slices_of_one_length_are_murmur3(length, gap):
    data = np.random.default_rng(length).integers(0, 256, 40 * (length + gap), np.uint8)
    starts = np.arange(40) * (length + gap)
    expected = [mmh3.hash(data[at : at + length].tobytes(), 0, signed=False) for at in starts]
    assert hash_slices(data, starts, np.full(40, length)).tolist() == expected


def test_integers_next_to_the_minimum_wrap_around_like_javas():
    found = apply_transform(TruncateTransform(10), INT, pa.array([-(2**31), 5], pa.int32()))
    assert found.to_pylist() == [2**31 - 2, 0]


def test_decimals_are_truncated_towards_minus_infinity_beyond_64_bits():
    source = DecimalType(38, 2)
    values = [
        Decimal("-123456789012345678901234567890.01"),
        Decimal("123456789012345678901234567890.99"),
        Decimal("-0.01"),
    ]
    found = apply_transform(TruncateTransform(50), source, to_array(source, values))
    assert found.to_pylist() == [
        Decimal("-123456789012345678901234567890.50"),
        Decimal("123456789012345678901234567890.50"),
        Decimal("-0.50"),
    ]


def test_a_decimal_that_is_truncated_beyond_its_type_is_refused():
    source = DecimalType(10, 2)
    least = to_array(source, [None, Decimal("-99999999.99")])
    with pytest.raises(InvalidDataError, match=r"truncate\[10\].*decimal128\(10, 2\)"):
        apply_transform(TruncateTransform(10), source, least)


def test_what_cannot_be_transformed_is_refused_by_name():
    with pytest.raises(InvalidDataError, match=r"bucket\[4\] does not accept type double"):
        apply_transform(BucketTransform(4), DOUBLE, pa.array([1.0]))
    with pytest.raises(InvalidDataError, match="hour does not accept type date"):
        apply_transform(HourTransform(), DATE, pa.array([1], pa.date32()))
    with pytest.raises(InvalidDataError, match="identity does not accept"):
        apply_transform(IdentityTransform(), StructType(()), pa.array([{}], pa.struct([])))
    with pytest.raises(UnsupportedFeatureError, match="'zorder' is unknown: expected identity"):
        apply_transform(UnknownTransform("zorder"), INT, pa.array([1], pa.int32()))
    with pytest.raises(UnsupportedFeatureError, match="31 bits"):
        apply_transform(TruncateTransform(2**31), LONG, pa.array([1]))


def test_types_without_width_pass_through_identity_and_void():
    for source, array in [(BOOLEAN, pa.array([True, None])), (UNKNOWN, pa.nulls(2))]:
        assert apply_transform(IdentityTransform(), source, array).equals(array)
        nothing = apply_transform(VoidTransform(), source, array)
        assert (nothing.type, nothing.null_count) == (array.type, 2)
