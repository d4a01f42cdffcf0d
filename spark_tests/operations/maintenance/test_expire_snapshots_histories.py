"""Random histories: what an expiry keeps reads as before, and it leaves no file that nobody uses.

What is expected is found snapshot by snapshot and path by path, from the files as they were.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from built.commit_tables import SCHEMA, CommitTable, create_table, open_table
from built.contents import snapshot_entries
from built.replace_files import ReplaceFiles
from built.tables import TableBuilder
from effort import examples
from hypothesis import given, strategies as st

from icebergds.api.table import Table, load_table
from icebergds.commit.data_files import Append, Delete, FastAppend
from icebergds.expr.sql import parse_filter
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileContent
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef
from icebergds.spec.updates.table_updates import SetSnapshotRef

_Row = tuple[Any, ...]
_NOW_AGE = 40 * 365 * 24 * 60 * 60 * 1000


def _reached(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> set[str]:
    """The manifest list, manifests and live files of a snapshot."""
    entries = snapshot_entries(io, metadata, snapshot, live_only=True)
    manifests = read_snapshot_manifests(io, snapshot)
    return {
        str(snapshot.manifest_list),
        *(manifest.manifest_path for manifest in manifests),
        *(entry.data_file.file_path for entry in entries),
    }


def _files(location: Path) -> set[str]:
    return {str(p) for p in location.rglob("*") if p.is_file() and "metadata.json" not in p.name}


def _rows(table: Table) -> dict[int, list[_Row]]:
    """The rows of every snapshot."""
    return {
        snapshot.snapshot_id: sorted(
            tuple(row.values())
            for row in table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        )
        for snapshot in table.snapshots()
    }


class _History:
    """Commits of all kinds on several branches, by a builder that sets the times."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], location: Path) -> None:
        self.draw = draw
        self.version = draw(st.integers(2, 3))
        self.builder = TableBuilder(location, SCHEMA, format_version=self.version)
        self.next_id = 0
        self.branch = "main"
        self.append()

    def pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def step(self) -> None:
        refs = self.builder.metadata.refs
        self.branch = self.pick(n for n, ref in refs.items() if ref.ref_type is RefType.BRANCH)
        steps = (
            *(self.append, self.append, self.delete_positions, self.delete_positions),
            *(self.delete_keys, self.remove, self.rewrite, self.add_again),
            *(self.set_branch, self.set_tag, self.roll_back),
        )
        self.pick(steps)()

    def append(self) -> None:
        self.commit(*[self.new_file() for _ in range(self.draw(st.integers(1, 2)))])

    def delete_positions(self) -> None:
        files = self.live(FileContent.DATA)[:2]
        if not files:
            return
        if self.version == 2:
            positions = {file.file_path: [0] for file in files}
            self.commit(self.builder.position_deletes(positions), operation="delete")
            return
        paths = {file.file_path for file in files}
        old = [
            f for f in self.live(FileContent.POSITION_DELETES) if f.referenced_data_file in paths
        ]
        vectors = self.builder.deletion_vectors([(file, [self.pick([0, 1])]) for file in files])
        self.commit(*vectors, removed=old, operation="delete")

    def delete_keys(self) -> None:
        key = self.draw(st.integers(0, self.next_id))
        self.commit(self.builder.equality_deletes(["id"], [(key,)]), operation="delete")

    def remove(self) -> None:
        if files := self.live():
            self.commit(removed=[self.pick(files)], operation="delete")

    def rewrite(self) -> None:
        files = self.live(FileContent.DATA)[-2:]
        self.commit(self.new_file(), removed=files, operation="replace")

    def add_again(self) -> None:
        """What a cherry-pick does: files of another snapshot, which may be rolled back."""
        source = self.pick(self.builder.metadata.snapshots)
        live = {file.file_path for file in self.live(FileContent.DATA)}
        others = [f for f in self.live(FileContent.DATA, source) if f.file_path not in live]
        self.commit(*(replace(file, first_row_id=None) for file in others))

    def set_branch(self) -> None:
        some = st.none() | st.sampled_from([1, 2, 3])
        ages = st.sampled_from([None, 1, _NOW_AGE])
        self.builder.set_ref(
            self.pick(["main", "side", "other"]) if self.draw(st.booleans()) else self.branch,
            SnapshotRef(
                self.pick(self.builder.metadata.snapshots).snapshot_id,
                RefType.BRANCH,
                min_snapshots_to_keep=self.draw(some),
                max_snapshot_age_ms=self.draw(ages),
                max_ref_age_ms=self.draw(ages),
            ),
        )

    def set_tag(self) -> None:
        snapshot_id = self.pick(self.builder.metadata.snapshots).snapshot_id
        age = self.pick([None, None, 1])
        self.builder.set_ref("tag", SnapshotRef(snapshot_id, RefType.TAG, max_ref_age_ms=age))

    def roll_back(self) -> None:
        head = self.builder.metadata.snapshot_by_ref(self.branch)
        earlier = self.pick(self.builder.metadata.lineage(head))
        ref = self.builder.metadata.refs[self.branch]
        self.builder.set_ref(self.branch, replace(ref, snapshot_id=earlier.snapshot_id))

    def commit(self, *files: DataFile, **more: Any) -> None:
        ref = self.builder.metadata.refs.get(self.branch)
        snapshot_id = self.builder.commit(*files, branch=self.branch, **more)
        if ref is not None:
            self.builder.set_ref(self.branch, replace(ref, snapshot_id=snapshot_id))

    def live(
        self, content: FileContent | None = None, snapshot: Snapshot | None = None
    ) -> list[DataFile]:
        metadata = self.builder.metadata
        snapshot = snapshot or metadata.snapshot_by_ref(self.branch)
        if snapshot is None:
            return []
        entries = snapshot_entries(self.builder.io, metadata, snapshot, live_only=True)
        files = [entry.data_file for entry in entries]
        return [file for file in files if content in (None, file.content)]

    def new_file(self) -> DataFile:
        rows = [(self.next_id + at, 0) for at in range(2)]
        self.next_id += 2
        return self.builder.data_file(rows)


