"""Sort keys along curves: their order, and how columns share them."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st
from strategies.spec_values import decimals, values_of

from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.types import to_array
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
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    ScalarType,
)
from icebergds.write.rows.curve_keys import (
    CurveName,
    can_order,
    curve_keys,
    hilbert,
    z_order,
)
from icebergds.write.rows.ranks import Ranks, sample_ranks

CURVES: list[CurveName] = ["zorder", "hilbert"]
LONGEST = 80
"""As many bytes as the longest value of `values_of` has, so that keys tell all values apart."""
DOUBLES = [-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 2.5, math.inf, math.nan]
CLOSE: dict[ScalarType, st.SearchStrategy[Any]] = {
    STRING: st.text("ab\0\uffff\U0001f600", max_size=3).map("a long common prefix ".__add__),
    BINARY: st.binary(max_size=2).map((b"\xff" * 13).__add__),
    FLOAT: st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan]),
    DOUBLE: st.sampled_from(DOUBLES),
    LONG: st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1]),
    DecimalType(38, 1): decimals(2, 1) | decimals(20, 1),
}
"""Values that are hard to tell apart."""
KINDS: list[ScalarType] = [
    *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, STRING, BINARY, UUID),
    *(TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS, FixedType(3), FixedType(17)),
    *(DecimalType(p, s) for p, s in [(9, 2), (18, 0), (19, 19), (25, 5), (38, 1)]),
]
of_every_type = pytest.mark.parametrize("kind", KINDS, ids=str)


def values_near(kind: ScalarType) -> st.SearchStrategy[Any]:
    close = CLOSE.get(kind, st.nothing())
    return st.none() | close | close | values_of(kind)


def ordered(value: Any) -> Any:
    """What Python compares as Iceberg orders values: null first, NaN last, text by UTF-8 bytes."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    return (1, value.encode() if isinstance(value, str) else value)


def keys_of(kind: IcebergType, values: Sequence[Any], **more: Any) -> list[Any]:
    keys = curve_keys("zorder", [to_array(kind, values)], [kind], **more)
    assert keys.null_count == 0
    return keys.to_pylist()  # type: ignore[no-any-return]


@of_every_type
@examples(60)
@given(st.data())
def test_keys_of_one_column_are_in_the_order_of_its_values(
    kind: ScalarType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(values_near(kind), max_size=10))
    keys = keys_of(kind, values, var_length_contribution=LONGEST)
    for (one, key), (other, other_key) in product(zip(values, keys, strict=True), repeat=2):
        if ordered(one) == ordered(other):
            assert key == other_key
        elif key != other_key:
            assert (ordered(one) < ordered(other)) == (key < other_key)
        else:
            assert may_share_a_key(kind, one, other)


def may_share_a_key(kind: IcebergType, one: Any, other: Any) -> bool:
    """Whether the values are null and the lowest, differ by zeros at the end, or are wide."""
    if one is None or other is None:
        value = other if one is None else one
        return key_is_zero(kind, value)
    if isinstance(kind, DecimalType):
        return kind.precision > 18
    padded = (ordered(value)[1].rstrip(b"\0") for value in (one, other))
    return len(set(padded)) == 1


def key_is_zero(kind: IcebergType, value: Any) -> bool:
    key = keys_of(kind, [value], var_length_contribution=LONGEST)[0]
    return key in (-(2**63), bytes(LONGEST))


@of_every_type
@examples(60)
@given(st.data())
def test_ranks_are_never_lower_for_greater_values(kind: ScalarType, data: st.DataObject) -> None:
    sample, others = (data.draw(st.lists(values_near(kind), max_size=8)) for _ in range(2))
    ranks = sample_ranks(to_array(kind, sample), kind)
    values = sorted([*sample, *others], key=ordered)
    found = ranks.of(to_array(kind, values)).tolist()
    assert found == sorted(found)
    for (one, rank), (other, other_rank) in pairwise(zip(values, found, strict=True)):
        assert rank == other_rank or ordered(one) != ordered(other)
        assert rank != other_rank or (one is None) == (other is None)


