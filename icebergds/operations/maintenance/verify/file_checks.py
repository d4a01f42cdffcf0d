"""Opens live files and compares them with their manifest entries: a task for several files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa

from icebergds.commit.file_selection import FileKey, file_key
from icebergds.commit.repair_files import ColumnCorrection, FileCorrection
from icebergds.errors import FormatError, InvalidDataError
from icebergds.formats.arrow.bounding_boxes import Box, box_of
from icebergds.formats.data_file.bounds import Range, has_bounds
from icebergds.formats.data_file.column_metrics import (
    MeasuredColumn,
    count_nans,
    measured_columns,
    range_of,
)
from icebergds.formats.data_file.file_schema import walk_columns
from icebergds.formats.data_file.metrics_modes import FULL, MetricsModes
from icebergds.formats.data_file.projection import needed_leaves, plan_projection
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.deletes.deletion_vector import read_deletion_vector
from icebergds.formats.deletes.position_deletes import NAMES_WITHOUT_IDS
from icebergds.formats.stored_file import read_stored_file
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.operations.maintenance.verify.column_checks import (
    Measured,
    check_column,
    check_column_sizes,
    correction_of,
    impossible_sizes,
)
from icebergds.operations.maintenance.verify.findings import (
    REPAIR,
    Depth,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.operations.maintenance.verify.walk import READ_ERRORS, unreadable
from icebergds.operations.runner import TaskAttempt
from icebergds.scan.read.metadata_columns import identity_constants
from icebergds.scan.read_plan import as_optional
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema

_DELETES = Schema((as_optional(DELETE_FILE_PATH), as_optional(DELETE_POS)))
_FULL = MetricsModes(FULL)
_WRITE_ANEW = "restore the file from a backup, or write its rows anew from their source"


@dataclass(frozen=True, slots=True)
class FileToCheck:
    """A live file.

    Attributes:
        size: its true size, if it is known.
        target_rows: of a deletion vector, how many rows its data file has; None if there is none.
    """

    file: DataFile
    size: int | None = None
    target_rows: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What was found of a file, and what its manifest should say."""

    key: FileKey
    findings: tuple[Finding, ...]
    correction: FileCorrection


@dataclass(frozen=True, slots=True)
class CheckFiles:
    """Checks the files of a task; sound ones are left out of the result.

    Attributes:
        schema: the table's.
        modes: which metrics its manifests have.
    """

    io: FileIO
    schema: Schema
    specs: dict[int, PartitionSpec]
    mapping: NameMapping
    modes: MetricsModes
    depth: Depth

    def __call__(self, files: Sequence[FileToCheck], attempt: TaskAttempt) -> list[CheckedFile]:
        readers = readers_of(self.io, (each.file.file_path for each in files))
        check = _FileCheck(self)
        with ThreadPoolExecutor(readers) as pool:
            checked = list(pool.map(check, files))
        return [each for each in checked if each.findings or each.correction]


