"""Which row groups of a Parquet file its Bloom filters leave out, and that no row is missed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.data_files import read_batches, with_id
from built.schemas import optional

from icebergds.expr.nodes import BoundPredicate, Expr, Operation, and_, or_
from icebergds.formats.arrow.types import in_memory_values, to_arrow
from icebergds.formats.parquet import bloom_filter
from icebergds.formats.parquet.bloom_filter import xxh64
from icebergds.formats.parquet.thrift import ThriftError
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    DecimalType,
    FixedType,
)

_TYPES: dict[str, tuple[Any, pa.DataType]] = {
    "int": (INT, pa.int32()),
    "long": (LONG, pa.int64()),
    "promoted": (LONG, pa.int32()),
    "date": (DATE, pa.date32()),
    "time": (TIME, pa.time64("us")),
    "timestamp": (TIMESTAMP, pa.timestamp("us")),
    "millis": (TIMESTAMP, pa.timestamp("ms")),
    "decimal in 4 bytes": (DecimalType(9, 2), pa.decimal128(9, 2)),
    "decimal": (DecimalType(30, 2), pa.decimal128(30, 2)),
    "string": (STRING, pa.string()),
    "binary": (BINARY, pa.binary()),
    "fixed": (FixedType(5), pa.binary(5)),
    "uuid": (UUID, pa.binary(16)),
}

# Of each row group.
_ROWS = 500


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom_filter, "_MIN_BYTES", 0)


def test_the_hash_is_that_of_the_specification() -> None:
    """Computed with the program xxhsum 0.8."""
    text = bytes(range(101))
    assert xxh64(b"") == 0xEF46DB3751D8E999
    assert xxh64(b"a") == 0xD24EC4F1A98C6E5B
    assert xxh64(b"abc") == 0x44BC2CF5AD770999
    assert len({xxh64(text[:size]) for size in range(101)}) == 101


def _values(arrow_type: pa.DataType, numbers: range) -> pa.Array:
    """Different values for different numbers, in their order."""
    if pa.types.is_decimal(arrow_type):
        return pa.array([Decimal(number).scaleb(-2) for number in numbers], arrow_type)
    if pa.types.is_string(arrow_type):
        return pa.array([f"ä{number:060}" for number in numbers], arrow_type)
    if pa.types.is_binary(arrow_type) or pa.types.is_fixed_size_binary(arrow_type):
        width = arrow_type.byte_width if pa.types.is_fixed_size_binary(arrow_type) else 7
        return pa.array([number.to_bytes(width, "big") for number in numbers], arrow_type)
    whole = pa.int32() if pa.types.is_date32(arrow_type) else pa.int64()
    return pa.array(numbers, whole).cast(arrow_type)


def _write(path: Path, arrow_type: pa.DataType) -> pa.Array:
    """Writes even numbers, shuffled, so that the bounds of no row group leave a number out."""
    shuffled = np.random.default_rng(7).permutation(8 * _ROWS)
    values = _values(arrow_type, range(0, 16 * _ROWS, 2)).take(pa.array(shuffled))
    pq.write_table(
        pa.table([values], pa.schema([with_id("k", arrow_type, 1)])),
        path,
        row_group_size=_ROWS,
        bloom_filter_options={"k": {"fpp": 0.0001, "ndv": _ROWS}},
    )
    return values


def _in(kind: str, values: list[Any]) -> BoundPredicate:
    return BoundPredicate(Operation.IN, 1, _TYPES[kind][0], tuple(values))


def _read(path: Path, kind: str, row_filter: Expr) -> tuple[list[Any], int]:
    """The values of the row groups that are read, and how many row groups they are."""
    schema = Schema((optional(1, "k", _TYPES[kind][0]),))
    reads = list(read_batches(str(path), schema, row_filter=row_filter))
    values = [v for read in reads for v in in_memory_values(read.batch.column(0))]
    return values, len(values) // _ROWS


@pytest.mark.parametrize("kind", _TYPES)
def test_only_row_groups_that_may_have_a_value_are_read(tmp_path: Path, kind: str) -> None:
    wanted, stored = _TYPES[kind]
    values = _write(tmp_path / "f", stored).cast(to_arrow(wanted))
    first, other = in_memory_values(values.take(pa.array([5, 1_700])))
    rows, groups = _read(tmp_path / "f", kind, _in(kind, [first]))
    assert first in rows
    assert groups == 1
    rows, groups = _read(tmp_path / "f", kind, _in(kind, [first, other]))
    assert {first, other} <= set(rows)
    assert groups == 2
    absent = in_memory_values(_values(stored, range(4_001, 4_003, 2)).cast(to_arrow(wanted)))
    assert _read(tmp_path / "f", kind, _in(kind, absent)) == ([], 0)
    # Of nulls a Bloom filter says nothing, but the counts do.
    is_null = BoundPredicate(Operation.IS_NULL, 1, wanted)
    assert _read(tmp_path / "f", kind, or_(is_null, _in(kind, [first])))[1] == 1
    assert _read(tmp_path / "f", kind, and_(_in(kind, absent), _in(kind, [first])))[1] == 0


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63 - 1])
def test_a_number_that_the_file_cannot_store_is_not_in_it(tmp_path: Path, value: int) -> None:
    _write(tmp_path / "f", pa.int32())
    assert _read(tmp_path / "f", "promoted", _in("promoted", [value, value - 1, 9])) == ([], 0)


def test_a_time_between_two_of_the_file_is_not_in_it(tmp_path: Path) -> None:
    _write(tmp_path / "f", pa.timestamp("ms"))
    assert _read(tmp_path / "f", "millis", _in("millis", [2_000_001]))[1] == 0
    assert _read(tmp_path / "f", "millis", _in("millis", [2_000_000]))[1] == 1


def test_times_that_are_read_less_exactly_are_not_looked_up(tmp_path: Path) -> None:
    """Nanoseconds that become the same microsecond have different hashes."""
    stored = _write(tmp_path / "f", pa.timestamp("ns"))
    found = {value // 1_000 for value in in_memory_values(stored)}
    assert _read(tmp_path / "f", "timestamp", _in("timestamp", sorted(found)[:1]))[1] == 8


def test_more_values_than_a_filter_tells_apart_are_not_looked_up(tmp_path: Path) -> None:
    _write(tmp_path / "f", pa.int64())
    absent = list(range(4_001, 4_067, 2))
    assert len(absent) == 33
    assert _read(tmp_path / "f", "long", _in("long", absent))[1] == 8
    # Of these, the bounds leave out one.
    assert _read(tmp_path / "f", "long", _in("long", [*absent[1:], -5]))[1] == 0


def test_every_value_is_found(tmp_path: Path) -> None:
    """Also where blocks are full: the filter is for ten values, and has 500."""
    values = pa.array(np.random.default_rng(3).permutation(500))
    pq.write_table(
        pa.table([values], pa.schema([with_id("k", pa.int64(), 1)])),
        tmp_path / "f",
        bloom_filter_options={"k": {"fpp": 0.5, "ndv": 10}},
    )
    for value in values.to_pylist():
        assert value in _read(tmp_path / "f", "long", _in("long", [value]))[0]


@pytest.mark.parametrize(("at", "byte"), [(0, 0x00), (2, 0x08)], ids=["header", "length"])
def test_a_damaged_filter_leaves_nothing_out(tmp_path: Path, at: int, byte: int) -> None:
    path = tmp_path / "f"
    _write(path, pa.int64())
    offset = pq.read_metadata(path).row_group(7).column(0).bloom_filter_offset
    data = bytearray(path.read_bytes())
    assert data[offset + at] != byte
    data[offset + at] = byte
    path.write_bytes(data)
    assert _read(path, "long", _in("long", [4_001]))[1] == 1


def test_a_filter_that_ends_beyond_its_file_is_damaged(tmp_path: Path) -> None:
    _write(tmp_path / "f", pa.int64())
    chunk = pq.read_metadata(tmp_path / "f").row_group(0).column(0)
    end = chunk.bloom_filter_offset + chunk.bloom_filter_length - 1
    data = (tmp_path / "f").read_bytes()[:end]
    stored = bloom_filter._BloomFilter(pa.BufferReader(data), chunk.bloom_filter_offset, None)
    with pytest.raises(ThriftError, match="beyond its file"):
        stored.has_any([2**64 - 1])


def test_filters_of_duckdb_are_read(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "f"
    duckdb.sql(
        "COPY (SELECT 8 * (i % 128) + 2 * (i // 2048) AS k FROM range(8192) t(i)) "
        f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048, FIELD_IDS {{k: 1}})"
    )
    assert pq.read_metadata(path).row_group(0).column(0).bloom_filter_offset is not None
    rows, _ = _read(path, "long", _in("long", [508]))
    assert set(rows) == set(range(4, 1_024, 8))
    assert _read(path, "long", _in("long", [501])) == ([], 0)
