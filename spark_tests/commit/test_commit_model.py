"""Random sequences of commits leave exactly the files that a plain dictionary says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from built.commit_tables import CommitTable, create_table
from built.replace_files import ReplaceFiles
from effort import examples
from hypothesis import given, strategies as st

from icebergds.commit.data_files import Append, Delete, FastAppend, Overwrite
from icebergds.commit.options import NothingToCommitError
from icebergds.commit.replace_partitions import ReplacePartitions
from icebergds.commit.rewrite_manifests import RewriteManifests
from icebergds.errors import ValidationError
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.spec.manifest import DataFile, ManifestEntryStatus
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    SetDefaultSpec,
    UpgradeFormatVersion,
)

_T = TypeVar("_T")
_DAYS = (None, 1, 2, 3)
_SPECS = (
    PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "day"),)),
    PartitionSpec(),
)


@dataclass(frozen=True, slots=True)
class _ModelFile:
    file: DataFile
    day: int | None
    sequence_number: int


_Files = dict[str, _ModelFile]


@dataclass(slots=True)
class _Model:
    """A table, and what each of its snapshots should hold."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    table: CommitTable
    branches: dict[str, _Files] = field(default_factory=dict)
    snapshots: dict[int, _Files] = field(default_factory=dict)
    next_id: int = 0

    def step(self) -> None:
        steps = [self.append] * 3 + [self.overwrite, self.replace_partitions, self.delete]
        steps += [self.replace_files, self.rewrite_manifests, self.evolve]
        self._pick(steps)()

    def append(self) -> None:
        action = self._pick([Append, FastAppend])
        new = self._new_files()
        self._committed(action(_files(new)), {}, new)

    def overwrite(self) -> None:
        text, selects = self._filter()
        new = self._new_files()
        action = Overwrite(_files(new), TRUE if text is None else parse_filter(text))
        self._committed(action, {p: f for p, f in self._live().items() if selects(f.day)}, new)

    def delete(self) -> None:
        text, selects = self._filter()
        action = Delete(TRUE if text is None else parse_filter(text))
        self._committed(action, {p: f for p, f in self._live().items() if selects(f.day)}, [])

    def replace_partitions(self) -> None:
        new = self._new_files()
        partitions = {(file.spec_id, file.partition) for file, _ in new}
        everything = any(not partition for _, partition in partitions)
        removed = {
            path: f
            for path, f in self._live().items()
            if everything or (f.file.spec_id, f.file.partition) in partitions
        }
        self._committed(ReplacePartitions(_files(new)), removed, new)

    def replace_files(self) -> None:
        live = self._live()
        if not live:
            return
        paths = self.draw(st.lists(st.sampled_from(sorted(live)), unique=True, max_size=4))
        head = self.table.metadata.snapshot_by_ref(self.branch)
        head = head or self.table.head
        rows = sum(live[path].file.record_count for path in paths)
        new = [self._new_file(rows)] if rows else []
        number = head.sequence_number if self.draw(st.booleans()) else None
        action = ReplaceFiles(
            tuple(live[path].file for path in paths), _files(new), head.snapshot_id, number
        )
        self._committed(action, {path: live[path] for path in paths}, new, number)

    def rewrite_manifests(self) -> None:
        spec = self._pick(self.table.metadata.partition_specs)
        leading = tuple(part.field_id for part in spec.fields) if self.draw(st.booleans()) else ()
        action = RewriteManifests(spec.spec_id, leading)
        if self.branch not in self.branches and "main" in self.branches:
            with pytest.raises(ValidationError, match="was dropped"):
                self.table.commit(action, self.branch)
            return
        with suppress(NothingToCommitError):
            self._committed(action, {}, [])

    def evolve(self) -> None:
        metadata = self.table.metadata
        if metadata.format_version == 1 or (
            metadata.format_version == 2 and self.draw(st.booleans())
        ):
            self.table.change(UpgradeFormatVersion(metadata.format_version + 1))
        else:
            self.table.change(AddPartitionSpec(self._pick(_SPECS)), SetDefaultSpec(LAST_ADDED))

    branch: str = "main"

    def _committed(
        self,
        action: Any,
        removed: _Files,
        new: list[tuple[DataFile, int | None]],
        number: int | None = None,
    ) -> None:
        live = self._live()
        snapshot = self.table.commit(action, self.branch).snapshot
        number = snapshot.sequence_number if number is None else number
        after = {path: f for path, f in live.items() if path not in removed}
        after |= {file.file_path: _ModelFile(file, day, number) for file, day in new}
        self.branches[self.branch] = after
        self.snapshots[snapshot.snapshot_id] = after

    def _live(self) -> _Files:
        return self.branches.get(self.branch, self.branches.get("main", {}))

    def _filter(self) -> tuple[str | None, Callable[[int | None], bool]]:
        day = self.draw(st.integers(0, 4))
        return self._pick(
            [
                (None, lambda _: True),
                (f"day = {day}", lambda d: d == day),
                (f"day <= {day}", lambda d: d is not None and d <= day),
                ("day is null", lambda d: d is None),
                (f"day is null or day > {day}", lambda d: d is None or d > day),
            ]
        )

    def _new_files(self) -> list[tuple[DataFile, int | None]]:
        return [self._new_file(self.draw(st.integers(1, 3))) for _ in range(self._pick([0, 1, 3]))]

    def _new_file(self, rows: int) -> tuple[DataFile, int | None]:
        day = self._pick(_DAYS)
        ids = range(self.next_id, self.next_id + rows)
        self.next_id += rows
        spec_id = self._pick([spec.spec_id for spec in self.table.metadata.partition_specs])
        return self.table.file(list(ids), day, spec_id), day

    def _pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(items))


