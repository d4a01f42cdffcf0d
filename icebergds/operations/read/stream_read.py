"""Plans the micro-batches of a streaming read, and tracks how far it has read (`StreamOffset`).

A stream reads the snapshots of a branch one after the other, each compared with its parent. Appends
may be read in parts, file by file in manifest order; a change feed reads a snapshot as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError, NoSuchSnapshotError, ValidationError
from icebergds.expr.bind import field_ids
from icebergds.operations.read.change_read import feed_task_groups, resolve_range
from icebergds.operations.read.options import ReadOptions, split_options
from icebergds.operations.read.stream_files import SnapshotPart, StreamFiles
from icebergds.operations.read.stream_options import StreamOptions
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.scan.plan.changes import ChangePlanner, not_an_append, parent_of
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.scan.plan.history import SnapshotRange, range_since, snapshots_between
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import is_scalar


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """How far a stream has read.

    Attributes:
        table_uuid: the UUID of the table that it reads.
        snapshot_id: the last snapshot that was read, in whole or in part; None before the first.
        position: how many of its files have been read; None for all.
        is_whole: whether its files are all files of the snapshot, or only those that it added.
        row_filter: the filter that chose the files that `position` counts; None if that is None.
    """

    table_uuid: str | None
    snapshot_id: int | None
    position: int | None = None
    is_whole: bool = False
    row_filter: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The offset as stored in Spark's checkpoint."""
        return {
            "table-uuid": self.table_uuid,
            "snapshot-id": self.snapshot_id,
            "position": self.position,
            "whole-snapshot": self.is_whole,
            "filter": self.row_filter,
        }

    @staticmethod
    def from_json(obj: Mapping[str, Any]) -> StreamOffset:
        """Parses an offset from a checkpoint.

        Raises:
            InvalidOptionError: it was not written by this source.
        """
        try:
            return StreamOffset(
                obj["table-uuid"],
                obj["snapshot-id"],
                obj["position"],
                obj["whole-snapshot"],
                obj["filter"],
            )
        except (KeyError, TypeError):
            raise InvalidOptionError(
                f"the checkpoint has the offset {obj!r}, which is not one of this source; start "
                "the query with a new checkpoint"
            ) from None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a micro-batch, which reads at least one file; None for no limit."""

    max_files: int | None = None
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """Files of one snapshot, starting with number `first`."""

    snapshot: Snapshot
    first: int
    is_whole: bool

    @property
    def part(self) -> SnapshotPart:
        return self.snapshot.snapshot_id, self.is_whole


@dataclass(frozen=True, slots=True)
class TableStream:
    """A stream over one state of its table.

    Attributes:
        head: the head of the branch that the stream follows; None if it has no snapshot.
        plan: the stream's filter and schema.
        splits: how files are packed into task groups.
        known: files that earlier calls in this process have planned; None plans them each time.
    """

    state: TableState
    head: Snapshot | None
    options: StreamOptions
    plan: ReadPlan
    splits: SplitOptions
    known: StreamFiles | None = None

    def first(self) -> StreamOffset:
        """The offset at which a query without a checkpoint starts.

        Raises:
            NoSuchSnapshotError: the start snapshot does not exist, or the history has expired.
            InvalidOptionError: the start snapshot is not in the history of the branch.
        """
        options, state, head = self.options, self.state, self.head
        if options.start_snapshot_id is not None:
            start = state.metadata.snapshot_by_id(options.start_snapshot_id)
            if start is None:
                raise NoSuchSnapshotError(
                    f"table {state.name}: the start snapshot {options.start_snapshot_id} of the "
                    f"stream does not exist or has expired; {self._known()}"
                )
            snapshots_between(state.metadata, start, head, state.name)
            return self._done(start)
        if options.changes is not None and options.changes.start is not None:
            return self._done(
                resolve_range(state.metadata, options.changes, head, state.name).start
            )
        if options.start_ms is not None:
            return self._done(range_since(state.metadata, options.start_ms, head, state.name).start)
        if head is None:
            return self._done(None)
        if options.start == "now":
            return self._done(head)
        if options.start == "snapshot":
            return self._within(head, 0, is_whole=True)
        oldest = state.metadata.lineage(head)[-1]
        if oldest.parent_snapshot_id is None:
            return self._done(None)
        return self._within(oldest, 0, is_whole=True)

    def next(self, start: StreamOffset, limits: Limits) -> StreamOffset:
        """The offset at which the next micro-batch ends; `start` itself if there is nothing new.

        Errors are those of `task_groups`.
        """
        head = self.head
        if head is None or start == self._done(head):
            return start
        if self._has_expired(start):
            return self._done(head)
        if limits == Limits():
            return self._done(head)
        planner = self._planner()
        steps: list[_Step] = []
        end = self._next(planner, start, head, limits, steps)
        if self.known is not None:
            self.known.keep_only([step.part for step in steps])
        return end

    def _next(
        self,
        planner: ChangePlanner,
        start: StreamOffset,
        head: Snapshot,
        limits: Limits,
        seen: list[_Step],
    ) -> StreamOffset:
        """As for `next`, with limits; adds the steps that it planned to `seen`."""
        files = rows = 0
        for step in self._steps(start, head):
            seen.append(step)
            found = self._files(planner, step)
            if self.options.changes is not None and not step.is_whole:
                # All of its files go into one batch: their rows may cancel each other out.
                size = len(found)
                if files and size and self._is_over(limits, files + size, rows + _rows(found)):
                    return self._before(step, start)
                files, rows = files + size, rows + _rows(found)
                continue
            for at in range(step.first, len(found)):
                more = found[at].entry.data_file.record_count
                if files and self._is_over(limits, files + 1, rows + more):
                    return self._within(step.snapshot, at, is_whole=step.is_whole)
                files, rows = files + 1, rows + more
        return self._done(head)

    def task_groups(self, start: StreamOffset, end: StreamOffset) -> list[TaskGroup]:
        """Plans the task groups between two offsets; the result is always the same.

        Raises:
            ValidationError: the offsets belong to another table.
            NoSuchSnapshotError: a snapshot after `start` has expired.
            InvalidOptionError: a snapshot is not an append, and is neither skipped nor read as a
                change feed.
        """
        metadata, schema = self.state.metadata, self.plan.table_schema
        self._refuse_other_table(start)
        if start == end or end.snapshot_id is None or self._has_expired(start):
            return []
        last = metadata.snapshot_by_id(end.snapshot_id)
        if last is None:
            raise self._expired(end)
        planner = self._planner()
        changes: list[list[PlannedFile]] = []
        for ordinal, step in enumerate(self._steps(start, last)):
            of_end = (step.snapshot.snapshot_id, step.is_whole) == (last.snapshot_id, end.is_whole)
            stop = end.position if of_end else None
            found = self._files(planner, step)[step.first : stop]
            changes.append([_with_ordinal(file, ordinal) for file in found])
        if (feed := self.options.changes) is not None:
            return feed_task_groups(feed, changes, self.state, schema, self.splits)
        files = [file for found in changes for file in found]
        return list(pack_files(files, metadata, schema, self.splits))

    def _steps(self, start: StreamOffset, last: Snapshot) -> Iterator[_Step]:
        metadata, name = self.state.metadata, self.state.name
        if start.position is not None and start.row_filter != str(self.plan.row_filter):
            raise InvalidOptionError(
                f"table {name}: the stream has read a part of snapshot {start.snapshot_id} with "
                f"the filter {start.row_filter}; the filter is now {self.plan.row_filter}, which "
                "chooses other files. Start the query with its old filter until the snapshot is "
                "read, or with a new checkpoint"
            )
        if start.snapshot_id is None:
            history = snapshots_between(metadata, None, last, name)
            if history.snapshots and history.snapshots[0].parent_snapshot_id is not None:
                raise self._expired(start)
            yield from (_Step(snapshot, 0, False) for snapshot in history.snapshots)
            return
        read = metadata.snapshot_by_id(start.snapshot_id)
        if read is None:
            raise self._expired(start)
        if start.position is not None:
            yield _Step(read, start.position, start.is_whole)
        if read.snapshot_id != last.snapshot_id:
            history = self._after(read, last)
            yield from (_Step(snapshot, 0, False) for snapshot in history.snapshots)

    def _after(self, read: Snapshot, last: Snapshot) -> SnapshotRange:
        try:
            return snapshots_between(self.state.metadata, read, last, self.state.name)
        except (InvalidOptionError, NoSuchSnapshotError) as error:
            raise type(error)(
                f"{error}. The stream has read up to snapshot {read.snapshot_id}; start it with a "
                "new checkpoint"
            ) from None

    def _files(self, planner: ChangePlanner, step: _Step) -> list[PlannedFile]:
        """All files of a step's snapshot, including those before its first."""
        if self.known is None:
            return self._plan_files(planner, step)
        return self.known.get(step.part, lambda: self._plan_files(planner, step))

    def _plan_files(self, planner: ChangePlanner, step: _Step) -> list[PlannedFile]:
        metadata, snapshot = self.state.metadata, step.snapshot
        if step.is_whole:
            if self.options.changes is not None:
                return planner.changes(snapshot, None, 0)
            plan = self.plan
            return plan_files(
                self.state.io,
                metadata,
                snapshot,
                plan.table_schema,
                plan.row_filter,
                wrong_counts=plan.wrong_counts,
            ).files
        parent = parent_of(metadata, snapshot)
        if parent is None and snapshot.parent_snapshot_id is not None:
            raise self._expired(self._done(snapshot))
        if not snapshot.may_change_rows and parent is not None:
            return []
        if self.options.changes is not None:
            return planner.changes(snapshot, parent, 0)
        if snapshot.operation == "append":
            added = planner.added(snapshot, parent)
            return planner.marked(
                [
                    PlannedFile(entry, planner.deletes_at(snapshot, entry), snapshot.snapshot_id)
                    for entry in added
                ]
            )
        if snapshot.operation in self.options.skipped:
            return []
        raise not_an_append(snapshot, self.state.name, "streaming-")

    def _planner(self) -> ChangePlanner:
        plan = self.plan
        return ChangePlanner(
            self.state.io,
            self.state.metadata,
            plan.table_schema,
            plan.row_filter,
            plan.wrong_counts,
        )

    def _done(self, snapshot: Snapshot | None) -> StreamOffset:
        snapshot_id = None if snapshot is None else snapshot.snapshot_id
        return StreamOffset(self.state.metadata.table_uuid, snapshot_id)

    def _within(self, snapshot: Snapshot, position: int, *, is_whole: bool) -> StreamOffset:
        uuid, row_filter = self.state.metadata.table_uuid, str(self.plan.row_filter)
        return StreamOffset(uuid, snapshot.snapshot_id, position, is_whole, row_filter)

    def _before(self, step: _Step, start: StreamOffset) -> StreamOffset:
        parent_id = step.snapshot.parent_snapshot_id
        return StreamOffset(start.table_uuid, parent_id)

    def _is_over(self, limits: Limits, files: int, rows: int) -> bool:
        too_many = limits.max_files is not None and files > limits.max_files
        return too_many or (limits.max_rows is not None and rows > limits.max_rows)

    def _has_expired(self, start: StreamOffset) -> bool:
        """Whether history after `start` has expired and the stream continues with the newest."""
        self._refuse_other_table(start)
        if not self.options.goes_on or start.snapshot_id is None:
            return False
        metadata = self.state.metadata
        known = metadata.lineage(self.head)
        if any(snapshot.snapshot_id == start.snapshot_id for snapshot in known):
            return False
        # If the snapshot exists and the branch's history is complete, it was rolled back.
        is_whole = bool(known) and known[-1].parent_snapshot_id is None
        return metadata.snapshot_by_id(start.snapshot_id) is None or not is_whole

    def _refuse_other_table(self, start: StreamOffset) -> None:
        found = self.state.metadata.table_uuid
        if start.table_uuid != found:
            raise ValidationError(
                f"table {self.state.name} has the UUID {found}, but the checkpoint is for the "
                f"UUID {start.table_uuid}: the table was dropped and re-created, or the query now "
                "reads another table; start it with a new checkpoint"
            )

    def _expired(self, start: StreamOffset) -> NoSuchSnapshotError:
        read = "the beginning" if start.snapshot_id is None else f"snapshot {start.snapshot_id}"
        return NoSuchSnapshotError(
            f"table {self.state.name}: {read}, up to which the stream has read, or a snapshot "
            f"after it has expired; {self._known()}. To continue with what is committed from now "
            "on, set option('stream-on-expired', 'latest'); to read the whole table again, start "
            "with a new checkpoint"
        )

    def _known(self) -> str:
        known = self.state.metadata.lineage(self.head)
        if not known:
            return "the branch has no snapshots"
        return f"the oldest known snapshot of the branch is {known[-1].snapshot_id}"


