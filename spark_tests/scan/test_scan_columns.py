"""Finding columns by id in batches."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icebergds.scan.column_paths import column_at, locate
from icebergds.spec.types import INT, ListType, NestedField, StructType

_FIELDS = (
    NestedField(1, "a", INT),
    NestedField(
        2,
        "s",
        StructType(
            (NestedField(3, "x", INT), NestedField(4, "t", StructType((NestedField(5, "y", INT),))))
        ),
    ),
    NestedField(6, "l", ListType(7, StructType((NestedField(8, "z", INT),)))),
)


@pytest.mark.parametrize(
    ("field_id", "path"),
    [(1, (0,)), (2, (1,)), (3, (1, 0)), (5, (1, 1, 0)), (6, (2,)), (7, None), (8, None), (9, None)],
)
def test_fields_are_found_at_any_depth_of_structs(
    field_id: int, path: tuple[int, ...] | None
) -> None:
    assert locate(_FIELDS, field_id) == path


def test_the_first_of_two_columns_that_hold_a_field_is_found() -> None:
    narrow = NestedField(2, "s", StructType((NestedField(3, "x", INT),)))
    rest = NestedField(2, "s", StructType((NestedField(9, "w", INT),)))
    assert locate((narrow, rest), 3) == (0, 0)
    assert locate((narrow, rest), 9) == (1, 0)


def test_a_nested_column_is_null_where_a_struct_around_it_is() -> None:
    inner = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3])], ["y"], mask=pa.array([False, True, False])
    )
    outer = pa.StructArray.from_arrays([inner], ["t"], mask=pa.array([True, False, False]))
    batch = pa.RecordBatch.from_arrays([outer, pa.array([7, 8, 9])], ["s", "a"])
    assert column_at(batch, (0, 0, 0)).to_pylist() == [None, None, 3]
    assert column_at(batch, (1,)).to_pylist() == [7, 8, 9]


def test_a_nested_column_of_a_slice_is_that_of_the_slice() -> None:
    outer = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3])], ["x"], mask=pa.array([False, True, False])
    )
    batch = pa.RecordBatch.from_arrays([outer], ["s"]).slice(1)
    assert column_at(batch, (0, 0)).to_pylist() == [None, 3]