@of_every_type
@examples(60)
@given(st.data())
def test_ranks_tell_the_values_of_a_small_sample_apart(
    kind: ScalarType, data: st.DataObject
) -> None:
    sample = data.draw(st.lists(values_near(kind), min_size=1, max_size=8))
    ranks = sample_ranks(to_array(kind, sample), kind)
    found = dict(zip(map(unpadded, sample), ranks.of(to_array(kind, sample)), strict=True))
    assert len(set(found.values())) == len(found)


def unpadded(value: Any) -> Any:
    """Strings that differ only by zeros at the end, or after 48 bytes, may share a rank."""
    kept = ordered(value)
    return (kept[0], kept[1][:48].rstrip(b"\0")) if isinstance(kept[-1], bytes) else kept


def test_a_repeated_value_has_the_room_of_its_rows_and_leaves_the_others_theirs() -> None:
    sample = [7] * 90_000 + list(range(-5000, 5000))
    ranks = sample_ranks(to_array(LONG, sample), LONG)
    low, at, high = ranks.of(to_array(LONG, [-5000, 7, 4999])).tolist()
    assert low < 0.001 * 2**16
    assert high > 0.999 * 2**16
    assert at == pytest.approx(0.5 * 2**16, rel=0.01)
    near = ranks.of(to_array(LONG, range(-4990, 4990, 50)))
    assert len(np.unique(near)) == len(near)


def test_ranks_spread_the_rows_of_a_skewed_column_evenly() -> None:
    values = pa.array(np.random.default_rng(3).lognormal(0, 5, 50_000))
    found = sample_ranks(values.slice(0, 10_000), DOUBLE).of(values)
    sixteenths = np.bincount(found >> 12, minlength=16) / len(values)
    assert sixteenths == pytest.approx(1 / 16, rel=0.1)


def test_ranks_of_text_reach_behind_a_long_common_prefix() -> None:
    values = [f"s3://bucket/{'folder/' * 30}{n:07d}" for n in range(3000)]
    found = sample_ranks(to_array(STRING, values), STRING).of(to_array(STRING, values))
    assert len(np.unique(found)) == 3000


def test_nulls_of_a_sample_take_their_share_of_the_ranks() -> None:
    sample = [None] * 600 + list(range(400))
    ranks = sample_ranks(to_array(INT, sample), INT)
    null, lowest, middle = ranks.of(to_array(INT, [None, 0, 200])) / 2**16
    assert (null, lowest, middle) == pytest.approx((0.3, 0.6, 0.8), abs=0.01)


@pytest.mark.parametrize("sample", [[], [None, None]])
@pytest.mark.parametrize("kind", [LONG, STRING])
def test_a_sample_without_values_still_puts_nulls_first(kind: ScalarType, sample: Any) -> None:
    value = 1 if kind == LONG else "a"
    null, found = sample_ranks(to_array(kind, sample), kind).of(to_array(kind, [None, value]))
    assert null < found


@st.composite
def points(draw: st.DrawFn) -> list[list[bytes]]:
    """Dimensions of up to 3 bytes, each a list of points."""
    widths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=17))
    count = draw(st.integers(1, 3))
    return [
        draw(st.lists(st.binary(min_size=w, max_size=w), min_size=count, max_size=count))
        for w in widths
    ]


def matrix(values: Sequence[bytes]) -> Any:
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1)


def bits_of(value: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in value)


