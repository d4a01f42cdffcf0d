"""Turns Arrow values into what JSON and text can hold."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def json_rows(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Rows as JSON objects.

    As in the spec (Appendix D), times are texts of ISO 8601, decimals and binaries texts; maps with
    keys of text are objects, others lists of pairs. Floating-point numbers that JSON lacks are the
    texts NaN, Infinity and -Infinity.
    """
    columns = [_json_values(column) for column in _columns(batch)]
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def text_rows(batch: pa.RecordBatch | pa.Table, null: str = "NULL") -> list[list[str]]:
    """Rows as texts for people; nested values are JSON."""
    columns = [
        [null if value is None else _text(value) for value in _json_values(column)]
        for column in _columns(batch)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with nested columns and binaries as texts, as CSV cannot hold them."""
    columns = [
        column
        if not (pa.types.is_nested(column.type) or is_binary(column.type))
        else pa.array([None if v is None else _text(v) for v in _json_values(column)], pa.string())
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are aligned to the right."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _columns(batch: pa.RecordBatch | pa.Table) -> list[pa.Array]:
    if isinstance(batch, pa.RecordBatch):
        return list(batch.columns)
    return (
        [
            pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
            for column in batch.combine_chunks().columns
        ]
        if batch.num_rows
        else [pa.array([], field.type) for field in batch.schema]
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _json_values(array: pa.Array) -> list[Any]:
    """The values of an array as JSON can hold them."""
    kind = array.type
    if pa.types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        # `flatten` applies the struct's own nulls, and the offset of a slice.
        columns = [_json_values(column) for column in array.flatten()]
        rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return _with_nulls(array, rows if names else [{} for _ in range(len(array))])
    if pa.types.is_map(kind):
        keys, items = _json_values(array.keys), _json_values(array.items)
        is_object = pa.types.is_string(kind.key_type)
        return _with_nulls(
            array,
            [
                dict(zip(keys[start:end], items[start:end], strict=True))
                if is_object
                else [list(pair) for pair in zip(keys[start:end], items[start:end], strict=True)]
                for start, end in _ranges(array)
            ],
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        elements = _json_values(array.values)
        return _with_nulls(array, [elements[start:end] for start, end in _ranges(array)])
    return _scalars(array)


def _ranges(array: pa.Array) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return list(pairwise(offsets))


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    valid = array.is_valid().to_pylist()
    return [value if there else None for value, there in zip(values, valid, strict=True)]


def _scalars(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return [None if t is None else t.replace(" ", "T") for t in _strings(array)]
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return _strings(array)
    if is_binary(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    values: list[Any] = array.to_pylist()
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(array)).as_py():
        return [v if v is None or math.isfinite(v) else _unbounded(v) for v in values]
    return values


def _strings(array: pa.Array) -> list[Any]:
    texts: list[Any] = array.cast(pa.string()).to_pylist()
    return texts


def _unbounded(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
