"""Names of columns in filters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from icebergds.errors import InvalidFilterError
from icebergds.expr.names import quote_name, resolve, split_name
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, STRING, ListType, MapType, NestedField, StructType

SCHEMA = Schema(
    (
        NestedField(1, "id", INT),
        NestedField(
            2,
            "address",
            StructType((NestedField(3, "city", STRING), NestedField(4, "geo.x", INT))),
        ),
        NestedField(5, "address.city", STRING),
        NestedField(6, "tags", ListType(7, StructType((NestedField(8, "name", STRING),)))),
        NestedField(9, "props", MapType(10, STRING, 11, STRING)),
        NestedField(12, "Twin", INT),
        NestedField(13, "twin", INT),
        NestedField(14, "quo`te", INT),
    )
)


@pytest.mark.parametrize(
    ("name", "field_id"),
    [
        ("id", 1),
        ("address", 2),
        ("address.city", 3),
        ("address.`geo.x`", 4),
        ("`address`.`city`", 3),
        ("`address.city`", 5),
        ("tags", 6),
        ("`quo``te`", 14),
    ],
)
def test_names_resolve_to_fields(name, field_id):
    assert resolve(name, SCHEMA).field_id == field_id


@pytest.mark.parametrize(
    ("name", "field_id"), [("ID", 1), ("ADDRESS.City", 3), ("Twin", 12), ("twin", 13)]
)
def test_case_may_be_ignored_and_an_exact_match_wins(name, field_id):
    assert resolve(name, SCHEMA, case_sensitive=False).field_id == field_id


def test_case_counts_by_default():
    with pytest.raises(InvalidFilterError, match=r"column ID .*did you mean id"):
        resolve("ID", SCHEMA)


def test_ambiguous_names_are_refused():
    with pytest.raises(InvalidFilterError, match=r"ambiguous.*Twin, twin"):
        resolve("TWIN", SCHEMA, case_sensitive=False)


@pytest.mark.parametrize("name", ["tags.element", "tags.element.name", "props.key", "props.x"])
def test_fields_inside_lists_and_maps_are_refused(name):
    with pytest.raises(InvalidFilterError, match=r"list or map"):
        resolve(name, SCHEMA)


def test_unknown_names_are_answered_with_near_ones():
    with pytest.raises(InvalidFilterError, match=r"column adress .*did you mean address"):
        resolve("adress", SCHEMA)
    with pytest.raises(InvalidFilterError, match=r"did you mean .*address\.city"):
        resolve("address.ctiy", SCHEMA)
    with pytest.raises(InvalidFilterError, match=r"there are id, address, address\.city"):
        resolve("zzzzzzzz", SCHEMA)


def test_fields_of_scalars_do_not_exist():
    with pytest.raises(InvalidFilterError, match=r"id is int and has no fields"):
        resolve("id.x", SCHEMA)


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "`a", "a`b`", "`a`b", "a.`b"])
def test_malformed_names_are_refused(name):
    with pytest.raises(InvalidFilterError, match=r"malformed"):
        split_name(name)


@given(st.lists(st.text(alphabet="a.` \n\u00e9", max_size=4), min_size=1, max_size=4))
def test_quoted_names_split_into_their_parts(parts):
    assert split_name(quote_name(parts)) == tuple(parts)
