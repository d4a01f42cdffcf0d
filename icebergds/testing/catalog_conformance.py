"""What every catalog must do, as a class of tests that any test runner with fixtures can run.

A test module makes a subclass and a fixture, and says what its catalog cannot do:

    class TestMyCatalog(CatalogConformance):
        capabilities = CatalogCapabilities(rename=False)

        @pytest.fixture
        def open_catalog(self, tmp_path):
            return functools.partial(load_catalog, "mine", {"warehouse": str(tmp_path)})

`open_catalog` opens one and the same catalog, new and empty for every test, each time it is called;
it can be pickled where other processes may use the catalog.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

from icebergds.catalog.base import Catalog, Identifier
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotFoundError,
    UnsupportedFeatureError,
)
from icebergds.spec.metadata_json import parse_metadata
from icebergds.spec.new_table import new_table_updates
from icebergds.spec.requirements import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, Snapshot, SnapshotRef
from icebergds.spec.types import LONG, STRING, NestedField
from icebergds.spec.updates import (
    LAST_ADDED,
    AddSchema,
    AddSnapshot,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
)

OpenCatalog: TypeAlias = Callable[[], Catalog]


@dataclass(frozen=True, slots=True)
class CatalogCapabilities:
    """What a catalog can do beyond loading, creating, committing and dropping tables.

    Attributes:
        rename: tables can be given another identifier.
        namespace_properties: namespaces have properties.
        required_namespaces: a table needs a namespace that was created before.
        register: tables can be registered from any metadata file.
        keeps_metadata: the metadata file of a dropped table is left.
        processes: other processes can open the same catalog.
    """

    rename: bool = True
    namespace_properties: bool = True
    required_namespaces: bool = True
    register: bool = True
    keeps_metadata: bool = True
    processes: bool = True


class CatalogConformance:
    """Tests of a catalog; see the module.

    Attributes:
        capabilities: what the catalog can do.
        threads: how many compete for a table; fewer where the storage is slow.
        processes: how many compete for a table in processes of their own.
    """

    capabilities = CatalogCapabilities()
    threads = 8
    processes = 3

    # Namespaces.

    def test_a_namespace_is_created_listed_and_dropped(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        assert catalog.list_namespaces() == []
        catalog.create_namespace(("b",), {})
        catalog.create_namespace(("a",), {})
        assert open_catalog().list_namespaces() == [("a",), ("b",)]
        catalog.drop_namespace(("a",))
        assert open_catalog().list_namespaces() == [("b",)]

    def test_namespaces_nest(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        catalog.create_namespace(("a",), {})
        catalog.create_namespace(("a", "x"), {})
        assert catalog.list_namespaces() == [("a",)]
        assert catalog.list_namespaces(("a",)) == [("a", "x")]
        with _raises(NamespaceNotEmptyError):
            catalog.drop_namespace(("a",))

    def test_a_namespace_is_created_once(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        catalog.create_namespace(("a",), {})
        with _raises(AlreadyExistsError, "a"):
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
            with _raises(NoSuchNamespaceError, "nowhere"):
                use()

    def test_a_namespace_with_tables_is_not_dropped(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create(catalog, ("a", "t"))
        with _raises(NamespaceNotEmptyError, "a"):
            catalog.drop_namespace(("a",))
        catalog.drop(("a", "t"))
        catalog.drop_namespace(("a",))
        assert catalog.list_namespaces() == []

    def test_namespaces_have_properties(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        if not self.capabilities.namespace_properties:
            with _raises(UnsupportedFeatureError):
                catalog.create_namespace(("a",), {"k": "v"})
            assert catalog.list_namespaces() == []
            catalog.create_namespace(("a",), {})
            with _raises(UnsupportedFeatureError):
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
        updates = _new_table(catalog, ("nowhere", "t"))
        if self.capabilities.required_namespaces:
            with _raises(NoSuchNamespaceError, "nowhere"):
                catalog.create(("nowhere", "t"), updates)
            assert catalog.list_namespaces() == []
        else:
            catalog.create(("nowhere", "t"), updates)
            assert catalog.list_namespaces() == [("nowhere",)]

    # Creating and loading.

    def test_a_created_table_is_loaded_as_it_was_created(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog, ("a", "t"), {"k": "v"})
        loaded = open_catalog().load(("a", "t"))
        assert loaded.metadata == created.metadata
        assert loaded.metadata_location == created.metadata_location
        assert loaded.metadata.properties["k"] == "v"
        assert loaded.metadata.location == catalog.new_table_location(("a", "t"))
        assert [field.name for field in loaded.metadata.schema().fields] == ["id", "name"]
        assert _stored(loaded).metadata == loaded.metadata

    def test_a_table_may_be_created_with_its_first_snapshot(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        _create_namespaces(catalog, ("a",))
        snapshot = _snapshot(1)
        main = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
        updates = [*_new_table(catalog, ("a", "t")), AddSnapshot(snapshot), main]
        catalog.create(("a", "t"), updates)
        current = open_catalog().load(("a", "t")).metadata.current_snapshot()
        assert current is not None
        assert current.snapshot_id == snapshot.snapshot_id

    def test_a_table_is_created_once(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        first = _create(catalog, ("a", "t"))
        with _raises(AlreadyExistsError, "a.t"):
            catalog.create(("a", "t"), _new_table(catalog, ("a", "t")))
        assert catalog.load(("a", "t")).metadata == first.metadata

    def test_a_missing_table_is_named(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create_namespaces(catalog, ("a",))
        uses: list[Callable[[], object]] = [
            lambda: catalog.load(("a", "nothing")),
            lambda: catalog.drop(("a", "nothing")),
            lambda: catalog.operations(("a", "nothing")).refresh(),
        ]
        for use in uses:
            with _raises(NoSuchTableError, "nothing"):
                use()

    def test_tables_are_listed_in_order_and_by_namespace(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        for identifier in (("a", "t2"), ("a", "t1"), ("b", "t3")):
            _create(catalog, identifier)
        assert open_catalog().list_tables(("a",)) == [("a", "t1"), ("a", "t2")]
        assert open_catalog().list_tables(("b",)) == [("b", "t3")]

    def test_names_are_taken_as_they_are(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        names = ("Mixed", "with space", "p%20q", "x#1?y=z", "über 東京", "a_b", "a'b")
        for name in names:
            _create(catalog, ("a", name), {"name": name})
        assert catalog.list_tables(("a",)) == sorted(("a", name) for name in names)
        for name in names:
            assert catalog.load(("a", name)).metadata.properties["name"] == name

    # Dropping, renaming, registering.

    def test_a_dropped_table_is_gone_and_can_be_made_again(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog, ("a", "t"))
        last = catalog.drop(("a", "t"))
        assert last is not None
        assert last.metadata == created.metadata
        assert open_catalog().list_tables(("a",)) == []
        with _raises(NoSuchTableError):
            open_catalog().load(("a", "t"))
        assert _create(catalog, ("a", "t")).metadata.table_uuid != created.metadata.table_uuid

    def test_dropping_leaves_the_files(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog, ("a", "t"))
        data = f"{created.metadata.location}/data/1.parquet"
        created.io.write(data, b"rows")
        catalog.drop(("a", "t"))
        assert created.io.read_bytes(data) == b"rows"
        if self.capabilities.keeps_metadata:
            assert _stored(created).metadata == created.metadata

    def test_a_table_is_renamed(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog, ("a", "t"))
        _create_namespaces(catalog, ("b",))
        if not self.capabilities.rename:
            with _raises(UnsupportedFeatureError):
                catalog.rename(("a", "t"), ("b", "u"))
            assert catalog.load(("a", "t")).metadata == created.metadata
            return
        catalog.rename(("a", "t"), ("b", "u"))
        renamed = open_catalog().load(("b", "u"))
        assert renamed.metadata == created.metadata
        assert renamed.name.endswith("b.u")
        assert catalog.list_tables(("a",)) == []
        with _raises(NoSuchTableError):
            catalog.load(("a", "t"))
        assert _commit(catalog, ("b", "u"), [SetProperties({"k": "v"})]).metadata.properties["k"]

    def test_a_table_is_not_renamed_onto_another(self, open_catalog: OpenCatalog) -> None:
        if not self.capabilities.rename:
            return
        catalog = open_catalog()
        first, second = _create(catalog, ("a", "t1")), _create(catalog, ("a", "t2"))
        with _raises(AlreadyExistsError):
            catalog.rename(("a", "t1"), ("a", "t2"))
        with _raises(NoSuchTableError):
            catalog.rename(("a", "nothing"), ("a", "t3"))
        with _raises(NoSuchNamespaceError):
            catalog.rename(("a", "t1"), ("nowhere", "t1"))
        assert catalog.load(("a", "t1")).metadata == first.metadata
        assert catalog.load(("a", "t2")).metadata == second.metadata

    def test_a_table_is_registered_by_its_metadata(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _commit_to_new(catalog, ("a", "t"))
        if not self.capabilities.register:
            _create_namespaces(catalog, ("b",))
            with _raises(UnsupportedFeatureError):
                catalog.register(("b", "u"), created.metadata_location)
            return
        with _raises(AlreadyExistsError):
            catalog.register(("a", "t"), created.metadata_location)
        catalog.drop(("a", "t"))
        _create_namespaces(catalog, ("b",))
        assert catalog.register(("b", "u"), created.metadata_location).metadata == created.metadata
        assert open_catalog().load(("b", "u")).metadata == created.metadata
        committed = _commit(catalog, ("b", "u"), [SetProperties({"k2": "v"})])
        assert committed.metadata.properties["k2"] == "v"

    # Committing.

    def test_a_commit_is_seen_by_all(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        created = _create(catalog, ("a", "t"), {"old": "1"})
        updates: list[TableUpdate] = [SetProperties({"k": "v"}), RemoveProperties(("old",))]
        committed = _commit(catalog, ("a", "t"), updates)
        loaded = open_catalog().load(("a", "t"))
        assert loaded.metadata == committed.metadata
        assert loaded.metadata_location == committed.metadata_location
        assert loaded.metadata_location != created.metadata_location
        assert loaded.metadata.properties["k"] == "v"
        assert "old" not in loaded.metadata.properties
        assert loaded.metadata.last_updated_ms >= created.metadata.last_updated_ms
        assert _stored(created).metadata == created.metadata

    def test_all_updates_of_a_commit_are_applied(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        schema = _create(catalog, ("a", "t")).metadata.schema()
        wider = replace(schema, fields=(*schema.fields, NestedField(3, "more", LONG)))
        snapshot = _snapshot(1)
        main = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
        _commit(
            catalog,
            ("a", "t"),
            [AddSchema(wider), SetCurrentSchema(LAST_ADDED), AddSnapshot(snapshot), main],
        )
        loaded = catalog.load(("a", "t")).metadata
        assert [field.name for field in loaded.schema().fields] == ["id", "name", "more"]
        assert loaded.last_column_id == 3
        assert loaded.current_snapshot_id == snapshot.snapshot_id

    def test_the_metadata_log_leads_back(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        locations = [_create(catalog, ("a", "t")).metadata_location]
        for i in range(3):
            state = _commit(catalog, ("a", "t"), [SetProperties({"i": str(i)})])
            locations.append(state.metadata_location)
        log = catalog.load(("a", "t")).metadata.metadata_log
        assert [entry.metadata_file for entry in log] == locations[:-1]
        assert all(catalog.io.exists(location) for location in locations)

    def test_a_commit_to_a_stale_state_is_a_conflict(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        base = operations.refresh()
        operations.commit(base, _unchanged(base), [SetProperties({"first": "1"})])
        with _raises(CommitConflictError, "a.t"):
            operations.commit(base, _unchanged(base), [SetProperties({"second": "2"})])
        with _raises(CommitConflictError):
            operations.commit(base, [], [SetProperties({"third": "3"})])
        properties = catalog.load(("a", "t")).metadata.properties
        assert properties["first"] == "1"
        assert not {"second", "third"} & properties.keys()

    def test_an_equal_commit_to_a_stale_state_is_a_conflict(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        _create(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        base = operations.refresh()
        operations.commit(base, [], [SetProperties({"k": "v"})])
        with _raises(CommitConflictError):
            operations.commit(base, [], [SetProperties({"k": "v"})])

    def test_requirements_are_checked(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        unmet: list[TableRequirement] = [
            AssertTableUuid("00000000-0000-4000-8000-000000000000"),
            AssertRefSnapshotId(MAIN_BRANCH, 42),
            AssertCurrentSchemaId(7),
        ]
        for requirement in unmet:
            with _raises(CommitConflictError):
                operations.commit(operations.refresh(), [requirement], [SetProperties({"k": "v"})])
        assert "k" not in catalog.load(("a", "t")).metadata.properties

    def test_a_commit_does_not_bring_a_dropped_table_back(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        base = _create(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        catalog.drop(("a", "t"))
        with _raises((NoSuchTableError, CommitConflictError)):
            operations.commit(base, _unchanged(base), [SetProperties({"k": "v"})])
        assert catalog.list_tables(("a",)) == []

    def test_a_commit_does_not_hit_another_table_of_the_name(
        self, open_catalog: OpenCatalog
    ) -> None:
        catalog = open_catalog()
        base = _create(catalog, ("a", "t"))
        operations = catalog.operations(("a", "t"))
        catalog.drop(("a", "t"))
        second = _create(catalog, ("a", "t"))
        with _raises((CommitConflictError, NotFoundError)):
            operations.commit(base, _unchanged(base), [SetProperties({"k": "v"})])
        assert catalog.load(("a", "t")).metadata == second.metadata

    # Many at once.

    def test_of_many_threads_one_creates_a_table(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        _create_namespaces(catalog, ("a",))
        for i in range(5):
            updates = _new_table(catalog, ("a", f"t{i}"))
            gate = threading.Barrier(self.threads)

            def attempt(
                _: int,
                updates: list[TableUpdate] = updates,
                gate: threading.Barrier = gate,
                table: str = f"t{i}",
            ) -> bool:
                gate.wait()
                # The same updates, so that only the catalog can tell the attempts apart.
                return _try_create(open_catalog(), ("a", table), updates)

            with ThreadPoolExecutor(self.threads) as pool:
                assert sum(pool.map(attempt, range(self.threads))) == 1

    def test_of_many_processes_one_creates_a_table(self, open_catalog: OpenCatalog) -> None:
        if not self.capabilities.processes:
            return
        _create_namespaces(open_catalog(), ("a",))
        with _processes(self.processes) as pool:
            won = [pool.submit(_create_many, open_catalog, 20) for _ in range(self.processes)]
            tables = sorted(table for future in won for table in future.result(_TIMEOUT_S))
        assert tables == sorted(f"t{i}" for i in range(20))
        assert len(open_catalog().list_tables(("a",))) == 20

    def test_no_commit_of_many_threads_is_lost(self, open_catalog: OpenCatalog) -> None:
        _create(open_catalog(), ("a", "t"))
        gate = threading.Barrier(self.threads)

        def commits(thread: int) -> None:
            gate.wait()
            _set_properties(open_catalog, f"thread{thread}", 5)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(commits, range(self.threads)))
        _check_properties(open_catalog(), [f"thread{i}" for i in range(self.threads)], 5)

    def test_no_commit_is_lost_where_old_metadata_is_deleted(
        self, open_catalog: OpenCatalog
    ) -> None:
        properties = {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "2",
        }
        _create(open_catalog(), ("a", "t"), properties)
        each = 48 // self.threads

        def commits(thread: int) -> None:
            _set_properties(open_catalog, f"thread{thread}", each)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(commits, range(self.threads)))
        catalog = open_catalog()
        _check_properties(catalog, [f"thread{i}" for i in range(self.threads)], each)
        state = catalog.load(("a", "t"))
        assert len(state.metadata.metadata_log) == 2
        directory = state.metadata_location.rpartition("/")[0]
        files = [name for name in catalog.io.list(directory) if "metadata.json" in name]
        logged = [entry.metadata_file for entry in state.metadata.metadata_log]
        assert {name.rpartition("/")[2] for name in logged} <= set(files)
        # Some may stay for a while, as a commit that is under way may need them.
        assert len(files) < each * self.threads // 2 + 3

    def test_no_commit_of_many_processes_is_lost(self, open_catalog: OpenCatalog) -> None:
        if not self.capabilities.processes:
            return
        _create(open_catalog(), ("a", "t"))
        prefixes = [f"process{i}" for i in range(self.processes)]
        with _processes(self.processes) as pool:
            futures = [pool.submit(_set_properties, open_catalog, p, 10) for p in prefixes]
            for future in futures:
                future.result(_TIMEOUT_S)
        _check_properties(open_catalog(), prefixes, 10)


_TIMEOUT_S = 120
_ATTEMPTS = 1000
_SCHEMA = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "name", STRING)))


@contextlib.contextmanager
def _raises(
    expected: type[IcebergError] | tuple[type[IcebergError], ...], text: str = ""
) -> Iterator[None]:
    """Fails where the block does not raise an error of a class, with a text in its message."""
    try:
        yield
    except expected as error:
        if text not in str(error):
            raise AssertionError(f"{text!r} is not in the message: {error}") from error
    else:
        raise AssertionError(f"{expected} was not raised")


def _create_namespaces(catalog: Catalog, namespace: Identifier) -> None:
    for depth in range(1, len(namespace) + 1):
        with contextlib.suppress(AlreadyExistsError):
            catalog.create_namespace(namespace[:depth], {})


def _new_table(
    catalog: Catalog, identifier: Identifier, properties: dict[str, str] | None = None
) -> list[TableUpdate]:
    return new_table_updates(
        _SCHEMA, location=catalog.new_table_location(identifier), properties=properties or {}
    )


def _create(
    catalog: Catalog, identifier: Identifier, properties: dict[str, str] | None = None
) -> TableState:
    _create_namespaces(catalog, identifier[:-1])
    return catalog.create(identifier, _new_table(catalog, identifier, properties))


def _try_create(catalog: Catalog, identifier: Identifier, updates: list[TableUpdate]) -> bool:
    try:
        catalog.create(identifier, updates)
    except AlreadyExistsError:
        return False
    return True


def _create_many(open_catalog: OpenCatalog, count: int) -> list[str]:
    """Creates as many tables as are not there yet; gives their names."""
    catalog = open_catalog()
    names = [f"t{i}" for i in range(count)]
    return [n for n in names if _try_create(catalog, ("a", n), _new_table(catalog, ("a", n)))]


def _commit(catalog: Catalog, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
    """Commits, again and again while other commits come first."""
    operations = catalog.operations(identifier)
    for _ in range(_ATTEMPTS):
        base = operations.refresh()
        try:
            return operations.commit(base, _unchanged(base), updates)
        except CommitConflictError:
            time.sleep(random.random() * 0.01)
    raise AssertionError(f"no success in {_ATTEMPTS} attempts to commit")


def _commit_to_new(catalog: Catalog, identifier: Identifier) -> TableState:
    _create(catalog, identifier)
    return _commit(catalog, identifier, [SetProperties({"k": "v"})])


def _set_properties(open_catalog: OpenCatalog, prefix: str, count: int) -> None:
    """Sets properties, a commit for each."""
    catalog = open_catalog()
    for i in range(count):
        _commit(catalog, ("a", "t"), [SetProperties({f"{prefix}.{i}": "set"})])


def _check_properties(catalog: Catalog, prefixes: Sequence[str], count: int) -> None:
    found = catalog.load(("a", "t")).metadata.properties
    missing = [f"{p}.{i}" for p in prefixes for i in range(count) if f"{p}.{i}" not in found]
    assert missing == [], f"lost commits: {missing}"


def _unchanged(base: TableState) -> list[TableRequirement]:
    uuid = base.metadata.table_uuid
    assert uuid is not None
    return [AssertTableUuid(uuid)]


def _snapshot(sequence_number: int) -> Snapshot:
    """A snapshot that no reader will open."""
    return Snapshot(
        snapshot_id=random.randrange(1, 2**62),
        sequence_number=sequence_number,
        timestamp_ms=time.time_ns() // 1_000_000,
        manifest_list="file:/nowhere/snap.avro",
        summary={"operation": "append"},
        schema_id=0,
    )


def _stored(state: TableState) -> TableState:
    """A state as its metadata file has it."""
    data = state.io.read_bytes(state.metadata_location)
    return replace(state, metadata=parse_metadata(data, state.metadata_location))


def _processes(count: int) -> ProcessPoolExecutor:
    # Not forked: the tests before may have left threads.
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
