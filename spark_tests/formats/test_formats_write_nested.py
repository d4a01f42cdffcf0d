"""Nulls at any depth: rows are read as they were written, whatever stands under a null."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from built.data_files import read_rows, write_file
from built.rows import record_batch
from built.schemas import optional, required
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.every_type import values_of

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    INT,
    STRING,
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

FORMATS = [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO]

every_format = pytest.mark.parametrize("file_format", FORMATS)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=2)
    return st.one_of(
        st.tuples(st.just("struct"), fields),
        st.tuples(st.just("list"), inner, st.booleans()),
        st.tuples(st.just("map"), inner, st.booleans()),
    )


SHAPES = st.recursive(st.sampled_from([INT, STRING, VARIANT]), _nested, max_leaves=4)
"""Types without ids."""


def _type_of(shape: Any, ids: count[int]) -> IcebergType:
    match shape:
        case ("struct", fields):
            return StructType(
                tuple(
                    NestedField(next(ids), f"f{at}", _type_of(inner, ids), is_required)
                    for at, (inner, is_required) in enumerate(fields)
                )
            )
        case ("list", inner, is_required):
            return ListType(next(ids), _type_of(inner, ids), is_required)
        case ("map", inner, is_required):
            return MapType(next(ids), STRING, next(ids), _type_of(inner, ids), is_required)
        case _:
            return shape


def _masked(data: st.DataObject, array: pa.Array) -> pa.Array:
    """The array with some more nulls, under which values stay, but not in what is required."""
    arrow_type = array.type
    if pa.types.is_struct(arrow_type):
        parts = [
            _masked(data, array.field(at)) if field.nullable else array.field(at)
            for at, field in enumerate(arrow_type)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(arrow_type), mask=_mask(data, array))
    if pa.types.is_list(arrow_type):
        return pa.ListArray.from_arrays(
            array.offsets, array.values, type=arrow_type, mask=_mask(data, array)
        )
    if pa.types.is_map(arrow_type):
        return pa.MapArray.from_arrays(
            array.offsets, array.keys, array.items, type=arrow_type, mask=_mask(data, array)
        )
    return array


def _mask(data: st.DataObject, array: pa.Array) -> pa.Array:
    none = st.just([False] * len(array))
    some = st.lists(st.booleans(), min_size=len(array), max_size=len(array))
    more = data.draw(none | some)
    return pa.array([a or b for a, b in zip(array.is_null().to_pylist(), more, strict=True)])


@every_format
@examples(150, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nulls_at_any_depth_are_read_as_they_were_written(file_format, data, tmp_path):
    ids = count(2)
    field_type = _type_of(data.draw(_nested(SHAPES)), ids)
    is_required = data.draw(st.booleans())
    field = NestedField(1, "c", field_type, is_required)
    schema = Schema((field, required(next(ids), "row", INT)))
    values = data.draw(st.lists(values_of(field_type, is_required), min_size=1, max_size=6))
    plain = record_batch(schema, list(zip(values, range(len(values)), strict=True)))
    column = plain.column(0) if is_required else _masked(data, plain.column(0))
    batch = pa.RecordBatch.from_arrays([column, plain.column(1)], schema=schema_to_arrow(schema))
    batch.validate(full=True)
    batches = [batch, batch.slice(1), batch.slice(0, 2)]
    write_file(tmp_path / "f", schema, batches, file_format=file_format)
    expected = [tuple(row.values()) for part in batches for row in part.to_pylist()]
    assert read_rows(str(tmp_path / "f"), schema, file_format=file_format) == expected


@every_format
def test_null_structs_inside_of_structs_move_no_values(file_format, tmp_path):
    inner = StructType((optional(3, "x", INT), required(4, "y", STRING)))
    schema = Schema((optional(1, "s", StructType((optional(2, "inner", inner),))),))
    rows = [((None,),), (((1, "a"),),), ((None,),), (((None, "b"),),)]
    write_file(tmp_path / "f", schema, [record_batch(schema, rows)], file_format=file_format)
    read = read_rows(str(tmp_path / "f"), schema, file_format=file_format)
    assert [row["inner"] for (row,) in read] == [
        None,
        {"x": 1, "y": "a"},
        None,
        {"x": None, "y": "b"},
    ]
