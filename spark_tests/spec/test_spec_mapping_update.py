"""Name mappings that follow their schemas."""

from __future__ import annotations

from icebergds.spec.name_mapping import MappedField, NameMapping, updated_mapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, ListType, NestedField, StructType


def mapped(*fields: MappedField) -> NameMapping:
    return NameMapping(fields)


def schema(*fields: tuple[int, str]) -> Schema:
    return Schema(tuple(NestedField(i, name, INT) for i, name in fields))


_AB = mapped(MappedField(("a",), 1), MappedField(("b",), 2))


def test_a_mapping_that_has_all_names_stays() -> None:
    assert updated_mapping(_AB, schema((1, "a"), (2, "b"))) == _AB


def test_a_renamed_column_is_found_under_both_names() -> None:
    assert updated_mapping(_AB, schema((1, "x"), (2, "b"))) == mapped(
        MappedField(("a", "x"), 1), MappedField(("b",), 2)
    )


def test_a_new_column_is_added_also_inside_of_a_list() -> None:
    inner = StructType((NestedField(5, "y", INT),))
    columns = (*schema((1, "a"), (2, "b")).fields, NestedField(3, "l", ListType(4, inner)))
    assert updated_mapping(_AB, Schema(columns)) == mapped(
        *_AB.fields,
        MappedField(("l",), 3, (MappedField(("element",), 4, (MappedField(("y",), 5),)),)),
    )


def test_a_new_column_does_not_take_the_name_of_a_renamed_or_deleted_one() -> None:
    # Files under the mapping have the other column's values under this name.
    assert updated_mapping(_AB, schema((1, "x"), (3, "a"), (4, "b"))) == mapped(
        MappedField(("a", "x"), 1), MappedField(("b",), 2)
    )


def test_a_new_column_takes_a_name_that_was_ignored() -> None:
    ignoring = mapped(*_AB.fields, MappedField(("c",), None))
    assert updated_mapping(ignoring, schema((1, "a"), (2, "b"), (3, "c"))) == mapped(
        *_AB.fields, MappedField(("c",), 3)
    )
