"""Converts equality deletes to position delete files or deletion vectors."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.compared_files import ComparedDeletes, CompressedFiles
from icebergds.commit.convert_deletes import (
    Conversion,
    ConversionOutdatedError,
    ConvertDeletes,
    ConvertedUnit,
    NothingToConvertError,
)
from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.operations import TableState
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.display import html_result
from icebergds.errors import CommitStateUnknownError, InvalidOptionError
from icebergds.expr.nodes import Expr
from icebergds.interrupts import interrupts_held
from icebergds.operations.conditions import choosing_filter
from icebergds.operations.maintenance.deletes.conversion_plan import Found, plan_conversion
from icebergds.operations.maintenance.maintained_branch import check_maintained_branch
from icebergds.operations.read.options import ReadOptions, parse_read_options, split_options
from icebergds.operations.read.snapshot_read import make_read_plan
from icebergds.operations.runner import Runner, weight_of_files
from icebergds.operations.write.cleanup import WRITE_ID, delete_files, delete_files_of_write
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.conversion_tasks import (
    ConversionPlan,
    ConvertedRows,
    write_converted,
)
from icebergds.operations.write.key_search import filter_of_keys
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.table_settings import delete_settings
from icebergds.reporting import stage
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.suggestions import did_you_mean
from icebergds.write.locations import LocationProvider

_LOG = logging.getLogger(__name__)
_OPTIONS = (
    "time-zone",
    "split-size",
    "lookback",
    "file-open-cost",
    "batch-size",
    "delete-cache-bytes",
)
# Files that concurrent commits change are converted again, in all but the first round.
_ROUNDS = 5
# Manifests are read to plan and to commit; what exceeds this size together is read twice.
_KEPT_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class ConvertedEqualityDeletes:
    """What `Table.convert_equality_deletes` did.

    Attributes:
        converted_equality_delete_files_count: equality delete files that were removed.
        remaining_equality_delete_files_count: equality delete files that the branch still has.
        added_delete_files_count: position delete files or deletion vectors that were added.
        deleted_rows_count: rows that only equality deletes deleted, and the added files do now.
    """

    converted_equality_delete_files_count: int = 0
    remaining_equality_delete_files_count: int = 0
    added_delete_files_count: int = 0
    deleted_rows_count: int = 0

    def _repr_html_(self) -> str:
        return html_result("Converted equality deletes", self)


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """What to convert, and how.

    Attributes:
        where: chooses data files: a condition as Spark SQL, or a filter that is bound to the
            table's schema; None for all.
        time_zone: the zone of timestamps without an offset in `where`.
        read: how they are read.
        write: chooses the branch, and the entries of the snapshot's summary.
    """

    where: str | Expr | None
    time_zone: str | None
    read: ReadOptions
    write: WriteOptions


@dataclass(frozen=True, slots=True)
class ConvertedPart:
    """What a conversion within a limit did.

    Attributes:
        read_bytes: about how many bytes of keys were read.
        left_bytes: how many are left for other runs.
        has_begun: whether anything fitted into the limit.
    """

    done: ConvertedEqualityDeletes
    read_bytes: int
    left_bytes: int
    has_begun: bool = False


def conversion_options(
    address: TableAddress,
    options: Mapping[str, str],
    *,
    where: str | Expr | None,
    branch: str | None,
    snapshot_properties: Mapping[str, str] | None,
    time_zone: str | None,
) -> ConversionOptions:
    """Parses the arguments of a conversion.

    Args:
        options: as text, by name in any case.
        where: as for `ConversionOptions`.
        time_zone: the zone of timestamps without an offset in `where`, if the options have none.

    Raises:
        InvalidOptionError: an option is unknown or malformed.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in options:
        if name.lower() not in _OPTIONS:
            near = did_you_mean(name, _OPTIONS, shown=repr)
            raise InvalidOptionError(
                f"convert_equality_deletes: unknown option {name!r}; "
                + (f"{near} " if near else "")
                + f"Known options: {', '.join(_OPTIONS)}"
            )
    return ConversionOptions(
        where,
        given.get("time-zone", time_zone),
        parse_read_options(given),
        WriteOptions.of(address, None, snapshot_properties, branch=branch),
    )


