"""Columns found by full and short names, with dots in names, and whatever their case."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.spec.evolution.column_names import find_column_ids
from icebergds.spec.evolution.schema_edits import (
    SchemaDraft,
    add_column,
    delete_column,
    find_column,
    make_optional,
    make_required,
    move_column,
    rename_column,
    set_identifier_fields,
    set_write_default,
    update_doc,
    update_type,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_KEY = StructType((NestedField(20, "zip", INT, True), NestedField(21, "lat", INT)))
_VALUE = StructType((NestedField(12, "lat", FLOAT, True), NestedField(13, "long", FLOAT)))
_POINT = StructType((NestedField(15, "x", INT, True), NestedField(16, "y.y", LONG)))
_SCHEMA = Schema(
    (
        NestedField(1, "id", INT, True),
        NestedField(2, "data.txt", STRING, True),
        NestedField(3, "locations", MapType(10, _KEY, 11, _VALUE)),
        NestedField(4, "points", ListType(14, ListType(17, _POINT))),
        NestedField(5, "sizes", ListType(18, LONG)),
    )
)


def ids(name: str, *, case_sensitive: bool = True, schema: Schema = _SCHEMA) -> tuple[int, ...]:
    return find_column_ids(schema, tuple(name.split(".")), case_sensitive=case_sensitive)


@pytest.mark.parametrize(
    ("name", "field_id"),
    [
        ("id", 1),
        ("locations.value", 11),
        ("locations.value.lat", 12),
        ("locations.lat", 12),
        ("locations.key.lat", 21),
        ("points.element.element.x", 15),
        ("points.element.x", 15),
        ("points.x", None),
        ("sizes.element", 18),
        ("value.lat", None),
    ],
)
def test_short_names_leave_out_the_element_or_value_around_a_struct(
    name: str, field_id: int | None
) -> None:
    assert ids(name) == (() if field_id is None else (field_id,))


@pytest.mark.parametrize(
    ("name", "field_id"),
    [("data.txt", 2), ("points.element.element.y.y", 16), ("points.element.y.y", 16)],
)
def test_dots_in_names_need_no_tuple_for_a_column_that_is_there(name: str, field_id: int) -> None:
    assert ids(name) == (field_id,)


def test_an_exact_path_comes_before_a_name_with_dots_and_that_before_a_short_name() -> None:
    element = StructType((NestedField(5, "a", INT),))
    around = StructType((NestedField(4, "a", INT),))
    listed = NestedField(1, "l", ListType(2, element))
    assert ids("l.a", schema=Schema((listed,))) == (5,)
    assert ids("l.a", schema=Schema((listed, NestedField(3, "l.a", INT)))) == (3,)
    both = Schema((NestedField(6, "s.a", INT), NestedField(3, "s", around)))
    assert ids("s.a", schema=both) == (4,)


@pytest.mark.parametrize(
    ("name", "field_id"),
    [("ID", 1), ("Data.TXT", 2), ("LOCATIONS.Lat", 12), ("Locations.Value.Lat", 12)],
)
def test_case_matters_only_if_the_update_says_so(name: str, field_id: int) -> None:
    assert ids(name, case_sensitive=False) == (field_id,)
    assert ids(name) == ()


def test_an_exact_name_comes_before_one_of_another_case() -> None:
    two = Schema((NestedField(1, "Aa", INT), NestedField(2, "aA", INT)))
    assert ids("aA", case_sensitive=False, schema=two) == (2,)
    assert ids("aa", case_sensitive=False, schema=two) == (1, 2)


@pytest.mark.parametrize(
    "edit",
    [
        lambda of: update_type(of, ("LOCATIONS", "Lat"), DOUBLE),
        lambda of: rename_column(of, ("Locations", "LAT"), "latitude"),
        lambda of: move_column(of, ("LOCATIONS", "LONG"), before=("locations", "Lat")),
        lambda of: make_optional(of, ("LOCATIONS", "LAT")),
        lambda of: update_doc(of, ("LOCATIONS", "LAT"), "north"),
        lambda of: set_write_default(of, ("LOCATIONS", "LAT"), 0.0),
        lambda of: delete_column(of, ("LOCATIONS", "LAT")),
        lambda of: add_column(of, ("LOCATIONS", "alt"), NestedField(0, "", FLOAT)),
        lambda of: set_identifier_fields(of, [("ID",), ("DATA", "TXT")]),
    ],
)
def test_every_edit_finds_columns_by_short_names_of_any_case(
    edit: Callable[[SchemaDraft], SchemaDraft],
) -> None:
    made = SchemaDraft(_SCHEMA, 100, 3, case_sensitive=False)
    assert edit(made).schema != _SCHEMA
    with pytest.raises(InvalidOptionError, match="no column"):
        edit(SchemaDraft(_SCHEMA, 100, 3))


def test_a_column_becomes_required_by_a_name_of_any_case() -> None:
    made = SchemaDraft(_SCHEMA, 100, 3, allow_incompatible=True, case_sensitive=False)
    assert find_column(make_required(made, ("LOCATIONS", "Long")), ("locations", "long")).required


@pytest.mark.parametrize("name", ["ID", "Id"])
def test_an_update_that_ignores_case_takes_no_name_that_differs_by_it_alone(name: str) -> None:
    # Not even with leave for incompatible changes: later ones of the update could not tell them.
    made = SchemaDraft(_SCHEMA, 100, 3, allow_incompatible=True, case_sensitive=False)
    with pytest.raises(InvalidOptionError, match=f"'{name}' already exists, as 'id'"):
        add_column(made, (name,), NestedField(0, "", INT))
    with pytest.raises(InvalidOptionError, match=f"'{name}' already exists, as 'id'"):
        rename_column(made, ("sizes",), name)
    added = add_column(made, ("new",), NestedField(0, "", INT))
    with pytest.raises(InvalidOptionError, match="'NEW' already exists, as 'new'"):
        add_column(added, ("NEW",), NestedField(0, "", INT))


def test_by_leave_names_of_an_update_that_heeds_case_may_differ_by_it_alone() -> None:
    made = SchemaDraft(_SCHEMA, 100, 3, allow_incompatible=True)
    assert add_column(made, ("ID",), NestedField(0, "", INT)).schema.find_id("ID") == 101
