"""Rebuilds nested Arrow arrays around other children, without copying what stays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.types import IcebergType, StructType


def as_list_of_entries(array: pa.MapArray) -> pa.ListArray:
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return around(array, pa.list_(entries.type), entries)


def compacted(array: pa.Array) -> pa.ListArray:
    """A list array of which each value belongs to a row: none before, after or behind nulls."""
    lengths = pc.list_value_length(array)
    if pa.types.is_list(array.type) and pc.sum(lengths, min_count=0).as_py() == len(array.values):
        return array
    offsets = np.concatenate(([0], np.cumsum(pc.fill_null(lengths, 0).to_numpy())))
    return pa.ListArray.from_arrays(
        pa.array(offsets).cast(pa.int32()),
        array.flatten(),
        type=pa.list_(array.type.value_field),
        mask=array.is_null() if array.null_count else None,
    )


def around(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map of the same shape around other elements."""
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        children=[child],
    )


def all_null(wanted: IcebergType, length: int) -> pa.Array:
    """Nothing but nulls, in which required fields of structs have no nulls of their own."""
    target = to_arrow(wanted)
    if not isinstance(wanted, StructType):
        return pa.nulls(length, target)
    columns = [
        without_nulls(all_null(part.field_type, length))
        if part.required
        else all_null(part.field_type, length)
        for part in wanted.fields
    ]
    validity = pa.py_buffer(bytes((length + 7) // 8))
    return pa.Array.from_buffers(target, length, [validity], length, children=columns)


def without_nulls(array: pa.Array) -> pa.Array:
    """The values of a required field in structs that are null themselves: anything but null.

    Writers refuse nulls in required fields, even where nobody can see them.
    """
    arrow_type, length = array.type, len(array)
    if pa.types.is_struct(arrow_type):
        columns = [array.field(at) for at in range(arrow_type.num_fields)]
        return pa.Array.from_buffers(arrow_type, length, [None], 0, children=columns)
    if pa.types.is_map(arrow_type):
        fields = [arrow_type.key_field, arrow_type.item_field]
        inner = [pa.StructArray.from_arrays([array.keys, array.items], fields=fields)]
        data = array.buffers()[1:2]
    elif pa.types.is_list(arrow_type):
        inner = [array.values]
        data = array.buffers()[1:2]
    else:
        inner = None
        data = array.buffers()[1:]
    return pa.Array.from_buffers(arrow_type, length, [None, *data], 0, array.offset, children=inner)
