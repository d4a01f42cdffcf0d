"""Unions of a table's columns with those of another schema, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icebergds import Table, load_catalog
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, LONG, NestedField


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    columns = "id bigint NOT NULL, a int, d date"
    return catalog.create_table("db.t", columns, properties={"format-version": "3"})


def test_a_union_adds_what_another_schema_has(table: Table) -> None:
    incoming = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("new", pa.string())])
    table.update_schema().union_by_name(incoming).commit()
    assert table.schema().find_field(2).field_type == LONG  # type: ignore[union-attr]
    assert table.schema().fields[-1].name == "new"
    with pytest.raises(
        InvalidDataError, match=r"^table lake\.db\.t: column 'd' .*neither is widened"
    ):
        table.update_schema().union_by_name("d string")


@pytest.mark.parametrize(
    "incoming", ["A int", "x int, X int", "s struct<E: int>", "l array<struct<E: int>>"]
)
def test_a_union_adds_no_names_that_differ_by_case_alone(table: Table, incoming: str) -> None:
    table.update_schema().union_by_name("s struct<e: int>, l array<struct<e: int>>").commit()
    before = table.schema()
    with pytest.raises(InvalidOptionError, match=r"lake\.db\.t: column .* by case alone"):
        table.update_schema().union_by_name(incoming)
    assert table.schema() == before
    allowed = table.update_schema(allow_incompatible_changes=True).union_by_name(incoming)
    allowed.commit()
    assert len(table.schema().fields_by_id) > len(before.fields_by_id)


def test_a_union_that_no_longer_fits_says_so(table: Table, tmp_path: Path) -> None:
    other = load_catalog("lake", warehouse=str(tmp_path / "warehouse")).load_table("db.t")
    update = table.update_schema().union_by_name("new string")
    other.update_schema().add_column("new", "int").commit()
    with pytest.raises(InvalidDataError, match=r"^table lake\.db\.t: column 'new' is int in"):
        update.commit()


def test_a_union_keeps_what_is_required_comments_and_defaults(table: Table) -> None:
    table.update_schema().update_column("id", doc="key").set_default("a", 1).commit()
    incoming = Schema(
        (
            NestedField(1, "id", LONG, doc="other"),
            NestedField(2, "a", INT, initial_default=2, write_default=3),
            NestedField(3, "new", LONG, True, "a new one", 2, 3),
        )
    )
    table.update_schema().union_by_name(incoming).commit()
    key, known, new = (*table.schema().fields[:2], table.schema().fields[-1])
    assert (key.required, key.doc) == (True, "key")
    assert (known.initial_default, known.write_default) == (None, 1)
    assert new == NestedField(4, "new", LONG, doc="a new one")
