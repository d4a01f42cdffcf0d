"""Files read under any later schema of their table, against a model in plain Python."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from built.data_files import read_batches
from effort import examples
from hypothesis import given, strategies as st

from icebergds.formats.arrow.types import FIELD_ID, field_to_arrow, to_array
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

SMALL = DecimalType(4, 1)
SCALARS: dict[IcebergType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
    STRING: st.text(max_size=5),
    SMALL: st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-1)),
}
PROMOTED: dict[IcebergType, IcebergType] = {INT: LONG, FLOAT: DOUBLE, SMALL: DecimalType(20, 1)}


@dataclass(frozen=True)
class Evolution:
    """A file's columns and rows, and the fields that it is read under."""

    written: StructType
    rows: list[tuple[Any, ...]]
    read: StructType


def types(ids: itertools.count[int]) -> st.SearchStrategy[IcebergType]:
    """Types whose fields take their ids from a counter."""
    return st.recursive(
        st.sampled_from(list(SCALARS)),
        lambda inner: st.one_of(
            st.builds(lambda t: ListType(next(ids), t), inner),
            st.builds(lambda k, v: MapType(next(ids), k, next(ids), v), keys(), inner),
            structs(ids, inner),
        ),
        max_leaves=4,
    )


def keys() -> st.SearchStrategy[IcebergType]:
    return st.sampled_from([INT, STRING])


def structs(
    ids: itertools.count[int], inner: st.SearchStrategy[IcebergType]
) -> st.SearchStrategy[StructType]:
    def build(members: list[IcebergType]) -> StructType:
        return StructType(
            tuple(NestedField(next(ids), f"c{n}", member) for n, member in enumerate(members))
        )

    return st.lists(inner, min_size=1, max_size=3).map(build)


def values(field_type: IcebergType) -> st.SearchStrategy[Any]:
    match field_type:
        case StructType(fields=fields):
            return st.tuples(*(st.none() | values(field.field_type) for field in fields))
        case ListType(element_type=element):
            return st.lists(st.none() | values(element), max_size=3)
        case MapType(key_type=key, value_type=value):
            return st.lists(
                st.tuples(values(key), st.none() | values(value)),
                max_size=3,
                unique_by=lambda entry: entry[0],
            )
        case _:
            return SCALARS[field_type]


def evolved(field_type: IcebergType, draw: st.DrawFn, ids: itertools.count[int]) -> IcebergType:
    """A type that a column may have become: fields renamed, moved, dropped, added, promoted."""
    match field_type:
        case StructType(fields=fields):
            kept = draw(st.permutations(fields))[draw(st.integers(0, len(fields))) :]
            least = 0 if kept else 1
            added = draw(st.lists(st.none() | SCALARS[INT], min_size=least, max_size=2))
            later = [replace(f, field_type=evolved(f.field_type, draw, ids)) for f in kept]
            later += [NestedField(next(ids), "", INT, initial_default=value) for value in added]
            # Names say nothing: they are dealt out anew, and may be those of other columns.
            names = draw(st.permutations([f"c{n}" for n in range(len(later))]))
            return StructType(
                tuple(replace(f, name=name) for f, name in zip(later, names, strict=True))
            )
        case ListType(element_type=element):
            return replace(field_type, element_type=evolved(element, draw, ids))
        case MapType(value_type=value):
            return replace(field_type, value_type=evolved(value, draw, ids))
        case _:
            promoted = PROMOTED.get(field_type, field_type)
            return promoted if draw(st.booleans()) else field_type


@st.composite
def evolutions(draw: st.DrawFn) -> Evolution:
    ids = itertools.count(1)
    written = draw(structs(ids, types(ids)))
    rows = draw(st.lists(values(written), min_size=1, max_size=6))
    read = evolved(written, draw, ids)
    assert isinstance(read, StructType)
    return Evolution(written, rows, read)


def model(value: Any, written: IcebergType, read: IcebergType) -> Any:
    """What a stored value is under the later type, as Arrow gives it to Python."""
    if value is None:
        return None
    match written, read:
        case StructType(fields=stored), StructType(fields=wanted):
            return dict(zip((f.name for f in wanted), row(value, stored, wanted), strict=True))
        case ListType(), ListType():
            return [model(element, written.element_type, read.element_type) for element in value]
        case MapType(), MapType():
            return [(k, model(v, written.value_type, read.value_type)) for k, v in value]
        case _:
            return value


def row(
    value: tuple[Any, ...], stored: tuple[NestedField, ...], wanted: tuple[NestedField, ...]
) -> tuple[Any, ...]:
    found = {f.field_id: (v, f.field_type) for v, f in zip(value, stored, strict=True)}
    return tuple(
        model(*found[f.field_id], f.field_type) if f.field_id in found else f.initial_default
        for f in wanted
    )


def write(path: Path, file_format: FileFormat, evolution: Evolution) -> None:
    rows = to_array(evolution.written, evolution.rows)
    fields = [field_to_arrow(field) for field in evolution.written.fields]
    if file_format is FileFormat.ORC:
        fields = [in_orc(field) for field in fields]
        rows = rows.cast(pa.struct(fields))
    table = pa.table([rows.field(at) for at in range(len(fields))], schema=pa.schema(fields))
    if file_format is FileFormat.ORC:
        orc.write_table(table, path)
    else:
        pq.write_table(table, path, row_group_size=4)


def in_orc(field: pa.Field) -> pa.Field:
    """The field with its id where ORC files hold it."""
    stored = field.type
    if pa.types.is_struct(stored):
        stored = pa.struct([in_orc(child) for child in stored])
    elif pa.types.is_list(stored):
        stored = pa.list_(in_orc(stored.value_field))
    elif pa.types.is_map(stored):
        stored = pa.map_(in_orc(stored.key_field), in_orc(stored.item_field))
    return pa.field(field.name, stored, field.nullable, {b"iceberg.id": field.metadata[FIELD_ID]})


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC])
@examples(60)
@given(evolution=evolutions(), batch_size=st.integers(1, 7))
def test_files_are_read_under_any_later_schema(
    tmp_path_factory, file_format, evolution, batch_size
):
    path = tmp_path_factory.mktemp("evolution") / "file"
    write(path, file_format, evolution)
    reads = read_batches(
        str(path), Schema(evolution.read.fields), file_format=file_format, batch_size=batch_size
    )
    for read in reads:
        read.batch.validate(full=True)
    found = [
        tuple(values)
        for read in reads
        for values in zip(*(c.to_pylist() for c in read.batch.columns), strict=True)
    ]
    assert found == [
        row(stored, evolution.written.fields, evolution.read.fields) for stored in evolution.rows
    ]