class _FileCheck:
    """Checks one file after the other."""

    def __init__(self, task: CheckFiles) -> None:
        self._task = task
        self._schemas = {
            FileContent.DATA: task.schema,
            FileContent.POSITION_DELETES: _DELETES,
            FileContent.EQUALITY_DELETES: Schema(tuple(map(as_optional, task.schema.fields))),
        }
        self._mappings = {
            FileContent.DATA: task.mapping,
            FileContent.POSITION_DELETES: NAMES_WITHOUT_IDS,
            FileContent.EQUALITY_DELETES: task.mapping,
        }
        self._measured = {
            content: measured_columns(schema, _FULL) for content, schema in self._schemas.items()
        }

    def __call__(self, each: FileToCheck) -> CheckedFile:
        file = each.file
        try:
            if file.is_deletion_vector:
                return _vector(self._task.io, each)
            return self._data_file(each)
        except READ_ERRORS as error:
            remedy = _WRITE_ANEW if file.content is FileContent.DATA else "restore the file"
            found = unreadable(error, file.file_path, "reads of the table fail", remedy)
            return CheckedFile(file_key(file), (found,), FileCorrection())

    def _data_file(self, each: FileToCheck) -> CheckedFile:
        file, task = each.file, self._task
        schema, mapping = self._schemas[file.content], self._mappings[file.content]
        stored = read_stored_file(
            task.io,
            file.file_path,
            file.file_format,
            schema,
            mapping,
            each.size,
            file.key_metadata,
        )
        found = [*_rows(each, stored), *_offsets(file, stored), *self._columns(file, stored)]
        found += check_column_sizes(file, stored, schema)
        measured = Measured(
            stored.statistics.value_counts,
            stored.statistics.null_counts,
            ranges=stored.statistics.ranges,
        )
        columns = self._measured[file.content]
        if task.depth.reads_rows:
            present = {column.field_id for column in walk_columns(stored.columns)}
            measured = _from_rows(task, file, schema, mapping, columns, present)
        corrections: dict[int, ColumnCorrection] = {}
        for column in columns:
            name = schema.find_name(column.field_id) or str(column.field_id)
            wrong = list(check_column(file, column, name, measured))
            if wrong:
                found += wrong
                mode = FULL if schema is _DELETES else task.modes[column.field_id]
                kept = replace(column, mode=mode)
                corrections[column.field_id] = correction_of(file, kept, measured)
        correction = _correction(each, stored, corrections)
        return CheckedFile(file_key(file), tuple(found), correction)

    def _columns(self, file: DataFile, stored: StoredFile) -> Iterator[Finding]:
        """Whether a reader can read the file as the table's columns."""
        task, schema = self._task, self._schemas[file.content]
        if not stored.has_own_ids and not self._mappings[file.content].fields:
            # Its columns are read by position.
            return
        if file.content is FileContent.EQUALITY_DELETES:
            yield from _key_columns(file, stored)
            return
        constants = identity_constants(task.specs[file.spec_id], file.partition)
        try:
            needed_leaves(stored.columns, schema, file.file_path)
            projection = plan_projection(stored.columns, schema, constants, file.file_path)
            if file.file_format is FileFormat.PARQUET:
                projection.apply([pa.nulls(0, column.arrow_type) for column in stored.columns], 0)
        except (FormatError, InvalidDataError) as error:
            yield Finding(
                FindingKind.FILE_COLUMNS,
                file.file_path,
                None,
                None,
                str(error),
                "reads of the table fail",
                _WRITE_ANEW,
            )


def in_tasks(files: Iterable[FileToCheck], size: int) -> Iterator[list[FileToCheck]]:
    """The files in groups for the tasks, which are made as they are needed."""
    files = iter(files)
    while group := list(islice(files, size)):
        yield group


def _rows(each: FileToCheck, stored: StoredFile) -> Iterator[Finding]:
    file = each.file
    if file.record_count in (stored.num_rows, -1):
        return
    refused = _refused(each, stored)
    yield Finding(
        FindingKind.RECORD_COUNT,
        file.file_path,
        "record_count",
        f"{file.record_count:,} rows",
        f"{stored.num_rows:,} rows",
        "counts that engines take from metadata are wrong, and some readers refuse the file",
        refused or f"if the file is the one that was written, {REPAIR}; else restore it",
        is_repairable=refused is None,
    )


def _refused(each: FileToCheck, stored: StoredFile) -> str | None:
    """What to do instead, if the number of rows in the manifest must not be corrected."""
    file = each.file
    if each.size is not None and each.size != file.file_size_in_bytes:
        return "the file was replaced by another: restore it"
    if file.first_row_id is not None and stored.num_rows > file.record_count:
        return (
            "write the rows of the file anew: with its true count, its row ids would be those of "
            "other rows"
        )
    return None


def _offsets(file: DataFile, stored: StoredFile) -> Iterator[Finding]:
    if not file.split_offsets or set(file.split_offsets) <= set(stored.split_offsets):
        return
    if file.file_format is FileFormat.AVRO:
        return
    yield Finding(
        FindingKind.SPLIT_OFFSETS,
        file.file_path,
        "split_offsets",
        ", ".join(map(str, file.split_offsets[:5])),
        ", ".join(map(str, stored.split_offsets[:5])),
        "files are split into uneven parts",
        REPAIR,
        is_repairable=True,
        severity=Severity.NOTE,
    )


def _key_columns(file: DataFile, stored: StoredFile) -> Iterator[Finding]:
    present = {column.field_id for column in walk_columns(stored.columns)}
    for field_id in file.equality_ids:
        if field_id not in present:
            yield Finding(
                FindingKind.FILE_COLUMNS,
                file.file_path,
                "equality_ids",
                f"{field_id}",
                "no such column in the file",
                "reads of the table fail, or read the rows that it deletes",
                "restore the file",
            )


