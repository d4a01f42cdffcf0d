"""The ids of columns when a table is replaced."""

from __future__ import annotations

from icebergds.spec.evolution.replacement import replacing_schema
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    INT,
    LONG,
    STRING,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    walk,
)

_POINT = StructType((NestedField(5, "x", INT), NestedField(6, "y", INT)))
_KNOWN = Schema(
    (
        NestedField(1, "id", INT),
        NestedField(2, "name", STRING),
        NestedField(3, "points", ListType(4, _POINT)),
        NestedField(7, "named", MapType(8, STRING, 9, _POINT)),
    ),
    identifier_field_ids=(1,),
)
_LAST = 20


def ids(*fields: tuple[str, IcebergType]) -> list[tuple[str, int]]:
    """The names and ids of all fields of a table of these columns that replaces the known one."""
    new = Schema(tuple(NestedField(100 + at, name, kind) for at, (name, kind) in enumerate(fields)))
    replaced = replacing_schema(_KNOWN, new, _LAST)
    assert replaced.identifier_field_ids == ()
    return [(field.name, field.field_id) for field in walk(replaced.fields)]


def test_columns_of_the_same_name_and_type_keep_their_ids() -> None:
    assert ids(("name", STRING), ("id", INT)) == [("name", 2), ("id", 1)]


def test_wider_types_keep_their_ids() -> None:
    assert ids(("id", LONG)) == [("id", 1)]


def test_other_types_and_names_get_new_ids() -> None:
    assert ids(("id", STRING), ("Name", STRING), ("name", INT)) == [
        ("id", 21),
        ("Name", 22),
        ("name", 23),
    ]


def test_fields_inside_of_columns_keep_their_ids_too() -> None:
    point = StructType((NestedField(1, "y", LONG), NestedField(2, "z", INT)))
    assert ids(("points", ListType(3, point)), ("named", MapType(4, STRING, 5, point))) == [
        ("points", 3),
        ("element", 4),
        ("y", 6),
        ("z", 21),
        ("named", 7),
        ("key", 8),
        ("value", 9),
        ("y", 6),
        ("z", 22),
    ]


def test_a_collection_of_something_else_is_a_new_column() -> None:
    assert ids(("points", ListType(3, INT))) == [("points", 21), ("element", 22)]
    assert ids(("named", MapType(3, INT, 4, _POINT)))[0] == ("named", 21)
