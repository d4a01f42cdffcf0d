from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.types import to_arrow
from icebergds.formats.deletes import key_hash
from icebergds.scan.read import key_index, key_set
from icebergds.scan.read.hash_table import FREE, HashTable
from icebergds.scan.read.key_set import EqualityKeySet, EqualityKeySetBuilder
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
    NestedField,
    StructType,
)

_INTS = {INT: 32, DATE: 32, LONG: 64, TIMESTAMP: 64, TIMESTAMPTZ: 64}
_SCALARS: list[IcebergType] = [
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    STRING,
    BINARY,
    UUID,
    UNKNOWN,
    DecimalType(9, 2),
    DecimalType(18, 0),
    DecimalType(19, 4),
    DecimalType(38, 10),
    FixedType(1),
    FixedType(8),
    FixedType(16),
    FixedType(21),
]


def _values(field_type: IcebergType) -> st.SearchStrategy[Any]:
    """Few different values, so that keys meet, and the awkward ones among them."""
    match field_type:
        case DecimalType(precision=precision, scale=scale):
            most = 10**precision - 1
            return st.sampled_from([0, 1, -1, 5, most, -most, 2**62 % most]).map(
                lambda unscaled: Decimal(unscaled).scaleb(-scale, _EXACT)
            )
        case FixedType(length=length):
            return st.sampled_from([bytes(length), b"\x01" * length, b"\xff" * length])
    if field_type == BOOLEAN:
        return st.booleans()
    if field_type == UNKNOWN:
        return st.none()
    if field_type in (FLOAT, DOUBLE):
        return st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 2.0**-126])
    if field_type == UUID:
        return st.sampled_from([bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), b"\xff" * 16])
    if field_type == STRING:
        return _TEXTS
    if field_type == BINARY:
        return st.one_of(_TEXTS.map(str.encode), st.binary(max_size=2))
    if field_type == TIME:
        return st.sampled_from([0, 1, 86_399_999_999])
    bits = _INTS.get(field_type, 64)
    return st.sampled_from(
        [0, 1, 2, 3, 7, -1, 2**31 - 1, -(2**31), 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    )


_EXACT = Context(prec=60)
_TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "b", "ab", "\0", "\0\0", "abcdefgh", "abcdefg\0", "abcdefghi", "äöü"]
    ),
    st.builds(
        lambda char, length, last: char * length + last,
        st.sampled_from("xy"),
        st.sampled_from([7, 8, 15, 63, 64, 65, 72, 200, 1000]),
        st.sampled_from(["", "x", "y"]),
    ),
)


def _array(field_type: IcebergType, values: Sequence[Any]) -> pa.Array:
    arrow = to_arrow(field_type)
    if pa.types.is_date(arrow):
        return pa.array(values, pa.int32()).cast(arrow)
    if pa.types.is_timestamp(arrow) or pa.types.is_time(arrow):
        return pa.array(values, pa.int64()).cast(arrow)
    if field_type == FLOAT:
        return pa.array(values, pa.float64()).cast(arrow)
    return pa.array(values, arrow)


