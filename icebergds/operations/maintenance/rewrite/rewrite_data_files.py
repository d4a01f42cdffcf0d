"""Rewrites data files into fewer ones, without their deleted rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

import numpy as np

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.display import counted, html_result
from icebergds.errors import CommitStateUnknownError, IcebergError, InvalidOptionError
from icebergds.expr.nodes import Expr
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.packed_entries import Int64s, path_hashes
from icebergds.interrupts import interrupts_held, stop
from icebergds.operations.conditions import choosing_filter
from icebergds.operations.maintenance.deletes.remove_dangling_deletes import remove_dangling_deletes
from icebergds.operations.maintenance.listed_paths import ListedPaths
from icebergds.operations.maintenance.maintained_branch import check_maintained_branch
from icebergds.operations.maintenance.rewrite.commit import RewriteCommit, commit_groups
from icebergds.operations.maintenance.rewrite.groups import (
    GroupRewriter,
    RewrittenGroup,
    plan_rewrite,
    rewrite_group,
)
from icebergds.operations.maintenance.rewrite.limits import NotBegunError, RewriteLimits
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import (
    FileGroup,
    plan_groups,
    possible_candidates,
)
from icebergds.operations.maintenance.rewrite.shared_deletes import SharedDeletes
from icebergds.operations.runner import Runner, weight_of_files
from icebergds.operations.write.cleanup import delete_files
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.options import WriteOptions
from icebergds.reporting import advance, kept, stage
from icebergds.scan.plan.packed_files import Mask, PackedFiles, plan_packed_files
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import ManifestContent
from icebergds.spec.snapshot import Snapshot

_LOG = logging.getLogger(__name__)
# Groups whose files others changed meanwhile are planned again.
_PASSES = 3


@dataclass(frozen=True, slots=True)
class RewrittenDataFiles:
    """What `rewrite_data_files` did.

    Attributes:
        rewritten_data_files_count: data files that were replaced.
        added_data_files_count: data files that replace them.
        rewritten_bytes_count: the size of the replaced files, in bytes.
        failed_data_files_count: data files that were not replaced, since a task or a commit failed,
            or since others changed files of their group again and again.
        removed_delete_files_count: delete files and deletion vectors that no row needs any more.
        failure: why the first failed task or commit failed; None if none did.
    """

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    failure: str | None = None

    def _repr_html_(self) -> str:
        return html_result("Rewritten data files", self)


def rewrite_data_files(
    table: LoadedTable,
    runner: Runner,
    write: WriteOptions,
    options: RewriteOptions,
    where: str | Expr | None = None,
    rewriter: GroupRewriter | None = None,
    limits: RewriteLimits | None = None,
) -> tuple[RewrittenDataFiles, TableState]:
    """Rewrites the data files of a branch that are worth it; returns the table's state after it.

    From version 3 on, rows keep their ids and the numbers of their last updates.

    Args:
        runner: runs the tasks.
        write: the branch, and entries of the snapshot summary.
        where: rewrite only files that may have rows that match this Spark SQL condition, or this
            bound filter.
        rewriter: rewrites each group; by default, rows keep their order.
        limits: rewrite only the most useful groups, as far as these allow.

    Raises:
        InvalidOptionError, InvalidFilterError: an option or the condition does not fit the table.
        CommitConflictError, ValidationError: concurrent commits conflict.
        CommitStateUnknownError: whether a commit succeeded is not known; its files were kept.
    """
    check_maintained_branch(table.state, write.branch)
    tally = _Tally(table.state)
    rewriter = rewriter or partial(rewrite_group, runner)
    if limits is not None:
        rewriter = limits.in_time(rewriter)
    wanted = _Wanted(write, options, where, limits)
    dropped: list[FileGroup] = []
    reason = f"others changed them in each of {_PASSES} passes"
    for number in range(_PASSES):
        left = replace(options, max_files=options.max_files - tally.replaced - tally.failed)
        asked = replace(wanted, options=left)
        try:
            if number:
                tally.state = table.operations.refresh()
            dropped = _pass(table.at(tally.state), (rewriter, runner), asked, tally)
        except CommitStateUnknownError:
            raise
        except Exception as error:
            if not tally.replaced or options.partial_progress:
                raise
            # What an earlier pass has committed stays.
            reason = tally.failure = tally.failure or str(error)
            break
        if not dropped:
            break
    if dropped:
        _left(tally, dropped, reason)
    if options.remove_dangling_deletes:
        _remove_dangling_deletes(table, write, tally)
    return tally.result(), tally.state


@dataclass(slots=True)
class _Tally:
    """What was done so far, and the table's state.

    Attributes:
        done: hashes of the paths of new data files, and of those whose rewrite failed: they are
            not rewritten in another pass.
        committed: how many groups are committed, of `planned`.
    """

    state: TableState
    done: list[Int64s] = field(default_factory=list)
    replaced: int = 0
    added: int = 0
    nbytes: int = 0
    failed: int = 0
    removed_deletes: int = 0
    failed_commits: int = 0
    committed: int = 0
    planned: int = 0
    failure: str | None = None

    def result(self) -> RewrittenDataFiles:
        return RewrittenDataFiles(
            self.replaced,
            self.added,
            self.nbytes,
            self.failed,
            self.removed_deletes,
            self.failure,
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to rewrite, and how."""

    write: WriteOptions
    options: RewriteOptions
    where: str | Expr | None
    limits: RewriteLimits | None


