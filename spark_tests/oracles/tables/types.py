"""Values of every type, in every file format."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

from oracles.arrow_schema import list_of, map_of, struct
from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import ALL_FORMATS, table

UTC = dt.UTC
PRIMITIVES = [
    ("id!", "long"),
    ("a_boolean", "boolean"),
    ("an_int", "int"),
    ("a_long", "long"),
    ("a_float", "float"),
    ("a_double", "double"),
    ("a_decimal", "decimal(9,2)"),
    ("a_date", "date"),
    ("a_timestamp", "timestamp"),
    ("a_timestamptz", "timestamptz"),
    ("a_string", "string"),
    ("a_uuid", "uuid"),
    ("a_fixed", "fixed[5]"),
    ("a_binary", "binary"),
]


def primitive_rows() -> list[dict[str, Any]]:
    """Ordinary values, the smallest, the greatest, empty ones, and nulls."""
    ordinary = {
        "a_boolean": True,
        "an_int": 42,
        "a_long": 1 << 40,
        "a_float": 1.5,
        "a_double": 3.141592653589793,
        "a_decimal": Decimal("1234.56"),
        "a_date": dt.date(2024, 2, 29),
        "a_timestamp": dt.datetime(2024, 2, 29, 12, 34, 56, 789012),
        "a_timestamptz": dt.datetime(2024, 2, 29, 12, 34, 56, 789012, UTC),
        "a_string": "naïve café 漢字 🧊",
        "a_uuid": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes,
        "a_fixed": b"fixed",
        "a_binary": b"\x00\x01\xfe\xff",
    }
    smallest = {
        "a_boolean": False,
        "an_int": -(1 << 31),
        "a_long": -(1 << 63),
        "a_float": -3.4028234663852886e38,
        "a_double": -1.7976931348623157e308,
        "a_decimal": Decimal("-9999999.99"),
        "a_date": dt.date(1900, 1, 1),
        "a_timestamp": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
        "a_timestamptz": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        "a_string": "",
        "a_uuid": bytes(16),
        "a_fixed": bytes(5),
        "a_binary": b"",
    }
    greatest = {
        "an_int": (1 << 31) - 1,
        "a_long": (1 << 63) - 1,
        "a_float": 3.4028234663852886e38,
        "a_double": 5e-324,
        "a_decimal": Decimal("9999999.99"),
        "a_date": dt.date(9999, 12, 31),
        "a_timestamp": dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        "a_timestamptz": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        "a_string": "\x00\t\n\"'\\\uffff",
        "a_uuid": b"\xff" * 16,
        "a_fixed": b"\xff" * 5,
        "a_binary": b"\xff" * 40,
    }
    rows = [ordinary, smallest, greatest, {}]
    return [{"id": index, **row} for index, row in enumerate(rows)]


@table("types", "v1", formats=ALL_FORMATS)
def primitives_v1(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, PRIMITIVES, version=1)
    written.append(primitive_rows(), file_format=file_format)
    return written


@table("types", "v2", formats=ALL_FORMATS)
def primitives_v2(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, PRIMITIVES)
    written.append(primitive_rows(), file_format=file_format)
    return written


@table("types", "v3", formats=ALL_FORMATS)
def primitives_v3(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, PRIMITIVES, version=3)
    written.append(primitive_rows(), file_format=file_format)
    return written


@table("types", "required columns", formats=ALL_FORMATS)
def required_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [(f"{column.rstrip('!')}!", kind) for column, kind in PRIMITIVES]
    nested = struct(("a!", "int"), ("b!", list_of("string", required=True)))
    written = iceberg.create(name, [*columns, ("a_struct!", nested)])
    rows = [{**row, "a_struct": {"a": 1, "b": ["x"]}} for row in primitive_rows()[:2]]
    written.append(rows, file_format=file_format)
    return written


@table("types", "floating point", formats=ALL_FORMATS)
def special_floats(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("f", "float"), ("d", "double")])
    values = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.401298464324817e-45, None]
    written.append(
        [{"id": index, "f": value, "d": value} for index, value in enumerate(values)],
        file_format=file_format,
    )
    return written


@table("types", "time", formats=ALL_FORMATS)
def times(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("t", "time")])
    values = [dt.time(0), dt.time(12, 34, 56, 789012), dt.time(23, 59, 59, 999999), None]
    rows = [{"id": index, "t": value} for index, value in enumerate(values)]
    written.append(rows, file_format=file_format)
    return written


_ANCIENT_DAYS = [
    dt.date(1, 1, 1),
    dt.date(1000, 2, 28),
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 15),
    dt.date(1677, 12, 31),
]


@table("types", "dates before the Gregorian calendar", formats=ALL_FORMATS)
def ancient_dates(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("d", "date")])
    rows = [{"id": index, "d": day} for index, day in enumerate(_ANCIENT_DAYS)]
    written.append(rows, file_format=file_format)
    return written


@table("types", "timestamps before the Gregorian calendar", formats=ALL_FORMATS)
def ancient_timestamps(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("t", "timestamp"), ("z", "timestamptz")])
    moments = [dt.datetime.combine(day, dt.time(1, 2, 3, 4)) for day in _ANCIENT_DAYS]
    rows = [{"id": i, "t": t, "z": t.replace(tzinfo=UTC)} for i, t in enumerate(moments)]
    written.append(rows, file_format=file_format)
    return written


@table("types", "orc", "timestamps of every century", "codecs")
def distant_timestamps_orc(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [
        ("id!", "int"),
        ("t", "timestamp"),
        ("zs", list_of("timestamptz")),
        ("by_time", map_of("timestamp", struct(("z", "timestamptz"), ("n", "int")))),
    ]
    written = iceberg.create(name, columns)
    for codec in ("zlib", "snappy", "lz4", "zstd", "none"):
        written.set(write__orc__compression_codec=codec)
        written.append([_distant_row(index) for index in range(700)], file_format="orc")
    return written


def _distant_row(index: int) -> dict[str, Any]:
    """One of 700 rows: times in steps, then of all centuries, then all the same, with nulls."""
    far = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
    steps = [
        dt.datetime(1, 1, 1) + dt.timedelta(days=5200 * (index % 700)),
        dt.datetime(1 + index * 7919 % 9998, 1 + index % 12, 28, index % 24, 0, 0, index * 997),
        far,
    ]
    moment = steps[index // 240] if index % 11 else None
    zoned = moment and moment.replace(tzinfo=UTC)
    return {
        "id": index,
        "t": moment,
        "zs": [zoned, None, far.replace(tzinfo=UTC)][: index % 4] if index % 7 else None,
        "by_time": [(moment, {"z": zoned, "n": index})] if moment else [],
    }


@table("types", "decimals of every width", formats=ALL_FORMATS)
def decimals(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    shapes = [(1, 0), (4, 4), (9, 2), (10, 3), (18, 6), (19, 0), (28, 14), (38, 10), (38, 38)]
    columns = [(f"d{p}_{s}", f"decimal({p},{s})") for p, s in shapes]
    written = iceberg.create(name, [("id!", "int"), *columns])
    nines = {f"d{p}_{s}": Decimal((0, (9,) * p, -s)) for p, s in shapes}
    rows = [
        nines,
        {column: value.copy_negate() for column, value in nines.items()},
        {f"d{p}_{s}": Decimal((0, (1,), -s)) for p, s in shapes},
        {f"d{p}_{s}": Decimal((0, (0,), -s)) for p, s in shapes},
        {},
    ]
    written.append([{"id": i, **row} for i, row in enumerate(rows)], file_format=file_format)
    return written


@table("types", "struct", "list", "map", "deep nesting", formats=ALL_FORMATS)
def nested(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    point = struct(("x!", "double"), ("y", "double"))
    columns = [
        ("id!", "int"),
        ("point", point),
        ("ints", list_of("int")),
        ("names", map_of("string", "int")),
        ("by_day", map_of("date", point)),
        ("rows", list_of(struct(("k", "string"), ("tags", map_of("int", list_of("string")))))),
        ("matrix", list_of(list_of(list_of("long")))),
        ("deep", struct(("a", struct(("b", struct(("c", list_of("decimal(20,3)")))))))),
    ]
    full = {
        "point": {"x": 1.0, "y": -0.0},
        "ints": [1, None, 3],
        "names": [("a", 1), ("ü", None)],
        "by_day": [(dt.date(1969, 12, 31), {"x": 2.0, "y": None}), (dt.date(2024, 1, 1), None)],
        "rows": [{"k": "p", "tags": [(1, ["x", None]), (2, [])]}, None, {"k": None, "tags": None}],
        "matrix": [[[1, 2], []], [], None, [[None]]],
        "deep": {"a": {"b": {"c": [Decimal("1.234"), None]}}},
    }
    empty = {
        "point": {"x": 0.0, "y": None},
        "ints": [],
        "names": [],
        "by_day": [],
        "rows": [],
        "matrix": [],
        "deep": {"a": None},
    }
    half = {"deep": {"a": {"b": None}}, "ints": [None], "rows": [{"k": "q", "tags": []}]}
    rows = [full, empty, {}, half]
    written = iceberg.create(name, columns)
    written.append([{"id": i, **row} for i, row in enumerate(rows)], file_format=file_format)
    return written


@table("types", "column names", formats=ALL_FORMATS)
def odd_column_names(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    inner = struct(("inner field", "int"), ("2nd", "string"))
    names = ["with space", "dot.ted", "1st", "ünïcode", "per%cent", "dash-ed", "漢字", "a`b"]
    columns = [("id!", "int"), *((column, "string") for column in names), ("a struct", inner)]
    written = iceberg.create(name, columns)
    rows = [
        {"id": 1, **{column: f"value of {column}" for column in names}},
        {"id": 2, "a struct": {"inner field": 7, "2nd": "x"}},
    ]
    written.append(rows, file_format=file_format)
    return written


@table("types", "v3", "timestamp_ns", formats=ALL_FORMATS)
def nanoseconds(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [("id!", "int"), ("n", "timestamp_ns"), ("z", "timestamptz_ns")]
    written = iceberg.create(name, columns, version=3)
    values = [0, 1, -1, 1_709_210_096_789_012_345, -(10**18), None]
    rows = [{"id": index, "n": value, "z": value} for index, value in enumerate(values)]
    written.append(rows, file_format=file_format)
    return written


@table("types", "v3", "unknown", formats=ALL_FORMATS)
def unknown_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [("u", "unknown"), ("id!", "int"), ("s", struct(("a", "unknown"), ("b", "int")))]
    written = iceberg.create(name, columns, version=3)
    written.append([{"id": 1, "s": {"b": 1}}, {"id": 2}], file_format=file_format)
    return written


_VARIANTS = [
    '{"a": 1, "b": [true, null, "x", 1.5], "c": {"d": {}}}',
    "null",
    "12345678901234567890",
    '"' + "long text " * 20 + '"',
    "[]",
    "-1.25e-3",
]


@table("types", "v3", "variant")
def variants(iceberg: Iceberg, name: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("v", "variant")], version=3)
    rows = ", ".join(f"({i}, parse_json('{value}'))" for i, value in enumerate(_VARIANTS))
    return written.sql(f"INSERT INTO {{t}} VALUES {rows}, (99, NULL)")


@table("types", "v3", "variant")
def shredded_variants(iceberg: Iceberg, name: str) -> IcebergTable:
    properties = {"write.parquet.shred-variants": "true"}
    columns = [("id!", "int"), ("v", "variant")]
    written = iceberg.create(name, columns, version=3, properties=properties)
    # Java infers from rows of one shape what to shred.
    value = """parse_json(concat('{"a": ', id, ', "b": "text ', id, '"}'))"""
    return written.sql(
        f"INSERT INTO {{t}} SELECT cast(id AS int) AS id, {value} AS v FROM range(0, 200, 1, 1)"
    )


@table("types", "v3", "geometry", "geography")
def geometries(iceberg: Iceberg, name: str) -> IcebergTable:
    columns = [("id!", "int"), ("g", "geometry"), ("h", "geography")]
    written = iceberg.create(name, columns, version=3)
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    written.append([{"id": 1, "g": point, "h": point}, {"id": 2}])
    return written
