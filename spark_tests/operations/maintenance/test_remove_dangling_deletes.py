"""Deletes that apply to no data file are removed; those that planning attaches to one stay."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import catalog_in, create_table, ids_of, rows
from built.commit_tables import (
    BY_DAY,
    SCHEMA,
    CommitTable,
    create_table as table_of_files,
    open_table,
)
from built.contents import snapshot_entries
from built.delta_tables import BY_DATA, DeltaTable
from built.replace_files import ReplaceFiles
from built.tables import TableBuilder
from commit.interleaving import InterleavedOperations
from effort import examples
from hypothesis import given, strategies as st

from icebergds import load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.data_files import Append
from icebergds.commit.operations import TableOperations
from icebergds.errors import InvalidOptionError
from icebergds.formats.deletes.position_deletes import only_data_path, read_position_deletes
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.deletes.remove_dangling_deletes import (
    RemovedDanglingDeletes,
    remove_dangling_deletes,
)
from icebergds.spec.manifest import DataFile, ManifestEntry, ManifestEntryStatus
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import Snapshot

_File = tuple[str, int | None]
_UNPARTITIONED = PartitionSpec(1, ())


def _remove(
    table: CommitTable, operations: TableOperations | None = None, **arguments: Any
) -> RemovedDanglingDeletes:
    operations = operations or table.operations
    loaded = LoadedTable(TableAddress(str(table.location)), operations, table.state)
    return remove_dangling_deletes(loaded, **arguments)[0]


def _file(data_file: DataFile) -> _File:
    return data_file.file_path, data_file.content_offset


def _attached(table: CommitTable, snapshot: Snapshot | None = None) -> dict[str, set[_File]]:
    """The deletes that planning attaches to each data file."""
    return {
        planned.entry.data_file.file_path: {
            _file(entry.data_file)
            for entry in (*planned.deletes.position_deletes, *planned.deletes.equality_deletes)
        }
        for planned in table.files(snapshot)
    }


def _deletes(table: CommitTable) -> set[_File]:
    """The live delete files."""
    entries = snapshot_entries(table.state.io, table.metadata, table.head, live_only=True)
    return {_file(entry.data_file) for entry in entries if entry.data_file.content}


class _Days:
    """A table of days under construction."""

    def __init__(self, location: Path, version: int = 2) -> None:
        self.builder = TableBuilder(location, SCHEMA, spec=BY_DAY, format_version=version)

    def data(self, day: int, *ids: int, **more: Any) -> DataFile:
        """Commits a data file."""
        rows = [(i, day) for i in ids or (day,)]
        file = self.builder.data_file(rows, partition=(day,), **more)
        self.builder.commit(file)
        return file

    def equality(self, day: int, *ids: int, **more: Any) -> DataFile:
        keys = [(i,) for i in ids or (day,)]
        file = self.builder.equality_deletes(["id"], keys, partition=(day,), **more)
        self.builder.commit(file)
        return file

    def positions(self, *files: DataFile, day: int) -> DataFile:
        positions = {file.file_path: [0] for file in files}
        file = self.builder.position_deletes(positions, partition=(day,))
        self.builder.commit(file)
        return file

    def gone(self, *files: DataFile) -> None:
        self.builder.commit(removed=files, operation="delete")

    @property
    def table(self) -> CommitTable:
        return open_table(self.builder.location)


def _check(days: _Days, removed: RemovedDanglingDeletes, *left: DataFile) -> None:
    """Removing finds as many delete files, and leaves some, and what planning attaches."""
    table = days.table
    attached = _attached(table)
    assert _remove(table) == removed
    assert _deletes(table) == set(map(_file, left))
    assert _attached(table) == attached
    assert table.left_over() == set()


def test_deletes_older_than_their_partition_are_removed(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1)
    first, second = days.data(2), days.data(2)
    days.positions(first, second, day=2)
    days.equality(2)
    days.gone(first, second)
    days.data(2)
    _check(days, RemovedDanglingDeletes(2, 1, 1))


def test_deletes_of_a_partition_without_data_are_removed(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1)
    days.equality(2)
    _check(days, RemovedDanglingDeletes(1, 0, 1))


def test_equality_deletes_apply_to_older_data_only(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1)
    new = days.builder.data_file([(2, 2)], partition=(2,))
    deletes = days.builder.equality_deletes(["id"], [(2,)], partition=(2,))
    days.builder.commit(new, deletes)
    _check(days, RemovedDanglingDeletes(1, 0, 1))


@pytest.mark.parametrize("files", [1, 2])
def test_position_deletes_apply_to_data_of_their_own_commit(tmp_path: Path, files: int) -> None:
    days = _Days(tmp_path / "t")
    days.data(1)
    new = [days.builder.data_file([(2, 2)], partition=(2,)) for _ in range(files)]
    positions = {file.file_path: [0] for file in new}
    deletes = days.builder.position_deletes(positions, partition=(2,))
    days.builder.commit(*new, deletes)
    _check(days, RemovedDanglingDeletes(), deletes)


def test_position_deletes_of_a_file_that_is_gone_are_removed(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    gone, stays = days.data(1), days.data(1)
    days.positions(gone, day=1)
    of_both = days.positions(gone, stays, day=1)
    days.gone(gone)
    _check(days, RemovedDanglingDeletes(1, 1), of_both)


def test_position_deletes_are_removed_if_their_bounds_include_no_path(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    files = sorted((days.data(1) for _ in range(3)), key=lambda file: file.file_path)
    days.positions(files[1], files[2], day=1)
    days.gone(files[1], files[2])
    _check(days, RemovedDanglingDeletes(1, 1))


def test_position_deletes_are_removed_if_only_newer_files_are_within_their_bounds(
    tmp_path: Path,
) -> None:
    days = _Days(tmp_path / "t")
    files = sorted((days.data(1) for _ in range(3)), key=lambda file: file.file_path)
    first, second, third = files
    days.positions(first, third, day=1)
    days.gone(*files)
    days.builder.commit(second, data_sequence_numbers={second.file_path: 1})
    table = days.table
    (attached,) = _attached(table).values()
    assert attached
    assert _remove(table) == RemovedDanglingDeletes(1, 1)
    assert _attached(table) == {second.file_path: set()}


def test_position_deletes_of_a_file_that_is_added_again_stay(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    first, second = days.data(1, 1), days.data(1, 2)
    deletes = days.positions(first, second, day=1)
    days.gone(first, second)
    days.builder.commit(first, data_sequence_numbers={first.file_path: 1})
    assert _rows(days.table) == []
    _check(days, RemovedDanglingDeletes(), deletes)
    assert _rows(days.table) == []


def test_vectors_of_files_that_are_gone_are_removed_from_among_others(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t", version=3)
    gone, stays = days.data(1), days.data(1)
    vectors = days.builder.deletion_vectors([(gone, [0]), (stays, [0])])
    days.builder.commit(*vectors)
    days.gone(gone)
    assert vectors[0].file_path == vectors[1].file_path
    _check(days, RemovedDanglingDeletes(1, removed_dvs_count=1), vectors[1])


def test_position_deletes_that_vectors_replace_are_removed(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    one, other = days.data(1), days.data(2)
    days.positions(one, day=1)
    kept = days.positions(other, day=2)
    days.builder.upgrade(3)
    vectors = days.builder.deletion_vectors([(one, [0])])
    days.builder.commit(*vectors)
    _check(days, RemovedDanglingDeletes(1, 1), kept, *vectors)


def test_position_deletes_stay_for_files_without_vectors_only(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    one, other, plain = days.data(1), days.data(1), days.data(2)
    days.positions(one, other, day=1)
    kept = [days.equality(1), days.positions(plain, other, day=2)]
    days.builder.upgrade(3)
    vectors = days.builder.deletion_vectors([(one, [0]), (other, [0])])
    days.builder.commit(*vectors)
    _check(days, RemovedDanglingDeletes(1, 1), *kept, *vectors)


def test_global_equality_deletes_are_removed_if_all_data_is_newer(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    old = days.data(1)
    days.builder.evolve(spec=_UNPARTITIONED)
    deletes = days.builder.equality_deletes(["id"], [(1,)])
    days.builder.commit(deletes)
    days.gone(old)
    days.data(1, spec_id=0)
    _check(days, RemovedDanglingDeletes(1, 0, 1))


def test_global_equality_deletes_stay_for_older_data_of_any_spec(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1)
    days.builder.evolve(spec=_UNPARTITIONED)
    deletes = days.builder.equality_deletes(["id"], [(1,)])
    days.builder.commit(deletes)
    days.data(1, spec_id=0)
    _check(days, RemovedDanglingDeletes(), deletes)


def test_equality_deletes_of_a_partition_do_not_apply_to_another_spec(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.builder.evolve(spec=_UNPARTITIONED)
    days.builder.commit(days.builder.data_file([(1, 1)]))
    days.equality(1, spec_id=0)
    _check(days, RemovedDanglingDeletes(1, 0, 1))


def test_equality_deletes_of_keys_outside_of_all_bounds_are_removed(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1, 10, 20)
    days.data(1, 40, 50)
    between, inside = days.equality(1, 30), days.equality(1, 45)
    unknown = days.equality(1, 30, with_metrics=False)
    assert between.lower_bounds
    _check(days, RemovedDanglingDeletes(1, 0, 1), inside, unknown)


def test_data_without_metrics_may_hold_any_key(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1, 10, with_metrics=False)
    deletes = days.equality(1, 30)
    _check(days, RemovedDanglingDeletes(), deletes)


def test_many_files_are_looked_at_in_parts(tmp_path: Path, monkeypatch: Any) -> None:
    deletes = "icebergds.operations.maintenance.deletes"
    monkeypatch.setattr(f"{deletes}.dangling_deletes._FILES_AT_A_TIME", 1)
    monkeypatch.setattr(f"{deletes}.delete_columns._PATHS_AT_A_TIME", 1)
    days = _Days(tmp_path / "t")
    files = [days.data(day, key, key + 1) for day in (1, 2) for key in (10, 20, 30)]
    kept = [days.equality(1, 21), days.equality(2, 31), days.positions(*files[:2], day=1)]
    days.equality(1, 15)
    days.equality(2, 25)
    _check(days, RemovedDanglingDeletes(2, 0, 2), *kept)


@pytest.mark.parametrize("version", [1, 2])
def test_without_deletes_nothing_is_committed(tmp_path: Path, version: int) -> None:
    table = table_of_files(tmp_path / "t", format_version=version)
    assert _remove(table) == RemovedDanglingDeletes()
    table.commit(Append((table.file([1], 1),)))
    assert _remove(table) == RemovedDanglingDeletes()
    assert len(table.metadata.snapshots) == 1


def test_the_snapshot_says_what_was_removed(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.data(1)
    removed = [days.equality(2), days.equality(3, 3, 4)]
    table = days.table
    before = table.head
    _remove(table, snapshot_properties={"by": "night"})
    assert table.head.operation == "replace"
    said = {
        "by": "night",
        "removed-delete-files": "2",
        "removed-equality-delete-files": "2",
        "removed-equality-deletes": "3",
        "removed-files-size": str(sum(file.file_size_in_bytes for file in removed)),
    }
    assert said.items() <= table.head.summary.items()
    gone = [e for e in table.entries() if e.status is ManifestEntryStatus.DELETED]
    assert {_file(entry.data_file) for entry in gone} == set(map(_file, removed))
    assert {entry.snapshot_id for entry in gone} == {table.head.snapshot_id}
    assert len(table.files(before)) == 1


def test_other_branches_and_older_snapshots_keep_their_deletes(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    data = days.data(1)
    days.equality(1)
    days.builder.branch("side", days.builder.metadata.current_snapshot_id or 0)
    days.gone(data)
    table = days.table
    side = table.metadata.snapshot_by_ref("side")
    attached = _attached(table, side)
    assert _remove(table, branch="side") == RemovedDanglingDeletes()
    assert _remove(table) == RemovedDanglingDeletes(1, 0, 1)
    assert _attached(table, side) == attached
    assert attached[data.file_path]


def test_a_branch_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    days = _Days(tmp_path / "t")
    days.equality(1)
    with pytest.raises(
        InvalidOptionError, match=r"no branch 'mian', but main; did you mean main\?"
    ):
        _remove(days.table, branch="mian")


class TestConcurrentCommits:
    def _remove_among(
        self, table: CommitTable, *others: Callable[[], object]
    ) -> RemovedDanglingDeletes:
        return _remove(table, InterleavedOperations(table.operations, others))

    def test_deletes_stay_for_old_data_that_a_compaction_adds(self, tmp_path: Path) -> None:
        days = _Days(tmp_path / "t")
        other = days.data(2, 1)
        needed, gone = days.equality(1), days.equality(3)
        table = days.table
        head = table.head

        def compact() -> None:
            # The new file has the sequence number of what it replaces, which the deletes are after.
            table.commit(ReplaceFiles((other,), (table.file([1], 1),), head.snapshot_id, 1))

        assert self._remove_among(table, compact) == RemovedDanglingDeletes(1, 0, 1)
        assert _deletes(table) == {_file(needed)}
        assert _file(gone) not in _deletes(table)
        assert list(_attached(table).values()) == [{_file(needed)}]

    def test_nothing_is_committed_if_all_deletes_are_needed_again(self, tmp_path: Path) -> None:
        days = _Days(tmp_path / "t")
        other = days.data(2, 1)
        days.equality(1)
        table = days.table
        head = table.head

        def compact() -> None:
            table.commit(ReplaceFiles((other,), (table.file([1], 1),), head.snapshot_id, 1))

        assert self._remove_among(table, compact) == RemovedDanglingDeletes()
        assert table.left_over() == set()

    def test_rows_that_others_append_stay(self, tmp_path: Path) -> None:
        days = _Days(tmp_path / "t")
        days.data(2)
        days.equality(1)
        table = days.table
        removed = self._remove_among(table, lambda: table.commit(Append((table.file([1], 1),))))
        # The append has a newer sequence number, and may drop deletes itself.
        assert removed == RemovedDanglingDeletes(1, 0, 1)
        assert table.ids() == [1, 2]

    @pytest.mark.parametrize("version", [2, 3])
    def test_changes_of_others_stay(self, tmp_path: Path, version: int) -> None:
        table = DeltaTable(tmp_path / "t", version=version, spec=BY_DATA)
        table.append((1, "a"), (2, "a"), (3, "b"), (4, "b"))
        table.keyed("upsert", [table.batch((9, "c"))], keys=(1, 2))
        others = [
            lambda: table.change_where(lambda row: row["id"] == 1),
            lambda: table.keyed("upsert", [table.batch((3, "b"))], keys=(1, 2)),
            lambda: table.append((5, "c")),
        ]
        removed = self._remove_among(table.table, *others)
        assert removed.removed_equality_delete_files_count == 1
        assert table.rows() == [(2, "a"), (3, "b"), (4, "b"), (5, "c"), (9, "c")]


@pytest.mark.parametrize("catalog", ["files", "sqlite"])
def test_the_table_itself_has_the_state_without_the_deletes(tmp_path: Path, catalog: str) -> None:
    uri = f"sqlite:///{tmp_path / 'c.db'}" if catalog == "sqlite" else None
    table = create_table(catalog_in(tmp_path, uri), partition_by="day")
    table.append(rows(1, 2, day=1))
    by_key = {"write.upsert.mode": "equality-deletes"}
    table.upsert(rows(7, day=2), keys=["id", "day"], options=by_key)
    counts = table.remove_dangling_deletes(snapshot_properties={"by": "test"})
    assert counts == RemovedDanglingDeletes(1, 0, 1)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["by"] == "test"
    assert ids_of(table) == [1, 2, 7]


@dataclass(slots=True)
class _History:
    """Random commits of data and delete files, also of ones that no writer of ours would make."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    builder: TableBuilder
    data: list[DataFile] = field(default_factory=list)
    live: list[DataFile] = field(default_factory=list)
    vectored: set[str] = field(default_factory=set)
    number: int = 0

    def step(self) -> None:
        steps = [self.add_data] * 3 + [self.remove_data, self.add_again]
        steps += [self.add_positions, self.add_equality]
        self._pick(steps)()

    def add_data(self) -> None:
        spec_id, partition = self._partition()
        ids = self.draw(st.lists(st.integers(0, 20), min_size=1, max_size=2))
        day = partition[0] if partition else 1
        file = self.builder.data_file(
            [(i, day) for i in ids],
            partition=partition,
            spec_id=spec_id,
            with_metrics=self.draw(st.booleans()),
        )
        self.data.append(file)
        self.live.append(file)
        self._commit(file, may_be_old=True)

    def remove_data(self) -> None:
        if self.live:
            file = self._pick(self.live)
            self.live.remove(file)
            self._commit(removed=[file])

    def add_again(self) -> None:
        gone = [file for file in self.data if file not in self.live]
        if gone:
            self.live.append(self._pick(gone))
            self._commit(self.live[-1], may_be_old=True)

    def add_positions(self) -> None:
        if not self.data:
            return
        chosen = self.draw(
            st.lists(st.sampled_from(range(len(self.data))), unique=True, min_size=1, max_size=3)
        )
        files = [self.data[i] for i in chosen]
        if self.builder.metadata.format_version >= 3:
            (file, *_) = files
            if file.file_path not in self.vectored:
                self.vectored.add(file.file_path)
                self._commit(*self.builder.deletion_vectors([(file, [0])]))
            return
        positions: Mapping[str, list[int]] = {file.file_path: [0] for file in files}
        self._commit(
            self.builder.position_deletes(
                positions, partition=files[0].partition, spec_id=files[0].spec_id
            )
        )

    def add_equality(self) -> None:
        spec_id, partition = self._partition()
        keys = self.draw(st.lists(st.integers(0, 20), unique=True, min_size=1, max_size=2))
        deletes = self.builder.equality_deletes(
            ["id"],
            [(key,) for key in keys],
            partition=partition,
            spec_id=spec_id,
            with_metrics=self.draw(st.booleans()),
        )
        self._commit(deletes, may_be_old=True)

    def _commit(
        self, *files: DataFile, removed: list[DataFile] | None = None, may_be_old: bool = False
    ) -> None:
        self.number += 1
        numbers = {}
        if may_be_old and self.draw(st.booleans()):
            numbers = {file.file_path: self.draw(st.integers(1, self.number)) for file in files}
        self.builder.commit(*files, removed=removed or [], data_sequence_numbers=numbers)

    def _partition(self) -> tuple[int, tuple[Any, ...]]:
        specs = self.builder.metadata.partition_specs
        spec = self._pick(specs)
        return spec.spec_id, () if spec.is_unpartitioned else (self._pick([None, 1, 2]),)

    def _pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(items))


