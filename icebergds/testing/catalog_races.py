"""Tests catalogs under concurrent use."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from icebergds.spec.updates.table_updates import (
    TableUpdate,
)
from icebergds.testing.catalog_steps import (
    TIMEOUT_S,
    OpenCatalog,
    check_properties,
    create_many,
    create_namespaces,
    create_table,
    new_table,
    process_pool,
    set_properties,
    try_create,
)


@dataclass(frozen=True, slots=True)
class CatalogCapabilities:
    """What a catalog supports besides loading, creating, committing and dropping tables.

    Attributes:
        rename: tables can be renamed.
        namespace_properties: namespaces have properties.
        nested_namespaces: a namespace can be in another.
        required_namespaces: the namespace of a table must be created first.
        register: tables can be registered from any metadata file.
        overwrites: an existing table can be replaced by registering another one, if the catalog is
            an `OverwritingCatalog`.
        unregisters: tables can be unregistered, if the catalog is an `UnregisteringCatalog`.
        keeps_metadata: dropping a table keeps its metadata file.
        processes: other processes can open the same catalog.
        swaps: a commit is a conflict after any other one; otherwise, only if the other changed what
            a requirement can name: not after changes of properties.
        deletes_metadata: old metadata files are deleted as the table's properties say.
        names: names of tables that the catalog takes as they are.
        given_namespaces: the namespaces that a new catalog has.
    """

    rename: bool = True
    namespace_properties: bool = True
    nested_namespaces: bool = True
    required_namespaces: bool = True
    register: bool = True
    overwrites: bool = True
    unregisters: bool = True
    keeps_metadata: bool = True
    processes: bool = True
    swaps: bool = True
    deletes_metadata: bool = True
    names: tuple[str, ...] = (
        "Mixed",
        "with space",
        "p%20q",
        "x#1?y=z",
        "über 東京",
        "a_b",
        "a'b",
    )
    given_namespaces: tuple[str, ...] = ()


class CatalogRaces:
    """Tests with many threads and processes; a part of `CatalogConformance`.

    Attributes:
        capabilities: what the catalog supports.
        threads: how many threads compete for a table; set fewer if the storage is slow.
        processes: how many processes compete for a table.
        commits: how many commits they make together.
    """

    capabilities = CatalogCapabilities()
    threads = 8
    processes = 3
    commits = 48

    def test_of_many_threads_one_creates_a_table(self, open_catalog: OpenCatalog) -> None:
        catalog = open_catalog()
        create_namespaces(catalog, ("a",))
        for i in range(5):
            updates = new_table(catalog, ("a", f"t{i}"))
            gate = threading.Barrier(self.threads)

            def attempt(
                _: int,
                updates: list[TableUpdate] = updates,
                gate: threading.Barrier = gate,
                table: str = f"t{i}",
            ) -> bool:
                gate.wait()
                # The same updates, so that only the catalog can distinguish the attempts.
                return try_create(open_catalog(), ("a", table), updates)

            with ThreadPoolExecutor(self.threads) as pool:
                assert sum(pool.map(attempt, range(self.threads))) == 1

    def test_of_many_processes_one_creates_a_table(self, open_catalog: OpenCatalog) -> None:
        if not self.capabilities.processes:
            return
        tables = self.commits // 2
        create_namespaces(open_catalog(), ("a",))
        with process_pool(self.processes) as pool:
            won = [pool.submit(create_many, open_catalog, tables) for _ in range(self.processes)]
            created = sorted(table for future in won for table in future.result(TIMEOUT_S))
        assert created == sorted(f"t{i}" for i in range(tables))
        assert len(open_catalog().list_tables(("a",))) == tables

    def test_no_commit_of_many_threads_is_lost(self, open_catalog: OpenCatalog) -> None:
        create_table(open_catalog(), ("a", "t"))
        gate = threading.Barrier(self.threads)
        each = self.commits // self.threads

        def commits(thread: int) -> None:
            gate.wait()
            set_properties(open_catalog, f"thread{thread}", each)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(commits, range(self.threads)))
        check_properties(open_catalog(), [f"thread{i}" for i in range(self.threads)], each)

    def test_no_commit_is_lost_where_old_metadata_is_deleted(
        self, open_catalog: OpenCatalog
    ) -> None:
        properties = {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "2",
        }
        create_table(open_catalog(), ("a", "t"), properties)
        # More than the files that may stay, whatever `commits` is.
        each = 48 // self.threads

        def commits(thread: int) -> None:
            set_properties(open_catalog, f"thread{thread}", each)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(commits, range(self.threads)))
        catalog = open_catalog()
        check_properties(catalog, [f"thread{i}" for i in range(self.threads)], each)
        state = catalog.load(("a", "t"))
        assert len(state.metadata.metadata_log) == 2
        assert all(catalog.io.exists(entry.metadata_file) for entry in state.metadata.metadata_log)
        if self.capabilities.deletes_metadata:
            directory = state.metadata_location.rpartition("/")[0]
            files = [name for name in catalog.io.list(directory) if "metadata.json" in name]
            # Some may stay for a while, because a running commit may need them.
            assert len(files) < each * self.threads // 2 + 3

    def test_no_commit_of_many_processes_is_lost(self, open_catalog: OpenCatalog) -> None:
        if not self.capabilities.processes:
            return
        create_table(open_catalog(), ("a", "t"))
        prefixes = [f"process{i}" for i in range(self.processes)]
        each = self.commits // self.processes
        with process_pool(self.processes) as pool:
            futures = [pool.submit(set_properties, open_catalog, p, each) for p in prefixes]
            for future in futures:
                future.result(TIMEOUT_S)
        check_properties(open_catalog(), prefixes, each)