def _correction(
    each: FileToCheck, stored: StoredFile, columns: dict[int, ColumnCorrection]
) -> FileCorrection:
    file, rows, size, offsets = each.file, stored.num_rows, each.size, None
    if any(True for _ in _offsets(file, stored)):
        offsets = stored.split_offsets
    # Of a file with another size, an equal number of rows shows that it is the one meant.
    is_meant = file.record_count == rows
    sizes = stored.statistics.sizes
    return FileCorrection(
        record_count=None if is_meant or _refused(each, stored) else rows,
        file_size_in_bytes=size if is_meant and size != file.file_size_in_bytes else None,
        split_offsets=offsets,
        columns=columns,
        column_sizes={i: sizes.get(i) for i in impossible_sizes(file, stored)},
    )


def _from_rows(
    task: CheckFiles,
    file: DataFile,
    schema: Schema,
    mapping: NameMapping,
    columns: Sequence[MeasuredColumn],
    present: AbstractSet[int | None],
) -> Measured:
    """The metrics of the stored columns, of all rows of a file.

    Columns without metrics are read too, as they may be damaged.

    Args:
        present: the ids of the columns that the file stores, at any depth.
    """
    columns = [column for column in columns if column.field_id in present]
    stored = (at for at, field in enumerate(schema.fields) if field.field_id in present)
    tops = sorted({*stored, *(column.path[0] for column in columns)})
    read = Schema(tuple(schema.fields[at] for at in tops))
    places = {top: at for at, top in enumerate(tops)}
    columns = [replace(c, path=(places[c.path[0]], *c.path[1:])) for c in columns]
    values, nulls, nans = ({c.field_id: 0 for c in columns} for _ in range(3))
    ranges: dict[int, Range] = {}
    boxes: dict[int, Box] = {}
    constants = identity_constants(task.specs[file.spec_id], file.partition)
    opened = open_data_file(
        task.io,
        file.file_path,
        file.file_format,
        table_schema=schema,
        name_mapping=mapping,
        key_metadata=file.key_metadata,
        checks_pages=True,
    )
    with opened as reader:
        for batch in reader.batches(ReadRequest(read, constants)):
            for column in columns:
                array, field_id = column.values(batch.batch), column.field_id
                values[field_id] += len(array)
                nulls[field_id] += array.null_count
                if column.is_floating:
                    nans[field_id] += count_nans(array)
                if has_bounds(column.field_type) and (found := range_of(array)) is not None:
                    ranges[field_id] = found.union(ranges.get(field_id))
                if column.has_box:
                    box = box_of(column.field_type, array)
                    boxes[field_id] = box.union(boxes.get(field_id))
    floating = {column.field_id for column in columns if column.is_floating}
    nans = {field_id: count for field_id, count in nans.items() if field_id in floating}
    return Measured(values, nulls, nans, ranges, boxes, is_exact=True)


def _vector(io: FileIO, each: FileToCheck) -> CheckedFile:
    file, findings, correction = each.file, list[Finding](), FileCorrection()
    offset, length = file.content_offset, file.content_size_in_bytes
    if offset is None or length is None:
        # What its entry lacks is told without opening the file.
        return CheckedFile(file_key(file), (), correction)
    positions = read_deletion_vector(
        io,
        file.file_path,
        offset,
        length,
        file_size=each.size,
        key_metadata=file.key_metadata,
    )
    if len(positions) != file.record_count:
        correction = FileCorrection(record_count=len(positions))
        findings.append(
            Finding(
                FindingKind.RECORD_COUNT,
                file.file_path,
                f"record_count of the vector of {file.referenced_data_file}",
                f"{file.record_count:,} positions",
                f"{len(positions):,} positions",
                "reads of the data file fail, or count its rows wrongly",
                REPAIR,
                is_repairable=True,
            )
        )
    if each.target_rows is not None and positions and positions.last >= each.target_rows:
        path = file.referenced_data_file or ""
        findings.append(out_of_range(file.file_path, path, positions.last, each.target_rows))
    return CheckedFile(file_key(file), tuple(findings), correction)


def out_of_range(delete_file: str, path: str, position: int, rows: int) -> Finding:
    """The finding that a delete file names a row that its data file does not have."""
    return Finding(
        FindingKind.DELETE_POSITIONS,
        delete_file,
        path,
        f"position {position:,}",
        f"{rows:,} rows",
        "the row that was meant is read still, or readers fail",
        "find out which rows were meant, delete them, and rewrite the delete files",
    )
