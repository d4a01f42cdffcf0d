"""Values of every type: ordinary ones, the least and greatest, what is awkward, and null."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

_UTC = dt.UTC
_MOMENTS = [
    dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789012),
    dt.datetime(1969, 12, 31, 22, 0),
    dt.datetime(2024, 2, 29, 13),
    dt.datetime(2261, 12, 31, 23, 59, 59),
    None,
]
_NANOS = [0, 1, -1, 999, -1000, 1_709_210_096_789_012_345, -(10**18), None]


def _decimals(precision: int, scale: int) -> list[Any]:
    nines = Decimal((0, (9,) * precision, -scale))
    small = [Decimal((sign, (digit,), -scale)) for sign, digit in ((0, 1), (1, 1), (0, 0))]
    return [
        nines,
        nines.copy_negate(),
        *small,
        Decimal((0, (1, 2, 8)[:precision], -scale)),
        Decimal((1, (1, 2, 9)[:precision], -scale)),
        None,
    ]


SAMPLES: dict[str, list[Any]] = {
    "boolean": [True, False, None, True, False, None, True, False],
    "int": [-(1 << 31), -11, -1, 0, 1, 10, (1 << 31) - 1, None],
    "long": [-(1 << 63), -11, -1, 0, 1, 1 << 40, (1 << 63) - 1, None],
    "float": [-3.4028234663852886e38, -0.0, 0.0, 1.5, math.inf, -math.inf, math.nan, None],
    "double": [-1.7976931348623157e308, 5e-324, -0.0, 0.0, math.inf, -math.inf, math.nan, None],
    "decimal(1,0)": _decimals(1, 0),
    "decimal(9,2)": _decimals(9, 2),
    "decimal(18,6)": _decimals(18, 6),
    "decimal(19,0)": _decimals(19, 0),
    "decimal(38,10)": _decimals(38, 10),
    "date": [
        dt.date(1900, 1, 1),
        dt.date(1969, 12, 31),
        dt.date(1970, 1, 1),
        dt.date(1969, 12, 1),
        dt.date(2024, 2, 29),
        dt.date(1582, 10, 4),
        dt.date(9999, 12, 31),
        None,
    ],
    "time": [
        dt.time(0),
        dt.time(0, 0, 0, 1),
        dt.time(12, 34, 56, 789012),
        dt.time(12),
        dt.time(23, 59, 59, 999999),
        dt.time(1),
        None,
        dt.time(12, 0, 0, 1),
    ],
    "timestamp": _MOMENTS,
    "timestamptz": [moment and moment.replace(tzinfo=_UTC) for moment in _MOMENTS],
    "timestamp_ns": _NANOS,
    "timestamptz_ns": _NANOS,
    "string": [
        "",
        "a/b c%=ü&+#?",
        "漢字🧊 iceberg",
        "a" * 15 + "\ud7ff" * 3,
        "\U0010ffff" * 20,
        "abcdefghijklmnopqrstuvwxyz",
        "null",
        None,
    ],
    "uuid": [
        bytes(16),
        b"\xff" * 16,
        b"\x7f" + b"\xff" * 15,
        b"\x80" + bytes(15),
        bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"),
        bytes.fromhex("079c3e09677c4bbda4793f349cb785e7"),
        bytes(15) + b"\x01",
        None,
    ],
    "fixed[5]": [
        bytes(5),
        b"\xff" * 5,
        b"fixed",
        b"\x80abcd",
        b"\x7fabcd",
        b"\x00\xff\x00\xff\x00",
        b"fixee",
        None,
    ],
    "binary": [
        b"",
        b"\x00",
        b"\xff" * 20,
        b"\xff" * 16,
        b"a" * 15 + b"\xff" * 3,
        b"\x7f\xff",
        b"\x80",
        None,
    ],
}
NANOSECONDS = ("timestamp_ns", "timestamptz_ns")


def column_of(kind: str) -> str:
    """The name that a column of a type has in the tables."""
    return "c_" + "".join(c if c.isalnum() else "_" for c in kind).strip("_")


def columns_of(kinds: list[str]) -> list[tuple[str, Any]]:
    """The columns `id` and one for each type."""
    return [("id!", "int"), *((column_of(kind), kind) for kind in kinds)]


def rows_of(kinds: list[str], first_id: int = 0) -> list[dict[str, Any]]:
    """A row for each of the values of each type."""
    return [
        {"id": first_id + at, **{column_of(kind): SAMPLES[kind][at] for kind in kinds}}
        for at in range(8)
    ]