def _kept(
    metadata: TableMetadata, older_than: int, retain_last: int, chosen: set[int], now_ms: int
) -> tuple[set[str], set[int]]:
    """The refs and snapshots that are to be kept (spec: Snapshot Retention Policy)."""
    by_id = metadata.snapshots_by_id
    refs = {
        name
        for name, ref in metadata.refs.items()
        if name == "main"
        or ref.max_ref_age_ms is None
        or by_id[ref.snapshot_id].timestamp_ms >= now_ms - ref.max_ref_age_ms
    }
    kept: set[int] = set()
    reached: set[int] = set()
    for name in refs:
        ref = metadata.refs[name]
        kept.add(ref.snapshot_id)
        reached.add(ref.snapshot_id)
        if ref.ref_type is RefType.TAG:
            continue
        history = metadata.lineage(by_id[ref.snapshot_id])
        reached |= {snapshot.snapshot_id for snapshot in history}
        count = ref.min_snapshots_to_keep or retain_last
        cutoff = older_than if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
        ends = [at for at, s in enumerate(history) if at >= count and s.timestamp_ms < cutoff]
        kept |= {s.snapshot_id for s in history[: ends[0] if ends else len(history)]}
    kept |= {i for i, s in by_id.items() if i not in reached and s.timestamp_ms >= older_than}
    return refs, kept - chosen


