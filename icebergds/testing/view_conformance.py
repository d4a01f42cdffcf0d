"""Tests what every catalog with views must do, in a class as `CatalogConformance` is.

class TestMyViews(ViewConformance):
@pytest.fixture
def open_catalog(self, tmp_path):
return functools.partial(load_catalog, "mine", {"warehouse": str(tmp_path)})
"""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.catalog.base import Catalog, Identifier
from icebergds.catalog.views import RegisteringViews, ViewCatalog, ViewState, views_of
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
)
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField
from icebergds.spec.updates.table_updates import RemoveProperties, SetProperties
from icebergds.spec.views.new_version import new_version_updates, new_view_updates
from icebergds.spec.views.updates import SetCurrentViewVersion, ViewUpdate
from icebergds.testing.catalog_steps import OpenCatalog, create_table, raises

__all__ = ["ViewConformance"]

_VIEW: Identifier = ("db", "v")
_SCHEMA = Schema((NestedField(1, "id", LONG, doc="the key"), NestedField(2, "s", STRING)))


class ViewConformance:
    """The tests; see the module's docstring."""

    def test_a_view_is_created_and_loaded(self, open_catalog: OpenCatalog) -> None:
        created = _create(open_catalog())
        loaded = _views(open_catalog()).load_view(_VIEW)
        assert loaded.metadata == created.metadata
        version = loaded.metadata.current_version()
        assert version.sql_for("spark") == "SELECT id, s FROM t"
        assert version.default_namespace == ("db",)
        assert loaded.metadata.schema().has_same_columns(_SCHEMA)
        assert loaded.metadata.properties["comment"] == "made for a test"

    def test_views_are_listed_apart_from_tables(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("db", "t"))
        for name in ("w", "v"):
            _create(catalog, ("db", name), has_namespace=True)
        assert _views(catalog).list_views(("db",)) == [("db", "v"), ("db", "w")]
        assert catalog.list_tables(("db",)) == [("db", "t")]

    def test_a_view_is_no_table_and_a_table_no_view(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("db", "t"))
        _create(catalog, has_namespace=True)
        with raises(NoSuchTableError, "v"):
            catalog.load(_VIEW)
        with raises(NoSuchViewError, "t"):
            _views(catalog).load_view(("db", "t"))

    def test_a_name_is_of_one_table_or_view(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("db", "t"))
        created = _create(catalog, has_namespace=True)
        for taken in (_VIEW, ("db", "t")):
            with raises(AlreadyExistsError, taken[-1]):
                _create(catalog, taken, has_namespace=True)
        with raises(AlreadyExistsError, "v"):
            create_table(catalog, _VIEW)
        assert _views(catalog).load_view(_VIEW).metadata == created.metadata

    def test_a_view_needs_its_namespace(self, open_catalog: OpenCatalog) -> None:
        with raises(NoSuchNamespaceError, "db"):
            _create(open_catalog(), has_namespace=True)

    def test_a_replaced_view_keeps_its_history(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog)
        replaced = _commit(catalog, created, _version("SELECT 1 AS id, 'x' AS s", now_ms=20))
        loaded = _views(open_catalog()).load_view(_VIEW)
        assert loaded.metadata == replaced.metadata
        assert loaded.metadata.current_version().sql_for("spark") == "SELECT 1 AS id, 'x' AS s"
        assert [v.version_id for v in loaded.metadata.versions] == [1, 2]
        back = _commit(catalog, loaded, [SetCurrentViewVersion(1)])
        assert back.metadata.current_version().sql_for("spark") == "SELECT id, s FROM t"
        assert [entry.version_id for entry in back.metadata.version_log] == [1, 2, 1]

    def test_properties_of_a_view_are_set_and_removed(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog)
        changed = _commit(catalog, created, [SetProperties({"k": "v"})])
        _commit(catalog, changed, [RemoveProperties(("comment",))])
        properties = _views(open_catalog()).load_view(_VIEW).metadata.properties
        assert properties.get("k") == "v"
        assert "comment" not in properties

    def test_a_commit_on_an_old_version_is_a_conflict(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog)
        first = _commit(catalog, created, _version("SELECT 1 AS id, 'x' AS s", now_ms=20))
        with raises(CommitConflictError, "v"):
            _commit(catalog, created, _version("SELECT 2 AS id, 'y' AS s", now_ms=30))
        assert _views(open_catalog()).load_view(_VIEW).metadata == first.metadata

    def test_a_dropped_view_is_gone(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create(catalog)
        _views(catalog).drop_view(_VIEW)
        assert _views(open_catalog()).list_views(("db",)) == []
        for use in (_views(catalog).load_view, _views(catalog).drop_view):
            with raises(NoSuchViewError, "v"):
                use(_VIEW)

    def test_a_renamed_view_keeps_its_definition(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog)
        catalog.create_namespace(("other",), {})
        _views(catalog).rename_view(_VIEW, ("other", "w"))
        assert _views(open_catalog()).load_view(("other", "w")).metadata == created.metadata
        with raises(NoSuchViewError, "v"):
            _views(catalog).load_view(_VIEW)
        with raises(NoSuchViewError, "v"):
            _views(catalog).rename_view(_VIEW, ("other", "x"))

    def test_a_view_is_not_renamed_to_a_taken_name(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create(catalog)
        create_table(catalog, ("db", "t"))
        with raises(AlreadyExistsError, "t"):
            _views(catalog).rename_view(_VIEW, ("db", "t"))
        with raises(AlreadyExistsError, "v"):
            _views(catalog).rename_view(_VIEW, _VIEW)
        with raises(NoSuchNamespaceError, "nowhere"):
            _views(catalog).rename_view(_VIEW, ("nowhere", "v"))
        assert _views(catalog).list_views(("db",)) == [_VIEW]

    def test_a_view_is_registered_by_its_metadata(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        views = _views(catalog)
        if not isinstance(views, RegisteringViews):
            return
        created = _create(catalog)
        create_table(catalog, ("db", "t"))
        for taken in (_VIEW, ("db", "t")):
            with raises(AlreadyExistsError, taken[-1]):
                views.register_view(taken, created.metadata_location)
        with raises(NoSuchNamespaceError, "nowhere"):
            views.register_view(("nowhere", "v"), created.metadata_location)
        # It is not dropped before: some servers delete its metadata then.
        registered = views.register_view(("db", "w"), created.metadata_location)
        assert registered.metadata == created.metadata
        loaded = _views(open_catalog()).load_view(("db", "w"))
        assert loaded.metadata_location == created.metadata_location
        changed = _views(catalog).commit_view(("db", "w"), loaded, [SetProperties({"k": "v"})])
        assert changed.metadata.properties["k"] == "v"


def _views(catalog: Catalog) -> ViewCatalog:
    return views_of(catalog)


def _create(
    catalog: Catalog, identifier: Identifier = _VIEW, *, has_namespace: bool = False
) -> ViewState:
    if not has_namespace:
        catalog.create_namespace(identifier[:-1], {})
    views = _views(catalog)
    updates = new_view_updates(
        _version("SELECT id, s FROM t", now_ms=10),
        view_uuid="2cbee2f5-7e4c-4a4c-b8f3-0e0d3c2b9a11",
        location=views.new_view_location(identifier),
        properties={"comment": "made for a test"},
    )
    return views.create_view(identifier, updates)


def _version(sql: str, *, now_ms: int) -> list[ViewUpdate]:
    return new_version_updates(
        _SCHEMA,
        {"spark": sql},
        default_catalog=None,
        default_namespace=("db",),
        summary={"engine-name": "icebergds"},
        now_ms=now_ms,
    )


def _commit(catalog: Catalog, base: ViewState, updates: Sequence[ViewUpdate]) -> ViewState:
    return _views(catalog).commit_view(_VIEW, base, updates)
