"""Turns Arrow values into what JSON and text can hold."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.types import field_id_of, is_binary
from icebergds.spec.schema import Schema
from icebergds.spec.types import TypeId

Special: TypeAlias = Mapping[int | None, TypeId]
NO_FIELDS: Special = {}


Batch: TypeAlias = pa.RecordBatch | pa.Table


def json_rows(batch: Batch, special: Special = NO_FIELDS) -> list[dict[str, Any]]:
    """Rows as JSON objects.

    As in the spec (Appendix D), times are texts of ISO 8601, decimals, UUIDs and binaries texts;
    maps with keys of text are objects, others lists of pairs. Floating-point numbers that JSON
    lacks are the texts NaN, Infinity and -Infinity.

    Args:
        special: those of `special_fields`, which are texts and JSON of their own.
    """
    columns = _json_columns(batch, special)
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def text_rows(batch: Batch, special: Special = NO_FIELDS, null: str = "NULL") -> list[list[str]]:
    """Rows as texts for people; nested values are JSON. Arguments are those of `json_rows`."""
    columns = [
        [null if value is None else as_text(value) for value in column]
        for column in _json_columns(batch, special)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def flat(batch: pa.RecordBatch, special: Special = NO_FIELDS) -> pa.RecordBatch:
    """The batch with nested columns and binaries as texts, as CSV cannot hold them."""
    columns = [
        _texts(_json_values(column, field, special)) if is_text_in_csv(field.type) else column
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def special_fields(schemas: Iterable[Schema]) -> dict[int | None, TypeId]:
    """The fields that are UUIDs or variants, at any depth, by their ids; Arrow has binaries."""
    fields = (field for schema in schemas for field in schema.fields_by_id.values())
    kinds = (TypeId.UUID, TypeId.VARIANT)
    found = ((field.field_id, getattr(field.field_type, "type_id", None)) for field in fields)
    return {field_id: kind for field_id, kind in found if kind in kinds}


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are aligned to the right."""
    is_any = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_of(kind) for is_of in is_any)


def is_text_in_csv(kind: pa.DataType) -> bool:
    """Whether CSV has the values as texts of ours: JSON, or the digits of bytes."""
    return pa.types.is_nested(kind) or pa.types.is_null(kind) or is_binary(kind)


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([None if value is None else as_text(value) for value in values], pa.string())


def _json_columns(batch: Batch, special: Special) -> list[list[Any]]:
    batches = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
    return [
        [value for part in batches for value in _json_values(part.column(at), field, special)]
        for at, field in enumerate(batch.schema)
    ]


def as_text(value: Any) -> str:
    """A value of JSON as text for people."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _json_values(array: pa.Array, field: pa.Field, special: Special) -> list[Any]:
    """The values of an array as JSON can hold them."""
    kind = array.type
    if special.get(field_id_of(field)) is TypeId.VARIANT or _is_variant_of_spark(kind):
        return _variants(array)
    if pa.types.is_struct(kind):
        inner = list(kind)
        # `flatten` applies the struct's own nulls, and the offset of a slice.
        columns = [
            _json_values(column, of, special)
            for column, of in zip(array.flatten(), inner, strict=True)
        ]
        names = [of.name for of in inner]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return _with_nulls(array, rows if names else [{} for _ in range(len(array))])
    if pa.types.is_map(kind):
        keys = _json_values(array.keys, kind.key_field, special)
        items = _json_values(array.items, kind.item_field, special)
        entries = [
            list(zip(keys[start:end], items[start:end], strict=True))
            for start, end in _ranges(array)
        ]
        is_object = pa.types.is_string(kind.key_type)
        return _with_nulls(
            array, [dict(each) if is_object else list(map(list, each)) for each in entries]
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        elements = _json_values(array.values, kind.value_field, special)
        return _with_nulls(array, [elements[start:end] for start, end in _ranges(array)])
    if special.get(field_id_of(field)) is TypeId.UUID:
        return [None if value is None else str(UUID(bytes=value)) for value in array.to_pylist()]
    return _scalars(array)


def _is_variant_of_spark(kind: pa.DataType) -> bool:
    """Whether a type is the one by which Spark hands over variants."""
    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"value", "metadata"}:
        return False
    return (kind.field("metadata").metadata or {}).get(b"variant") == b"true"


def _variants(array: pa.Array) -> list[Any]:
    from pyspark.sql.variant_utils import VariantUtils

    def parsed(value: dict[str, bytes]) -> Any:
        text = VariantUtils.to_json(value["value"], value["metadata"], "UTC")
        # PySpark writes these as Python does.
        return json.loads(_OF_PYTHON.sub(lambda found: _BY_PYTHON.get(found[0], found[0]), text))

    return [None if value is None else parsed(value) for value in array.to_pylist()]


_BY_PYTHON = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
_OF_PYTHON = re.compile(r'"(?:[^"\\]|\\.)*"|\bnan\b|-?\binf\b')


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
