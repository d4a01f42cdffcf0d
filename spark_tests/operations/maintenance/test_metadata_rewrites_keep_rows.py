"""Rewriting manifests, removing dangling deletes and repairs change no row of any snapshot."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from actions import by_name, spoil_names
from built.api_tables import catalog_in, create_table, ids_of, open_table, rows
from built.delta_tables import BY_DATA, BY_ID, UNPARTITIONED, DeltaTable
from built.replace_files import ReplaceFiles
from effort import examples, rounds
from hypothesis import given, strategies as st

from icebergds import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.formats.arrow.types import to_array
from icebergds.operations.maintenance.deletes.remove_dangling_deletes import remove_dangling_deletes
from icebergds.operations.maintenance.rewrite_manifests import rewrite_manifests
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.updates.table_updates import UpgradeFormatVersion
from icebergds.write.task import write_batches

_ROUNDS = rounds("ICEBERGDS_MAINTENANCE_RACES", pull=6, nightly=40)


class _History:
    """Random changes of a table, among which its metadata is rewritten."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], table: DeltaTable) -> None:
        self.draw, self.table = draw, table

    def step(self) -> None:
        changes = [self.append, self.upsert, self.delete_keys, self.delete, self.update]
        changes += [self.compact, self.upgrade, self.rewrite_metadata, self.rewrite_metadata]
        change = self.draw(st.sampled_from(changes))
        change()

    def append(self) -> None:
        self.table.append(*self._rows())

    def upsert(self) -> None:
        self.table.keyed("upsert", [self.table.batch(*self._rows())], keys=(1, 2))

    def delete_keys(self) -> None:
        self.table.keyed("delete", [self.table.batch(*self._rows())], keys=(1, 2))

    def delete(self) -> None:
        low = self.draw(st.integers(0, 5))
        granularity = self.draw(st.sampled_from(["file", "partition"]))
        if self.table.table.metadata.snapshots:
            self.table.change_where(lambda row: row["id"] >= low, granularity=granularity)

    def update(self) -> None:
        key = self.draw(st.integers(0, 5))
        if self.table.table.metadata.snapshots:
            self.table.change_where(lambda row: row["id"] == key, lambda row: {**row, "data": "u"})

    def compact(self) -> None:
        """Rewrites all rows into new files, which leaves the deletes without anything to do."""
        found = self.table.read()
        if not found:
            return
        is_new = self.table.version >= 3
        lineage = [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER] if is_new else []
        fields = [*self.table.schema.fields, *lineage]
        columns = [to_array(one.field_type, [row[one.name] for row in found]) for one in fields]
        batch = pa.RecordBatch.from_arrays(columns, names=[one.name for one in fields])
        plan = self.table.plan(with_lineage=is_new)
        files = tuple(write_batches(plan, [batch], partition_id=0, attempt_id=0))
        old = tuple(planned.entry.data_file for planned in self.table.table.files())
        head = self.table.table.head
        self.table.table.commit(ReplaceFiles(old, files, head.snapshot_id, head.sequence_number))

    def upgrade(self) -> None:
        if self.table.version == 2:
            self.table.table.change(UpgradeFormatVersion(3))

    def rewrite_metadata(self) -> None:
        table = self.table.table
        before = self._rows_of_snapshots()
        rewrite = self.draw(st.sampled_from([rewrite_manifests, remove_dangling_deletes]))
        rewrite(LoadedTable(TableAddress(str(table.location)), table.operations, table.state))
        after = self._rows_of_snapshots()
        assert {snapshot_id: after[snapshot_id] for snapshot_id in before} == before
        if before:
            assert _without_new_ids(after, before)
        assert table.left_over() == set()

    def _rows_of_snapshots(self) -> dict[int, list[dict[str, Any]]]:
        snapshots = self.table.table.metadata.snapshots
        return {s.snapshot_id: sorted(self.table.read(s), key=str) for s in snapshots}

    def _rows(self) -> list[tuple[int, str]]:
        row = st.tuples(st.integers(0, 5), st.sampled_from(["a", "b"]))
        found: list[tuple[int, str]] = self.draw(st.lists(row, unique=True, min_size=1, max_size=3))
        return found


def _without_new_ids(
    after: dict[int, list[dict[str, Any]]], before: dict[int, list[dict[str, Any]]]
) -> bool:
    """Whether the newest snapshot has the rows of the newest before.

    Rows from before an upgrade may get ids, and keep those that they have.
    """
    (*_, old), (*_, new) = before.values(), after.values()
    by_place = {(row["_file"], row["_pos"]): row for row in new}
    assert len(by_place) == len(old) == len(new)
    return all(
        {k: v for k, v in row.items() if v is not None}.items()
        <= by_place[row["_file"], row["_pos"]].items()
        for row in old
    )


