"""Every row goes to its partition, once, and keeps its place among its neighbours there."""

from __future__ import annotations

import math
import pickle
import struct
from typing import Any

import pyarrow as pa
import pytest
from built.rows import record_batch
from built.schemas import spec_of
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.formats.arrow.types import schema_to_arrow, to_arrow
from icebergds.spec.manifest import values_key
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
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
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icebergds.spec.values.decimals import from_unscaled
from icebergds.write.rows.partitioning import PartitionRows, plan_partitioning

NAN_WITH_PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
FLOATS = st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf])
VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-3, 3),
    LONG: st.integers(-(2**40), 2**40),
    FLOAT: FLOATS,
    DOUBLE: FLOATS | st.just(NAN_WITH_PAYLOAD),
    DecimalType(9, 2): st.integers(-300, 300).map(lambda number: from_unscaled(number, 2)),
    DATE: st.integers(-40, 40),
    TIME: st.integers(0, 3),
    TIMESTAMP: st.integers(-(10**13), 10**13),
    TIMESTAMPTZ_NS: st.integers(-(10**16), 10**16),
    STRING: st.text("ab\U0001f600", max_size=3),
    BINARY: st.binary(max_size=2),
    UUID: st.sampled_from([bytes(16), bytes(15) + b"a"]),
    FixedType(2): st.sampled_from([b"aa", b"ab"]),
    UNKNOWN: st.none(),
}
TRANSFORMS: list[Transform] = [
    IdentityTransform(),
    BucketTransform(3),
    BucketTransform(1000),
    TruncateTransform(2),
    MonthTransform(),
    DayTransform(),
    VoidTransform(),
]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, Any, list[tuple[Any, ...]]]:
    """A schema with a row number first, a spec of the other columns, and rows."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = [NestedField(at + 2, f"c{at}", kind) for at, kind in enumerate(types)]
    fields = [
        (at + 2, draw(st.sampled_from([t for t in TRANSFORMS if can_transform(t, kind)])))
        for at, kind in enumerate(types)
    ]
    pool = draw(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in types)), max_size=8))
    rows = draw(st.lists(st.sampled_from(pool), max_size=20)) if pool else []
    schema = Schema((NestedField(1, "row", LONG), *columns))
    return schema, spec_of(*fields), [(at, *row) for at, row in enumerate(rows)]


def same(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        return value.hex() == other.hex()
    return bool(value == other)


@examples(300)
@given(tables(), st.integers(0, 3), st.booleans())
def test_every_row_is_in_its_partition_once_and_in_order(table, cut, is_sorted):  # type: ignore[no-untyped-def]
    schema, spec, rows = table
    if is_sorted:
        rows = sorted(rows, key=lambda row: repr(row[1:]))
    batch = record_batch(schema, rows).slice(cut)
    split = plan_partitioning(spec, schema, table="db.t").split(batch)
    seen: list[int] = []
    for part in split:
        numbers = part.batch.column("row").to_pylist()
        assert numbers
        places = [row[0] for row in rows]
        assert [places.index(n) for n in numbers] == sorted(places.index(n) for n in numbers)
        seen.extend(numbers)
        for number in numbers:
            row = rows[places.index(number)]
            for field, value, source in zip(spec.fields, part.partition, row[1:], strict=True):
                column = schema.find_field(field.source_id)
                assert column is not None
                assert same(value, apply(field.transform, column.field_type, source))
    assert sorted(seen) == sorted(row[0] for row in rows[cut:])
    keys = [values_key(part.partition) for part in split]
    assert len(set(keys)) == len(keys)


LONGS = Schema((NestedField(1, "row", LONG), NestedField(2, "k", LONG)))


def split_longs(keys: list[Any], *transforms: Transform) -> list[PartitionRows]:
    spec = spec_of(*((2, transform) for transform in transforms))
    batch = record_batch(LONGS, list(enumerate(keys)))
    return plan_partitioning(spec, LONGS, table="db.t").split(batch)


def test_partitions_come_in_the_order_of_their_first_rows() -> None:
    for keys in ([5, 5, 3, 4, 4], [5, 3, 5, 4, 3]):
        assert [part.partition for part in split_longs(keys, IdentityTransform())] == [
            (5,),
            (3,),
            (4,),
        ]
    split = split_longs([11, 25, 12, 11], TruncateTransform(10), IdentityTransform())
    assert [part.partition[1] for part in split] == [11, 25, 12]


@pytest.mark.parametrize("keys", [[7, 7, 7], [1, 1, 2, 3, 3]])
def test_rows_that_are_together_already_are_not_copied(keys: list[int]) -> None:
    batch = record_batch(LONGS, list(enumerate(keys)))
    spec = spec_of((2, IdentityTransform()))
    for part in plan_partitioning(spec, LONGS, table="db.t").split(batch):
        assert part.batch.column(0).buffers()[1].address == batch.column(0).buffers()[1].address


def test_without_partition_fields_the_batch_is_one_partition() -> None:
    for transforms, partition in (((), ()), ((VoidTransform(),), (None,))):
        (part,) = split_longs([1, 2], *transforms)
        assert part.partition == partition
        assert part.batch.num_rows == 2
    assert split_longs([]) == []


def test_many_more_partitions_than_codes_of_two_bytes() -> None:
    keys = [at * 7919 % 90_001 for at in range(180_000)]
    split = split_longs(keys, IdentityTransform(), BucketTransform(1000))
    assert len(split) == 90_001
    for part in split[::5_000]:
        assert set(part.batch.column("k").to_pylist()) == {part.partition[0]}
        numbers = part.batch.column("row").to_pylist()
        assert numbers == sorted(numbers)
    assert sum(part.batch.num_rows for part in split) == 180_000


def test_rows_of_large_batches_keep_their_order() -> None:
    for part in split_longs([at * 7 % 5 for at in range(5_000)], IdentityTransform()):
        numbers = part.batch.column("row").to_pylist()
        assert numbers == sorted(numbers)


def test_floating_point_partitions_are_told_apart_by_bits_with_one_nan() -> None:
    schema = Schema((NestedField(1, "d", DOUBLE),))
    rows = [(0.0,), (-0.0,), (math.nan,), (NAN_WITH_PAYLOAD,)]
    split = plan_partitioning(spec_of((1, IdentityTransform())), schema, table="t").split(
        record_batch(schema, rows)
    )
    assert [repr(part.partition[0]) for part in split] == ["0.0", "-0.0", "nan"]
    again = {values_key((float(text),)) for text in ("0.0", "-0.0", "nan", "nan")}
    assert len(again) == 3


def test_fields_of_structs_partition_and_null_structs_count_as_null() -> None:
    inner = StructType((NestedField(2, "x", LONG), NestedField(3, "y", LONG)))
    schema = Schema((NestedField(4, "z", LONG), NestedField(1, "s", inner)))
    structs = pa.StructArray.from_arrays(
        # The struct of the second row is null, whatever its fields hold.
        [pa.array([1, 2, 3, 4]), pa.array([5, 5, None, 5])],
        fields=list(to_arrow(inner)),
        mask=pa.array([False, True, False, False]),
    )
    batch = pa.record_batch([pa.array([1, 2, 3, 4]), structs], schema=schema_to_arrow(schema))
    partitioner = plan_partitioning(spec_of((3, IdentityTransform())), schema, table="t")
    split = pickle.loads(pickle.dumps(partitioner)).split(batch)
    assert [(p.partition, p.batch.column("z").to_pylist()) for p in split] == [
        ((5,), [1, 4]),
        ((None,), [2, 3]),
    ]


def test_specs_that_cannot_be_followed_are_refused_by_name_when_planned() -> None:
    nested = Schema((NestedField(1, "l", ListType(2, LONG)),))
    with pytest.raises(UnsupportedFeatureError, match=r"'p0' of table db\.t.*zorder"):
        plan_partitioning(spec_of((2, UnknownTransform("zorder"))), LONGS, table="db.t")
    with pytest.raises(InvalidMetadataError, match="field id 9"):
        plan_partitioning(spec_of((9, IdentityTransform())), LONGS, table="db.t")
    with pytest.raises(InvalidMetadataError, match="does not accept"):
        plan_partitioning(spec_of((2, DayTransform())), LONGS, table="db.t")
    with pytest.raises(InvalidMetadataError, match="inside a list"):
        plan_partitioning(spec_of((2, IdentityTransform())), nested, table="db.t")


def test_batches_of_slices_keep_other_rows_out() -> None:
    batch = record_batch(LONGS, [(0, 9), (1, 1), (2, 2), (3, 1), (4, 9)]).slice(1, 3)
    split = plan_partitioning(spec_of((2, IdentityTransform())), LONGS, table="t").split(batch)
    assert [(p.partition, p.batch.column(0).to_pylist()) for p in split] == [
        ((1,), [1, 3]),
        ((2,), [2]),
    ]
    assert all(isinstance(part.batch, pa.RecordBatch) for part in split)