def _same(value: Any) -> Any:
    """What two values share exactly if they are the same key."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return value


class Model:
    """The set as a dictionary of tuples."""

    def __init__(self) -> None:
        self.newest: dict[tuple[Any, ...], int] = {}

    def add(self, rows: Iterable[tuple[Any, ...]], sequence_number: int) -> None:
        for row in rows:
            key = tuple(map(_same, row))
            self.newest[key] = max(self.newest.get(key, sequence_number), sequence_number)

    def contains(self, rows: Iterable[tuple[Any, ...]], sequence_number: int) -> list[bool]:
        return [
            self.newest.get(tuple(map(_same, row)), sequence_number) > sequence_number
            for row in rows
        ]


def _fields(types: Sequence[IcebergType]) -> tuple[NestedField, ...]:
    return tuple(NestedField(i + 1, f"c{i}", t) for i, t in enumerate(types))


def _columns(types: Sequence[IcebergType], rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
    return [_array(t, [row[i] for row in rows]) for i, t in enumerate(types)]


def _sliced(column: pa.Array) -> pa.Array:
    """The same values behind others, so that offsets are not 0."""
    return pa.concat_arrays([column, column, column]).slice(len(column), len(column))


def _key_set(
    types: Sequence[IcebergType], files: Sequence[tuple[Sequence[tuple[Any, ...]], int]]
) -> EqualityKeySet:
    builder = EqualityKeySetBuilder(_fields(types))
    for rows, sequence_number in files:
        builder.add(_columns(types, rows), sequence_number)
    return builder.build()


def _rows(types: Sequence[IcebergType], max_size: int) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(st.tuples(*(st.none() | _values(t) for t in types)), max_size=max_size)


def _agrees(
    types: Sequence[IcebergType],
    files: Sequence[tuple[Sequence[tuple[Any, ...]], int]],
    probes: Sequence[tuple[Any, ...]],
    is_counted: bool = True,
) -> None:
    model = Model()
    for rows, sequence_number in files:
        model.add(rows, sequence_number)
    keys = _key_set(types, files)
    assert not is_counted or len(keys) == len(model.newest)
    columns = _columns(types, probes)
    for sequence_number in range(6):
        expected = model.contains(probes, sequence_number)
        assert keys.contains(columns, sequence_number).tolist() == expected
        sliced = [_sliced(column) for column in columns]
        assert keys.contains(sliced, sequence_number).tolist() == expected


@examples(25)
@given(st.data())
@pytest.mark.parametrize("field_type", _SCALARS, ids=str)
def test_one_key_column_is_a_dictionary(field_type: IcebergType, data: st.DataObject) -> None:
    types = (field_type,)
    files = data.draw(st.lists(st.tuples(_rows(types, 8), st.integers(1, 5)), max_size=4))
    _agrees(types, files, data.draw(_rows(types, 20)))


@examples(100)
@given(st.data())
def test_many_key_columns_are_a_dictionary(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(_SCALARS), min_size=2, max_size=4))
    files = data.draw(st.lists(st.tuples(_rows(types, 8), st.integers(1, 5)), max_size=4))
    probes = data.draw(_rows(types, 20))
    for rows, _ in files:
        probes.extend(rows)
    _agrees(types, files, probes)


@examples(60)
@given(st.data())
def test_keys_whose_hashes_collide_are_told_apart(data: st.DataObject) -> None:
    types = (STRING, INT)
    files = data.draw(st.lists(st.tuples(_rows(types, 8), st.integers(1, 5)), max_size=3))
    probes = data.draw(_rows(types, 20))

    def few_hashes(columns: Any, length: int, seed: int) -> Any:
        hashes = key_hash.hash_columns(columns, length, seed)
        return hashes & np.uint64(0x8000_0000_0000_0001)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_set, "hash_columns", few_hashes)
        patch.setattr(key_index, "hash_columns", few_hashes)
        # Repeated keys may stay repeated where others share their hash.
        _agrees(types, files, [*probes, *(row for rows, _ in files for row in rows)], False)


@examples(50)
@given(st.data())
def test_merging_while_building_changes_nothing(data: st.DataObject) -> None:
    types = data.draw(st.sampled_from([(LONG,), (STRING,), (INT, STRING)]))
    files = data.draw(st.lists(st.tuples(_rows(types, 6), st.integers(1, 5)), max_size=12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_set, "_MIN_MERGED_ROWS", 3)
        _agrees(types, files, data.draw(_rows(types, 20)))


@examples(40)
@given(
    st.sampled_from([1, 2, 3, 10, 86_400_000_000, 2**16, 2**31, 2**32, 2**40, 2**48, 2**52, 2**61]),
    st.integers(-(2**40), 2**40),
    st.integers(1, 3000),
)
def test_regular_keys_do_not_pile_up(step: int, start: int, count: int) -> None:
    values = np.arange(count, dtype=np.int64) * np.int64(step) + np.int64(start)
    values = np.unique(values)
    builder = EqualityKeySetBuilder(_fields((LONG,)))
    builder.add([pa.array(values)], 1)
    keys = builder.build()
    table = keys._index._table  # type: ignore[union-attr]
    assert not isinstance(table, HashTable) or table.displacement <= 256
    assert keys.contains([pa.array(values)], 0).all()
    others = np.setdiff1d(np.concatenate((values + 1, values - 1)), values)
    assert not keys.contains([pa.array(others)], 0).any()


@examples(25)
@given(st.data())
def test_keys_that_pile_up_are_mixed_again(data: st.DataObject) -> None:
    files = data.draw(st.lists(st.tuples(_rows((LONG,), 8), st.integers(1, 5)), max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "_MAX_DISPLACEMENT", -1)
        _agrees((LONG,), files, data.draw(_rows((LONG,), 20)))


def test_a_key_that_looks_like_a_free_slot_is_found() -> None:
    builder = EqualityKeySetBuilder(_fields((LONG,)))
    unlucky = key_hash.unmix(np.array([FREE]), builder._multiplier).view(np.int64)
    values = np.concatenate((unlucky, unlucky // 2))
    builder.add([pa.array(values)], 1)
    keys = builder.build()
    assert keys.contains([pa.array(values)], 0).all()
    assert not keys.contains([pa.array(values + 1)], 0).any()


def test_large_sets_are_exact() -> None:
    rng = np.random.default_rng(5)
    for bound in (2**62, 1_000_000):
        keys = rng.integers(-bound, bound, 300_000)
        probes = np.concatenate((keys[:50_000], rng.integers(-bound, bound, 100_000)))
        builder = EqualityKeySetBuilder(_fields((LONG,)))
        for part in np.split(keys, 10):
            builder.add([pa.array(part)], 7)
        found = builder.build().contains([pa.array(probes)], 6)
        np.testing.assert_array_equal(found, np.isin(probes, keys))


def test_large_sets_of_text_are_exact() -> None:
    rng = np.random.default_rng(6)
    numbers = rng.integers(0, 1_000_000, 200_000)
    probes = rng.integers(0, 1_000_000, 100_000)
    builder = EqualityKeySetBuilder(_fields((STRING, INT)))
    for part, sequence_number in ((numbers[:150_000], 3), (numbers[50_000:], 5)):
        text = pa.array(part).cast(pa.string())
        builder.add([text, pa.array(part % 7, pa.int32())], sequence_number)
    keys = builder.build()
    columns = [pa.array(probes).cast(pa.string()), pa.array(probes % 7, pa.int32())]
    np.testing.assert_array_equal(keys.contains(columns, 2), np.isin(probes, numbers))
    np.testing.assert_array_equal(keys.contains(columns, 3), np.isin(probes, numbers[50_000:]))
    assert not keys.contains(columns, 5).any()


def test_only_newer_deletes_apply() -> None:
    keys = _key_set((INT,), [([(1,), (2,)], 5), ([(1,)], 3), ([(3,)], 3)])
    column = [pa.array([1, 2, 3, 4], pa.int32())]
    assert keys.contains(column, 2).tolist() == [True, True, True, False]
    assert keys.contains(column, 3).tolist() == [True, True, False, False]
    assert keys.contains(column, 5).tolist() == [False] * 4


def test_a_null_key_deletes_null_only() -> None:
    keys = _key_set((INT,), [([(None,)], 2)])
    column = [pa.array([0, None, 1], pa.int32())]
    assert keys.contains(column, 1).tolist() == [False, True, False]
    assert keys.contains(column, 2).tolist() == [False] * 3


def test_bytes_under_a_null_do_not_count() -> None:
    types = (STRING, LONG)
    keys = _key_set(types, [([(None, None)], 2)])
    plain = [pa.array(["under", "a"]), pa.array([5, 6])]
    first_is_null = pa.array([False, True]).buffers()[1]
    columns = [
        pa.Array.from_buffers(column.type, 2, [first_is_null, *column.buffers()[1:]])
        for column in plain
    ]
    assert columns[0].to_pylist() == [None, "a"]
    assert keys.contains(columns, 1).tolist() == [True, False]


def test_null_has_its_own_sequence_number() -> None:
    keys = _key_set((INT,), [([(None,), (1,)], 2), ([(1,)], 4)])
    column = [pa.array([1, None], pa.int32())]
    assert keys.contains(column, 2).tolist() == [True, False]


def test_float_keys_compare_like_java() -> None:
    keys = _key_set((DOUBLE,), [([(-0.0,), (math.nan,)], 2)])
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    column = [pa.array([0.0, -0.0, other_nan, 1.0])]
    assert keys.contains(column, 1).tolist() == [False, True, True, False]


def test_columns_from_before_a_promotion_are_compared() -> None:
    cases = [
        (LONG, [7], pa.array([7, 8], pa.int32())),
        (DOUBLE, [1.5], pa.array([1.5, 2.5], pa.float32())),
        (DecimalType(20, 2), [Decimal("1.25")], pa.array([Decimal("1.25"), Decimal("1.50")])),
        (TIMESTAMP, [86_400_000_000], pa.array([1, 2], pa.int32()).cast(pa.date32())),
    ]
    for field_type, values, column in cases:
        keys = _key_set((field_type,), [([(value,) for value in values], 2)])
        assert keys.contains([column], 1).tolist() == [True, False], field_type


def test_a_column_of_another_type_is_refused_by_name() -> None:
    keys = _key_set((INT,), [([(1,)], 2)])
    with pytest.raises(UnsupportedFeatureError, match=r"key 1 \(c0\) of type int.*string"):
        keys.contains([pa.array(["1"])], 1)


@pytest.mark.parametrize(
    "field_type",
    [VARIANT, GeometryType(), ListType(9, INT), StructType((NestedField(9, "x", INT),))],
    ids=str,
)
def test_types_without_equality_are_refused_by_name(field_type: IcebergType) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"field 1 \(c0\)"):
        EqualityKeySetBuilder(_fields((field_type,)))


def test_an_empty_set_deletes_nothing() -> None:
    for types in ((INT,), (STRING,), (INT, STRING)):
        keys = _key_set(types, [])
        assert len(keys) == 0
        probes = [(None,) * len(types)] * 3
        assert not keys.contains(_columns(types, probes), 0).any()


def test_an_empty_batch_is_probed() -> None:
    keys = _key_set((INT, STRING), [([(1, "a")], 2)])
    assert keys.contains(_columns((INT, STRING), []), 0).tolist() == []


def test_repeated_keys_take_no_memory() -> None:
    column = [pa.array(np.arange(1000) * 2**40)]
    once, often = (EqualityKeySetBuilder(_fields((LONG,))) for _ in range(2))
    once.add(column, 1)
    for _ in range(50):
        often.add(column, 1)
    assert often.build().nbytes < 1.1 * once.build().nbytes


@pytest.mark.parametrize("step", [1, 7, 100])
def test_keys_of_a_small_range_take_no_more_memory_than_hashed_ones(step: int) -> None:
    sizes = []
    for values in (np.arange(10_000) * step, np.arange(10_000) * 2**40):
        builder = EqualityKeySetBuilder(_fields((LONG,)))
        builder.add([pa.array(values)], 1)
        sizes.append(builder.build().nbytes)
    assert sizes[0] <= 10_000 * step / 8 + 2
    assert sizes[0] <= sizes[1]


@examples(100)
@given(
    st.sampled_from([-(2**63), -3, 0, 2**63 - 1000]),
    st.sets(st.integers(0, 999), min_size=100, max_size=300),
    st.booleans(),
)
def test_keys_of_a_small_range_are_found_and_no_others(
    first: int, offsets: set[int], has_two_numbers: bool
) -> None:
    values = np.array([first + offset for offset in sorted(offsets)], np.int64)
    builder = EqualityKeySetBuilder(_fields((LONG,)))
    builder.add([pa.array(values)], 1)
    if has_two_numbers:
        builder.add([pa.array(values[::2])], 2)
    keys = builder.build()
    assert not isinstance(keys._index._table, HashTable)  # type: ignore[union-attr]
    probes = np.array([*range(first, first + 1000), -(2**63), 2**63 - 1, 5], np.int64)
    found = keys.contains([pa.array(probes)], 0)
    np.testing.assert_array_equal(found, np.isin(probes, values))
    newer = values[::2] if has_two_numbers else []
    np.testing.assert_array_equal(keys.contains([pa.array(probes)], 1), np.isin(probes, newer))


def test_long_texts_of_any_lengths_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    texts = ["z" * int(n) for n in rng.integers(0, 3000, 200)]
    changed = [t[: len(t) // 2] + "y" + t[len(t) // 2 + 1 :] for t in texts if t]
    keys = _key_set((STRING,), [([(t,) for t in texts], 1)])
    assert keys.contains([pa.array(texts)], 0).all()
    assert not keys.contains([pa.array(changed)], 0).any()


def test_hashes_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "a", "b" * 9, "c" * 64, "d" * 65, "e" * 4000, None, "f" * 130]
    field = _fields((STRING,))[0]

    def hashes(values: list[str | None]) -> list[int]:
        column = key_set.encode_column(pa.array(values, pa.string()), field)
        return key_hash.hash_columns([column], len(values), 17).tolist()

    together = hashes(texts)
    assert [hashes([text])[0] for text in texts] == together
    monkeypatch.setattr(key_hash, "_WORDS_AT_ONCE", 10)
    assert hashes(texts) == together


@given(
    st.sets(st.integers(0, 2**64 - 2) | st.integers(2**64 - 9, 2**64 - 2), max_size=50),
    st.lists(st.integers(2**64 - 9, 2**64 - 1) | st.integers(0, 3), max_size=10),
)
def test_a_slot_table_finds_its_values_and_no_others(values: set[int], others: list[int]) -> None:
    ordered = np.array(sorted(values), dtype=np.uint64)
    table = HashTable(ordered, np.arange(len(ordered), dtype=np.uint32))
    probes = np.array([*values, *others], dtype=np.uint64)
    rows, payload = table.find(probes)
    assert payload is not None
    np.testing.assert_array_equal(ordered[payload], probes[rows])
    assert sorted(rows) == [i for i, p in enumerate(probes.tolist()) if p in values]
    assert int(FREE) not in values


def test_values_that_crowd_at_the_end_of_a_slot_table_are_found() -> None:
    values = np.arange(2**64 - 1001, 2**64 - 1, dtype=np.uint64)
    table = HashTable(values)
    assert len(table.find(values)[0]) == 1000
    assert len(table.find(values - np.uint64(1000))[0]) == 0
