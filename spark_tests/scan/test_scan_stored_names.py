"""Under which names files may have stored columns."""

from __future__ import annotations

import json

import pytest

from icebergds.scan.plan.stored_names import all_schemas, constant_names, own_names
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, ListType, NestedField, StructType


def schema(schema_id: int = 0, **ids: int) -> Schema:
    fields = (NestedField(field_id, name, INT) for name, field_id in ids.items())
    return Schema(tuple(fields), schema_id)


def test_columns_that_were_never_renamed() -> None:
    history = [schema(a=1, b=2), schema(1, b=2, c=3)]
    assert own_names(history) == constant_names(history) == {1, 2, 3}


def test_a_renamed_column_has_names_of_its_own_but_not_one_name() -> None:
    history = [schema(a=1, b=2), schema(1, c=1, b=2)]
    assert own_names(history) == {1, 2}
    assert constant_names(history) == {2}


@pytest.mark.parametrize("second", [schema(1, a=3, b=2), schema(1, A=3, b=2)])
def test_a_name_that_another_column_had_belongs_to_neither(second: Schema) -> None:
    history = [schema(a=1, b=2), second]
    assert own_names(history) == constant_names(history) == {2}


def test_nothing_is_known_if_schemas_were_removed() -> None:
    assert own_names([schema(1, a=1)]) == constant_names([schema(1, a=1)]) == frozenset()


def stored(one: Schema) -> bytes:
    return json.dumps(schema_to_json(one)).encode()


def test_names_of_schemas_that_only_manifests_still_have_count() -> None:
    gone = stored(schema(1, b=1, c=2))
    history = all_schemas([schema(a=1, b=2, d=4)], [gone, stored(schema(a=1, b=2, d=4))])
    # `b` was another column's.
    assert own_names(history) == {4}
    assert own_names([schema(a=1, b=2, d=4)]) == {1, 2, 4}
    assert own_names(all_schemas([schema(a=1)], [stored(schema(5, a=1))])) == {1}


@pytest.mark.parametrize("unknown", [None, b"{}", b"nothing"])
def test_nothing_is_known_if_a_manifest_does_not_tell(unknown: bytes | None) -> None:
    assert own_names(all_schemas([schema(a=1)], [unknown])) == frozenset()


@pytest.mark.parametrize("name", ["a b", "1a", "a_x20b", "_1a", "ü", "a.b", ""])
def test_names_that_writers_replace_or_make_are_not_known(name: str) -> None:
    assert own_names([schema(**{name: 1, "b": 2})]) == {2}


@pytest.mark.parametrize("name", ["a", "_a", "pos_x", "a1", "X_y"])
def test_names_that_every_writer_keeps(name: str) -> None:
    assert own_names([schema(**{name: 1})]) == {1}


def test_fields_share_names_only_beside_each_other() -> None:
    inner = StructType((NestedField(3, "a", INT), NestedField(4, "b", INT)))
    before = Schema((NestedField(1, "a", INT), NestedField(2, "l", ListType(5, inner))))
    moved = StructType((NestedField(3, "b", INT),))
    after = Schema((NestedField(1, "a", INT), NestedField(2, "l", ListType(5, moved))), 1)
    assert own_names([before]) == {1, 2, 3, 4, 5}
    assert own_names([before, after]) == {1, 2, 5}
