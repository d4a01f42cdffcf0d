"""Edits of schemas, column by column."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from icebergds.errors import InvalidOptionError
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
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
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UNKNOWN,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)


def struct(**fields: IcebergType) -> StructType:
    return StructType(tuple(NestedField(0, name, kind) for name, kind in fields.items()))


def draft(
    version: int = 3, *, required: tuple[str, ...] = (), last: int = 100, **fields: Any
) -> SchemaDraft:
    """A schema with ids from 1, of a table whose last column id is 100."""
    made = with_fresh_ids(struct(**fields).fields, iter(range(1, 100)))
    columns = tuple(NestedField(f.field_id, f.name, f.field_type, f.name in required) for f in made)
    return SchemaDraft(Schema(columns), last, version)


def nested() -> SchemaDraft:
    return draft(
        id=LONG,
        s=struct(x=INT, y=STRING),
        l=ListType(0, struct(p=INT)),
        m=MapType(0, struct(k=INT), 0, struct(v=INT)),
    )


def names(of: SchemaDraft) -> list[str]:
    return sorted(of.schema.ids_by_name)


def column(kind: IcebergType, **more: Any) -> NestedField:
    return NestedField(0, "", kind, **more)


def test_a_column_is_added_at_the_end_under_an_id_that_no_column_ever_had() -> None:
    added = add_column(draft(a=INT), ("b",), column(STRING, doc="B"))
    assert added.schema.fields[1] == NestedField(101, "b", STRING, doc="B")
    assert added.last_column_id == 101


def test_the_fields_inside_an_added_column_get_ids_after_its_own() -> None:
    added = add_column(draft(a=INT), ("s",), column(struct(x=INT, l=ListType(0, INT))))
    assert added.schema.ids_by_name == {
        "a": 1,
        "s": 101,
        "s.x": 102,
        "s.l": 103,
        "s.l.element": 104,
    }


@pytest.mark.parametrize(
    ("path", "full_name"),
    [
        (("s", "z"), "s.z"),
        (("l", "z"), "l.element.z"),
        (("l", "element", "z"), "l.element.z"),
        (("m", "z"), "m.value.z"),
        (("m", "value", "z"), "m.value.z"),
    ],
)
def test_fields_are_added_to_structs_also_inside_lists_and_maps(
    path: tuple[str, ...], full_name: str
) -> None:
    assert add_column(nested(), path, column(INT)).schema.find_id(full_name) == 101


def test_an_id_is_not_used_again_after_its_column_was_deleted() -> None:
    gone = delete_column(add_column(draft(a=INT), ("b",), column(INT)), ("b",))
    assert add_column(gone, ("b",), column(INT)).schema.find_id("b") == 102


def test_a_name_with_a_dot_is_one_name() -> None:
    added = add_column(draft(a=INT), ("b.c",), column(INT))
    assert find_column(added, ("b.c",)).field_id == 101


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("id",), "already exists"),
        (("ID",), "by case alone"),
        (("s", "x"), "'s.x' already exists"),
        (("nope", "x"), "no column 'nope'"),
        (("id", "x"), "is of type long, expected a struct"),
        (("m", "key", "x"), "in the key of a map"),
        (("",), "must not be empty"),
    ],
)
def test_columns_that_cannot_be_added_are_refused(path: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        add_column(nested(), path, column(INT))


def test_a_required_column_needs_a_default_or_leave() -> None:
    with pytest.raises(InvalidOptionError, match="required without a default"):
        add_column(draft(a=INT), ("b",), column(INT, required=True))
    with_default = column(INT, required=True, initial_default=1, write_default=1)
    assert add_column(draft(a=INT), ("b",), with_default).schema.fields[1].required
    lenient = SchemaDraft(draft(a=INT).schema, 100, 3, allow_incompatible=True)
    assert add_column(lenient, ("b",), column(INT, required=True)).schema.fields[1].required


def test_a_deleted_column_goes_with_all_inside_it() -> None:
    assert names(delete_column(nested(), ("s",))) == names(
        draft(id=LONG, l=ListType(0, struct(p=INT)), m=MapType(0, struct(k=INT), 0, struct(v=INT)))
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("nope",), "no column 'nope'"),
        (("s", "y"), None),
        (("l", "element"), "inside of a list or map"),
        (("m", "key"), "in the key of a map"),
        (("m", "key", "k"), "in the key of a map"),
    ],
)
def test_only_fields_of_structs_are_deleted(path: tuple[str, ...], said: str | None) -> None:
    if said is None:
        assert ".".join(path) not in names(delete_column(nested(), path))
        return
    with pytest.raises(InvalidOptionError, match=said):
        delete_column(nested(), path)


def test_identifier_fields_and_the_structs_around_them_stay_required() -> None:
    inner = StructType((NestedField(2, "x", INT, True), NestedField(3, "y", INT)))
    fields = (NestedField(1, "s", inner, True), NestedField(4, "a", INT))
    keyed = set_identifier_fields(SchemaDraft(Schema(fields), 4, 3), [("s", "x")])
    for path in (("s", "x"), ("s",)):
        with pytest.raises(InvalidOptionError, match="identifier field"):
            make_optional(keyed, path)
    assert find_column(make_optional(set_identifier_fields(keyed, []), ("s",)), ("s",)).optional


def test_a_renamed_column_keeps_id_type_and_place() -> None:
    renamed = rename_column(nested(), ("s", "x"), "z")
    assert renamed.schema.find_id("s.z") == nested().schema.find_id("s.x")
    assert [f.name for f in renamed.schema.fields] == ["id", "s", "l", "m"]


def test_names_may_be_swapped_by_way_of_a_third() -> None:
    swapped = draft(a=INT, b=STRING)
    for before, after in (("a", "t"), ("b", "a"), ("t", "b")):
        swapped = rename_column(swapped, (before,), after)
    assert swapped.schema.ids_by_name == {"b": 1, "a": 2}


def test_a_taken_name_is_refused_but_for_other_case_of_its_own() -> None:
    with pytest.raises(InvalidOptionError, match="'b' already exists"):
        rename_column(draft(a=INT, b=INT), ("a",), "b")
    with pytest.raises(InvalidOptionError, match="by case alone"):
        rename_column(draft(a=INT, b=INT), ("a",), "B")
    assert names(rename_column(draft(a=INT), ("a",), "A")) == ["A"]


_TYPES = (
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NS,
    STRING,
    UNKNOWN,
    DecimalType(9, 2),
    DecimalType(12, 2),
    DecimalType(12, 3),
)
_WIDER = {
    (INT, LONG): 1,
    (FLOAT, DOUBLE): 1,
    (DecimalType(9, 2), DecimalType(12, 2)): 1,
    (DATE, TIMESTAMP): 3,
    (DATE, TIMESTAMP_NS): 3,
    **{(UNKNOWN, kind): 3 for kind in _TYPES},
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("after", _TYPES, ids=str)
@pytest.mark.parametrize("before", _TYPES, ids=str)
def test_types_are_promoted_as_the_specification_says(
    before: IcebergType, after: IcebergType, version: int
) -> None:
    made = draft(version, a=before)
    if before == after or _WIDER.get((before, after), 9) <= version:
        assert update_type(made, ("a",), after).schema.fields[0].field_type == after
    else:
        with pytest.raises(InvalidOptionError, match="cannot change from"):
            update_type(made, ("a",), after)


@pytest.mark.parametrize(
    ("after", "default"), [(TIMESTAMP, 86_400_000_000), (TIMESTAMP_NS, 86_400_000_000_000)]
)
def test_the_default_of_a_promoted_date_is_its_midnight(after: IcebergType, default: int) -> None:
    fields = (NestedField(1, "a", DATE, False, None, 1, 1),)
    promoted = update_type(SchemaDraft(Schema(fields), 1, 3), ("a",), after).schema.fields[0]
    assert (promoted.initial_default, promoted.write_default) == (default, default)


def test_a_default_beyond_the_wider_type_is_refused() -> None:
    fields = (NestedField(1, "a", DATE, False, None, 10**6, None),)
    with pytest.raises(InvalidOptionError, match="no value for its default, 4707-11-29"):
        update_type(SchemaDraft(Schema(fields), 1, 3), ("a",), TIMESTAMP_NS)


def test_elements_and_values_are_promoted_and_keys_are_not() -> None:
    made = draft(l=ListType(0, INT), m=MapType(0, INT, 0, INT))
    made = update_type(update_type(made, ("l", "element"), LONG), ("m", "value"), LONG)
    assert made.schema == draft(l=ListType(0, LONG), m=MapType(0, INT, 0, LONG)).schema
    with pytest.raises(InvalidOptionError, match="in the key of a map"):
        update_type(made, ("m", "key"), LONG)


def test_a_struct_cannot_become_another_type() -> None:
    with pytest.raises(InvalidOptionError, match="'s' cannot change"):
        update_type(nested(), ("s",), STRING)


def test_elements_and_values_become_optional_and_keys_do_not() -> None:
    made = draft(l=ListType(0, INT, True), m=MapType(0, INT, 0, INT, True))
    made = make_optional(make_optional(made, ("l", "element")), ("m", "value"))
    assert made.schema == draft(l=ListType(0, INT), m=MapType(0, INT, 0, INT)).schema
    with pytest.raises(InvalidOptionError, match="in the key of a map"):
        make_optional(made, ("m", "key"))


def test_a_column_becomes_required_only_by_leave() -> None:
    with pytest.raises(InvalidOptionError, match="allow_incompatible_changes"):
        make_required(draft(a=INT), ("a",))
    lenient = SchemaDraft(draft(a=INT).schema, 100, 3, allow_incompatible=True)
    assert make_required(lenient, ("a",)).schema.fields[0].required


def test_comments_are_set_and_removed() -> None:
    said = update_doc(nested(), ("s", "x"), "an x")
    assert find_column(said, ("s", "x")).doc == "an x"
    assert update_doc(said, ("s", "x"), None) == nested()
    with pytest.raises(InvalidOptionError, match="cannot have a comment"):
        update_doc(nested(), ("l", "element"), "an element")


def test_a_write_default_leaves_the_initial_default() -> None:
    fields = (NestedField(1, "a", INT, False, None, 1, 1),)
    changed = set_write_default(SchemaDraft(Schema(fields), 1, 3), ("a",), 2)
    assert changed.schema.fields == (NestedField(1, "a", INT, False, None, 1, 2),)


@pytest.mark.parametrize(
    ("version", "path", "said"),
    [
        (2, ("a",), "format version 2 has none"),
        (3, ("s",), "give the fields inside it one"),
        (3, ("l", "element"), "only columns and fields of structs"),
    ],
)
def test_defaults_that_cannot_be_are_refused(
    version: int, path: tuple[str, ...], said: str
) -> None:
    made = draft(version, a=INT, s=struct(x=INT), l=ListType(0, INT))
    with pytest.raises(InvalidOptionError, match=said):
        set_write_default(made, path, 1)


def test_columns_move_within_their_struct() -> None:
    made = draft(a=INT, b=INT, c=INT, s=struct(x=INT, y=INT, z=INT))

    def order(of: SchemaDraft) -> str:
        return "".join(f.name for f in of.schema.fields)

    assert order(move_column(made, ("c",))) == "cabs"
    assert order(move_column(made, ("c",), before=("b",))) == "acbs"
    assert order(move_column(made, ("a",), after=("c",))) == "bcas"
    inside = move_column(made, ("s", "z"), before=("s", "x")).schema.fields[3].field_type
    assert isinstance(inside, StructType)
    assert [f.name for f in inside.fields] == ["z", "x", "y"]


@pytest.mark.parametrize(
    ("path", "before", "said"),
    [
        (("s", "x"), ("id",), "different structs"),
        (("id",), ("s", "x"), "different structs"),
        (("id",), ("id",), "beside itself"),
        (("id",), ("nope",), "no column 'nope'"),
        (("l", "element"), ("id",), "inside of a list or map"),
    ],
)
def test_moves_over_the_border_of_a_struct_are_refused(
    path: tuple[str, ...], before: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        move_column(nested(), path, before=before)


def test_without_case_sensitivity_a_name_is_found_unless_it_is_ambiguous() -> None:
    made = draft(Aa=INT, b=INT)
    loose = SchemaDraft(made.schema, 100, 3, case_sensitive=False)
    assert find_column(loose, ("aA",)).field_id == 1
    with pytest.raises(InvalidOptionError, match=r"did you mean Aa\?"):
        find_column(made, ("aA",))
    two = SchemaDraft(draft(Aa=INT, aA=INT).schema, 100, 3, case_sensitive=False)
    with pytest.raises(InvalidOptionError, match="ambiguous"):
        find_column(two, ("aa",))


_NAMES = st.sampled_from(["id", "s", "s.x", "s.y", "l", "l.element.p", "m", "m.value.v", "new"])


@given(st.lists(st.tuples(st.sampled_from("adrmo"), _NAMES, _NAMES), max_size=12))
def test_whatever_is_edited_ids_stay_unique_and_columns_keep_theirs(
    edits: list[tuple[str, str, str]],
) -> None:
    made = nested()
    given_ids: set[int] = set(made.schema.fields_by_id)
    for kind, one, other in edits:
        path, beside = tuple(one.split(".")), tuple(other.split("."))
        before = made
        try:
            match kind:
                case "a":
                    made = add_column(made, (*path[:-1], path[-1] + other), column(INT))
                case "d":
                    made = delete_column(made, path)
                case "r":
                    made = rename_column(made, path, beside[-1])
                case "m":
                    made = move_column(made, path, after=beside)
                case _:
                    made = make_optional(made, path)
        except InvalidOptionError:
            assert made is before
            continue
        ids = list(made.schema.fields_by_id)
        assert len(ids) == len(made.schema.paths_by_id) == len(set(ids))
        new = set(ids) - set(before.schema.fields_by_id)
        assert not new & given_ids
        given_ids |= new
        for field_id in set(ids) & set(before.schema.fields_by_id):
            assert made.schema.parents_by_id.get(field_id) == before.schema.parents_by_id.get(
                field_id
            )
