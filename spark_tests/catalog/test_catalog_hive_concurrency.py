"""Many processes commit to one table of a Hive catalog."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from effort import IS_NIGHTLY
from hive_server import HiveServer
from hive_tables import TABLE, create_table, empty, metadata_files, open_hive_catalog
from processes import CONTEXT

from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.spec.updates.table_updates import SetProperties

_PROCESSES, _COMMITS = (8, 10) if IS_NIGHTLY else (3, 4)


def test_no_commit_is_lost_by_locks_alone(locking_metastore: HiveServer, tmp_path: Path) -> None:
    empty(locking_metastore)
    _race(locking_metastore, tmp_path, {})


def test_no_commit_is_lost_by_locks_and_conditions(
    conditional_metastore: HiveServer, tmp_path: Path
) -> None:
    empty(conditional_metastore)
    _race(conditional_metastore, tmp_path, {})


def test_no_commit_is_lost_by_conditions_alone(
    conditional_metastore: HiveServer, tmp_path: Path
) -> None:
    empty(conditional_metastore)
    _race(conditional_metastore, tmp_path, {"iceberg.engine.hive.lock-enabled": "false"})


def _race(server: HiveServer, tmp_path: Path, options: dict[str, str]) -> None:
    catalog = open_hive_catalog(server.uri, tmp_path, **options)
    retries = {
        "commit.retry.num-retries": "10000",
        "commit.retry.min-wait-ms": "10",
        "commit.retry.max-wait-ms": "200",
    }
    created = create_table(catalog, retries)
    with ProcessPoolExecutor(_PROCESSES, CONTEXT) as pool:
        done = [
            pool.submit(_commit_many, server.uri, tmp_path, options, f"p{i}")
            for i in range(_PROCESSES)
        ]
        for future in done:
            future.result(timeout=300)
    state = catalog.load(TABLE)
    keys = {f"p{i}.{j}" for i in range(_PROCESSES) for j in range(_COMMITS)}
    assert keys <= state.metadata.properties.keys()
    # One file for each commit and none for attempts that lost.
    assert len(metadata_files(created)) == 1 + len(keys)
    assert state.metadata_location.rpartition("/")[2].startswith(f"{len(keys):05d}-")


def _commit_many(uri: str, tmp_path: Path, options: dict[str, str], prefix: str) -> None:
    operations = open_hive_catalog(uri, tmp_path, **options).operations(TABLE)
    for i in range(_COMMITS):
        key = f"{prefix}.{i}"

        def produce(_: TableState, key: str = key) -> Change:
            return Change([], [SetProperties({key: "v"})])

        def is_committed(state: TableState, key: str = key) -> bool:
            return key in state.metadata.properties

        commit_change(operations, produce, is_committed)