@examples(40)
@given(st.data())
def test_rows_of_all_snapshots_stay_the_same(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = DeltaTable(
            Path(directory) / "t",
            version=data.draw(st.sampled_from([2, 3])),
            spec=data.draw(st.sampled_from([UNPARTITIONED, BY_DATA, BY_ID])),
            properties={
                "commit.manifest.target-size-bytes": data.draw(st.sampled_from(["300", "8388608"]))
            },
        )
        history = _History(data.draw, table)
        for _ in range(data.draw(st.integers(2, 8))):
            history.step()
        history.rewrite_metadata()


@pytest.mark.parametrize("version", [2, 3])
def test_changes_between_snapshots_stay_the_same(tmp_path: Path, version: int) -> None:
    by_key = {"write.upsert.mode": "equality-deletes"}
    table = create_table(catalog_in(tmp_path), partition_by="day", version=version, **by_key)
    table.append(rows(1, 2, day=1))
    start = table.current_snapshot()
    assert start is not None

    def changes() -> list[tuple[Any, ...]]:
        columns = ["id", "_change_type"]
        found = table.changes(start.snapshot_id, columns=columns).to_arrow().to_pylist()
        return [tuple(row[name] for name in columns) for row in found]

    table.append(rows(3, day=2))
    table.upsert(rows(1, day=1), keys=["id", "day"])
    table.upsert(rows(7, day=3), keys=["id", "day"])
    before = changes()
    assert table.rewrite_manifests().added_manifests_count == 2
    assert table.remove_dangling_deletes().removed_delete_files_count == 1
    assert sorted(changes()) == sorted(before)
    table.append(rows(4, day=2))
    assert sorted(changes()) == sorted([*before, (4, "INSERT")])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("catalog", ["files", "sqlite"])
def test_concurrent_writers_lose_no_rows(tmp_path: Path, catalog: str, version: int) -> None:
    uri = f"sqlite:///{tmp_path / 'c.db'}" if catalog == "sqlite" else None
    lake = catalog_in(tmp_path, uri)
    table = create_table(
        lake, partition_by="day", version=version, commit__retry__num_retries="1000"
    )
    table.append(rows(*range(_ROUNDS), day=1))
    are_done = Event()

    def append() -> None:
        own = open_table(lake)
        for number in range(_ROUNDS):
            own.append(rows(1000 + number, day=2))

    def upsert() -> None:
        own = open_table(lake)
        for number in range(_ROUNDS):
            own.upsert(rows(2000 + number % 3, day=3), keys=["id", "day"])

    def delete() -> None:
        own = open_table(lake)
        for number in range(_ROUNDS - 1):
            own.delete_keys(rows(number, day=1), keys=["id", "day"])

    def rewrite_manifests() -> None:
        own = open_table(lake)
        while not are_done.is_set():
            own.rewrite_manifests()

    def remove_dangling_deletes() -> None:
        own = open_table(lake)
        while not are_done.is_set():
            own.remove_dangling_deletes()

    with ThreadPoolExecutor(5) as pool:
        maintenance = [pool.submit(rewrite_manifests), pool.submit(remove_dangling_deletes)]
        try:
            for writer in [pool.submit(change) for change in (append, upsert, delete)]:
                writer.result(timeout=300)
        finally:
            are_done.set()
        for action in maintenance:
            action.result(timeout=300)
    appended = [1000 + number for number in range(_ROUNDS)]
    assert ids_of(table.refresh()) == [_ROUNDS - 1, *appended, 2000, 2001, 2002]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("catalog", ["files", "sqlite"])
def test_repairs_beside_writers_and_compaction_lose_no_rows(
    tmp_path: Path, catalog: str, version: int
) -> None:
    uri = f"sqlite:///{tmp_path / 'c.db'}" if catalog == "sqlite" else None
    lake = catalog_in(tmp_path, uri)
    table = create_table(
        lake, partition_by="day", version=version, commit__retry__num_retries="1000"
    )
    table.append(rows(*range(_ROUNDS), day=1))
    are_done = Event()

    def append() -> None:
        own = open_table(lake)
        for number in range(_ROUNDS):
            own.append(rows(1000 + number, day=2))

    def delete() -> None:
        own = open_table(lake)
        for number in range(_ROUNDS - 1):
            own.delete_keys(rows(number, day=1), keys=["id", "day"])

    def repair(own: Table) -> None:
        spoil_names(own.refresh())
        own.verify("rows", repair=True)

    def compact(own: Table) -> None:
        own.rewrite_data_files(options={"rewrite-all": "true"})

    def repeat(action: Callable[[Table], None]) -> None:
        own = open_table(lake)
        while not are_done.is_set():
            action(own)

    with ThreadPoolExecutor(4) as pool:
        maintenance = [pool.submit(repeat, action) for action in (repair, compact)]
        try:
            for writer in [pool.submit(change) for change in (append, delete)]:
                writer.result(timeout=300)
        finally:
            are_done.set()
        for action in maintenance:
            action.result(timeout=300)
    table.refresh().verify("rows", repair=True)
    expected = [_ROUNDS - 1, *(1000 + number for number in range(_ROUNDS))]
    assert ids_of(table.refresh()) == by_name(table) == expected
    assert table.verify("rows", repair=True).repaired == 0
