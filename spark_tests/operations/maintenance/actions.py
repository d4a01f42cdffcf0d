"""Runs every maintenance action on a small table that has something to do for each of them.

The table is in a catalog of a directory, which is put back before each try.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from built.api_tables import (
    TABLE,
    Properties,
    catalog_in,
    create_table,
    ids_of,
    open_table,
    rows,
)
from built.contents import snapshot_entries
from built.damage import spoil_bounds
from effort import IS_NIGHTLY
from orphans import age, change, plant

from icebergds import Table
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.scan.read.delete_cache import DELETES
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetSnapshotRef

Rows: TypeAlias = list[tuple[Any, ...]]

_ONE_BY_ONE = {"rewrite-all": "true", "max-concurrent-file-group-rewrites": "1"}
ACTIONS: Mapping[str, Callable[[Table], Any]] = {
    "binpack": lambda table: table.rewrite_data_files(
        options={**_ONE_BY_ONE, "remove-dangling-deletes": "true"}
    ),
    "partial progress": lambda table: table.rewrite_data_files(
        options={**_ONE_BY_ONE, "partial-progress.enabled": "true"}
    ),
    "convert": lambda table: table.convert_equality_deletes(),
    "position deletes": lambda table: table.rewrite_position_delete_files(options=_ONE_BY_ONE),
    "dangling": lambda table: table.remove_dangling_deletes(),
    "manifests": lambda table: table.rewrite_manifests(),
    "expire": lambda table: table.expire_snapshots(
        int(time.time() * 1000) + 1000, retain_last=2, clean_expired_metadata=True
    ),
    "remove orphans": lambda table: table.remove_orphan_files(),
    "repair": lambda table: table.verify("rows", repair=True),
}
ALL = "all"
"""All actions, one after the other."""

CATALOGS = ("filesystem", "sqlite")
VERSIONS = {"filesystem": 2, "sqlite": 3}
"""The format version of the table in each catalog."""
CASES = [
    (action, kind)
    for number, action in enumerate(ACTIONS)
    for kind in (CATALOGS if IS_NIGHTLY else CATALOGS[number % 2 :][:1])
]
"""Actions and catalogs: each action in one of them, unless nightly."""

_KEYS = ["id", "day"]
_PATIENCE = {
    "commit.retry.num-retries": "2",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.max-wait-ms": "2",
}


def act(table: Table, action: str) -> None:
    """Runs an action, or all of them."""
    for name in ACTIONS if action == ALL else [action]:
        ACTIONS[name](table)


class Place:
    """A catalog with the table, as it was before an action or as it is now.

    Attributes:
        action: what is done with the table.
        catalog: the properties of the catalog.
        rows: of each snapshot, before.
        heads: the rows of each branch and tag, before.
        files: all files, before.
    """

    def __init__(self, directory: Path, kind: str, action: str) -> None:
        self.action = action
        self.directory, self._before = directory / "now", directory / "before"
        self.directory.mkdir()
        uri = f"sqlite:///{self.directory}/c.db" if kind == "sqlite" else None
        self.catalog: Properties = catalog_in(self.directory, uri)
        self._fill(VERSIONS[kind])
        if action == "dangling":
            self.table.rewrite_data_files(options=_ONE_BY_ONE)
        if action == "repair":
            spoil_names(self.table)
        self._age()
        self.rows, self.files = self.rows_now(), self.files_now()
        self.heads = {name: self.rows[i] for name, i in self.heads_now().items()}
        self.metadata_location = self.table.metadata_location
        shutil.copytree(self.directory, self._before)

    def _fill(self, version: int) -> None:
        by_key = {"write.upsert.mode": "equality-deletes"}
        table = create_table(self.catalog, partition_by="day", **_PATIENCE, **by_key)
        table.append(pa.concat_tables([rows(1, 2, 3, day=0), rows(4, 5, 6, day=1)]))
        first = table.current_snapshot()
        assert first is not None
        change(table, SetSnapshotRef("kept", SnapshotRef(first.snapshot_id, RefType.TAG)))
        table.append(rows(30, day=1), branch="audit", options={"create-branch": "true"})
        table.append(pa.concat_tables([rows(7, day=0), rows(8, day=1), rows(9, 10, day=2)]))
        # Two position delete files in a partition.
        for gone in (1, 2):
            table.delete_keys(rows(gone, day=0), _KEYS)
            table.convert_equality_deletes()
        if version == 3:
            table.upgrade(3)
            table.delete_keys(rows(4, day=1), _KEYS)
            table.convert_equality_deletes()
        table.overwrite(rows(11, 12, day=2), "day = 2")
        table.delete_keys(rows(5, day=1), _KEYS)
        plant(self.root, "data/day=1/orphan.parquet")

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return open_table(self.catalog)

    @property
    def root(self) -> Path:
        """The table's directory."""
        return Path(self.catalog["warehouse"], *TABLE.split("."))

    def restore(self) -> None:
        shutil.rmtree(self.directory)
        shutil.copytree(self._before, self.directory)
        # New files may have the names of former ones.
        DELETES.clear()

    def rows_now(self) -> dict[int, Rows]:
        """The rows of each snapshot."""
        table = self.table
        ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
        return {snapshot_id: _rows(table, snapshot_id=snapshot_id) for snapshot_id in ids}

    def heads_now(self) -> dict[str, int]:
        """The snapshots of branches and tags."""
        return {name: ref.snapshot_id for name, ref in self.table.refs().items()}

    def files_now(self) -> set[Path]:
        """All files of the table."""
        return {path for path in self.root.rglob("*") if path.is_file()}

    def check_rows(self) -> None:
        """Every snapshot that is kept reads as before, and so do branches and tags."""
        now = self.rows_now()
        assert {name: now[i] for name, i in self.heads_now().items()} == self.heads
        kept = now if self.action in ("expire", ALL) else self.rows
        assert {i: now[i] for i in self.rows if i in kept} == {
            i: found for i, found in self.rows.items() if i in kept
        }
        assert all(found == self.heads["main"] for i, found in now.items() if i not in self.rows)

    def check_done(self) -> None:
        """What a repair has to do is done, and a second one finds nothing."""
        if self.action == "repair":
            assert by_name(self.table) == sorted(row[0] for row in self.heads["main"])
            assert self.table.verify("rows", repair=True).repaired == 0

    def remove_orphans(self) -> None:
        """Leaves exactly the files that are needed, of all that are old by now."""
        self._age()
        self.table.remove_orphan_files()
        assert self.files_now() - _needed(self.table) == {
            path for path in self.files_now() if path.name == "version-hint.text"
        }

    def unneeded(self) -> set[Path]:
        """New files that nothing refers to."""
        table = self.table
        new = self.files_now() - self.files
        return new - _needed(table)

    def _age(self) -> None:
        for path in self.files_now():
            age(path, 30)


def spoil_names(table: Table) -> None:
    """Commits bounds of the column `name` that exclude all its values."""
    spoil_bounds(table, 3, b"a", b"b")


def by_name(table: Table) -> list[int]:
    """The ids of the rows that a filter on the column `name` finds; all rows have one."""
    return ids_of(table, filter="name >= 'n'")


Places: TypeAlias = Callable[[str, str], Place]
"""The table for an action in a kind of catalog, as it is before the action."""


def _rows(table: Table, **scan: Any) -> Rows:
    found = table.scan(**scan).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def _needed(table: Table) -> set[Path]:
    """The files that any snapshot reads, and the metadata files of the log."""
    metadata = table.metadata
    needed = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    for snapshot in metadata.snapshots:
        needed |= {str(snapshot.manifest_list)}
        needed |= {m.manifest_path for m in read_snapshot_manifests(table.io, snapshot)}
        entries = snapshot_entries(table.io, metadata, snapshot, live_only=True)
        needed |= {entry.data_file.file_path for entry in entries}
    return {Path(location.removeprefix("file://")) for location in needed}
