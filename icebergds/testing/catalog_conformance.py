"""Tests what every catalog must do, in a class for any test runner with fixtures.

A test module defines a subclass and a fixture, and declares what its catalog cannot do:

    class TestMyCatalog(CatalogConformance):
        capabilities = CatalogCapabilities(rename=False)

        @pytest.fixture
        def open_catalog(self, tmp_path):
            return functools.partial(load_catalog, "mine", {"warehouse": str(tmp_path)})

Every call of `open_catalog` opens the same catalog, which is new and empty for every test. It must
be picklable if other processes can use the catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from icebergds.catalog.base import (
    Catalog,
    Identifier,
    OverwritingCatalog,
    PurgingCatalog,
    UnregisteringCatalog,
)
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidMetadataError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotFoundError,
    UnsupportedFeatureError,
)
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.requirements import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    AddSnapshot,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
)
from icebergds.testing.catalog_races import CatalogCapabilities, CatalogRaces
from icebergds.testing.catalog_steps import (
    OpenCatalog,
    commit_changes,
    commit_to_new,
    create_namespaces,
    create_table,
    drop_table,
    new_snapshot,
    new_table,
    raises,
    stored,
    unchanged,
)

__all__ = ["CatalogCapabilities", "CatalogConformance", "OpenCatalog"]


class CatalogConformance(CatalogRaces):
    """The tests; see the module's docstring."""

    # Namespaces.

    def test_a_namespace_is_created_listed_and_dropped(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        assert self._new_namespaces(catalog) == []
        catalog.create_namespace(("b",), {})
        catalog.create_namespace(("a",), {})
        assert self._new_namespaces(open_catalog()) == [("a",), ("b",)]
        catalog.drop_namespace(("a",))
        assert self._new_namespaces(open_catalog()) == [("b",)]

    def test_namespaces_nest(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        catalog.create_namespace(("a",), {})
        if not self.capabilities.nested_namespaces:
            with raises(UnsupportedFeatureError):
                catalog.create_namespace(("a", "x"), {})
            assert catalog.list_namespaces(("a",)) == []
            return
        catalog.create_namespace(("a", "x"), {})
        assert self._new_namespaces(catalog) == [("a",)]
        assert catalog.list_namespaces(("a",)) == [("a", "x")]
        with raises(NamespaceNotEmptyError):
            catalog.drop_namespace(("a",))

    def test_a_namespace_is_created_once(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        catalog.create_namespace(("a",), {})
        with raises(AlreadyExistsError, "a"):
            catalog.create_namespace(("a",), {})

    def test_a_missing_namespace_is_named(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        uses: list[Callable[[], object]] = [
            lambda: catalog.list_tables(("nowhere",)),
            lambda: catalog.list_namespaces(("nowhere",)),
            lambda: catalog.drop_namespace(("nowhere",)),
            lambda: catalog.namespace_properties(("nowhere",)),
            lambda: catalog.update_namespace_properties(("nowhere",), [], {"k": "v"}),
        ]
        for use in uses:
            with raises(NoSuchNamespaceError, "nowhere"):
                use()

    def test_a_namespace_with_tables_is_not_dropped(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("a", "t"))
        with raises(NamespaceNotEmptyError, "a"):
            catalog.drop_namespace(("a",))
        drop_table(catalog, ("a", "t"))
        catalog.drop_namespace(("a",))
        assert self._new_namespaces(catalog) == []

    def test_namespaces_have_properties(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        if not self.capabilities.namespace_properties:
            with raises(UnsupportedFeatureError):
                catalog.create_namespace(("a",), {"k": "v"})
            assert self._new_namespaces(catalog) == []
            catalog.create_namespace(("a",), {})
            with raises(UnsupportedFeatureError):
                catalog.update_namespace_properties(("a",), [], {"k": "v"})
            return
        catalog.create_namespace(("a",), {"k": "v", "old": "1"})
        catalog.update_namespace_properties(("a",), ["old", "missing"], {"k": "w", "new": "2"})
        found = open_catalog().namespace_properties(("a",))
        assert {name: found.get(name) for name in ("k", "new", "old")} == {
            "k": "w",
            "new": "2",
            "old": None,
        }

    def test_a_table_needs_its_namespace(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        if self.capabilities.required_namespaces:
            with raises(NoSuchNamespaceError, "nowhere"):
                catalog.create(("nowhere", "t"), new_table(catalog, ("nowhere", "t")))
            assert self._new_namespaces(catalog) == []
        else:
            catalog.create(("nowhere", "t"), new_table(catalog, ("nowhere", "t")))
            assert self._new_namespaces(catalog) == [("nowhere",)]

    # Creating and loading.

    def test_a_created_table_is_loaded_as_it_was_created(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = create_table(catalog, ("a", "t"), {"k": "v"})
        loaded = open_catalog().load(("a", "t"))
        assert loaded.metadata == created.metadata
        assert loaded.metadata_location == created.metadata_location
        assert loaded.metadata.properties["k"] == "v"
        assert loaded.metadata.location == catalog.new_table_location(("a", "t"))
        assert [field.name for field in loaded.metadata.schema().fields] == ["id", "name"]
        assert stored(loaded).metadata == loaded.metadata

    def test_a_table_may_be_created_with_its_first_snapshot(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        create_namespaces(catalog, ("a",))
        snapshot = new_snapshot(1)
        main = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
        updates = [*new_table(catalog, ("a", "t")), AddSnapshot(snapshot), main]
        catalog.create(("a", "t"), updates)
        current = open_catalog().load(("a", "t")).metadata.current_snapshot()
        assert current is not None
        assert current.snapshot_id == snapshot.snapshot_id

    def test_a_table_is_created_once(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        first = create_table(catalog, ("a", "t"))
        with raises(AlreadyExistsError, "a.t"):
            catalog.create(("a", "t"), new_table(catalog, ("a", "t")))
        assert catalog.load(("a", "t")).metadata == first.metadata

    def test_a_missing_table_is_named(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_namespaces(catalog, ("a",))
        uses: list[Callable[[], object]] = [
            lambda: catalog.load(("a", "nothing")),
            lambda: drop_table(catalog, ("a", "nothing")),
            lambda: catalog.operations(("a", "nothing")).refresh(),
        ]
        for use in uses:
            with raises(NoSuchTableError, "nothing"):
                use()

    def test_there_is_no_table_in_a_table(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("a", "t"))
        with raises(NoSuchTableError, "files"):
            catalog.load(("a", "t", "files"))

    def test_tables_are_listed_in_order_and_by_namespace(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        for identifier in (("a", "t2"), ("a", "t1"), ("b", "t3")):
            create_table(catalog, identifier)
        assert open_catalog().list_tables(("a",)) == [("a", "t1"), ("a", "t2")]
        assert open_catalog().list_tables(("b",)) == [("b", "t3")]

    def test_names_are_taken_as_they_are(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        names = self.capabilities.names
        for name in names:
            create_table(catalog, ("a", name), {"name": name})
        assert catalog.list_tables(("a",)) == sorted(("a", name) for name in names)
        for name in names:
            assert catalog.load(("a", name)).metadata.properties["name"] == name

    # Dropping, renaming, registering.

    def test_a_dropped_table_is_gone_and_can_be_made_again(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = create_table(catalog, ("a", "t"))
        last = drop_table(catalog, ("a", "t"))
        assert last is not None
        assert last.metadata == created.metadata
        assert open_catalog().list_tables(("a",)) == []
        with raises(NoSuchTableError):
            open_catalog().load(("a", "t"))
        assert create_table(catalog, ("a", "t")).metadata.table_uuid != created.metadata.table_uuid

    def test_dropping_leaves_the_files(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = create_table(catalog, ("a", "t"))
        if isinstance(catalog, PurgingCatalog):
            with raises(UnsupportedFeatureError, "purge_table"):
                catalog.drop(("a", "t"))
            assert catalog.load(("a", "t")).metadata == created.metadata
            return
        data = f"{created.metadata.location}/data/1.parquet"
        created.io.write(data, b"rows")
        catalog.drop(("a", "t"))
        assert created.io.read_bytes(data) == b"rows"
        if self.capabilities.keeps_metadata:
            assert stored(created).metadata == created.metadata

    def test_a_table_is_renamed(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = create_table(catalog, ("a", "t"))
        create_namespaces(catalog, ("b",))
        if not self.capabilities.rename:
            with raises(UnsupportedFeatureError):
                catalog.rename(("a", "t"), ("b", "u"))
            assert catalog.load(("a", "t")).metadata == created.metadata
            return
        catalog.rename(("a", "t"), ("b", "u"))
        renamed = open_catalog().load(("b", "u"))
        assert renamed.metadata == created.metadata
        assert renamed.name.endswith("b.u")
        assert catalog.list_tables(("a",)) == []
        with raises(NoSuchTableError):
            catalog.load(("a", "t"))
        assert commit_changes(catalog, ("b", "u"), [SetProperties({"k": "v"})]).metadata.properties[
            "k"
        ]

    def test_a_table_is_not_renamed_onto_another(self, open_catalog: OpenCatalog) -> None:
        if not self.capabilities.rename:
            return
        catalog = open_catalog()
        first, second = create_table(catalog, ("a", "t1")), create_table(catalog, ("a", "t2"))
        with raises(AlreadyExistsError):
            catalog.rename(("a", "t1"), ("a", "t2"))
        with raises(AlreadyExistsError):
            catalog.rename(("a", "t1"), ("a", "t1"))
        with raises(NoSuchTableError):
            catalog.rename(("a", "nothing"), ("a", "nothing"))
        with raises(NoSuchTableError):
            catalog.rename(("a", "nothing"), ("a", "t3"))
        with raises(NoSuchNamespaceError):
            catalog.rename(("a", "t1"), ("nowhere", "t1"))
        assert catalog.load(("a", "t1")).metadata == first.metadata
        assert catalog.load(("a", "t2")).metadata == second.metadata

    def test_a_table_is_registered_by_its_metadata(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = commit_to_new(catalog, ("a", "t"))
        if not self.capabilities.register:
            create_namespaces(catalog, ("b",))
            with raises(UnsupportedFeatureError):
                catalog.register(("b", "u"), created.metadata_location)
            return
        with raises(AlreadyExistsError):
            catalog.register(("a", "t"), created.metadata_location)
        drop_table(catalog, ("a", "t"))
        create_namespaces(catalog, ("b",))
        assert catalog.register(("b", "u"), created.metadata_location).metadata == created.metadata
        assert open_catalog().load(("b", "u")).metadata == created.metadata
        committed = commit_changes(catalog, ("b", "u"), [SetProperties({"k2": "v"})])
        assert committed.metadata.properties["k2"] == "v"

    def test_a_registered_table_may_replace_another(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        if not isinstance(catalog, OverwritingCatalog):
            return
        first = create_table(catalog, ("a", "t"))
        second = commit_changes(catalog, ("a", "t"), [SetProperties({"k": "v"})])
        other = create_table(catalog, ("a", "other"))
        if not self.capabilities.overwrites:
            with raises(UnsupportedFeatureError):
                catalog.register_over(("a", "t"), other.metadata_location)
            assert catalog.load(("a", "t")).metadata == second.metadata
            return
        for state in (first, second, other, other):
            found = catalog.register_over(("a", "t"), state.metadata_location)
            assert found.metadata == state.metadata
            assert open_catalog().load(("a", "t")).metadata == state.metadata
            assert open_catalog().load(("a", "t")).metadata_location == state.metadata_location
        with raises(CommitConflictError):
            catalog.operations(("a", "t")).commit(
                replace(second, name="a.t"), unchanged(second), [SetProperties({"k": "w"})]
            )
        committed = commit_changes(catalog, ("a", "t"), [SetProperties({"k": "x"})])
        assert committed.metadata.table_uuid == other.metadata.table_uuid
        assert (
            catalog.register_over(("a", "new"), second.metadata_location).metadata.properties["k"]
            == "v"
        )
        with raises(NoSuchNamespaceError):
            catalog.register_over(("nowhere", "t"), second.metadata_location)

    def test_an_unregistered_table_is_gone_with_all_commits(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        if not isinstance(catalog, UnregisteringCatalog):
            return
        stale = create_table(catalog, ("a", "t"))
        last = commit_changes(open_catalog(), ("a", "t"), [SetProperties({"k": "v"})])
        if not self.capabilities.unregisters:
            with raises(UnsupportedFeatureError):
                catalog.unregister(("a", "t"))
            assert catalog.load(("a", "t")).metadata == last.metadata
            return
        assert catalog.unregister(("a", "t")) == last.metadata_location
        with raises(NoSuchTableError):
            open_catalog().load(("a", "t"))
        with raises(NoSuchTableError):
            catalog.operations(("a", "t")).commit(stale, [], [SetProperties({"k": "w"})])
        with raises(NoSuchTableError):
            catalog.unregister(("a", "t"))
        again = catalog.register(("a", "t"), last.metadata_location)
        assert again.metadata == last.metadata

    # Committing.

    def test_a_commit_is_seen_by_all(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = create_table(catalog, ("a", "t"), {"old": "1"})
        updates: list[TableUpdate] = [SetProperties({"k": "v"}), RemoveProperties(("old",))]
        committed = commit_changes(catalog, ("a", "t"), updates)
        loaded = open_catalog().load(("a", "t"))
        assert loaded.metadata == committed.metadata
        assert loaded.metadata_location == committed.metadata_location
        assert loaded.metadata_location != created.metadata_location
        assert loaded.metadata.properties["k"] == "v"
        assert "old" not in loaded.metadata.properties
        assert loaded.metadata.last_updated_ms >= created.metadata.last_updated_ms
        assert stored(created).metadata == created.metadata

    def test_all_updates_of_a_commit_are_applied(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        schema = create_table(catalog, ("a", "t")).metadata.schema()
        wider = replace(schema, fields=(*schema.fields, NestedField(3, "more", LONG)))
        snapshot = new_snapshot(1)
        main = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
        commit_changes(
            catalog,
            ("a", "t"),
            [AddSchema(wider), SetCurrentSchema(LAST_ADDED), AddSnapshot(snapshot), main],
        )
        loaded = catalog.load(("a", "t")).metadata
        assert [field.name for field in loaded.schema().fields] == ["id", "name", "more"]
        assert loaded.last_column_id == 3
        assert loaded.current_snapshot_id == snapshot.snapshot_id

    def test_a_schema_that_could_not_be_read_again_is_refused(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        base = create_table(catalog, ("a", "t"))
        schema = base.metadata.schema()
        fields = (*schema.fields, NestedField(3, "more", LONG, write_default="text"))
        unreadable = AddSchema(replace(schema, fields=fields))
        with raises(InvalidMetadataError, "more"):
            catalog.operations(("a", "t")).commit(base, unchanged(base), [unreadable])
        assert catalog.load(("a", "t")).metadata == base.metadata
        updates = new_table(catalog, ("a", "u"))
        where = next(i for i, update in enumerate(updates) if isinstance(update, AddSchema))
        with raises(InvalidMetadataError, "more"):
            catalog.create(("a", "u"), [*updates[:where], unreadable, *updates[where + 1 :]])
        assert catalog.list_tables(("a",)) == [("a", "t")]

    def test_the_metadata_log_leads_back(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        locations = [create_table(catalog, ("a", "t")).metadata_location]
        for i in range(3):
            state = commit_changes(catalog, ("a", "t"), [SetProperties({"i": str(i)})])
            locations.append(state.metadata_location)
        log = catalog.load(("a", "t")).metadata.metadata_log
        assert [entry.metadata_file for entry in log] == locations[:-1]
        assert all(catalog.io.exists(location) for location in locations)

    def test_a_commit_to_a_stale_state_is_a_conflict(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        base = operations.refresh()
        operations.commit(base, unchanged(base), [SetProperties({"first": "1"})])
        if not self.capabilities.swaps:
            operations.commit(base, unchanged(base), [SetProperties({"second": "2"})])
            properties = catalog.load(("a", "t")).metadata.properties
            assert (properties["first"], properties["second"]) == ("1", "2")
            return
        with raises(CommitConflictError, "a.t"):
            operations.commit(base, unchanged(base), [SetProperties({"second": "2"})])
        with raises(CommitConflictError):
            operations.commit(base, [], [SetProperties({"third": "3"})])
        properties = catalog.load(("a", "t")).metadata.properties
        assert properties["first"] == "1"
        assert not {"second", "third"} & properties.keys()

    def test_a_commit_after_another_of_the_schema_or_a_branch_is_a_conflict(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        operations = catalog.operations(("a", "t"))
        create_table(catalog, ("a", "t"))
        base = operations.refresh()
        schema = base.metadata.schema()
        wider = replace(schema, fields=(*schema.fields, NestedField(3, "more", LONG)))
        operations.commit(base, [], [AddSchema(wider), SetCurrentSchema(LAST_ADDED)])
        with raises(CommitConflictError, "a.t"):
            operations.commit(base, [], [SetProperties({"k": "v"})])
        base = operations.refresh()
        snapshots = [new_snapshot(base.metadata.last_sequence_number + i) for i in (1, 2)]
        for snapshot, branch in zip(snapshots, (MAIN_BRANCH, "other"), strict=True):
            ref = SetSnapshotRef(branch, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
            operations.commit(operations.refresh(), [], [AddSnapshot(snapshot), ref])
        base = operations.refresh()
        main = SnapshotRef(snapshots[1].snapshot_id, RefType.BRANCH)
        operations.commit(base, [], [SetSnapshotRef(MAIN_BRANCH, main)])
        with raises(CommitConflictError, "a.t"):
            operations.commit(base, [], [SetProperties({"k": "v"})])
        assert "k" not in catalog.load(("a", "t")).metadata.properties

    def test_an_equal_commit_to_a_stale_state_is_a_conflict(
        self, open_catalog: OpenCatalog
    ) -> None:
        if not self.capabilities.swaps:
            return
        catalog = open_catalog()
        create_table(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        base = operations.refresh()
        operations.commit(base, [], [SetProperties({"k": "v"})])
        with raises(CommitConflictError):
            operations.commit(base, [], [SetProperties({"k": "v"})])

    def test_requirements_are_checked(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_table(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        unmet: list[TableRequirement] = [
            AssertTableUuid("00000000-0000-4000-8000-000000000000"),
            AssertRefSnapshotId(MAIN_BRANCH, 42),
            AssertCurrentSchemaId(7),
        ]
        for requirement in unmet:
            with raises(CommitConflictError):
                operations.commit(operations.refresh(), [requirement], [SetProperties({"k": "v"})])
        assert "k" not in catalog.load(("a", "t")).metadata.properties

    def test_a_commit_does_not_bring_a_dropped_table_back(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        base = create_table(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        drop_table(catalog, ("a", "t"))
        with raises((NoSuchTableError, CommitConflictError)):
            operations.commit(base, unchanged(base), [SetProperties({"k": "v"})])
        assert catalog.list_tables(("a",)) == []

    def test_a_commit_does_not_hit_another_table_of_the_name(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        base = create_table(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        drop_table(catalog, ("a", "t"))
        second = create_table(catalog, ("a", "t"))
        with raises((CommitConflictError, NotFoundError)):
            operations.commit(base, unchanged(base), [SetProperties({"k": "v"})])
        assert catalog.load(("a", "t")).metadata == second.metadata

    def _new_namespaces(self, catalog: Catalog) -> list[Identifier]:
        given = {(name,) for name in self.capabilities.given_namespaces}
        return [namespace for namespace in catalog.list_namespaces() if namespace not in given]