def _groups(
    table: LoadedTable,
    snapshot: Snapshot,
    wanted: _Wanted,
    tally: _Tally,
) -> list[FileGroup]:
    metadata, options = table.metadata, wanted.options
    condition = choosing_filter(wanted.where, metadata.schema(), wanted.write.time_zone)
    listed, shared = ListedPaths(), SharedDeletes()
    done = np.concatenate([np.empty(0, np.int64), *tally.done])

    def chosen(files: PackedFiles) -> Mask:
        listed.add_all(files)
        shared.add(files)
        is_done = np.isin(files.entries.path_hashes, done)
        return possible_candidates(files, options, shared) & ~is_done

    # Only files that may be rewritten are kept in memory, as tables may have many files.
    found = plan_packed_files(
        table.io, metadata, snapshot, metadata.schema(), condition, chosen=chosen
    )
    files = listed.once_of(found)
    if len(files) < len(found):
        _LOG.warning(
            "table %s: %d entries of data files that are listed several times are left as they are",
            table.name,
            len(found) - len(files),
        )
    groups = plan_groups(files, options, _output_spec_id(table, options), shared)
    if wanted.limits is not None:
        groups = wanted.limits.affordable(groups, options, tally.nbytes)
    _LOG.info(
        "table %s: %d data files are rewritten, in %d groups",
        table.name,
        sum(len(group.files) for group in groups),
        len(groups),
    )
    return groups


def _pass(
    table: LoadedTable,
    by: tuple[GroupRewriter, Runner],
    wanted: _Wanted,
    tally: _Tally,
) -> list[FileGroup]:
    """Plans groups, rewrites them in parallel and commits; returns those that others changed."""
    write, options = wanted.write, wanted.options
    snapshot = table.metadata.head_of(write.branch)
    groups = [] if snapshot is None else _groups(table, snapshot, wanted, tally)
    if snapshot is None or not groups:
        return []
    plan = plan_rewrite(table, write, options, _output_spec_id(table, options))
    rewriter, runner = by
    manifests = read_snapshot_manifests(table.io, snapshot)
    commit = RewriteCommit(
        table,
        runner,
        snapshot,
        frozenset(m.manifest_path for m in manifests if m.content is ManifestContent.DELETES),
        commit_options(write, table.metadata.table_uuid),
        options.use_starting_sequence_number,
    )
    dropped: list[FileGroup] = []
    tally.planned = len(groups) + tally.committed
    with (
        stage("rewrite groups", len(groups), sum(group.nbytes for group in groups), _weight),
        ThreadPoolExecutor(options.max_concurrent_groups) as pool,
    ):
        running: _Running = {}
        try:
            with interrupts_held():
                for group in groups:
                    # With this thread's context, which says what their jobs are for.
                    task = pool.submit(copy_context().run, rewriter, table, plan, group)
                    running[task] = group
            for batch in _batches(running, options, tally):
                # A commit that fails deletes the files of its groups.
                with interrupts_held():
                    taken = [_taken(running, future) for future in batch]
                    dropped += _commit(commit, taken, options, tally)
        except BaseException as error:
            if not isinstance(error, Exception):
                stop()
            pool.shutdown(cancel_futures=True)
            _discard(table, running)
            raise
    return dropped


