"""Schemas that grow with the data written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from strategies.every_type import SCALARS

from icebergds.errors import InvalidDataError
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
from icebergds.spec.evolution.union_by_name import merge_schema
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    VARIANT,
    DecimalType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    walk,
)


def struct(**fields: IcebergType) -> StructType:
    return StructType(tuple(NestedField(0, name, kind) for name, kind in fields.items()))


def schema(**fields: IcebergType) -> Schema:
    """A schema of optional fields with ids from 1."""
    return Schema(with_fresh_ids(struct(**fields).fields, iter(range(1, 1000))))


def merged(known: Schema, incoming: Schema, last: int = 100, **options: Any) -> Schema:
    return merge_schema(known, incoming, last, **options)[0]


def test_missing_columns_are_added_at_the_end_as_optional_with_fresh_ids() -> None:
    incoming = Schema(
        (NestedField(1, "b", STRING, required=True, doc="B"), NestedField(2, "a", INT))
    )
    result, last = merge_schema(schema(a=INT, c=INT), incoming, 10)
    assert result.fields == (*schema(a=INT, c=INT).fields, NestedField(11, "b", STRING, doc="B"))
    assert last == 11


def test_nested_fields_are_added_inside_structs_lists_and_maps() -> None:
    known = schema(
        s=struct(a=INT), l=ListType(0, struct(a=INT)), m=MapType(0, INT, 0, struct(a=INT))
    )
    wide = struct(b=struct(c=INT), a=INT)
    incoming = schema(s=wide, l=ListType(0, wide), m=MapType(0, INT, 0, wide))
    result, last = merge_schema(known, incoming, 50)
    assert set(result.ids_by_name) - set(known.ids_by_name) == {
        "s.b",
        "s.b.c",
        "l.element.b",
        "l.element.b.c",
        "m.value.b",
        "m.value.b.c",
    }
    assert sorted(result.fields_by_id.keys() - known.fields_by_id.keys()) == list(range(51, 57))
    assert last == 56


def test_everything_inside_a_new_column_is_optional_but_map_keys() -> None:
    inner = StructType((NestedField(2, "x", INT, required=True),))
    new = MapType(3, STRING, 4, ListType(5, inner, element_required=True), value_required=True)
    result = merged(schema(a=INT), Schema((NestedField(1, "m", new, required=True),)))
    required = {result.find_name(f.field_id) for f in walk(result.fields) if f.required}
    assert required == {"m.key"}


def test_columns_of_every_type_are_added_at_every_level() -> None:
    more = (VARIANT, UNKNOWN, GeometryType("srid:3857"), GeographyType("srid:4269", "karney"))
    for kind in (*SCALARS, *more):
        deep = ListType(0, MapType(0, STRING, 0, struct(l=ListType(0, kind))))
        nested = (ListType(0, kind), MapType(0, STRING, 0, kind), struct(x=kind), ListType(0, deep))
        for column in (kind, *nested):
            assert merged(schema(), schema(c=column), 0) == schema(c=column)
        assert merged(schema(s=struct()), schema(s=struct(x=kind)), 1) == schema(s=struct(x=kind))


def test_a_struct_may_have_a_field_named_as_the_struct_around_it() -> None:
    known = schema(s=struct(t=struct(u=INT)))
    wide = schema(s=struct(t=struct(u=INT, s=struct(t=struct(u=STRING)))))
    assert merged(known, wide, 3) == wide


def test_lists_of_other_names_are_added_beside_each_other() -> None:
    result = merged(schema(s=struct(l=ListType(0, INT))), schema(s=struct(k=ListType(0, INT))), 3)
    assert result.ids_by_name == {"s": 1, "s.l": 2, "s.l.element": 3, "s.k": 4, "s.k.element": 5}


def test_ids_and_order_of_incoming_columns_do_not_matter() -> None:
    known = schema(a=INT, l=ListType(0, INT), s=struct(x=INT))
    assert merged(known, schema(s=struct(x=INT), l=ListType(0, INT), a=INT)) is known


@pytest.mark.parametrize(
    ("known", "incoming", "expected"),
    [
        (INT, LONG, LONG),
        (LONG, INT, LONG),
        (FLOAT, DOUBLE, DOUBLE),
        (DOUBLE, FLOAT, DOUBLE),
        (DecimalType(8, 2), DecimalType(10, 2), DecimalType(10, 2)),
        (DecimalType(10, 2), DecimalType(8, 2), DecimalType(10, 2)),
        (STRING, UNKNOWN, STRING),
        (UNKNOWN, STRING, STRING),
    ],
)
def test_types_grow_and_never_shrink(
    known: IcebergType, incoming: IcebergType, expected: IcebergType
) -> None:
    for wrap in (lambda t: t, lambda t: ListType(0, t), lambda t: struct(x=t)):
        assert merged(schema(c=wrap(known)), schema(c=wrap(incoming))) == schema(c=wrap(expected))


@pytest.mark.parametrize(
    ("known", "incoming"),
    [
        (INT, STRING),
        (LONG, DOUBLE),
        (BOOLEAN, INT),
        (DATE, TIMESTAMP),
        (TIMESTAMP, DATE),
        (DecimalType(8, 2), DecimalType(10, 3)),
        (STRING, struct(a=INT)),
        (struct(a=INT), ListType(0, INT)),
        (ListType(0, STRING), STRING),
        (ListType(0, STRING), ListType(0, LONG)),
        (MapType(0, STRING, 0, STRING), MapType(0, STRING, 0, LONG)),
    ],
)
def test_types_that_do_not_fit_are_refused_by_name(
    known: IcebergType, incoming: IcebergType
) -> None:
    with pytest.raises(
        InvalidDataError, match=r"column 's\.c\S*' is .* in the table and .* in the"
    ):
        merged(schema(s=struct(c=known)), schema(s=struct(c=incoming)))


def test_the_key_of_a_map_cannot_change() -> None:
    for key in (LONG, struct(a=INT, b=INT)):
        known = schema(m=MapType(0, INT if key == LONG else struct(a=INT), 0, INT))
        with pytest.raises(InvalidDataError, match="key of a map cannot change"):
            merged(known, schema(m=MapType(0, key, 0, INT)))


def test_required_columns_stay_required() -> None:
    known = Schema((NestedField(1, "a", INT, required=True),))
    assert merged(known, schema(a=LONG)).fields == (NestedField(1, "a", LONG, required=True),)


def test_names_may_differ_in_case_where_that_does_not_matter() -> None:
    known = schema(Id=INT, s=struct(X=INT))
    incoming = schema(ID=LONG, S=struct(x=INT, y=INT))
    result = merged(known, incoming, case_sensitive=False)
    assert list(result.ids_by_name) == ["Id", "s", "s.X", "s.y"]
    assert result.fields[0].field_type == LONG
    assert "ID" in merged(known, incoming).ids_by_name


def test_names_with_two_meanings_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="is ambiguous"):
        merged(schema(aa=INT, AA=INT), schema(Aa=INT), case_sensitive=False)
    with pytest.raises(InvalidDataError, match="more than one column 'A'"):
        merged(schema(b=INT), schema(a=INT, A=INT), case_sensitive=False)


_SCALARS = st.sampled_from([INT, LONG, FLOAT, DOUBLE, STRING])
_TYPES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda t: ListType(0, t)),
        inner.map(lambda t: MapType(0, STRING, 0, t)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda d: struct(**d)),
    ),
    max_leaves=6,
)
_SCHEMAS = st.dictionaries(st.sampled_from("abcd"), _TYPES, min_size=1).map(lambda d: schema(**d))


@given(_SCHEMAS, _SCHEMAS)
def test_merging_keeps_all_ids_gives_unique_ones_and_is_done_once(
    known: Schema, incoming: Schema
) -> None:
    last = known.highest_field_id + 5
    try:
        result, new_last = merge_schema(known, incoming, last)
    except InvalidDataError:
        return
    ids = [field.field_id for field in walk(result.fields)]
    assert len(set(ids)) == len(ids)
    assert {result.find_name(i): i for i in known.fields_by_id} == known.ids_by_name
    fresh = result.fields_by_id.keys() - known.fields_by_id.keys()
    assert sorted(fresh) == list(range(last + 1, new_last + 1))
    assert set(incoming.ids_by_name) <= set(result.ids_by_name)
    again, again_last = merge_schema(result, incoming, new_last)
    assert again is result
    assert again_last == new_last
