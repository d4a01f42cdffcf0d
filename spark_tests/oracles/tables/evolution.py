"""Schemas that change under data files that stay."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from oracles.arrow_schema import list_of, map_of, struct
from oracles.jvm import Iceberg, IcebergTable
from oracles.registry import ALL_FORMATS, table


@table("evolution", "add", "rename", "drop", "reorder", "time travel", formats=ALL_FORMATS)
def evolved_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [("id!", "int"), ("a", "string"), ("b", "double"), ("c", "date")]
    written = iceberg.create(name, columns)
    written.append([{"id": 1, "a": "x", "b": 1.0, "c": dt.date(2024, 1, 1)}, {"id": 2}])
    written.evolve(("renameColumn", "a", "title"))
    written.append([{"id": 3, "title": "y", "b": 2.0}], file_format=file_format)
    written.evolve(("addColumn", "n", iceberg.type("long")))
    written.append([{"id": 4, "title": "z", "n": 1 << 40}], file_format=file_format)
    written.evolve(("deleteColumn", "b"))
    written.append([{"id": 5, "n": 5}], file_format=file_format)
    written.evolve(("moveFirst", "n"), ("moveAfter", "id", "c"))
    written.append([{"n": 6, "title": "w", "c": None, "id": 6}], file_format=file_format)
    return written


@table("evolution", "promotion", "v1", formats=ALL_FORMATS)
def promoted_columns_v1(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    return _promote(iceberg, name, file_format, 1)


@table("evolution", "promotion", formats=ALL_FORMATS)
def promoted_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    return _promote(iceberg, name, file_format, 2)


def _promote(iceberg: Iceberg, name: str, file_format: str, version: int) -> IcebergTable:
    columns = [
        ("i", "int"),
        ("f", "float"),
        ("d9", "decimal(9,2)"),
        ("d18", "decimal(18,2)"),
        ("l", list_of("int")),
        ("m", map_of("string", "float")),
        ("s", struct(("i", "int"), ("d", "decimal(5,1)"))),
    ]
    written = iceberg.create(name, columns, version=version)
    old = {
        "i": -(1 << 31),
        "f": 0.1,
        "d9": Decimal("-1234567.89"),
        "d18": Decimal("1234567890123456.78"),
        "l": [1, None, -2],
        "m": [("k", 1.5), ("n", None)],
        "s": {"i": 7, "d": Decimal("12.5")},
    }
    written.append([old, {}], file_format=file_format)
    written.evolve(
        ("updateColumn", "i", iceberg.type("long")),
        ("updateColumn", "f", iceberg.type("double")),
        ("updateColumn", "d9", iceberg.type("decimal(18,2)")),
        ("updateColumn", "d18", iceberg.type("decimal(38,2)")),
        ("updateColumn", "l.element", iceberg.type("long")),
        ("updateColumn", "m.value", iceberg.type("double")),
        ("updateColumn", "s.i", iceberg.type("long")),
        ("updateColumn", "s.d", iceberg.type("decimal(12,1)")),
    )
    new = {**old, "i": 1 << 62, "l": [1 << 40], "s": {"i": 1 << 50, "d": Decimal("12345678901.5")}}
    written.append([new], file_format=file_format)
    return written


@table("evolution", "nested", formats=ALL_FORMATS)
def evolved_nested_fields(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    address = struct(("street", "string"), ("zip", "int"), ("geo", struct(("lat", "double"))))
    item = struct(("sku", "string"), ("qty", "int"))
    columns = [
        ("id!", "int"),
        ("address", address),
        ("items", list_of(item)),
        ("by_key", map_of("string", item)),
    ]
    written = iceberg.create(name, columns)
    old = {
        "id": 1,
        "address": {"street": "a", "zip": 1, "geo": {"lat": 1.5}},
        "items": [{"sku": "x", "qty": 1}, None],
        "by_key": [("k", {"sku": "y", "qty": 2})],
    }
    written.append([old, {"id": 2}], file_format=file_format)
    written.evolve(
        ("renameColumn", "address.street", "road"),
        ("addColumn", "address", "country", iceberg.type("string")),
        ("addColumn", "address.geo", "lon", iceberg.type("double")),
        ("addColumn", "items", "price", iceberg.type("decimal(9,2)")),
        ("renameColumn", "by_key.sku", "article"),
        ("moveFirst", "address.zip"),
    )
    new = {
        "id": 3,
        "address": {"zip": 9, "road": "r", "country": "de", "geo": {"lat": 1.0, "lon": 2.0}},
        "items": [{"sku": "x", "qty": 1, "price": Decimal("9.99")}],
        "by_key": [("k", {"article": "z", "qty": 3})],
    }
    written.append([new], file_format=file_format)
    written.evolve(
        ("deleteColumn", "address.zip"),
        ("deleteColumn", "address.geo.lat"),
        ("deleteColumn", "items.qty"),
        ("deleteColumn", "by_key.article"),
        ("addColumn", "address", "zip", iceberg.type("string")),
    )
    newest = {
        "id": 4,
        "address": {"zip": "0815", "road": "s", "country": None, "geo": {"lon": 3.0}},
        "items": [{"sku": "w", "price": None}],
        "by_key": [("k", {"qty": 4})],
    }
    written.append([newest], file_format=file_format)
    return written


@table("evolution", "dropped and added again", formats=ALL_FORMATS)
def readded_column(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("v", "string")])
    written.append([{"id": 1, "v": "old"}], file_format=file_format)
    written.evolve(("deleteColumn", "v"))
    written.append([{"id": 2}], file_format=file_format)
    written.evolve(("addColumn", "v", iceberg.type("string")))
    written.append([{"id": 3, "v": "new"}], file_format=file_format)
    return written


@table("evolution", "names swapped", formats=ALL_FORMATS)
def swapped_names(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int"), ("a", "string"), ("b", "string")])
    written.append([{"id": 1, "a": "a1", "b": "b1"}], file_format=file_format)
    written.evolve(("renameColumn", "a", "b_"), ("renameColumn", "b", "a"))
    written.evolve(("renameColumn", "b_", "b"))
    written.append([{"id": 2, "a": "b2", "b": "a2"}], file_format=file_format)
    return written


@table("evolution", "required to optional", formats=ALL_FORMATS)
def relaxed_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    columns = [("id!", "int"), ("v!", "string"), ("s!", struct(("x!", "int")))]
    written = iceberg.create(name, columns)
    written.append([{"id": 1, "v": "x", "s": {"x": 1}}], file_format=file_format)
    written.evolve(("makeColumnOptional", "v"), ("makeColumnOptional", "s"))
    written.evolve(("makeColumnOptional", "s.x"))
    written.append([{"id": 2}, {"id": 3, "v": "y", "s": {"x": None}}], file_format=file_format)
    return written


@table("evolution", "no column of the file is left", formats=ALL_FORMATS)
def replaced_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("a", "int"), ("b", struct(("x", "int")))])
    rows = [{"a": 1, "b": {"x": 1}}, {"a": 2}, {}]
    written.append(rows, file_format=file_format)
    written.evolve(
        ("addColumn", "c", iceberg.type("int")),
        ("addColumn", "b", "y", iceberg.type("int")),
        ("deleteColumn", "a"),
        ("deleteColumn", "b.x"),
    )
    written.append([{"c": 3, "b": {"y": 3}}], file_format=file_format)
    return written


@table("evolution", "struct added", formats=ALL_FORMATS)
def added_nested_columns(iceberg: Iceberg, name: str, file_format: str) -> IcebergTable:
    written = iceberg.create(name, [("id!", "int")])
    written.append([{"id": 1}], file_format=file_format)
    written.evolve(
        ("addColumn", "s", iceberg.type(struct(("a", "int"), ("b", list_of("string"))))),
        ("addColumn", "l", iceberg.type(list_of(struct(("k", "date"))))),
        ("addColumn", "m", iceberg.type(map_of("int", "string"))),
    )
    row = {"id": 2, "s": {"a": 1, "b": ["x"]}, "l": [{"k": dt.date(2024, 1, 1)}], "m": [(1, "v")]}
    written.append([row], file_format=file_format)
    return written