@examples(300)
@given(points())
def test_z_order_takes_a_bit_of_each_dimension_in_turn(dimensions) -> None:  # type: ignore[no-untyped-def]
    found = [row.tobytes() for row in z_order([matrix(part) for part in dimensions])]
    for row, point in zip(found, zip(*dimensions, strict=True), strict=True):
        texts = [bits_of(value) for value in point]
        turns = range(max(map(len, texts)))
        assert bits_of(row) == "".join(t[at] for at in turns for t in texts if at < len(t))


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 8), (2, 8), (3, 5), (4, 4), (5, 3), (7, 2)])
def test_hilbert_visits_each_cell_of_a_grid_once_moving_to_a_neighbour(
    dimensions: int, bits: int
) -> None:
    side = range(1 << bits)
    cells = np.array(list(product(side, repeat=dimensions)), np.uint8) << np.uint8(8 - bits)
    found = hilbert([cells[:, [at]] for at in range(dimensions)])
    # The leading bits of a point are the cell, and those of its key the place of the cell.
    places = np.array(
        [int.from_bytes(row, "big") >> (8 - bits) * dimensions for row in found.tolist()]
    )
    assert sorted(places) == list(range(len(cells)))
    steps = np.abs(np.diff((cells >> np.uint8(8 - bits))[np.argsort(places)].astype(int), axis=0))
    assert (steps.sum(axis=1) == 1).all()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8])
def test_hilbert_of_wide_points_moves_to_a_neighbour(width: int) -> None:
    limit = 1 << 8 * width
    start = np.random.default_rng(width).integers(0, limit - 20, 2, dtype=np.uint64)
    cells = [(int(start[0]) + a, int(start[1]) + b) for a, b in product(range(16), repeat=2)]
    sides = [matrix([cell[at].to_bytes(width, "big") for cell in cells]) for at in range(2)]
    places = {
        int.from_bytes(row.tobytes(), "big"): cell
        for row, cell in zip(hilbert(sides), cells, strict=True)
    }
    assert len(places) == len(cells)
    followers = [(places[at], places[at + 1]) for at in places if at + 1 in places]
    assert len(followers) > 200
    assert all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in followers)


def test_hilbert_fills_up_narrow_dimensions_with_zeros() -> None:
    narrow, wide = matrix([b"\x12"]), matrix([b"\x34\x56"])
    assert hilbert([narrow, wide]).tolist() == hilbert([matrix([b"\x12\0"]), wide]).tolist()


@of_every_type
@examples(40)
@given(st.data())
def test_keys_do_not_depend_on_how_rows_are_divided(kind: ScalarType, data: st.DataObject) -> None:
    values = to_array(kind, data.draw(st.lists(values_near(kind), max_size=6)))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, 6)] * 2)))
    curve = data.draw(st.sampled_from(CURVES))
    ranks = data.draw(st.sampled_from([None, [sample_ranks(values[first:last], kind)] * 2]))

    def keys(column: pa.Array | pa.ChunkedArray) -> pa.Array:
        return curve_keys(curve, [column, column], [kind, kind], ranks=ranks)

    whole = keys(values)
    assert keys(values[first:last]).equals(whole[first:last])
    parts = [values[:first], values[first:last], values[last:]]
    assert keys(pa.chunked_array(parts)).equals(whole)
    assert keys(pa.chunked_array([], values.type)).equals(whole[:0])


def test_rows_with_equal_values_have_equal_keys_and_others_do_not() -> None:
    columns = [to_array(LONG, [5, None, 5, 5]), to_array(STRING, ["ab", "ab", None, "ab"])]
    ranks = [sample_ranks(columns[0], LONG), sample_ranks(columns[1], STRING)]
    for curve, given_ranks in product(CURVES, (None, ranks)):
        keys = curve_keys(curve, columns, [LONG, STRING], ranks=given_ranks).to_pylist()
        assert keys[0] == keys[3]
        assert len(set(keys)) == 3


def test_the_first_bit_of_a_boolean_tells_its_values_apart() -> None:
    columns = [to_array(BOOLEAN, [False, True]), to_array(LONG, [2**62, 2**61])]
    falsy, truthy = curve_keys("zorder", columns, [BOOLEAN, LONG]).to_pylist()
    assert falsy < truthy


