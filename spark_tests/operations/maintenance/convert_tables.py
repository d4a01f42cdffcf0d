"""Tables with equality deletes, their conversion, and commits of others meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from built.delta_tables import DeltaTable
from built.replace_files import ReplaceFiles

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.data_files import RewriteRows
from icebergds.commit.options import IsolationLevel
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import Action
from icebergds.commit.validation import Isolation
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    ConvertedEqualityDeletes,
    ConvertedPart,
    conversion_options,
    convert_part,
)
from icebergds.operations.runner import LocalRunner, Runner, TaskAttempt
from icebergds.spec.manifest import DataFile, FileContent
from icebergds.spec.snapshot import Snapshot
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.task import write_batches


class RacingTable(DeltaTable):
    """A table whose changes can be prepared now and committed later."""

    _prepared: list[Action] | None = None

    def commit(self, delta: DeltaFiles, start: Snapshot | None = None) -> DeltaFiles:
        isolation = self._isolation(start or self.head)
        action = RowDelta(delta.files, delta.deletes, delta.replaced, delta.referenced, isolation)
        self._take(action)
        return delta

    def prepare(self, change: Callable[[], Any]) -> list[Action]:
        """Makes a change without committing it; returns what is to be committed."""
        self._prepared = []
        change()
        prepared, self._prepared = self._prepared, None
        return prepared

    def compact(self) -> None:
        """Replaces all data files with one of the same rows, which keeps its age."""
        head = self.table.head
        if removed := self.data_files():
            number = head.sequence_number
            self._take(ReplaceFiles(removed, self._rewritten(), head.snapshot_id, number))

    def compact_parent(self) -> Callable[[], Any]:
        """A compaction that read the parent of the current snapshot, and commits when called."""
        parent = self.table.metadata.snapshots_by_id[self.table.head.parent_snapshot_id or 0]
        batches = [self.batch(*self.rows(parent))]
        new = tuple(write_batches(self.plan(), batches, partition_id=0, attempt_id=0))
        removed, number = self.data_files(), parent.sequence_number
        action = ReplaceFiles(removed, new, parent.snapshot_id, number)
        return lambda: self.table.commit(action)

    def rewrite(self, gone: Sequence[int]) -> None:
        """Deletes rows by their ids: replaces all data files (copy-on-write)."""
        if removed := self.data_files():
            self._take(RewriteRows(removed, self._rewritten(gone), self._isolation(self.head)))

    def data_files(self) -> tuple[DataFile, ...]:
        return tuple(file.entry.data_file for file in self.table.files())

    def deletes(self, content: FileContent) -> list[DataFile]:
        """The delete files of the current snapshot."""
        return [e.data_file for e in self.live_entries() if e.data_file.content is content]

    def convert(self, runner: Runner | None = None, **options: Any) -> ConvertedEqualityDeletes:
        """Converts the equality deletes, in this process."""
        return self.convert_part(None, runner, **options).done

    def convert_part(
        self, max_bytes: int | None, runner: Runner | None = None, **options: Any
    ) -> ConvertedPart:
        """Converts as many of the equality deletes as a limit of bytes allows."""
        given = {"where": None, "branch": None, "snapshot_properties": None, "time_zone": None}
        address = TableAddress(str(self.table.location))
        asked = conversion_options(address, {}, **{**given, **options})
        loaded = LoadedTable(address, self.table.operations, self.table.state)
        return convert_part(loaded, asked, runner or LocalRunner(), max_bytes)[1]

    def _isolation(self, read: Snapshot | None) -> Isolation:
        return Isolation(IsolationLevel.SNAPSHOT, None if read is None else read.snapshot_id)

    def _take(self, action: Action) -> None:
        if self._prepared is None:
            self.table.commit(action)
        else:
            self._prepared.append(action)

    def _rewritten(self, gone: Sequence[int] = ()) -> tuple[DataFile, ...]:
        names = [field.name for field in self.schema.fields]
        kept = [tuple(row[name] for name in names) for row in self.read() if row["id"] not in gone]
        if not kept:
            return ()
        batches = [self.batch(*kept)]
        return tuple(write_batches(self.plan(), batches, partition_id=0, attempt_id=0))


@dataclass
class Meanwhile:
    """A runner during whose first job others do something.

    Attributes:
        jobs: the items of each job.
    """

    others: Callable[[], Any] | None
    jobs: list[list[Any]] = field(default_factory=list)

    def run(
        self, task: Callable[[Any, TaskAttempt], Any], items: Iterable[Any], discard: Any = None
    ) -> list[Any]:
        self.jobs.append(list(items))
        done = LocalRunner().run(task, self.jobs[-1], discard)
        others, self.others = self.others, None
        if others is not None:
            others()
        return done