@examples(60)
@given(st.data())
def test_an_expiry_removes_exactly_what_only_expired_snapshots_reach(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        location = Path(directory) / "t"
        history = _History(data.draw, location)
        for _ in range(data.draw(st.integers(1, 10))):
            history.step()
        table = load_table(location)
        for _ in range(2):
            _expire_and_check(data, table, location)


def _expire_and_check(data: st.DataObject, table: Table, location: Path) -> None:
    before, rows, files = table.metadata, _rows(table), _files(location)
    reached = {s.snapshot_id: _reached(table.io, before, s) for s in before.snapshots}
    times = [snapshot.timestamp_ms for snapshot in before.snapshots]
    older_than = data.draw(st.sampled_from([*times, times[-1] + 1]))
    retain_last = data.draw(st.none() | st.integers(1, 3))
    heads = {ref.snapshot_id for ref in before.refs.values()}
    loose = [i for i in reached if i not in heads]
    chosen = set(data.draw(st.lists(st.sampled_from(loose), max_size=2))) if loose else set()
    now_ms = max(before.last_updated_ms, 1_800_000_000_000)
    refs, kept = _kept(before, older_than, retain_last or 1, chosen, now_ms)

    planned = table.expire_snapshots(older_than, retain_last, sorted(chosen), dry_run=True)
    assert (_files(location), _rows(table)) == (files, rows)
    expired = table.expire_snapshots(older_than, retain_last, sorted(chosen))

    assert expired == planned
    assert set(table.refs()) == refs
    assert {s.snapshot_id for s in table.snapshots()} == kept
    assert set(expired.expired_snapshot_ids) == reached.keys() - kept
    assert _rows(table) == {snapshot_id: rows[snapshot_id] for snapshot_id in kept}
    by_kept = set[str]().union(*(reached[i] for i in kept))
    by_expired = set[str]().union(*(reached[i] for i in reached.keys() - kept))
    assert _files(location) == files - (by_expired - by_kept)


@examples(40)
@given(st.data())
def test_expiries_between_commits_leave_exactly_the_files_in_use(data: st.DataObject) -> None:
    """Real commits, which merge and filter manifests."""
    with tempfile.TemporaryDirectory() as directory:
        location = Path(directory) / "t"
        properties = {"commit.manifest.min-count-to-merge": "2"}
        version = data.draw(st.integers(1, 3))
        table = create_table(location, format_version=version, properties=properties)
        table.commit(Append((table.file([0], 0),)))
        held = {table.head.snapshot_id: table.paths()}
        for number in range(data.draw(st.integers(2, 10))):
            _change(data.draw, table, number + 1, held)
            _check(location, held)


def _change(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    table: CommitTable,
    number: int,
    held: dict[int, set[str]],
) -> None:
    branch = draw(st.sampled_from(["main", "main", "side"]))
    metadata = table.metadata
    head = metadata.head_of(branch)
    assert head is not None
    match draw(st.sampled_from(["append", "fast append", "delete", "rewrite", "move", "expire"])):
        case "append":
            table.commit(Append((table.file([number], number % 3),)), branch)
        case "fast append":
            table.commit(FastAppend((table.file([number], number % 3),)), branch)
        case "delete":
            table.commit(Delete(parse_filter(f"day = {number % 3}")), branch)
        case "rewrite":
            files = [file.entry.data_file for file in table.files(head)]
            if rows := sum(file.record_count for file in files):
                new = table.file(list(range(rows)), 0)
                table.commit(ReplaceFiles(tuple(files), (new,), head.snapshot_id, None), branch)
        case "move":
            chosen = draw(st.sampled_from(metadata.snapshots))
            ref = SnapshotRef(chosen.snapshot_id, RefType.BRANCH)
            table.change(SetSnapshotRef(branch, ref))
        case "expire":
            at = draw(st.sampled_from(metadata.snapshots)).timestamp_ms
            load_table(table.location).expire_snapshots(at + 1, draw(st.integers(1, 3)))
    now = open_table(table.location).metadata
    for snapshot in now.snapshots:
        held.setdefault(snapshot.snapshot_id, table.paths(snapshot))
    for gone in held.keys() - now.snapshots_by_id.keys():
        del held[gone]


def _check(location: Path, held: dict[int, set[str]]) -> None:
    table = open_table(location)
    metadata = table.metadata
    for snapshot_id, paths in held.items():
        assert table.paths(metadata.snapshots_by_id[snapshot_id]) == paths
    io = table.state.io
    used = set[str]().union(*(_reached(io, metadata, s) for s in metadata.snapshots))
    hint = str(location / "metadata" / "version-hint.text")
    assert _files(location) - {hint} == used