def test_hilbert_uses_8_bytes_of_longer_columns() -> None:
    def key(text: str) -> Any:
        rows = [to_array(STRING, [text]), to_array(LONG, [1])]
        return curve_keys("hilbert", rows, [STRING, LONG], var_length_contribution=12)[0]

    assert key("abcdefgh") == key("abcdefghijkl") != key("abcdefgi")
    assert len(key("abcdefgh").as_py()) == 16


@pytest.mark.parametrize("curve", CURVES)
def test_keys_of_many_rows_are_those_of_each(curve: CurveName) -> None:
    numbers = np.random.default_rng(1).integers(-100, 100, 40_000)
    columns = [pa.array(numbers), pa.array(numbers[::-1].copy()).cast(pa.string())]
    ranks = [None, sample_ranks(columns[1], STRING)]
    whole = curve_keys(curve, columns, [LONG, STRING], ranks=ranks)
    for first in (0, 16_383, 16_384, 39_999):
        part = curve_keys(
            curve, [c[first : first + 1] for c in columns], [LONG, STRING], ranks=ranks
        )
        assert part[0] == whole[first]


@pytest.mark.parametrize(
    ("kind", "values", "other"),
    [
        (STRING, ["b", None, "a"], pa.dictionary(pa.int32(), pa.string())),
        (STRING, ["b", None, "a"], pa.large_string()),
        (TIMESTAMPTZ, [5, None, -7], pa.timestamp("us", tz="Europe/Berlin")),
    ],
)
def test_other_arrow_types_of_a_column_give_the_same_keys(
    kind: ScalarType, values: list[Any], other: pa.DataType
) -> None:
    plain = to_array(kind, values)
    same = plain.cast(other)
    for ranks in (None, [sample_ranks(same, kind)]):
        expected = curve_keys("zorder", [plain], [kind], ranks=ranks)
        assert curve_keys("zorder", [same], [kind], ranks=ranks).equals(expected)


def test_pickled_ranks_are_the_same() -> None:
    values = to_array(STRING, ["a", "b", "bb"])
    ranks = sample_ranks(values, STRING)
    copy: Ranks = pickle.loads(pickle.dumps(ranks))
    assert copy.of(values).tolist() == ranks.of(values).tolist()


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(
    ("ranked", "plain", "options", "width"),
    [
        (1, [], {}, 2),
        (4, [], {}, 8),
        (5, [], {}, 10),
        (0, [LONG], {}, 8),
        (0, [LONG, STRING], {}, 16),
        (0, [STRING], {"var_length_contribution": 3}, 3),
        (16, [], {}, 32),
    ],
)
def test_keys_of_at_most_8_bytes_are_integers(
    curve: CurveName, ranked: int, plain: list[ScalarType], options: dict[str, int], width: int
) -> None:
    sample = sample_ranks(to_array(INT, [1, 2]), INT)
    types = [INT] * ranked + plain
    ranks = [sample] * ranked + [None] * len(plain)
    rows = [to_array(kind, [1 if kind in (INT, LONG) else "a"]) for kind in types]
    keys = curve_keys(curve, rows, types, ranks=ranks, **options)  # type: ignore[arg-type]
    assert keys.type == (pa.int64() if width <= 8 else pa.binary())
    if width > 8:
        assert len(keys[0].as_py()) == width


@pytest.mark.parametrize(
    ("types", "options", "message"),
    [
        ([], {}, "needs one column or more"),
        ([LONG, ListType(1, INT)], {}, "cannot sort by a column of type list"),
        ([UNKNOWN], {}, "cannot sort by a column of type unknown"),
        ([LONG], {"var_length_contribution": 0}, "var-length-contribution is 0"),
    ],
)
def test_arguments_without_a_key_are_refused(
    types: list[IcebergType], options: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        curve_keys("zorder", [pa.nulls(1) for _ in types], types, **options)  # type: ignore[arg-type]


@of_every_type
def test_all_types_with_an_order_can_be_part_of_a_key(kind: ScalarType) -> None:
    assert can_order(kind)
