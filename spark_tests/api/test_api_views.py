"""Views by name, in a database catalog."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import icebergds
from icebergds import Catalog, NestedField, Schema, load_catalog
from icebergds.errors import (
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.spec.types import LONG, STRING

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "s", STRING)))
_QUERY = "SELECT id, s FROM t"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    found = load_catalog("lake", uri=uri, warehouse=str(tmp_path / "warehouse"))
    found.create_namespace("db")
    return found


def test_a_view_has_what_it_was_created_with(catalog: Catalog) -> None:
    queries = {"spark": _QUERY, "trino": "SELECT id, s FROM t -- trino"}
    catalog.create_view("db.v", _SCHEMA, queries, properties={"comment": "all"})
    view = catalog.load_view("lake.db.v")
    assert (view.sql_for(), view.sql_for("Trino")) == (_QUERY, queries["trino"])
    assert [field.name for field in view.schema().fields] == ["id", "s"]
    assert view.current_version().default_namespace == ("db",)
    assert view.properties == {"comment": "all"}
    assert catalog.view_exists("db.v")
    assert catalog.list_views("db") == [("db", "v")]


def test_columns_of_a_view_can_be_given_as_text(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", "id bigint, s string", _QUERY)
    assert view.schema().has_same_columns(_SCHEMA)


def test_a_replaced_view_has_the_new_query_and_keeps_its_columns(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", _SCHEMA, _QUERY)
    other = catalog.load_view("db.v")
    view.replace_version("SELECT 1 AS id, 's' AS s")
    assert view.schema().has_same_columns(_SCHEMA)
    assert other.sql_for() == _QUERY
    assert other.refresh().sql_for() == "SELECT 1 AS id, 's' AS s"
    view.set_current_version(1)
    assert view.sql_for() == _QUERY
    assert [entry.version_id for entry in view.history()] == [1, 2, 1]


def test_a_change_of_a_view_is_made_on_its_current_state(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", _SCHEMA, _QUERY)
    catalog.load_view("db.v").set_properties(a="1")
    assert view.set_properties({"b": "2"}).properties == {"a": "1", "b": "2"}
    assert view.remove_properties("a", "unknown").properties == {"b": "2"}


def test_a_view_that_was_re_created_is_not_changed(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", _SCHEMA, _QUERY)
    catalog.drop_view("db.v")
    other = catalog.create_view("db.v", _SCHEMA, "SELECT 2 AS id, 's' AS s")
    for change in (
        lambda: view.replace_version("SELECT 1 AS id, 's' AS s"),
        lambda: view.set_properties(owner="me"),
        lambda: view.update_location("/elsewhere"),
    ):
        with pytest.raises(ValidationError, match=r"lake\.db\.v was dropped and re-created"):
            change()
    assert catalog.load_view("db.v").metadata == other.metadata
    assert view.refresh().set_properties(owner="me").properties == {"owner": "me"}


def test_a_dialect_is_not_dropped_by_accident(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", _SCHEMA, {"spark": _QUERY, "trino": _QUERY})
    with pytest.raises(InvalidOptionError, match="trino"):
        view.replace_version("SELECT 1 AS id, 's' AS s")
    assert view.refresh().sql_for("trino") == _QUERY
    view.set_properties({"replace.drop-dialect.allowed": "true"})
    view.replace_version("SELECT 1 AS id, 's' AS s")
    with pytest.raises(InvalidOptionError, match="no query in the dialect 'trino', only in spark"):
        view.sql_for("trino")


def test_metadata_of_a_view_goes_where_the_view_says(catalog: Catalog, tmp_path: Path) -> None:
    view = catalog.create_view("db.v", _SCHEMA, _QUERY)
    assert view.metadata_location.startswith(f"{view.location}/metadata/00000-")
    assert view.metadata_location.endswith(".gz.metadata.json")
    path, plain = str(tmp_path / "there"), {"write.metadata.compression-codec": "none"}
    view.set_properties({"write.metadata.path": path, **plain})
    assert view.metadata_location.startswith(f"{path}/00001-")
    assert "SELECT" in Path(view.metadata_location).read_text()


def test_a_view_that_is_loaded_as_a_table_is_said_to_be_one(catalog: Catalog) -> None:
    catalog.create_view("db.v", _SCHEMA, _QUERY)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view, not a table"):
        catalog.load_table("db.v")


def test_a_view_is_not_dropped_or_renamed_as_a_table(catalog: Catalog) -> None:
    catalog.create_view("db.v", _SCHEMA, _QUERY)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view.*drop_view"):
        catalog.drop_table("db.v")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view.*drop_view"):
        catalog.purge_table("db.v")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view.*rename_view"):
        catalog.rename_table("db.v", "db.w")
    assert catalog.list_views("db") == [("db", "v")]


def test_a_table_is_not_used_as_a_view(catalog: Catalog) -> None:
    catalog.create_table("db.t", _SCHEMA)
    with pytest.raises(NoSuchViewError, match=r"lake\.db\.t is a table.*load_table"):
        catalog.load_view("db.t")
    with pytest.raises(NoSuchViewError, match=r"lake\.db\.t is a table.*drop_table"):
        catalog.drop_view("db.t")
    with pytest.raises(NoSuchViewError, match=r"lake\.db\.t is a table.*rename_table"):
        catalog.rename_view("db.t", "db.u")
    assert not catalog.view_exists("db.t")


def test_rows_are_not_written_to_a_view(catalog: Catalog) -> None:
    catalog.create_view("db.v", _SCHEMA, _QUERY)
    address = catalog.address("db.v")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.v is a view"):
        address.load()
    assert address.with_catalog_hint("no table") == (
        "lake.db.v is a view, not a table; load it with load_view"
    )


def test_a_missing_view_is_named_with_the_nearest(catalog: Catalog) -> None:
    catalog.create_view("db.daily", _SCHEMA, _QUERY)
    with pytest.raises(NoSuchViewError, match=r"db\.dayly .*did you mean db\.daily\?"):
        catalog.load_view("db.dayly")
    assert not catalog.view_exists("db.dayly")


@pytest.mark.parametrize("queries", ["", "  ", {}, {"spark": ""}])
def test_a_view_needs_a_query(catalog: Catalog, queries: str) -> None:
    with pytest.raises(InvalidOptionError, match="query"):
        catalog.create_view("db.v", _SCHEMA, queries)
    assert catalog.list_views("db") == []


def test_a_version_that_the_view_has_not_is_refused(catalog: Catalog) -> None:
    view = catalog.create_view("db.v", _SCHEMA, _QUERY)
    with pytest.raises(InvalidMetadataError, match="7"):
        view.set_current_version(7)


def test_a_renamed_view_is_returned_by_its_new_name(catalog: Catalog) -> None:
    catalog.create_view("db.v", _SCHEMA, _QUERY)
    assert catalog.rename_view("db.v", "db.w").name == "lake.db.w"
    catalog.drop_view("db.w")
    assert catalog.list_views("db") == []


def test_a_catalog_without_views_says_so(tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    with pytest.raises(UnsupportedFeatureError, match="catalog lake has no views"):
        catalog.create_view("db.v", _SCHEMA, _QUERY)
    with pytest.raises(UnsupportedFeatureError, match="catalog lake has no views"):
        icebergds.load_catalog("lake", warehouse=str(tmp_path)).list_views("db")


def test_tables_of_the_old_layout_have_no_views(catalog: Catalog, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    old = load_catalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db")
    with pytest.raises(UnsupportedFeatureError, match=r"set its property jdbc\.schema-version"):
        old.list_views("db")
