"""Rebuilds nested Arrow arrays with other children, without copying unchanged parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.types import IcebergType, StructType


def as_list_of_entries(array: pa.MapArray) -> pa.ListArray:
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return with_child(array, pa.list_(entries.type), entries)


def compacted(array: pa.Array) -> pa.ListArray:
    """A list array without unused values: none before or after the rows, none in null rows."""
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


def with_child(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map array of the same shape with another child."""
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        children=[child],
    )


def all_null(wanted: IcebergType, length: int) -> pa.Array:
    """An array of nulls; required fields inside null structs have no nulls themselves."""
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
    """Replaces the nulls of a required field inside null structs by arbitrary values.

    Writers reject nulls in required fields, even inside null structs.
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