_Running = dict[Future[RewrittenGroup], FileGroup]


def _weight(files: ScanTaskGroup) -> tuple[int, int]:
    """What a task advances: the group itself is done only after its last task."""
    return 0, weight_of_files(files)[1]


def _batches(
    running: _Running, options: RewriteOptions, tally: _Tally
) -> Iterator[list[Future[RewrittenGroup]]]:
    """The groups that are committed together, as they are done."""
    count = ceil(len(running) / options.max_commits) if options.partial_progress else len(running)
    ready: list[Future[RewrittenGroup]] = []
    for future in as_completed(list(running)):
        error = future.exception()
        advance()
        if error is None:
            ready.append(future)
        elif isinstance(error, NotBegunError):
            del running[future]
        elif isinstance(error, Exception) and options.partial_progress:
            _failed(tally, [running.pop(future)], error)
        else:
            raise error
        if len(ready) == count:
            yield ready
            ready = []
    if ready:
        yield ready


def _taken(running: _Running, future: Future[RewrittenGroup]) -> RewrittenGroup:
    del running[future]
    return future.result()


def _commit(
    commit: RewriteCommit, groups: Sequence[RewrittenGroup], options: RewriteOptions, tally: _Tally
) -> list[FileGroup]:
    """Commits groups; returns those that others changed."""
    try:
        done = commit_groups(commit, groups)
    except CommitStateUnknownError:
        raise
    except Exception as error:
        tally.failed_commits += 1
        if not options.partial_progress or tally.failed_commits > options.max_failed_commits:
            raise
        _failed(tally, [group.group for group in groups], error)
        return []
    if done.committed is not None:
        tally.replaced += sum(len(group.group.files) for group in done.groups)
        written = [file.file_path for group in done.groups for file in group.files]
        tally.added += len(written)
        tally.done.append(path_hashes(written))
        tally.nbytes += sum(group.group.nbytes for group in done.groups)
        tally.removed_deletes += int(
            done.committed.snapshot.summary.get("removed-delete-files", "0")
        )
        tally.state = done.committed.state
        tally.committed += len(done.groups)
        kept(f"{tally.committed:,} of {tally.planned:,} groups")
    return [group.group for group in done.dropped]


def _remove_dangling_deletes(table: LoadedTable, write: WriteOptions, tally: _Tally) -> None:
    """Removes deletes that no row needs. What was committed before stays if that fails."""
    try:
        removed, tally.state = remove_dangling_deletes(
            table.at(tally.state),
            branch=write.branch,
            snapshot_properties=write.snapshot_properties,
        )
    except IcebergError as error:
        _LOG.warning("table %s: dangling deletes were not removed: %s", table.name, error)
        return
    tally.removed_deletes += removed.removed_delete_files_count


def _failed(tally: _Tally, groups: Sequence[FileGroup], error: Exception) -> None:
    tally.failure = tally.failure or str(error)
    _left(tally, groups, str(error))


def _left(tally: _Tally, groups: Sequence[FileGroup], reason: str) -> None:
    """Counts files that stay as they are, and says why."""
    count = sum(len(group.files) for group in groups)
    tally.failed += count
    tally.done += [group.files.entries.path_hashes for group in groups]
    _LOG.warning(
        "table %s: %s not rewritten: %s",
        tally.state.name,
        counted(count, "data file"),
        reason,
    )


def _discard(table: LoadedTable, running: _Running) -> None:
    """Deletes the files of groups that are done and were not handed to a commit."""
    for future in running:
        if future.done() and not future.cancelled() and future.exception() is None:
            delete_files(table.io, future.result().files)


def _output_spec_id(table: LoadedTable, options: RewriteOptions) -> int:
    specs = table.metadata.specs_by_id
    wanted = options.output_spec_id
    if wanted is not None and wanted not in specs:
        raise InvalidOptionError(
            f"option 'output-spec-id' = {wanted}: table {table.name} has the partition specs "
            f"{', '.join(map(str, sorted(specs)))}"
        )
    return table.metadata.default_spec_id if wanted is None else wanted
