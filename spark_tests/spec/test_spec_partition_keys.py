"""Which partitions are equal."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest

from icebergds.spec.manifest import DataFileRef, partition_key, partition_of, values_key

NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NAN, OTHER_NAN),
        (0.1, 0.1),
        (Decimal("1.50"), Decimal("1.50")),
        (b"a", bytes(bytearray(b"a"))),
        (None, None),
    ],
    ids=str,
)
def test_partitions_of_equal_values_are_one(one: Any, other: Any) -> None:
    assert values_key((1, one)) == values_key((1, other))
    assert hash(values_key((1, one))) == hash(values_key((1, other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (NAN, None), (0.0, None), (float("inf"), float("-inf")), ("a", b"a")],
    ids=str,
)
def test_partitions_of_other_values_are_told_apart(one: Any, other: Any) -> None:
    assert values_key((1, one)) != values_key((1, other))


def test_partitions_of_two_specs_are_told_apart() -> None:
    assert partition_key(0, (1,)) != partition_key(1, (1,))
    assert partition_of(DataFileRef("f", 1, (NAN,))) == partition_key(1, (OTHER_NAN,))