def convert_equality_deletes(
    table: LoadedTable, options: ConversionOptions, runner: Runner
) -> tuple[TableState, ConvertedEqualityDeletes]:
    """Converts the equality deletes of a branch, in one commit, or none if there is nothing to do.

    Returns:
        The table's state after the commit, and what was done.

    Raises:
        InvalidFilterError: the condition cannot be parsed, or does not fit the table.
        InvalidOptionError: the branch does not exist, or a table property is malformed.
        ValidationError: concurrent commits changed the converted files again and again, or rolled
            the branch back.
        CommitConflictError: concurrent commits won every retry.
        CommitStateUnknownError: it is not known whether it was committed; nothing was deleted.
        CorruptFileError, MissingFileError: a file of the table is damaged or missing.
    """
    state, part = convert_part(table, options, runner, None)
    return state, part.done


def convert_part(
    table: LoadedTable, options: ConversionOptions, runner: Runner, max_bytes: int | None
) -> tuple[TableState, ConvertedPart]:
    """Converts equality deletes as far as a limit allows; the next call goes on from there.

    Rows are deleted by position as soon as their data file has been compared. An equality delete
    file is removed when all data files that need it were.

    Args:
        max_bytes: how many bytes of key columns and equality deletes may be read; None for no
            limit. The options must choose all data files if there is one.

    Returns and raises what `convert_equality_deletes` does.
    """
    check_maintained_branch(table.state, options.write.branch)
    kept = table.keeping_reads(_KEPT_BYTES)
    work = _Work(options, runner, str(uuid.uuid4()), max_bytes)
    found = _plan(kept, work, None)
    if found is None or not found.base.targets:
        left = 0 if found is None else found.part.left_bytes
        return table.state, ConvertedPart(ConvertedEqualityDeletes(), 0, left)
    try:
        state, outcome = _convert(kept, found, work)
    except CommitStateUnknownError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if not work.is_committed:
            delete_files(table.io, work.written(), error)
        raise
    if len(outcome.added) < sum(map(len, work.results)):
        used = {file.file_path for file in outcome.added}
        delete_files(table.io, (file for file in work.written() if file.file_path not in used))
    done = ConvertedEqualityDeletes(
        outcome.removed, outcome.remaining, len(outcome.added), outcome.rows
    )
    part = found.part
    return state or table.state, ConvertedPart(done, part.read_bytes, part.left_bytes, True)


@dataclass(slots=True)
class _Work:
    """A conversion in progress.

    Attributes:
        operation_id: part of the names of new files.
        max_bytes: how many bytes of keys may be read.
        units: what has been converted.
        results: all new files, also of units that have been given up.
        rounds: how often tasks have run.
        is_committed: whether the table has new files.
    """

    options: ConversionOptions
    runner: Runner
    operation_id: str
    max_bytes: int | None
    units: list[ConvertedUnit] = field(default_factory=list)
    results: list[CompressedFiles] = field(default_factory=list)
    rounds: int = 0
    is_committed: bool = False

    def written(self) -> Iterable[DataFile]:
        """All new files."""
        return chain.from_iterable(self.results)


def _convert(table: LoadedTable, found: Found, work: _Work) -> tuple[TableState | None, Conversion]:
    """Converts and commits; the state is None if no equality delete file could be removed."""
    targets = frozenset(file_key(entry.data_file) for entry in found.base.targets)
    options = work.options
    for number in range(_ROUNDS):
        work.units = [current for unit in work.units if (current := _current(unit, found))]
        _convert_files(table, found, work)
        is_strict, progress = number < _ROUNDS - 1, found.part.progress
        action = ConvertDeletes(found.base, work.units, strict=is_strict, progress=progress)
        summary = {WRITE_ID: work.operation_id}
        committing = commit_options(options.write, table.metadata.table_uuid, summary)
        state: TableState | None = None
        try:
            with interrupts_held():
                state = commit_snapshot(table.operations, action, committing, table.state).state
                work.is_committed = True
        except NothingToConvertError:
            pass
        except ConversionOutdatedError:
            if number == _ROUNDS - 1:
                raise
            table = table.at(table.operations.refresh()).keeping_reads(_KEPT_BYTES)
            # Without a head, the commit fails: the planned snapshot is not in the branch's history.
            found = _plan(table, work, targets) or found
            continue
        assert action.outcome is not None, "an attempt was made"
        return state, action.outcome
    raise AssertionError("the last round returns or raises")


