"""Many processes commit to one table of a catalog."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from aws_tables import TABLE, create_table, metadata_files
from effort import IS_NIGHTLY
from processes import CONTEXT

from icebergds.catalog.loading import load_catalog
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.spec.updates.table_updates import SetProperties

_PROCESSES, _COMMITS = (8, 10) if IS_NIGHTLY else (4, 4)


def check_no_commit_is_lost(properties: dict[str, str], *, deletes_files: bool = True) -> None:
    """Commits in many processes at the same time to the catalog with these properties.

    Args:
        deletes_files: whether the metadata files of attempts that lost are deleted.
    """
    catalog = load_catalog("lake", properties)
    retries = {
        "commit.retry.num-retries": "10000",
        "commit.retry.min-wait-ms": "10",
        "commit.retry.max-wait-ms": "200",
    }
    created = create_table(catalog, retries)
    with ProcessPoolExecutor(_PROCESSES, CONTEXT) as pool:
        done = [pool.submit(_commit_many, properties, f"p{i}") for i in range(_PROCESSES)]
        for future in done:
            future.result(timeout=300)
    state = catalog.load(TABLE)
    keys = {f"p{i}.{j}" for i in range(_PROCESSES) for j in range(_COMMITS)}
    assert keys <= state.metadata.properties.keys()
    if deletes_files:
        # One file for each commit and none for attempts that lost.
        assert len(metadata_files(created)) == 1 + len(keys)
    # Each commit counts one on.
    assert state.metadata_location.rpartition("/")[2].startswith(f"{len(keys):05d}-")


def _commit_many(properties: dict[str, str], prefix: str) -> None:
    operations = load_catalog("lake", properties).operations(TABLE)
    for i in range(_COMMITS):
        key = f"{prefix}.{i}"

        def produce(_: TableState, key: str = key) -> Change:
            return Change([], [SetProperties({key: "v"})])

        def is_committed(state: TableState, key: str = key) -> bool:
            return key in state.metadata.properties

        commit_change(operations, produce, is_committed)
