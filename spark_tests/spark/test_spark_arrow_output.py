"""Batches reach Spark in exactly its Arrow types, whatever window of arrays they are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.spark.arrow_output import shaper
from icebergds.spark.types import spark_arrow_schema
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    STRING,
    TIMESTAMP_NS,
    UUID,
    VARIANT,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

_UUIDS = st.none() | st.binary(min_size=16, max_size=16)
_NANOS = st.none() | st.integers(-(2**63), 2**63 - 1)
_STRUCT = StructType((NestedField(10, "u", UUID), NestedField(11, "n", TIMESTAMP_NS, True)))
_STRUCTS = st.none() | st.tuples(_UUIDS, st.integers(-(2**63), 2**63 - 1))
_VARIANTS = st.none() | st.fixed_dictionaries({"metadata": st.binary(), "value": st.binary()})

# Types that are not stored as Spark takes them, alone and inside others, with their values.
SHAPED: dict[str, tuple[IcebergType, st.SearchStrategy[Any]]] = {
    "uuid": (UUID, _UUIDS),
    "timestamp_ns": (TIMESTAMP_NS, _NANOS),
    "fixed": (FixedType(2), st.none() | st.binary(min_size=2, max_size=2)),
    "variant": (VARIANT, _VARIANTS),
    "struct": (_STRUCT, _STRUCTS),
    "list": (ListType(12, _STRUCT), st.none() | st.lists(_STRUCTS, max_size=3)),
    "map": (
        MapType(13, UUID, 14, ListType(15, VARIANT)),
        st.none()
        | st.lists(
            st.tuples(st.binary(min_size=16, max_size=16), st.lists(_VARIANTS, max_size=2)),
            max_size=3,
        ),
    ),
    "list of strings": (ListType(16, STRING, True), st.none() | st.lists(st.text(), max_size=3)),
}


@pytest.mark.parametrize("name", SHAPED)
@examples(50)
@given(data=st.data())
def test_a_window_of_a_batch_is_shaped_like_the_whole(name: str, data: st.DataObject) -> None:
    field_type, values = SHAPED[name]
    schema = Schema((NestedField(1, "c", field_type),))
    rows = data.draw(st.lists(values, max_size=12))
    start = data.draw(st.integers(0, len(rows)))
    length = data.draw(st.integers(0, len(rows) - start))
    batch = pa.RecordBatch.from_arrays([to_array(field_type, rows)], schema=schema_to_arrow(schema))
    shape = shaper(schema)
    whole, window = shape(batch), shape(batch.slice(start, length))
    assert whole.schema.equals(spark_arrow_schema(schema), check_metadata=True)
    assert window.schema.equals(whole.schema, check_metadata=True)
    window.validate(full=True)
    assert window.to_pylist() == whole.to_pylist()[start : start + length]


def test_uuids_are_text_in_lower_case_with_hyphens() -> None:
    schema = Schema((NestedField(1, "u", UUID),))
    octets = bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")
    batch = pa.record_batch([to_array(UUID, [octets, None])], schema=schema_to_arrow(schema))
    assert shaper(schema)(batch).column("u").to_pylist() == [
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        None,
    ]