def _plan(table: LoadedTable, work: _Work, targets: frozenset[FileKey] | None) -> Found | None:
    options, schema = work.options, table.metadata.schema()
    row_filter = choosing_filter(options.where, schema, options.time_zone)
    return plan_conversion(table, options.write.branch, row_filter, targets, work.max_bytes)


def _current(unit: ConvertedUnit, found: Found) -> ConvertedUnit | None:
    """The part of a unit that a new plan would convert to the same deletes."""
    # The table may have been upgraded.
    if unit.has_vectors != (found.base.format_version >= 3):
        return None
    at = found.index.find_entries(unit.files.entries)
    before, now = unit.files.filter(at >= 0), found.compared.take(at[at >= 0])
    is_same = before.entries.data_sequence_number == now.entries.data_sequence_number
    numbers = np.stack([before.numbers, now.numbers], axis=1)
    pairs, pair_of = np.unique(numbers, axis=0, return_inverse=True)
    are_same = [
        _same_deletes(before.deletes[old], now.deletes[new], unit.has_vectors)
        for old, new in pairs.tolist()
    ]
    is_same &= np.array(are_same, np.bool_)[pair_of.reshape(-1)]
    if is_same.all():
        return unit
    if not unit.has_vectors:
        return None
    is_current = at < 0
    is_current[~is_current] = is_same
    return replace(unit, files=unit.files.filter(is_current), rows=unit.rows[is_current])


def _same_deletes(old: ComparedDeletes, new: ComparedDeletes, as_vectors: bool) -> bool:
    # A vector has the rows of position deletes, too.
    return old == new if as_vectors else old.keys == new.keys


def _convert_files(table: LoadedTable, found: Found, work: _Work) -> None:
    """Converts the files that no unit has."""
    files = _left(found, work.units)
    if not len(files):
        return
    metadata, schema, read = table.metadata, table.metadata.schema(), work.options.read
    splits = split_options(read, metadata.properties).evened(files.entries.file_size_in_bytes)
    groups = partial(pack_files, files, metadata, schema, splits, whole=True)
    _LOG.info("table %s: converting deletes of %d data files", table.name, len(files))
    locations = LocationProvider.of(metadata.location, metadata.properties)
    reading = make_read_plan(read, table.state, schema, Schema(()))
    plan = ConversionPlan(
        reading,
        locations,
        f"{work.operation_id}-{work.rounds}",
        delete_settings(metadata),
        row_filter=filter_of_keys(reading, found.base.targets),
    )
    work.rounds += 1
    # If a task fails, finished ones cannot report their files.
    discard = partial(delete_files_of_write, table.io, locations.data_location, plan.operation_id)
    with stage("convert files", len(files), files.nbytes, weight_of_files):
        results = work.runner.run(partial(write_converted, plan), groups(), discard)
    for group, result in zip(groups(), results, strict=True):
        work.results.append(result.deletes)
        work.units.append(_unit(group, result, found))


def _left(found: Found, units: Iterable[ConvertedUnit]) -> PackedFiles:
    """The chosen files that no unit has."""
    left = found.part.chosen.copy()
    for unit in units:
        rows = found.index.find_entries(unit.files.entries)
        left[rows[rows >= 0]] = False
    return found.files.filter(left)


def _unit(group: ScanTaskGroup, result: ConvertedRows, found: Found) -> ConvertedUnit:
    at = found.index.find(pa.array([task.file_path for task in group.tasks], pa.string()))
    return ConvertedUnit(
        found.compared.take(at),
        np.array(result.rows, np.int64),
        result.deletes,
        found.base.format_version >= 3,
    )
