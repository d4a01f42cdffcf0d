"""Many processes commit to one table of an SQL catalog."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from effort import IS_NIGHTLY
from processes import CONTEXT
from sql_tables import TABLE, create_table, metadata_files, open_sql_catalog

from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.spec.updates.table_updates import SetProperties

_PROCESSES, _COMMITS = (8, 50) if IS_NIGHTLY else (4, 12)


def test_no_commit_of_many_processes_is_lost(database_uri: str, tmp_path: Path) -> None:
    catalog = open_sql_catalog(database_uri, tmp_path)
    retries = {
        "commit.retry.num-retries": "10000",
        "commit.retry.min-wait-ms": "10",
        "commit.retry.max-wait-ms": "200",
    }
    created = create_table(catalog, retries)
    with ProcessPoolExecutor(_PROCESSES, CONTEXT) as pool:
        done = [
            pool.submit(_commit_many, database_uri, tmp_path, f"p{i}") for i in range(_PROCESSES)
        ]
        for future in done:
            future.result(timeout=300)
    state = catalog.load(TABLE)
    keys = {f"p{i}.{j}" for i in range(_PROCESSES) for j in range(_COMMITS)}
    assert keys <= state.metadata.properties.keys()
    # One file for each commit and none for attempts that lost.
    assert len(metadata_files(created)) == 1 + len(keys)
    assert state.metadata_location.rpartition("/")[2].startswith(f"{len(keys):05d}-")


def test_registrations_replace_a_table_between_commits(database_uri: str, tmp_path: Path) -> None:
    catalog = open_sql_catalog(database_uri, tmp_path)
    retries = {"commit.retry.num-retries": "10000", "commit.retry.min-wait-ms": "1"}
    created = create_table(catalog, retries)
    with ThreadPoolExecutor(2) as pool:
        commits = pool.submit(_commit_many, database_uri, tmp_path, "p")
        others = open_sql_catalog(database_uri, tmp_path)
        while not commits.done():
            assert others.register_over(TABLE, created.metadata_location) == created
        commits.result()
    left = catalog.load(TABLE).metadata
    logged = [entry.metadata_file for entry in left.metadata_log]
    assert logged[:1] == [created.metadata_location][: len(logged)]
    # Commits that a registration did not undo are all there, and no others.
    assert len([key for key in left.properties if key.startswith("p.")]) == len(logged)


def _commit_many(uri: str, tmp_path: Path, prefix: str) -> None:
    operations = open_sql_catalog(uri, tmp_path).operations(TABLE)
    for i in range(_COMMITS):
        key = f"{prefix}.{i}"

        def produce(_: TableState, key: str = key) -> Change:
            return Change([], [SetProperties({key: "v"})])

        def is_committed(state: TableState, key: str = key) -> bool:
            return key in state.metadata.properties

        commit_change(operations, produce, is_committed)
