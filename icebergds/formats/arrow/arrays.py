"""Rebuilds Arrow arrays around other children, without copying unchanged parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.types import IcebergType, StructType


def storage(array: pa.Array) -> pa.Array:
    """An array without extension types and dictionaries."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            return array


def validity(array: pa.Array) -> pa.Buffer | None:
    """The bitmap of a new array with the same nulls and no offset; None if there are no nulls."""
    return array.is_valid().buffers()[1] if array.null_count else None


def with_fields(array: pa.Array, target: pa.DataType, fields: Sequence[pa.Array]) -> pa.Array:
    """A struct array with other fields, null where `array` is."""
    return pa.Array.from_buffers(
        target, len(array), [validity(array)], array.null_count, children=list(fields)
    )


def with_child(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map array with another child, and the same lengths and nulls."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, children=[child]
    )


def with_entries(array: pa.Array, target: pa.MapType, keys: pa.Array, items: pa.Array) -> pa.Array:
    """A map array with other keys and values, and the same lengths and nulls.

    Args:
        array: a map, or a list of as many entries.
    """
    fields = [target.key_field, target.item_field]
    return with_child(array, target, pa.StructArray.from_arrays([keys, items], fields=fields))


def as_list_of_entries(array: pa.MapArray | pa.ListArray) -> pa.ListArray:
    """A map array as a list array of its entries; what is one already stays as it is."""
    if not pa.types.is_map(array.type):
        return array
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return with_child(array, pa.list_(entries.type), entries)


def compacted(array: pa.Array) -> pa.ListArray:
    """A list array without unused values: none before or after the rows, none in null rows.

    Lists of other layouts (large, of fixed size, views) become plain ones. Values are copied only
    if null rows have some.
    """
    if not pa.types.is_list(array.type) or not len(array) or _has_values_in_nulls(array):
        return _with_used_values(array)
    values, offsets = array.values, array.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first == len(values):
        return array
    buffers = [validity(array), pa.py_buffer(offsets - offsets[0])]
    children = [values.slice(first, last - first)]
    return pa.Array.from_buffers(
        array.type, len(array), buffers, array.null_count, children=children
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
    bitmap = pa.py_buffer(bytes((length + 7) // 8))
    return pa.Array.from_buffers(target, length, [bitmap], length, children=columns)


def without_nulls(array: pa.Array) -> pa.Array:
    """Replaces the nulls of a required field inside null structs by arbitrary values.

    Writers reject nulls in required fields, even inside null structs.
    """
    arrow_type, length = array.type, len(array)
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(arrow_type, without_nulls(array.storage))
    if pa.types.is_struct(arrow_type):
        columns = [array.field(at) for at in range(arrow_type.num_fields)]
        return pa.Array.from_buffers(arrow_type, length, [None], 0, children=columns)
    is_list = pa.types.is_nested(arrow_type)
    data = array.buffers()[1:2] if is_list else array.buffers()[1:]
    inner = [array.values] if is_list else None
    return pa.Array.from_buffers(arrow_type, length, [None, *data], 0, array.offset, children=inner)


def _has_values_in_nulls(array: pa.ListArray) -> bool:
    if not array.null_count:
        return False
    offsets = array.offsets
    used = pc.sum(pc.list_value_length(array), min_count=0).as_py()
    return bool(used != offsets[-1].as_py() - offsets[0].as_py())


def _with_used_values(array: pa.Array) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], np.cumsum(lengths)))).cast(pa.int32()),
        array.flatten(),
        type=pa.list_(array.type.value_field),
        mask=array.is_null() if array.null_count else None,
    )
