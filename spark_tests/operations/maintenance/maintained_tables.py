"""Changes and maintains a small table in any order, and says what rows each branch must have.

What others do while an action runs its tasks, or between its attempts to commit, is given to it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from built.contents import snapshot_entries
from built.delta_tables import BY_DATA, BY_ID, DeltaTable
from commit.interleaving import InterleavedOperations
from hypothesis import strategies as st
from local_shuffle import LocalShuffle

from icebergds import load_table
from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.data_files import Append
from icebergds.commit.file_selection import file_key
from icebergds.commit.options import CommitOptions, IsolationLevel
from icebergds.commit.repair_files import FileCorrection, RepairFiles
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.validation import Isolation
from icebergds.errors import CommitConflictError, MissingFileError, ValidationError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    conversion_options,
    convert_equality_deletes,
)
from icebergds.operations.maintenance.deletes.remove_dangling_deletes import remove_dangling_deletes
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.maintenance.rewrite.sorted_rewrite import SortedRewriter
from icebergds.operations.maintenance.rewrite_manifests import rewrite_manifests
from icebergds.operations.maintenance.verify.findings import Depth, FindingKind
from icebergds.operations.maintenance.verify.verify import verify_and_repair
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.updates.table_updates import (
    AddPartitionSpec,
    SetDefaultSpec,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.rows.arrangement import Curve
from icebergds.write.task import write_batches

Rows = Counter[tuple[Any, ...]]
_LINEAGE = ("_row_id", "_last_updated_sequence_number")
_CONFLICTS = (ValidationError, CommitConflictError, MissingFileError)
_FAR_AHEAD_MS = 4_000_000_000_000
_BY_DATA_DESC = SortOrder(
    0, (SortField((2,), IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),)
)
_CHANGES = ("append", "upsert", "delete_keys", "delete", "update", "rewrite", "convert", "repair")
_ALONE = ("dangling", "manifests", "expire", "branch", "tag", "roll_back", "evolve", "upgrade")
_IMPOSSIBLE = FileCorrection(column_sizes={2: -1})
"""A size of a column that no reader takes rows by."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change or an action.

    Attributes:
        branch: which of the branches, by number.
        number: what is chosen for it.
        in_tasks, in_commits: what others do while an action's tasks run, and before its commits.
    """

    verb: str
    branch: int
    number: int
    in_tasks: tuple[Step, ...] = ()
    in_commits: tuple[Step, ...] = ()

    def chosen(self, *choices: Any) -> Any:
        return choices[self.number % len(choices)]


_SIMPLE = st.builds(Step, st.sampled_from(_CHANGES + _ALONE), st.integers(0, 2), st.integers(0, 59))
_OTHERS = st.lists(_SIMPLE, max_size=2).map(tuple)
STEPS = st.lists(
    _SIMPLE
    | st.builds(
        Step,
        st.sampled_from(["rewrite", "rewrite", "convert", "repair"]),
        st.integers(0, 2),
        st.integers(0, 59),
        _OTHERS,
        _OTHERS,
    ),
    min_size=4,
    max_size=12,
)


class BranchTable(DeltaTable):
    """A table that is read and changed on one of its branches."""

    branch = "main"

    @property
    def head(self) -> Snapshot | None:
        return self.table.metadata.snapshot_by_ref(self.branch)

    def append(self, *rows: Sequence[Any]) -> None:
        files = write_batches(self.plan(), [self.batch(*rows)], partition_id=0, attempt_id=0)
        self.table.commit(Append(tuple(files)), self.branch)

    def commit(self, delta: DeltaFiles, start: Snapshot | None = None) -> DeltaFiles:
        start = start or self.head
        read = None if start is None else start.snapshot_id
        isolation = Isolation(IsolationLevel.SERIALIZABLE, read)
        files = (delta.files, delta.deletes, delta.replaced, delta.referenced)
        self.table.commit(RowDelta(*files, isolation), self.branch)
        return delta


@dataclass(slots=True)
class _Interrupted:
    """Runs tasks in this process; after each of the first runs, others do something."""

    others: list[Callable[[], object]]
    one_by_one: Any = field(default_factory=Lock)

    def run(self, task: Any, items: Sequence[Any], discard: Any = None) -> list[Any]:
        results = LocalRunner().run(task, items, discard)
        with self.one_by_one:
            if self.others:
                self.others.pop(0)()
        return results


class MaintainedTable:
    """A table, the rows that its branches must have, and those that its snapshots had.

    Attributes:
        expected: the rows of each branch.
        remembered: the rows of each snapshot, with their lineage if it has one.
        failed: what checks by others have found, which actions may take for failed tasks.
    """

    def __init__(self, location: Path, version: int, spec: PartitionSpec) -> None:
        self.table = BranchTable(location, version=version, spec=spec)
        self.expected: dict[str, Rows] = {"main": Counter()}
        self.remembered: dict[int, Rows] = {}
        self.failed: list[AssertionError] = []

    def api(self) -> Table:
        return load_table(str(self.table.table.location))

    def do(self, step: Step) -> None:
        """Makes a step on its branch; an action may lose against those of others."""
        verb = getattr(self, step.verb)
        branch = sorted(self.expected)[step.branch % len(self.expected)]
        if not (step.in_tasks or step.in_commits):
            verb(branch, step)
            return
        with suppress(*_CONFLICTS):
            verb(branch, step)

    def check(self) -> None:
        """Checks the rows of branches, and remembers those of new snapshots."""
        if self.failed:
            raise self.failed[0]
        metadata = self.table.table.metadata
        for snapshot in metadata.snapshots:
            if snapshot.snapshot_id not in self.remembered:
                self.remembered[snapshot.snapshot_id] = rows = self._rows_of(snapshot)
                ids = [row[2] for row in rows.elements() if len(row) > 2]
                assert len(set(ids)) == len(ids)
        for branch, rows in self.expected.items():
            ref = metadata.refs.get(branch)
            found = self.remembered[ref.snapshot_id] if ref is not None else Counter()
            assert _values(found) == rows, branch

    def check_snapshots(self) -> None:
        """Reads every snapshot again."""
        for snapshot in self.table.table.metadata.snapshots:
            assert self._rows_of(snapshot) == self.remembered[snapshot.snapshot_id]

    def check_changes(self) -> None:
        """Applies the changes of each branch to the oldest rows that are still known."""
        table = self.api()
        metadata = table.metadata
        for branch in metadata.refs:
            known = metadata.snapshot_by_ref(branch)
            assert known is not None
            head = known.snapshot_id
            while (older := metadata.snapshot_by_id(known.parent_snapshot_id or 0)) is not None:
                known = older
            for net in (False, True):
                scan = table.changes(
                    known.snapshot_id, head, net_changes=net, columns=["id", "data", "_change_type"]
                )
                rows = Counter(_values(self.remembered[known.snapshot_id]))
                for row in scan.to_arrow().to_pylist():
                    sign = -1 if row["_change_type"] == "DELETE" else 1
                    rows[row["id"], row["data"]] += sign
                expected = _values(self.remembered[head])
                assert {row: count for row, count in rows.items() if count} == expected

    def check_metadata(self) -> None:
        """A verification finds dangling deletes at most, and sizes that others have spoilt."""
        found = self.api().verify("rows")
        known = {FindingKind.DANGLING_DELETES, FindingKind.COLUMN_SIZES}
        assert set(found.by_kind()) <= known, found

    def remove_orphans(self) -> None:
        """Removes what no snapshot needs, and nothing else, however old files are."""
        root, table = self.table.table.location, self.api()
        orphan = root / "data" / "orphan.parquet"
        orphan.write_bytes(b"orphan")
        for path in root.rglob("*"):
            os.utime(path, (0, 0))
        listed = [str(path) for path in root.rglob("*") if path.is_file()]
        since = "1970-01-01T00:00:01Z"
        found = table.remove_orphan_files(older_than=since, file_list=listed, dry_run=True)
        orphans = set(found.orphan_file_locations)
        assert str(orphan) in orphans
        assert not orphans & _needed(table)
        assert set(table.remove_orphan_files().orphan_file_locations) == orphans

    def append(self, branch: str, step: Step) -> None:
        rows = self._new_rows(step)
        self._on(branch).append(*rows)
        self.expected[branch].update(rows)

    def upsert(self, branch: str, step: Step) -> None:
        rows = [(key, step.chosen("a", "b", "c")) for key in range(step.number % 4 + 1)]
        self._by_key("upsert", branch, rows)
        self.expected[branch].update(rows)

    def delete_keys(self, branch: str, step: Step) -> None:
        self._by_key("delete_keys", branch, [(step.number % 12, "a")])

    def delete(self, branch: str, step: Step) -> None:
        number = step.number % 5 + 2
        granularity = step.chosen("file", "partition")
        on = self._on(branch)
        on.change_where(lambda row: row["id"] % number == 0, granularity=granularity)
        self._replace(branch, lambda row: None if row[0] % number == 0 else row)

    def update(self, branch: str, step: Step) -> None:
        number = step.number % 5 + 2
        on = self._on(branch)
        on.change_where(lambda row: row["id"] % number == 1, lambda row: {**row, "data": "u"})
        self._replace(branch, lambda row: (row[0], "u") if row[0] % number == 1 else row)

    def rewrite(self, branch: str, step: Step) -> None:
        properties = {
            "rewrite-all": step.chosen("true", "true", "false"),
            "target-file-size-bytes": step.chosen("400", "900", "100000"),
            "partial-progress.enabled": step.chosen("true", "false"),
            "max-file-group-input-files": step.chosen("1000", "1", "2", "3", "1000"),
            "max-concurrent-file-group-rewrites": "1",
        }
        loaded, runner = self._interrupted(step)
        options = RewriteOptions.of(properties, loaded.metadata.properties)
        by = runner, LocalShuffle(runner), options
        before = self._lineage_of(branch)
        rewrite_data_files(
            loaded,
            runner,
            WriteOptions.of(loaded.address, branch=branch),
            options,
            step.chosen(None, None, "data = 'a'", "id > 3"),
            step.chosen(
                None,
                SortedRewriter(*by, _BY_DATA_DESC),
                None,
                None,
                SortedRewriter(*by, curve=Curve("zorder", (1, 2))),
                None,
            ),
        )
        self._check_lineage(branch, step, before)

    def convert(self, branch: str, step: Step) -> None:
        loaded, runner = self._interrupted(step)
        options = conversion_options(
            loaded.address,
            {},
            where=step.chosen(None, None, "data = 'a'", "id > 3"),
            branch=branch,
            snapshot_properties=None,
            time_zone=None,
        )
        before = self._lineage_of(branch)
        convert_equality_deletes(loaded, options, runner)
        self._check_lineage(branch, step, before)

    def repair(self, branch: str, step: Step) -> None:
        """Repairs sizes of columns that are spoilt before."""
        if branch not in self.table.table.metadata.refs:
            return
        table, before = self.table.table, self._lineage_of(branch)
        files = [entry.data_file for entry in table.entries(self._on(branch).head)]
        spoilt = {file_key(file): _IMPOSSIBLE for file in files if not file.is_deletion_vector}
        table.commit(RepairFiles(spoilt, frozenset()), branch)
        loaded, runner = self._interrupted(step)
        options = CommitOptions(branch)
        found, _ = verify_and_repair(loaded, Depth.ROWS, runner, options)
        assert found.is_sound, found
        self._check_lineage(branch, step, before)
        again, _ = verify_and_repair(self._interrupted(step)[0], Depth.ROWS, runner, options)
        assert again.repaired == 0, again

    def dangling(self, branch: str, step: Step) -> None:
        if branch in self.table.table.metadata.refs:
            before = self._lineage_of(branch)
            remove_dangling_deletes(self._interrupted(step)[0], branch=branch)
            self._check_lineage(branch, step, before)

    def manifests(self, branch: str, step: Step) -> None:
        specs = sorted(self.table.table.metadata.specs_by_id)
        if branch in self.table.table.metadata.refs:
            before = self._lineage_of(branch)
            loaded, _ = self._interrupted(step)
            rewrite_manifests(loaded, step.chosen(None, *specs), branch=branch)
            self._check_lineage(branch, step, before)

    def expire(self, branch: str, step: Step) -> None:
        self.api().expire_snapshots(
            older_than=_FAR_AHEAD_MS,
            retain_last=step.chosen(1, 2, 3, 5),
            clean_expired_metadata=step.chosen(True, False),
        )

    def branch(self, branch: str, step: Step) -> None:
        """A branch from another one, at most two besides main."""
        if (head := self._on(branch).head) is not None:
            name = step.chosen("side", "other")
            self._set_ref(name, head.snapshot_id, RefType.BRANCH)
            self.expected[name] = Counter(self.expected[branch])

    def tag(self, branch: str, step: Step) -> None:
        if (head := self._on(branch).head) is not None:
            self._set_ref(step.chosen("t1", "t2"), head.snapshot_id, RefType.TAG)

    def roll_back(self, branch: str, step: Step) -> None:
        metadata = self.table.table.metadata
        history, snapshot = [], metadata.snapshot_by_ref(branch)
        while snapshot is not None:
            history.append(snapshot)
            snapshot = metadata.snapshot_by_id(snapshot.parent_snapshot_id or 0)
        if history:
            chosen = history[: step.chosen(2, 3, 4)][-1]
            self._set_ref(branch, chosen.snapshot_id, RefType.BRANCH)
            self.expected[branch] = _values(self._rows_of(chosen))

    def evolve(self, branch: str, step: Step) -> None:
        spec = step.chosen(BY_DATA, BY_ID)
        metadata = self.table.table.metadata
        number = max(metadata.specs_by_id) + 1
        if number < 3:
            fields = (replace(spec.fields[0], field_id=1000 + number, name=f"p{number}"),)
            added = AddPartitionSpec(PartitionSpec(number, fields))
            self.table.table.change(added, SetDefaultSpec(-1))

    def upgrade(self, branch: str, step: Step) -> None:
        if self.table.version < 3:
            self.table.table.change(UpgradeFormatVersion(3))

    def _on(self, branch: str) -> BranchTable:
        self.table.branch = branch
        return self.table

    def _new_rows(self, step: Step) -> list[tuple[int, str]]:
        return [((step.number + at) % 12, "abc"[at % 3]) for at in range(step.number % 6 + 1)]

    def _by_key(self, verb: str, branch: str, rows: Sequence[tuple[int, str]]) -> None:
        """Changes rows by key, through the public API, and takes the old ones from the model."""
        by_data = any(one.source_id == 2 for one in self.table.table.metadata.spec().fields)
        keys = ["id", "data"] if by_data else ["id"]
        getattr(self.api(), verb)(self.table.batch(*rows), keys=keys, branch=branch)
        gone = {row[: len(keys)] for row in rows}
        self._replace(branch, lambda row: None if row[: len(keys)] in gone else row)

    def _replace(self, branch: str, change: Callable[[Any], tuple[Any, ...] | None]) -> None:
        new = [change(row) for row in self.expected[branch].elements()]
        self.expected[branch] = Counter(row for row in new if row is not None)

    def _interrupted(self, step: Step) -> tuple[LoadedTable, _Interrupted]:
        """The table, to which others commit before each commit, and a runner with others."""
        table = self.table.table
        others = [self._other(other) for other in step.in_commits]
        operations = InterleavedOperations(table.operations, others)
        loaded = LoadedTable(TableAddress(str(table.location)), operations, table.state)
        return loaded, _Interrupted([self._other(other) for other in step.in_tasks])

    def _other(self, step: Step) -> Callable[[], None]:
        def act() -> None:
            try:
                with suppress(*_CONFLICTS):
                    self.do(step)
                self.check()
            except AssertionError as error:
                self.failed.append(error)

        return act

    def _set_ref(self, name: str, snapshot_id: int, ref_type: RefType) -> None:
        self.table.table.change(SetSnapshotRef(name, SnapshotRef(snapshot_id, ref_type)))

    def _rows_of(self, snapshot: Snapshot) -> Rows:
        names: tuple[str, ...] = ("id", "data")
        # The first commit after an upgrade to version 3 assigns the ids of rows.
        if snapshot.first_row_id is not None:
            names += _LINEAGE
        return Counter(tuple(row[name] for name in names) for row in self.table.read(snapshot))

    def _lineage_of(self, branch: str) -> Rows:
        head = self._on(branch).head
        return Counter() if head is None else self._rows_of(head)

    def _check_lineage(self, branch: str, step: Step, before: Rows) -> None:
        after = self._lineage_of(branch)
        had_lineage = len(next(iter(before), ())) == len(next(iter(after), ()))
        if had_lineage and not (step.in_tasks or step.in_commits):
            assert after == before


def _values(rows: Rows) -> Rows:
    found: Rows = Counter()
    for row, count in rows.items():
        found[row[:2]] += count
    return found


def _needed(table: Table) -> set[str]:
    """The files that reading any snapshot takes."""
    metadata, needed = table.metadata, set[str]()
    for snapshot in metadata.snapshots:
        manifests = read_snapshot_manifests(table.io, snapshot)
        entries = snapshot_entries(table.io, metadata, snapshot, live_only=True)
        needed |= {str(snapshot.manifest_list), *(m.manifest_path for m in manifests)}
        needed |= {entry.data_file.file_path for entry in entries}
    return needed