def load_stream(
    address: TableAddress, options: ReadOptions, stream: StreamOptions, plan: ReadPlan
) -> TableStream:
    """Loads the stream over a table's current state.

    Args:
        options: choose the branch.
        plan: the plan of the query that reads it.

    Raises:
        NoSuchTableError: the table does not exist.
        NoSuchSnapshotError: the branch does not exist.
        ValidationError: a column that the query reads was dropped or changed its type.
        UnsupportedFeatureError: the table's catalog restricts what may be read.
    """
    state = address.load()
    state.io.require_rows()
    _refuse_other_columns(state, plan)
    travel = TimeTravel(branch=options.time_travel.branch)
    head, _ = resolve_snapshot(state.metadata, travel, state.name)
    splits = split_options(options, state.metadata.properties)
    return TableStream(state, head, stream, plan, splits)


def _refuse_other_columns(state: TableState, plan: ReadPlan) -> None:
    """Refuses columns that were dropped or changed: their values would be null or missing."""
    known, current = plan.table_schema, state.metadata.schema().fields_by_id
    for field_id in {*plan.columns.fields_by_id, *field_ids(plan.row_filter)}:
        field = known.fields_by_id.get(field_id)
        if field is None:
            continue  # a metadata column
        found = current.get(field_id)
        if found is None:
            change = "was dropped"
        elif is_scalar(field.field_type) and found.field_type != field.field_type:
            change = f"was of type {field.field_type} and is now of type {found.field_type}"
        else:
            continue
        raise ValidationError(
            f"table {state.name}: column {'.'.join(known.paths_by_id[field_id])!r}, which the "
            f"stream reads, {change} since the query started; load the table again, and restart "
            "the query with its checkpoint"
        )


def _with_ordinal(file: PlannedFile, ordinal: int) -> PlannedFile:
    change = file.change
    if change is None or change.commit.ordinal == ordinal:
        return file
    return replace(file, change=replace(change, commit=replace(change.commit, ordinal=ordinal)))


def _rows(files: list[PlannedFile]) -> int:
    return sum(file.entry.data_file.record_count for file in files)