def _files(new: list[tuple[DataFile, int | None]]) -> tuple[DataFile, ...]:
    return tuple(file for file, _ in new)


@examples(60)
@given(st.data())
def test_snapshots_hold_the_files_that_the_commits_left(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        properties = {
            "commit.manifest.min-count-to-merge": data.draw(st.sampled_from(["2", "3", "100"])),
            "commit.manifest.target-size-bytes": data.draw(
                st.sampled_from(["9000", "20000", "8388608"])
            ),
        }
        version = data.draw(st.integers(1, 3))
        table = create_table(Path(directory) / "t", format_version=version, properties=properties)
        model = _Model(data.draw, table)
        for _ in range(data.draw(st.integers(1, 8))):
            model.branch = data.draw(st.sampled_from(["main", "main", "side"]))
            if not model.branches:
                model.branch = "main"
            model.step()
        _check_snapshots(table, model)
        _check_row_ids(table)
        assert table.left_over() == set()
        if table.metadata.snapshots and table.metadata.format_version < 3:
            _check_pyiceberg(table, model)


def _check_snapshots(table: CommitTable, model: _Model) -> None:
    snapshots = table.metadata.snapshots_by_id
    assert snapshots.keys() == model.snapshots.keys()
    for snapshot_id, expected in model.snapshots.items():
        snapshot = snapshots[snapshot_id]
        found = {
            file.entry.data_file.file_path: file.entry.data_sequence_number
            for file in table.files(snapshot)
        }
        assert found == {path: f.sequence_number for path, f in expected.items()}
        _check_totals(snapshot, expected)
        _check_changes(table, snapshot)
        _check_manifests(table, snapshot)


def _check_totals(snapshot: Snapshot, expected: _Files) -> None:
    files = [f.file for f in expected.values()]
    assert snapshot.summary["total-data-files"] == str(len(files))
    assert snapshot.summary["total-records"] == str(sum(f.record_count for f in files))
    assert snapshot.summary["total-files-size"] == str(sum(f.file_size_in_bytes for f in files))


def _check_changes(table: CommitTable, snapshot: Snapshot) -> None:
    """The summary and the entries of the snapshot itself say the same."""
    own = [e for e in table.entries(snapshot) if e.snapshot_id == snapshot.snapshot_id]
    added = [e for e in own if e.status is ManifestEntryStatus.ADDED]
    deleted = [e for e in own if e.status is ManifestEntryStatus.DELETED]
    assert snapshot.summary.get("added-data-files", "0") == str(len(added))
    assert snapshot.summary.get("deleted-data-files", "0") == str(len(deleted))
    assert all(e.file_sequence_number == snapshot.sequence_number for e in added)


def _check_manifests(table: CommitTable, snapshot: Snapshot) -> None:
    """The manifest list counts what is in the manifests."""
    counted = [
        (m.added_files_count or 0, m.existing_files_count or 0, m.deleted_files_count or 0)
        for m in table.manifests(snapshot)
    ]
    statuses = [entry.status for entry in table.entries(snapshot)]
    assert sum(added for added, _, _ in counted) == statuses.count(ManifestEntryStatus.ADDED)
    assert sum(kept for _, kept, _ in counted) == statuses.count(ManifestEntryStatus.EXISTING)
    assert sum(gone for _, _, gone in counted) == statuses.count(ManifestEntryStatus.DELETED)


def _check_row_ids(table: CommitTable) -> None:
    """Rows of a snapshot have ids of their own, and keep those of its parent."""
    metadata = table.metadata
    ids: dict[int, dict[str, range]] = {}
    for snapshot in metadata.snapshots:
        if snapshot.first_row_id is None:
            continue
        files = [planned.entry.data_file for planned in table.files(snapshot)]
        own = {f.file_path: range(_first(f), _first(f) + f.record_count) for f in files}
        spans = sorted(own.values(), key=lambda span: span.start)
        assert all(one.stop <= other.start for one, other in pairwise(spans))
        assert all(span.stop <= metadata.next_row_id for span in spans)
        before = ids.get(snapshot.parent_snapshot_id or 0, {})
        assert all(own[path] == before[path] for path in own.keys() & before.keys())
        ids[snapshot.snapshot_id] = own


def _first(file: DataFile) -> int:
    assert file.first_row_id is not None
    return file.first_row_id


def _check_pyiceberg(table: CommitTable, model: _Model) -> None:
    static_table = pytest.importorskip("pyiceberg.table").StaticTable
    read = static_table.from_metadata(table.state.metadata_location)
    for snapshot_id, expected in model.snapshots.items():
        tasks = read.scan(snapshot_id=snapshot_id).plan_files()
        assert sorted(task.file.file_path for task in tasks) == sorted(expected)
    last = list(model.snapshots)[-1]
    rows = read.scan(snapshot_id=last).to_arrow()
    assert len(rows) == sum(f.file.record_count for f in model.snapshots[last].values())
