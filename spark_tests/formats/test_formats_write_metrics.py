"""Metrics of the files that are written: counts are exact, and bounds hold every value."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import read_rows, write_file
from built.rows import record_batch
from built.schemas import optional, required
from effort import examples
from hypothesis import HealthCheck, example, given, strategies as st
from strategies.every_type import EVERY_TYPE, SCALARS, rows_of_schema, rows_that_fit

from icebergds.formats.data_file.bounds import Range, serialized_bounds
from icebergds.formats.data_file.metrics_modes import FULL, truncate
from icebergds.spec.manifest import FileContent, FileFormat
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    UUID,
    VARIANT,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    StructType,
)
from icebergds.spec.values.binary import from_bytes, to_bytes

FORMATS = [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO]
MODES = ["none", "counts", "truncate(1)", "truncate(16)", "full"]
SMALL_GROUPS = {"write.parquet.row-group-size-bytes": "1"}
DEFAULT = "write.metadata.metrics.default"

every_format = pytest.mark.parametrize("file_format", FORMATS)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def total_order(value: Any) -> Any:
    """Floats in their total order, in which -0.0 is before 0.0; others as they are."""
    return (value, math.copysign(1.0, value)) if isinstance(value, float) else value


def assert_bounds_hold(
    field_type: IcebergType, lower: bytes | None, upper: bytes | None, values: list[Any], mode: str
) -> None:
    known = sorted((v for v in values if v is not None and not is_nan(v)), key=total_order)
    if mode in ("none", "counts") or not known:
        assert (lower, upper) == (None, None)
        return
    if lower is not None:
        assert total_order(from_bytes(field_type, lower)) <= total_order(known[0])
    if upper is not None:
        assert total_order(known[-1]) <= total_order(from_bytes(field_type, upper))
    if mode == "full" and field_type != UUID:
        assert from_bytes(field_type, lower) == known[0]
        assert from_bytes(field_type, upper) == known[-1]


SCALAR_COLUMNS = Schema(tuple(optional(at, f"c{at}", t) for at, t in enumerate(SCALARS, start=1)))


@every_format
@examples(30, suppress_health_check=list(HealthCheck))
@given(
    batches=st.lists(rows_of_schema(SCALAR_COLUMNS, max_size=3), max_size=3),
    mode=st.sampled_from(MODES),
    properties=st.sampled_from([{}, SMALL_GROUPS]),
)
def test_counts_are_exact_and_bounds_hold_every_value(
    file_format, batches, mode, properties, tmp_path
):
    batches = [rows_that_fit(file_format, SCALAR_COLUMNS, batch) for batch in batches]
    rows = [row for batch in batches for row in batch]
    written = write_file(
        tmp_path / "f",
        SCALAR_COLUMNS,
        [record_batch(SCALAR_COLUMNS, batch) for batch in batches],
        {DEFAULT: mode, **properties},
        file_format=file_format,
    )
    assert written.record_count == len(rows)
    counted = SCALAR_COLUMNS.fields if mode != "none" else ()
    assert written.value_counts == {f.field_id: len(rows) for f in counted}
    assert set(written.null_value_counts) == set(written.value_counts)
    assert set(written.nan_value_counts) == {
        f.field_id for f in counted if f.field_type in (FLOAT, DOUBLE)
    }
    for at, field in enumerate(SCALAR_COLUMNS.fields):
        i, values = field.field_id, [row[at] for row in rows]
        assert written.null_value_counts.get(i, values.count(None)) == values.count(None)
        nans = sum(map(is_nan, values))
        assert written.nan_value_counts.get(i, nans) == nans
        lower, upper = written.lower_bounds.get(i), written.upper_bounds.get(i)
        assert_bounds_hold(field.field_type, lower, upper, values, mode)


@every_format
def test_fields_of_structs_are_measured_with_nulls_where_the_struct_is(file_format, tmp_path):
    inner = StructType((required(2, "x", DOUBLE), optional(3, "y", STRING)))
    schema = Schema((optional(1, "s", inner),))
    rows = [((1.5, "b"),), (None,), ((math.nan, None),), ((-0.5, "a"),)]
    written = write_file(
        tmp_path / "f", schema, [record_batch(schema, rows)], file_format=file_format
    )
    assert written.value_counts == {2: 4, 3: 4}
    assert written.null_value_counts == {2: 1, 3: 2}
    assert written.nan_value_counts == {2: 1}
    assert written.lower_bounds == {2: struct.pack("<d", -0.5), 3: b"a"}
    assert written.upper_bounds == {2: struct.pack("<d", 1.5), 3: b"b"}


@every_format
def test_what_is_inside_lists_and_maps_has_neither_counts_nor_bounds(file_format, tmp_path):
    schema = Schema((optional(1, "l", ListType(2, INT)), optional(3, "m", MapType(4, INT, 5, INT))))
    written = write_file(
        tmp_path / "f", schema, [record_batch(schema, [([1], [(2, 3)])])], file_format=file_format
    )
    assert not written.value_counts
    assert not written.null_value_counts
    assert not written.lower_bounds
    assert set(written.column_sizes) == ({2, 4, 5} if file_format is FileFormat.PARQUET else set())


@every_format
def test_bounds_of_zeros_hold_both_of_them(file_format, tmp_path):
    schema = Schema((required(1, "c", DOUBLE),))
    for zeros in ([0.0], [-0.0], [0.0, -0.0], [-0.0, 0.0]):
        batch = record_batch(schema, [(zero,) for zero in zeros])
        written = write_file(tmp_path / "f", schema, [batch], file_format=file_format)
        assert written.lower_bounds == {1: struct.pack("<d", -0.0)}
        assert written.upper_bounds == {1: struct.pack("<d", 0.0)}


@every_format
def test_a_batch_of_nans_does_not_hide_the_bounds_of_others(file_format, tmp_path):
    schema = Schema((optional(1, "c", FLOAT),))
    batches = [record_batch(schema, [(v,) for v in vs]) for vs in ([math.nan], [2.0, None], [None])]
    written = write_file(tmp_path / "f", schema, batches, SMALL_GROUPS, file_format=file_format)
    assert written.lower_bounds == written.upper_bounds == {1: struct.pack("<f", 2.0)}
    assert written.nan_value_counts == {1: 1}


@every_format
def test_long_values_have_bounds_too(file_format, tmp_path):
    schema = Schema((optional(1, "c", STRING),))
    rows = [("b" * 10_000,), (None,), ("a",), ("c" * 10_000,)]
    batches = [record_batch(schema, [row]) for row in rows]
    written = write_file(tmp_path / "f", schema, batches, SMALL_GROUPS, file_format=file_format)
    assert written.lower_bounds == {1: b"a"}
    assert written.upper_bounds == {1: b"c" * 15 + b"d"}


def test_a_file_of_many_row_groups_has_the_metrics_of_all(tmp_path):
    schema = Schema((required(1, "c", LONG),))
    batches = [record_batch(schema, [(value,)]) for value in (5, -3, 9)]
    written = write_file(tmp_path / "f", schema, batches, SMALL_GROUPS)
    footer = pq.read_metadata(tmp_path / "f")
    assert footer.num_row_groups == 3
    assert written.lower_bounds == {1: to_bytes(LONG, -3)}
    assert written.upper_bounds == {1: to_bytes(LONG, 9)}
    sizes = [footer.row_group(at).column(0).total_compressed_size for at in range(3)]
    assert written.column_sizes == {1: sum(sizes)}


def test_columns_without_statistics_have_sizes_alone(tmp_path):
    schema = Schema((required(1, "a", DOUBLE), required(2, "b", LONG)))
    written = write_file(
        tmp_path / "f",
        schema,
        [record_batch(schema, [(1.0, 2)])],
        {"write.parquet.stats-enabled.column.a": "false"},
    )
    assert set(written.column_sizes) == {1, 2}
    assert set(written.value_counts) == set(written.lower_bounds) == {2}
    assert not written.nan_value_counts


def test_the_columns_of_position_deletes_have_exact_bounds_whatever_the_mode(tmp_path):
    schema = Schema((DELETE_FILE_PATH, DELETE_POS))
    path = "s3://bucket/a/very/long/path/to/a/data-file.parquet"
    written = write_file(
        tmp_path / "f",
        schema,
        [record_batch(schema, [(path, 3), (path, 8)])],
        {DEFAULT: "none"},
        content=FileContent.POSITION_DELETES,
    )
    at = DELETE_FILE_PATH.field_id
    assert written.lower_bounds[at] == written.upper_bounds[at] == path.encode()


@every_format
def test_variants_are_counted_and_have_no_bounds(file_format, tmp_path):
    schema = Schema((optional(1, "s", StructType((optional(2, "v", VARIANT),))),))
    one = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
    batch = record_batch(schema, [((one,),), ((None,),), (None,)])
    written = write_file(tmp_path / "f", schema, [batch], file_format=file_format)
    assert (written.value_counts, written.null_value_counts) == ({2: 3}, {2: 2})
    assert (written.lower_bounds, written.upper_bounds) == ({}, {})


def test_the_size_of_a_variant_is_that_of_both_its_parts(tmp_path):
    schema = Schema((optional(1, "v", VARIANT),))
    rows = [({"metadata": bytes([at]), "value": b"v" * at},) for at in range(100)]
    written = write_file(tmp_path / "f", schema, [record_batch(schema, rows)])
    group = pq.read_metadata(tmp_path / "f").row_group(0)
    assert written.column_sizes == {
        1: sum(group.column(part).total_compressed_size for part in (0, 1))
    }


def test_a_variant_without_statistics_has_no_counts(tmp_path):
    schema = Schema((optional(1, "v", VARIANT), optional(2, "i", INT)))
    off = {"write.parquet.stats-enabled.column.v": "false"}
    written = write_file(tmp_path / "f", schema, [record_batch(schema, [(None, 1)])], off)
    assert written.value_counts == {2: 1}


def test_geometries_are_counted_and_what_is_not_wkb_has_no_bounds(tmp_path):
    schema = EVERY_TYPE.select({71})
    point = b"\x01\x01\x00\x00\x00" + bytes(15)
    written = write_file(tmp_path / "f", schema, [record_batch(schema, [(point,), (None,)])])
    assert (written.value_counts, written.null_value_counts) == ({71: 2}, {71: 1})
    assert not written.lower_bounds
    assert read_rows(str(tmp_path / "f"), schema) == [(point,), (None,)]


@given(value=st.text(), length=st.integers(1, 5))
@example(value="ab\U0010ffff\U0010ffffz", length=4)
@example(value="a\ud7ffz", length=2)
@example(value="\U0010ffff" * 3, length=2)
def test_truncated_strings_are_bounds_of_that_many_code_points(value, length):
    lower, upper = serialized_bounds(STRING, Range(value, value), truncate(length))
    assert lower is not None
    assert lower.decode() <= value
    assert len(lower.decode()) <= length
    if upper is None:
        assert set(value[:length]) == {"\U0010ffff"}
    else:
        assert upper.decode() >= value
        assert len(upper.decode()) <= length


@given(value=st.binary(min_size=4, max_size=4), length=st.integers(1, 5))
@example(value=b"a\xff\xffz", length=3)
@example(value=b"\xff" * 4, length=3)
def test_truncated_bytes_are_bounds_of_that_length(value, length):
    lower, upper = serialized_bounds(BINARY, Range(value, value), truncate(length))
    assert lower == value[:length]
    if upper is None:
        assert set(value[:length]) == {0xFF}
    else:
        assert upper >= value
        assert len(upper) <= length


def test_bounds_of_fixed_columns_keep_their_length():
    bounds = serialized_bounds(FixedType(4), Range(b"abcd", b"abce"), truncate(1))
    assert bounds == (b"abcd", b"abce")


def signed_halves(value: bytes) -> tuple[int, int]:
    return struct.unpack(">qq", value)


_HALVES = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1])
_UUIDS = st.one_of(
    st.binary(min_size=16, max_size=16),
    st.tuples(_HALVES, _HALVES).map(lambda h: struct.pack(">QQ", *h)),
)


@given(values=st.lists(_UUIDS, min_size=1, max_size=4))
def test_bounds_of_uuids_hold_in_both_orders_that_readers_use(values):
    lower, upper = serialized_bounds(UUID, Range(min(values), max(values)), FULL)
    for value in values:
        if lower is not None:
            assert lower <= value
            assert signed_halves(lower) <= signed_halves(value)
        if upper is not None:
            assert value <= upper
            assert signed_halves(value) <= signed_halves(upper)


def test_uuids_that_begin_with_the_time_have_bounds():
    first, last = bytes.fromhex("018f" + "00" * 14), bytes.fromhex("0190" + "ff" * 14)
    lower, upper = serialized_bounds(UUID, Range(first, last), FULL)
    assert lower == bytes.fromhex("018effffffffffff" + "00" * 8)
    assert upper == bytes.fromhex("0191000000000000" + "00" * 8)


def test_a_row_group_whose_range_cannot_be_known_leaves_no_bounds(tmp_path):
    schema = Schema((optional(1, "c", STRING),))
    arrow_schema = record_batch(schema, []).schema
    no_text = pa.array([b"\xff"]).view(pa.string())
    batches = [
        record_batch(schema, [("m",)]),
        pa.RecordBatch.from_arrays([no_text], schema=arrow_schema),
    ]
    written = write_file(tmp_path / "f", schema, batches, SMALL_GROUPS)
    assert not written.lower_bounds
    assert not written.upper_bounds
    assert written.value_counts == {1: 2}
