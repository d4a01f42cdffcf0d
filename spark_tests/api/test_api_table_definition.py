"""A new table is defined by what a user has at hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import ids_of
from pyiceberg import types as pyiceberg
from pyiceberg.schema import Schema as PyIcebergSchema

import icebergds
from icebergds import (
    Catalog,
    IdentityTransform,
    LongType,
    NestedField,
    NullOrder,
    PartitionField,
    PartitionSpec,
    Schema,
    SortDirection,
    SortField,
    SortOrder,
    StringType,
    load_catalog,
)
from icebergds.errors import InvalidOptionError


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return load_catalog("lake", warehouse=str(tmp_path / "warehouse"))


_TEXT = "id bigint NOT NULL COMMENT 'the key', ts timestamp, region string"


def test_schemas_may_be_text(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "id bigint NOT NULL COMMENT 'the key', name string")
    assert table.schema().fields == (
        NestedField(1, "id", LongType(), True, "the key"),
        NestedField(2, "name", StringType()),
    )
    assert catalog.create_table_if_not_exists("db.t", "x int").schema() == table.schema()
    again = catalog.create_table_if_not_exists("db.u", "x int")
    assert [field.name for field in again.schema().fields] == ["x"]


def test_schemas_may_be_those_of_pyiceberg(catalog: Catalog) -> None:
    schema = PyIcebergSchema(
        pyiceberg.NestedField(3, "id", pyiceberg.LongType(), required=True),
        pyiceberg.NestedField(4, "at", pyiceberg.TimestampType(), required=False),
        identifier_field_ids=[3],
    )
    given: Any = schema
    table = catalog.create_table("db.t", given)
    assert table.schema() == Schema(
        (
            NestedField(1, "id", LongType(), True),
            NestedField(2, "at", icebergds.TimestampType()),
        ),
        identifier_field_ids=(1,),
    )


@pytest.mark.parametrize("schema", ["id bigint, ID string", "s struct<a: int, A: int>"])
def test_names_that_differ_by_case_alone_are_refused(catalog: Catalog, schema: str) -> None:
    with pytest.raises(InvalidOptionError, match="by case alone"):
        catalog.create_table("db.t", schema)


def test_rows_are_no_schema(catalog: Catalog) -> None:
    rows: Any = pa.table({"id": [1]})
    with pytest.raises(InvalidOptionError, match=r"type Table; .* give their schema: df\.schema"):
        catalog.create_table("db.t", rows)
    assert not catalog.table_exists("db.t")


@pytest.mark.parametrize("given", [["days(ts)", "bucket(16, id)", "region"], ("days(ts)",), []])
def test_a_partition_spec_may_be_a_list_of_terms(catalog: Catalog, given: list[str]) -> None:
    table = catalog.create_table("db.t", _TEXT, partition_spec=given)
    expected = catalog.create_table("db.u", _TEXT, partition_spec=", ".join(given))
    assert table.spec() == expected.spec()
    assert len(table.spec().fields) == len(given)


def test_a_sort_order_may_be_a_list_of_terms(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _TEXT, sort_order=["ts desc", "id"])
    expected = catalog.create_table("db.u", _TEXT, sort_order="ts desc, id")
    assert table.sort_order() == expected.sort_order()


@pytest.mark.parametrize("name", ["partition_spec", "sort_order"])
@pytest.mark.parametrize("given", [{"ts": "day"}, ["ts", 5], SimpleNamespace(fields=())])
def test_other_layouts_are_refused(catalog: Catalog, name: str, given: Any) -> None:
    with pytest.raises(InvalidOptionError, match=f"{name} = .* expected terms as text"):
        catalog.create_table("db.t", _TEXT, **{name: given})


_KEY = (IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("partition_spec", PartitionSpec(PartitionField((1,), 1000, IdentityTransform(), "a"))),
        ("partition_spec", PartitionSpec(0, (PartitionField(1, 1000, IdentityTransform(), "a"),))),
        ("sort_order", SortOrder(SortField((1,), *_KEY))),
        ("sort_order", SortOrder(1, (SortField(1, *_KEY),))),
    ],
)
def test_layouts_made_as_those_of_pyiceberg_are_refused(
    catalog: Catalog, name: str, given: Any
) -> None:
    """Such a spec would have no fields: the table would not be partitioned."""
    with pytest.raises(InvalidOptionError, match=f"{name}: its fields are not given as"):
        catalog.create_table("db.t", _TEXT, **{name: given})
    assert not catalog.table_exists("db.t")


def test_an_empty_term_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidOptionError, match=r"partition_spec = .* has the empty term ''"):
        catalog.create_table("db.t", _TEXT, partition_spec=["region", ""])


@pytest.mark.parametrize("name", ["partition_spec", "sort_order"])
def test_errors_in_a_layout_name_the_argument(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{name} 'regoin': column regoin does not exist"):
        catalog.create_table("db.t", _TEXT, **{name: ["regoin"]})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["id", ["id"], ("ID",), "id, id"])
def test_identifier_fields_are_named(catalog: Catalog, given: Any) -> None:
    table = catalog.create_table("db.t", _TEXT, identifier_fields=given)
    assert table.schema().identifier_field_ids == (1,)


def test_identifier_fields_are_the_keys_of_an_upsert(catalog: Catalog) -> None:
    text = "id bigint NOT NULL, name string"
    table = catalog.create_table_if_not_exists("db.t", text, identifier_fields=["id"])
    for name in ("a", "b"):
        table.upsert(pa.table({"id": pa.array([1], pa.int64()), "name": [name]}))
    assert ids_of(table) == [1]


def test_identifier_fields_replace_those_of_the_schema(catalog: Catalog) -> None:
    fields = [NestedField(at, name, LongType(), True) for at, name in ((7, "a"), (8, "b"))]
    schema = Schema(fields, identifier_field_ids=(7,))  # type: ignore[arg-type]
    table = catalog.create_table("db.t", schema)
    assert table.schema().identifier_field_ids == (1,)
    other = catalog.create_table("db.u", schema, identifier_fields="b")
    assert other.schema().identifier_field_ids == (2,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("di", "identifier_fields: column di does not exist: there are id, ts, region"),
        ("region", "identifier_fields: column region is optional, .* declare it NOT NULL"),
        (5, "identifier_fields = 5 is of type int"),
    ],
)
def test_wrong_identifier_fields_are_refused(catalog: Catalog, given: Any, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        catalog.create_table("db.t", _TEXT, identifier_fields=given)
    assert not catalog.table_exists("db.t")
