"""The hashed bytes are those of the single-value serialisation, once for each distinct value."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pytest

from icebergds.formats.arrow.types import to_array
from icebergds.operations.statistics.table_stats import value_hashes
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)
from icebergds.spec.values.binary import to_bytes

_LONGS = [5, -1, 0, 2**40, -(2**62)]
_VALUES: list[tuple[IcebergType, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (INT, [5, -1, 0, 2**31 - 1]),
    (DATE, [5, -1, 0]),
    (LONG, _LONGS),
    *((kind, _LONGS) for kind in (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)),
    (TIME, [0, 86_399_999_999]),
    (FLOAT, [1.5, -0.0, 0.0, float("nan"), float("inf")]),
    (DOUBLE, [1.5, -0.0, 0.0, float("nan"), float("inf")]),
    (STRING, ["b", "a", "\U0001f600" * 30]),
    (BINARY, [b"\x00", b"b" * 100]),
    (FixedType(3), [b"\x00\x00\x00", b"abc"]),
    (UUID, [bytes(range(16)), bytes(16)]),
    (DecimalType(9, 2), [Decimal("1.28"), Decimal("-1.28"), Decimal("-1.29"), Decimal("0.00")]),
    (DecimalType(38, 0), [Decimal(10**37), Decimal(-(2**63)), Decimal(2**63), Decimal(255)]),
]


@pytest.mark.parametrize(("kind", "values"), _VALUES, ids=lambda given: str(given)[:20])
def test_values_have_the_hashes_of_their_bytes(kind: IcebergType, values: list[Any]) -> None:
    expected = [mmh3.hash64(to_bytes(kind, v), 9001, signed=False)[0] >> 1 for v in values]
    array = to_array(kind, [values[0], None, values[0], *values])
    assert value_hashes(kind, array).tolist() == expected
    assert value_hashes(kind, array.slice(4)).tolist() == expected[1:]


@pytest.mark.parametrize("kind", [STRING, BINARY])
def test_values_without_bytes_are_left_out(kind: IcebergType) -> None:
    assert value_hashes(kind, to_array(kind, [to_empty(kind), None])).tolist() == []


def to_empty(kind: IcebergType) -> Any:
    return "" if kind == STRING else b""


def test_nans_of_other_bits_are_other_values() -> None:
    bits = struct.unpack("<2d", struct.pack("<2Q", 0x7FF8000000000000, 0x7FF8000000000001))
    assert len(value_hashes(DOUBLE, pa.array(bits, pa.float64()))) == 2


def test_a_column_of_unknown_type_has_no_values() -> None:
    assert value_hashes(UNKNOWN, pa.nulls(2)).tolist() == []