@examples(120)
@given(st.data())
def test_exactly_the_deletes_that_may_change_a_row_stay(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        builder = TableBuilder(Path(directory) / "t", SCHEMA, spec=BY_DAY)
        history = _History(data.draw, builder)
        history.add_data()
        for count in (data.draw(st.integers(0, 8)), data.draw(st.integers(1, 4))):
            for _ in range(count):
                history.step()
            if data.draw(st.booleans()):
                builder.evolve(spec=PartitionSpec(len(builder.metadata.partition_specs), ()))
            if data.draw(st.booleans()):
                builder.upgrade(3)
        table = open_table(builder.location)
        attached, deletes, rows = _attached(table), _deletes(table), _rows(table)
        idle = _suspected_that_name_no_live_file(table)
        counts = _remove(table)
        assert _rows(table) == rows
        assert _attached(table) == {path: found - idle for path, found in attached.items()}
        assert _deletes(table) == set().union(*attached.values()) - idle
        assert counts.removed_delete_files_count == len(deletes) - len(_deletes(table))
        assert _remove(table) == RemovedDanglingDeletes()


def _rows(table: CommitTable) -> list[Any]:
    read = load_table(str(table.location)).scan().to_arrow()
    return sorted(map(repr, read.to_pylist()))


def _suspected_that_name_no_live_file(table: CommitTable) -> set[_File]:
    """Position deletes attached to newer data files only, none of which their rows name."""
    newest: dict[str, int] = {}
    deletes: dict[str, ManifestEntry] = {}
    for planned in table.files():
        for entry in planned.deletes.position_deletes:
            if entry.data_file.is_deletion_vector or only_data_path(entry.data_file):
                continue
            path = entry.data_file.file_path
            deletes[path] = entry
            number = planned.entry.file_sequence_number
            newest[path] = min(newest.get(path, number), number)
    live = {planned.entry.data_file.file_path for planned in table.files()}
    return {
        (path, None)
        for path, entry in deletes.items()
        if entry.file_sequence_number < newest[path]
        and not live & read_position_deletes(FileIO(), path, entry.data_file.file_format).keys()
    }
