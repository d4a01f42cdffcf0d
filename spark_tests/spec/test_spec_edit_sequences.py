"""Several edits of a schema in one update: each sees what those before it have done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.spec.evolution.deletion_rules import check_deletions
from icebergds.spec.evolution.schema_edits import (
    Path,
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
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.schema_rules import check_schema


def optional(field_id: int, name: str, kind: IcebergType, **more: Any) -> NestedField:
    return NestedField(field_id, name, kind, False, **more)


def required(field_id: int, name: str, kind: IcebergType, **more: Any) -> NestedField:
    return NestedField(field_id, name, kind, True, **more)


def struct(*fields: NestedField) -> StructType:
    return StructType(fields)


def draft(*fields: NestedField, leave: bool = False, keys: tuple[int, ...] = ()) -> SchemaDraft:
    schema = Schema(fields, identifier_field_ids=keys)
    return SchemaDraft(schema, schema.highest_field_id, 3, allow_incompatible=leave)


def new(kind: IcebergType, **more: Any) -> NestedField:
    return NestedField(0, "", kind, **more)


def order(of: SchemaDraft) -> str:
    return " ".join(field.name for field in of.schema.fields)


_ID, _DATA = required(1, "id", INT), optional(2, "data", STRING)
_COORDINATES = (required(0, "lat", INT), optional(0, "long", INT))


def test_many_edits_of_all_kinds_make_one_schema() -> None:
    point = struct(required(7, "x", LONG), required(8, "y", LONG))
    place = struct(required(12, "lat", FLOAT), required(13, "long", FLOAT))
    made = draft(
        _ID,
        _DATA,
        optional(
            3, "preferences", struct(required(4, "one", BOOLEAN), optional(5, "two", BOOLEAN))
        ),
        optional(6, "points", ListType(9, point)),
        required(14, "locations", MapType(10, STRING, 11, place, True)),
        optional(15, "dropped", INT),
        leave=True,
    )
    made = add_column(made, ("toplevel",), new(DecimalType(9, 2)))
    made = add_column(made, ("locations", "alt"), new(FLOAT))
    made = add_column(made, ("points", "t.t"), new(LONG, doc="a name with a dot"))
    made = rename_column(made, ("preferences",), "options")
    made = rename_column(made, ("options", "two"), "second")
    made = rename_column(made, ("points", "y"), "y.y")
    made = update_doc(update_type(made, ("id",), LONG), ("id",), "unique id")
    made = update_type(rename_column(made, ("locations", "lat"), "n"), ("locations", "n"), DOUBLE)
    made = delete_column(delete_column(made, ("locations", "long")), ("dropped",))
    made = make_required(make_optional(made, ("points", "x")), ("data",))
    assert made.schema.fields == (
        required(1, "id", LONG, doc="unique id"),
        required(2, "data", STRING),
        optional(3, "options", struct(required(4, "one", BOOLEAN), optional(5, "second", BOOLEAN))),
        optional(
            6,
            "points",
            ListType(
                9,
                struct(
                    optional(7, "x", LONG),
                    required(8, "y.y", LONG),
                    optional(18, "t.t", LONG, doc="a name with a dot"),
                ),
            ),
        ),
        required(
            14,
            "locations",
            MapType(
                10,
                STRING,
                11,
                struct(required(12, "n", DOUBLE), optional(17, "alt", FLOAT)),
                True,
            ),
        ),
        optional(16, "toplevel", DecimalType(9, 2)),
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (struct(*_COORDINATES), struct(required(3, "lat", INT), optional(4, "long", INT))),
        (
            ListType(1, struct(*_COORDINATES), True),
            ListType(3, struct(required(4, "lat", INT), optional(5, "long", INT)), True),
        ),
        (
            MapType(1, struct(required(0, "zip", INT)), 2, struct(*_COORDINATES)),
            MapType(
                3,
                struct(required(5, "zip", INT)),
                4,
                struct(required(6, "lat", INT), optional(7, "long", INT)),
            ),
        ),
    ],
    ids=["struct", "list", "map"],
)
def test_an_added_nested_type_keeps_what_is_required_and_gets_fresh_ids(
    kind: IcebergType, expected: IcebergType
) -> None:
    added = add_column(draft(_ID), ("new",), new(kind))
    assert added.schema.fields[1] == optional(2, "new", expected)


def test_a_change_of_one_attribute_keeps_the_others() -> None:
    field = required(1, "i", INT, doc="d", initial_default=34, write_default=35)
    made = draft(field)
    for changed, expected in (
        (update_type(made, ("i",), LONG), {"field_type": LONG}),
        (update_doc(made, ("i",), "longer"), {"doc": "longer"}),
        (set_write_default(made, ("i",), 7), {"write_default": 7}),
        (make_optional(made, ("i",)), {"required": False}),
        (rename_column(made, ("i",), "j"), {"name": "j"}),
    ):
        (found,) = changed.schema.fields
        differing = {n for n in NestedField.__slots__ if getattr(found, n) != getattr(field, n)}
        assert {name: getattr(found, name) for name in differing} == expected


_UNCHANGEABLE: tuple[IcebergType, ...] = (
    BOOLEAN,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    STRING,
    UUID,
    BINARY,
    FixedType(3),
    FixedType(4),
    GeometryType(),
    GeometryType("srid:3857"),
    GeographyType(),
    GeographyType("srid:4269", "karney"),
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_types_that_the_specification_does_not_widen_never_change(version: int) -> None:
    for before, after in permutations((*_UNCHANGEABLE, INT, DATE, FLOAT, DecimalType(9, 2)), 2):
        if before == DATE and after == TIMESTAMP:
            continue
        made = SchemaDraft(Schema((required(1, "c", before),)), 1, version)
        with pytest.raises(InvalidOptionError, match="cannot change from"):
            update_type(made, ("c",), after)


def test_a_column_that_the_same_update_adds_is_changed_like_others() -> None:
    made = add_column(draft(_ID), ("v",), new(INT))
    made = update_doc(update_type(made, ("v",), LONG), ("v",), "a value")
    assert set_write_default(made, ("v",), 5).schema.fields[1] == optional(
        2, "v", LONG, doc="a value", write_default=5
    )


def test_a_column_added_with_a_default_may_become_required_in_the_same_update() -> None:
    made = add_column(draft(_ID), ("v",), new(INT, initial_default=1, write_default=1))
    assert make_required(made, ("v",)).schema.fields[1].required
    # Rows of before have no write default, and rows of another update may have nulls.
    for other in (
        set_write_default(add_column(draft(_ID), ("v",), new(INT)), ("v",), 1),
        draft(*made.schema.fields),
    ):
        with pytest.raises(InvalidOptionError, match="cannot become required"):
            make_required(other, ("v",))


def test_a_required_column_stays_required_without_leave() -> None:
    assert make_required(draft(_ID), ("id",)).schema == draft(_ID).schema


@pytest.mark.parametrize("path", [("l", "element"), ("m", "value"), ("s", "l", "element")])
def test_the_inside_of_lists_and_maps_becomes_required_only_by_leave(path: Path) -> None:
    fields = (
        optional(1, "l", ListType(2, INT)),
        optional(3, "m", MapType(4, INT, 5, INT)),
        optional(6, "s", struct(optional(7, "l", ListType(8, INT)))),
    )
    assert find_column(make_required(draft(*fields, leave=True), path), path).required
    with pytest.raises(InvalidOptionError, match="cannot become required"):
        make_required(draft(*fields), path)


def test_a_deleted_column_is_replaced_by_another_one_of_its_name_at_its_place() -> None:
    made = draft(required(1, "id", LONG), _DATA, optional(3, "more", STRING), leave=True)
    made = add_column(delete_column(made, ("id",)), ("id",), new(INT, required=True))
    for moved, names in (
        (made, "data more id"),
        (move_column(made, ("id",), after=("data",)), "data id more"),
        (move_column(made, ("id",), before=("more",)), "data id more"),
        (move_column(made, ("id",)), "id data more"),
    ):
        assert order(moved) == names
        assert find_column(moved, ("id",)) == required(4, "id", INT)


@pytest.mark.parametrize(
    ("after", "names"),
    [(("s", "a"), ["a", "data", "b"]), (None, ["data", "a", "b"])],
)
def test_a_deleted_field_is_replaced_within_its_struct(
    after: Path | None, names: list[str]
) -> None:
    inner = struct(required(2, "a", LONG), optional(3, "data", STRING), optional(4, "b", INT))
    made = delete_column(draft(optional(1, "s", inner)), ("s", "data"))
    made = move_column(add_column(made, ("s", "data"), new(INT)), ("s", "data"), after=after)
    found = find_column(made, ("s",)).field_type
    assert isinstance(found, StructType)
    assert [field.name for field in found.fields] == names
    assert find_column(made, ("s", "data")) == optional(5, "data", INT)


def test_moves_are_made_one_after_the_other() -> None:
    made = draft(*(required(at, name, INT) for at, name in enumerate("abcd", 1)))
    made = move_column(move_column(made, ("d",)), ("c",))
    assert order(move_column(made, ("b",), after=("d",))) == "c d b a"
    made = move_column(made, ("b",), after=("d",))
    assert order(move_column(made, ("d",), before=("a",))) == "c b d a"


def test_added_columns_are_moved_beside_each_other() -> None:
    made = add_column(draft(_ID, _DATA), ("ts",), new(LONG))
    made = move_column(add_column(made, ("count",), new(LONG)), ("ts",), after=("id",))
    assert order(move_column(made, ("count",), after=("ts",))) == "id ts count data"
    assert order(move_column(made, ("count",), before=("ts",))) == "id count ts data"


@pytest.mark.parametrize("around", ["struct", "list", "map"])
def test_added_fields_are_moved_within_structs_lists_and_maps(around: str) -> None:
    inner = struct(required(5, "a", INT), required(6, "b", INT))
    kind: dict[str, IcebergType] = {
        "struct": inner,
        "list": ListType(3, inner),
        "map": MapType(3, STRING, 4, inner),
    }
    made = add_column(draft(optional(1, "c", kind[around])), ("c", "new"), new(INT))
    moved = move_column(made, ("c", "new"), before=("c", "b"))
    ids = [field_id for field_id in moved.schema.fields_by_id if field_id >= 5]
    assert ids == [5, 7, 6]


@pytest.mark.parametrize("where", [{}, {"before": ("id",)}, {"after": ("id",)}])
def test_a_column_is_not_moved_before_it_is_added(where: dict[str, Path]) -> None:
    with pytest.raises(InvalidOptionError, match="no column 'ts'"):
        move_column(draft(_ID, _DATA), ("ts",), **where)


def test_fields_are_not_moved_into_another_struct_at_the_same_depth() -> None:
    made = draft(
        optional(1, "s", struct(optional(3, "a", INT))),
        optional(2, "t", struct(optional(4, "x", INT))),
    )
    with pytest.raises(InvalidOptionError, match="different structs"):
        move_column(made, ("t", "x"), before=("s", "a"))


def test_what_an_update_has_deleted_or_renamed_is_gone_for_its_later_edits() -> None:
    deleted = delete_column(draft(_ID, _DATA), ("id",))
    renamed = rename_column(draft(_ID, _DATA), ("id",), "key")
    edits: list[Callable[[SchemaDraft], SchemaDraft]] = [
        lambda of: delete_column(of, ("id",)),
        lambda of: rename_column(of, ("id",), "x"),
        lambda of: update_type(of, ("id",), LONG),
        lambda of: update_doc(of, ("id",), "x"),
        lambda of: set_write_default(of, ("id",), 1),
        lambda of: make_optional(of, ("id",)),
    ]
    for made in (deleted, renamed):
        for edit in edits:
            with pytest.raises(InvalidOptionError, match="no column 'id'"):
                edit(made)


def test_what_an_update_has_changed_or_added_can_be_deleted_by_it() -> None:
    inner = struct(required(4, "x", INT))
    made = draft(_ID, _DATA, optional(3, "s", inner))
    assert order(delete_column(update_type(made, ("id",), LONG), ("id",))) == "data s"
    assert order(delete_column(rename_column(made, ("id",), "key"), ("key",))) == "data s"
    assert delete_column(add_column(made, ("new",), new(INT)), ("new",)).schema == made.schema
    assert order(delete_column(add_column(made, ("s", "y"), new(INT)), ("s",))) == "id data"


def test_the_last_column_goes_if_another_one_comes_in_the_same_update() -> None:
    made = delete_column(draft(_ID), ("id",))
    with pytest.raises(InvalidOptionError, match="the last column of the table cannot be deleted"):
        check_deletions(draft(_ID).schema, made.schema)
    made = add_column(made, ("id",), new(STRING))
    check_deletions(draft(_ID).schema, made.schema)
    assert made.schema.fields == (optional(2, "id", STRING),)


def test_the_last_field_of_a_struct_goes_if_another_one_comes_or_the_struct_goes() -> None:
    before = draft(_ID, optional(2, "l", ListType(3, struct(optional(4, "x", INT)))))
    emptied = delete_column(before, ("l", "x"))
    with pytest.raises(InvalidOptionError, match=r"last field of column 'l\.element'"):
        check_deletions(before.schema, emptied.schema)
    check_deletions(before.schema, add_column(emptied, ("l", "y"), new(INT)).schema)
    check_deletions(before.schema, delete_column(emptied, ("l",)).schema)


def test_a_struct_that_was_empty_may_stay_so() -> None:
    before = draft(_ID, optional(2, "s", struct()))
    check_deletions(before.schema, add_column(before, ("new",), new(INT)).schema)


@pytest.mark.parametrize("reset_first", [True, False])
def test_an_identifier_field_goes_if_the_same_update_sets_other_ones(reset_first: bool) -> None:
    before = draft(_ID, required(2, "key", LONG), keys=(1,))

    def edited(paths: Sequence[Path]) -> Schema:
        made = before
        if reset_first:
            made = set_identifier_fields(made, paths)
        made = delete_column(made, ("id",))
        return (made if reset_first else set_identifier_fields(made, paths)).schema

    for paths, keys in (([], ()), ([("key",)], (2,))):
        check_deletions(before.schema, edited(paths))
        assert edited(paths).identifier_field_ids == keys
    with pytest.raises(InvalidOptionError, match="'id' cannot be deleted: it is an identifier"):
        check_deletions(before.schema, delete_column(before, ("id",)).schema)


def test_identifier_fields_stay_so_if_they_are_renamed_or_moved() -> None:
    made = rename_column(draft(_ID, _DATA, keys=(1,)), ("id",), "key")
    made = move_column(made, ("key",), after=("data",))
    assert (order(made), made.schema.identifier_field_ids) == ("data key", (1,))


def test_added_columns_may_be_identifier_fields_of_the_same_update() -> None:
    deep = struct(required(0, "field", struct(required(0, "nested", STRING))))
    made = add_column(draft(_ID, leave=True), ("new",), new(deep, required=True))
    made = add_column(made, ("dot.field",), new(STRING, required=True))
    paths = [("id",), ("new", "field", "nested"), ("dot", "field")]
    made = set_identifier_fields(made, paths)
    check_schema(made.schema, 3)
    assert made.schema.identifier_field_ids == (1, 4, 5)
    kept = set_identifier_fields(made, [("new", "field", "nested")])
    assert kept.schema.identifier_field_ids == (4,)


_INNER = struct(required(0, "k", INT))


@pytest.mark.parametrize(
    ("kind", "path", "said"),
    [
        (FLOAT, (), "floating point"),
        (DOUBLE, (), "floating point"),
        (_INNER, (), "nested types are not allowed"),
        (ListType(0, _INNER, True), ("element", "k"), "inside a list or map"),
        (MapType(0, _INNER, 0, INT), ("key", "k"), "inside a list or map"),
        (MapType(0, INT, 0, _INNER, True), ("value", "k"), "inside a list or map"),
        (struct(required(0, "l", ListType(0, _INNER, True))), ("l", "k"), "inside a list or map"),
        (struct(optional(0, "s", _INNER)), ("s", "k"), "is optional"),
        (struct(optional(0, "k", INT)), ("k",), "is optional"),
    ],
)
def test_columns_that_identify_no_row_are_refused(kind: IcebergType, path: Path, said: str) -> None:
    made = add_column(draft(_ID, leave=True), ("new",), new(kind, required=True))
    made = set_identifier_fields(made, [("new", *path)])
    with pytest.raises(InvalidMetadataError, match=said):
        check_schema(made.schema, 3)


def test_an_identifier_field_that_is_missing_is_refused_at_once() -> None:
    with pytest.raises(InvalidOptionError, match="no column 'new'"):
        set_identifier_fields(draft(_ID), [("new",)])


def test_a_column_of_type_unknown_is_optional_even_by_leave() -> None:
    made = add_column(draft(_ID, leave=True), ("u",), new(UNKNOWN))
    check_schema(made.schema, 3)
    with pytest.raises(InvalidMetadataError, match="'u' is of type unknown and must be optional"):
        check_schema(make_required(made, ("u",)).schema, 3)
