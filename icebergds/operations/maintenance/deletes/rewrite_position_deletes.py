"""Rewrites position delete files: into fewer ones, or into deletion vectors (minor compaction)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import CommitBase, commit_base
from icebergds.commit.operations import TableState
from icebergds.commit.replace_position_deletes import (
    ReplacePositionDeletes,
    RewrittenDeletes,
    StaleDeletesError,
)
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.display import html_result
from icebergds.errors import CommitStateUnknownError, IcebergError
from icebergds.expr.nodes import Expr
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.deletes.key_hash import new_seed
from icebergds.formats.wrong_counts import Recorded
from icebergds.interrupts import interrupts_held
from icebergds.operations.conditions import choosing_filter
from icebergds.operations.maintenance.deletes.delete_targets import find_delete_targets
from icebergds.operations.maintenance.deletes.live_files import LiveFiles
from icebergds.operations.maintenance.deletes.position_delete_groups import (
    DeleteGroup,
    plan_delete_groups,
)
from icebergds.operations.maintenance.deletes.position_delete_options import (
    PositionDeleteOptions,
    parse_position_delete_options,
)
from icebergds.operations.maintenance.deletes.position_delete_tasks import (
    DeleteFileRef,
    DeleteRewrite,
    DeleteTask,
    TaskFailure,
    rewrite_delete_files,
)
from icebergds.operations.maintenance.maintained_branch import check_maintained_branch
from icebergds.operations.runner import Runner
from icebergds.operations.write.cleanup import WRITE_ID, delete_files, delete_files_of_write
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.table_settings import data_file_format, delete_file_format
from icebergds.reporting import stage
from icebergds.spec.manifest import DataFile, ManifestEntry, PartitionKey
from icebergds.spec.table_properties import DELETE_GRANULARITY
from icebergds.write.deletes.row_deletes import DeleteSettings
from icebergds.write.locations import LocationProvider

_LOG = logging.getLogger(__name__)

# Others may also replace the files that are planned again.
_PASSES = 3


@dataclass(frozen=True, slots=True)
class RewrittenPositionDeletes:
    """What a rewrite of position deletes replaced, and with what.

    Attributes:
        rewritten_delete_files_count: replaced position delete files.
        added_delete_files_count: new position delete files, or deletion vectors.
        rewritten_bytes_count: size of the replaced files.
        added_bytes_count: size of the new files; of deletion vectors, without the rest of their
            Puffin files.
    """

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0

    def _repr_html_(self) -> str:
        return html_result("Rewritten position deletes", self)


def rewrite_position_deletes(
    table: LoadedTable,
    where: str | Expr | None,
    options: Mapping[str, str],
    write: WriteOptions,
    runner: Runner,
) -> tuple[RewrittenPositionDeletes, TableState]:
    """Rewrites the position delete files of a branch.

    What other commits have replaced meanwhile is planned again.

    Args:
        where: a condition of Spark SQL, or a bound filter; only partitions that may have such rows
            are rewritten.
        options: as `parse_position_delete_options` takes them.
        write: the branch, the snapshot properties, and the time zone of the condition.
        runner: runs the tasks that read and write delete files.

    Returns:
        What was rewritten, and the table afterwards.

    Raises:
        InvalidOptionError, InvalidFilterError: an argument does not fit the table.
        ValidationError: other commits replaced the files of each plan; or, unless there are
            several commits, as for every commit.
        UnsupportedFeatureError: the table's catalog restricts what may be read.
        IcebergError: a task failed; if there are several commits, each group did.
        CommitStateUnknownError: whether a commit succeeded is not known.
    """
    check_maintained_branch(table.state, write.branch)
    done = _Done(table.state)
    for number in range(_PASSES):
        try:
            if number:
                done.state = table.operations.refresh()
            done.stale = None
            _pass(table.at(done.state), where, options, write, runner, done)
        except CommitStateUnknownError:
            raise
        except Exception as error:
            if not done.committed:
                raise
            # What an earlier pass has committed stays.
            _LOG.warning("table %s: some position deletes stay: %s", table.name, error)
            break
        if done.stale is None:
            break
    return done.result(), done.state


@dataclass(slots=True)
class _Done:
    """What was done so far, and the table's state.

    Attributes:
        failure: the first error of a group.
        stale: set if other commits changed what was planned.
    """

    state: TableState
    committed: list[RewrittenDeletes] = field(default_factory=list)
    failure: IcebergError | None = None
    stale: StaleDeletesError | None = None

    @property
    def written(self) -> set[str]:
        """The paths of new files."""
        return {file.file_path for group in self.committed for file in group.added}

    def result(self) -> RewrittenPositionDeletes:
        """What was committed.

        Raises:
            IcebergError: nothing was, because all groups failed.
        """
        failure = self.failure or self.stale
        if failure is not None and not self.committed:
            raise failure
        if self.stale is not None:
            _LOG.warning("table %s: some position deletes stay: %s", self.state.name, self.stale)
        return _counts(self.committed)


def _pass(
    table: LoadedTable,
    where: str | Expr | None,
    options: Mapping[str, str],
    write: WriteOptions,
    runner: Runner,
    done: _Done,
) -> None:
    """Plans groups, rewrites and commits them."""
    table.io.require_rows()
    metadata = table.metadata
    parsed = parse_position_delete_options(options, metadata)
    row_filter = choosing_filter(where, metadata.schema(), write.time_zone)
    base = commit_base(table.keeping_reads().state, write.branch)
    planned = plan_delete_groups(base, row_filter, parsed, done.written)
    if not planned.groups or base.parent is None:
        return
    targets = find_delete_targets(base, planned, new_seed())
    rewrite = _Rewrite(table, base, base.parent.snapshot_id, parsed, write, runner, done)
    count = len(planned.groups)
    at_once = count if parsed.max_commits is None else ceil(count / parsed.max_commits)
    for start in range(0, count, at_once):
        rewrite.run(planned.groups[start : start + at_once], targets)


class _Rewrite:
    """Runs the tasks of some groups at a time, and commits their files."""

    def __init__(
        self,
        table: LoadedTable,
        base: CommitBase,
        snapshot_id: int,
        options: PositionDeleteOptions,
        write: WriteOptions,
        runner: Runner,
        done: _Done,
    ) -> None:
        self._table = table
        self._snapshot_id = snapshot_id
        self._options = options
        self._write = write
        self._runner = runner
        self._done = done
        self._settings = _settings(base, options)

    def run(self, groups: Sequence[DeleteGroup], targets: Mapping[PartitionKey, LiveFiles]) -> None:
        """Rewrites groups and commits them; with several commits, errors are kept for later."""
        try:
            self._run(groups, targets)
        except StaleDeletesError as error:
            self._done.stale = error
        except CommitStateUnknownError:
            raise
        except Exception as error:
            if self._options.max_commits is None:
                raise
            self._failed(groups, error)

    def _run(
        self, groups: Sequence[DeleteGroup], targets: Mapping[PartitionKey, LiveFiles]
    ) -> None:
        write_id = str(uuid.uuid4())
        shared = self._shared(write_id)
        tasks = list(_tasks(groups, targets, self._options.closed_at, self._settings))
        # Tasks that had finished could not report their files.
        discard = partial(
            delete_files_of_write, shared.io, shared.locations.data_location, write_id
        )
        with stage("rewrite delete files", sum(len(task.files) for task in tasks), weigh=_weight):
            results = [
                result
                for some in _batches(tasks, self._options.max_concurrent)
                for result in self._runner.run(partial(rewrite_delete_files, shared), some, discard)
            ]
        self._commit(self._succeeded(groups, tasks, results), write_id)

    def _succeeded(
        self,
        groups: Sequence[DeleteGroup],
        tasks: Sequence[DeleteTask],
        results: Sequence[list[DataFile] | TaskFailure],
    ) -> list[RewrittenDeletes]:
        """The groups without a failed task; the files of the others are deleted."""
        added: dict[int, list[DataFile]] = {number: [] for number in range(len(groups))}
        failures: dict[int, TaskFailure] = {}
        for task, result in zip(tasks, results, strict=True):
            if isinstance(result, TaskFailure):
                failures[task.group] = result
            else:
                added[task.group] += result
        for number, failure in failures.items():
            delete_files(self._table.io, added.pop(number))
            self._failed([groups[number]], failure.error)
        return [
            RewrittenDeletes(
                tuple(entry.data_file for entry in groups[number].files),
                tuple(files),
                groups[number].data_sequence_number,
            )
            for number, files in added.items()
        ]

    def _commit(self, groups: Sequence[RewrittenDeletes], write_id: str) -> None:
        if groups:
            with interrupts_held():
                self._commit_held(groups, write_id)

    def _commit_held(self, groups: Sequence[RewrittenDeletes], write_id: str) -> None:
        written = [file for group in groups for file in group.added]
        action = ReplacePositionDeletes(groups, self._snapshot_id)
        table_uuid = self._table.metadata.table_uuid
        options = commit_options(self._write, table_uuid, {WRITE_ID: write_id})
        try:
            committed = commit_snapshot(self._table.operations, action, options, self._done.state)
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt) as error:
            delete_files(self._table.io, written, error)
            raise
        self._done.state = committed.state
        self._done.committed += action.committed
        used = {file.file_path for group in action.committed for file in group.added}
        unused = [file for file in written if file.file_path not in used]
        if unused:
            delete_files(self._table.io, unused)
        if len(action.committed) < len(groups):
            self._done.stale = StaleDeletesError(
                f"table {self._table.name}: other commits removed position delete files of "
                f"{len(groups) - len(action.committed)} of {len(groups)} groups; repeat the "
                "operation"
            )

    def _failed(self, groups: Sequence[DeleteGroup], error: Exception | str) -> None:
        _LOG.warning(
            "table %s: %d groups of position delete files were not rewritten: %s",
            self._table.name,
            len(groups),
            error,
        )
        if self._done.failure is None:
            self._done.failure = (
                error
                if isinstance(error, IcebergError)
                else IcebergError(
                    f"table {self._table.name}: position deletes could not be rewritten: {error}"
                )
            )

    def _shared(self, write_id: str) -> DeleteRewrite:
        metadata = self._table.metadata
        return DeleteRewrite(
            self._table.io,
            LocationProvider.of(metadata.location, metadata.properties),
            write_id,
            metadata.schema(),
            metadata.specs_by_id,
            self._settings,
            keeps_going=self._options.max_commits is not None,
        )


def _weight(task: DeleteTask) -> tuple[int, int]:
    return len(task.files), 0


def _settings(base: CommitBase, options: PositionDeleteOptions) -> DeleteSettings:
    metadata = base.metadata
    return DeleteSettings(
        metadata.format_version,
        DELETE_GRANULARITY.of(metadata.properties),
        delete_file_format(metadata, data_file_format(metadata.properties)),
        options.closed_at,
        WriteProperties.of(metadata.properties, metadata.schema(), metadata.sort_order()),
    )


def _tasks(
    groups: Sequence[DeleteGroup],
    targets: Mapping[PartitionKey, LiveFiles],
    size: int,
    settings: DeleteSettings,
) -> Iterable[DeleteTask]:
    number = 0
    for at, group in enumerate(groups):
        # All deletes of a data file go into one deletion vector.
        is_whole = settings.format_version >= 3
        for part in [group.files] if is_whole else group.parts(size):
            file = part[0].data_file
            refs = tuple(map(_ref, part))
            live = targets[group.partition]
            yield DeleteTask(number, at, file.spec_id, file.partition, refs, live)
            number += 1


def _ref(entry: ManifestEntry) -> DeleteFileRef:
    file = entry.data_file
    return DeleteFileRef(
        file.file_path,
        file.file_format,
        Recorded(file.record_count, file.file_size_in_bytes),
        entry.data_sequence_number,
        file.key_metadata,
    )


def _batches(tasks: Sequence[DeleteTask], groups_at_once: int | None) -> list[list[DeleteTask]]:
    """Batches of tasks, of at most so many groups each."""
    batches: dict[int, list[DeleteTask]] = {}
    for task in tasks:
        batches.setdefault(task.group // (groups_at_once or len(tasks)), []).append(task)
    return list(batches.values())


def _counts(groups: Iterable[RewrittenDeletes]) -> RewrittenPositionDeletes:
    groups = list(groups)
    added = [file for group in groups for file in group.added]
    replaced = [file for group in groups for file in group.replaced]
    return RewrittenPositionDeletes(
        len(replaced),
        len(added),
        sum(file.file_size_in_bytes for file in replaced),
        sum(file.stored_size for file in added),
    )
