"""Plants old files in tables, and says what a removal of orphan files removes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from built.api_tables import ids_of

from icebergds import Table
from icebergds.spec.updates.table_updates import TableUpdate

DAY_S = 24 * 60 * 60


def root_of(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def plant(directory: Path, name: str = "data/orphan.parquet", days: float = 5) -> str:
    """A file of some age; returns its path."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"orphan")
    age(path, days)
    return str(path)


def age(path: Path, days: float) -> None:
    moment = time.time() - days * DAY_S
    os.utime(path, (moment, moment))


def aged(table: Table, days: float = 30) -> Table:
    """The table, all of whose files are old."""
    for path in root_of(table).rglob("*"):
        if path.is_file():
            age(path, days)
    return table


def change(table: Table, *updates: TableUpdate) -> None:
    operations = table._address.operations()
    operations.commit(operations.refresh(), [], list(updates))
    table.refresh()


def files_below(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*") if path.is_file()}


def removed(table: Table, **arguments: Any) -> set[str]:
    """The files that are found and, unless only asked for, gone."""
    before = files_below(root_of(table))
    found = table.remove_orphan_files(**arguments)
    orphans = set(found.orphan_file_locations)
    assert not found.failed_deletes
    gone = before - files_below(root_of(table))
    assert gone == (set() if arguments.get("dry_run") else orphans & before)
    return orphans


def rows_of_all(table: Table) -> Mapping[int, list[int]]:
    """The ids that each snapshot has."""
    return {s.snapshot_id: ids_of(table, snapshot_id=s.snapshot_id) for s in table.snapshots()}
