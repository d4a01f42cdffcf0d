"""Describes source files as data files of a table, in parallel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.types import repeat
from icebergds.formats.data_file.column_metrics import measured_columns
from icebergds.formats.data_file.metrics_modes import metrics_modes
from icebergds.formats.data_file.read_request import ReadRequest
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.formats.data_reader import open_data_file
from icebergds.formats.stored_file import describe_stored_file
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.operations.imports.file_fit import check_fit, table_columns
from icebergds.operations.imports.partitions import (
    check_path_columns,
    contradiction,
    partition_of,
    path_partition,
)
from icebergds.operations.imports.source_files import SourceFile
from icebergds.operations.imports.value_limits import check_limits
from icebergds.operations.runner import LocalRunner, Runner, TaskAttempt
from icebergds.reporting import advancing, stage
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import DOUBLE, FLOAT, NestedField

# Fewer are read faster by this process than by a job.
_FILES_OF_A_TASK = 1_000


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A data file, and whether it has field ids of its own."""

    data_file: DataFile
    has_own_ids: bool


@dataclass(frozen=True, slots=True)
class FileTarget:
    """What files are added to.

    Attributes:
        mapping: gives columns their field ids if a file has none.
        time_zone: the zone of instants in paths.
        wanted: partition values by position, of the files to take.
        defaulted: names of columns whose value is not null in files that lack them.
    """

    io: FileIO
    metadata: TableMetadata
    mapping: NameMapping
    time_zone: str
    wanted: Mapping[int, Any]
    defaulted: frozenset[str] = frozenset()


def describe_files(
    target: FileTarget, files: Sequence[SourceFile], runner: Runner
) -> list[DescribedFile]:
    """Reads the footers of files.

    Args:
        runner: runs the tasks if there are many files.

    Returns:
        The files in their order, without those of unwanted partitions.

    Raises:
        InvalidDataError: a file does not fit the table, or has no single partition.
        CorruptFileError, UnsupportedFeatureError, MissingFileError, StorageError: a file cannot be
            read.
    """
    runner = runner if len(files) > _FILES_OF_A_TASK else LocalRunner()
    starts = range(0, len(files), _FILES_OF_A_TASK)
    shares = [files[start : start + _FILES_OF_A_TASK] for start in starts]
    is_local = isinstance(runner, LocalRunner)

    def weigh(share: Sequence[SourceFile]) -> tuple[int, int]:
        # A task in this process advances by each file.
        return 0 if is_local else len(share), 0

    with stage("read footers", len(files), weigh=weigh):
        return [file for found in runner.run(_Describe(target), shares) for file in found]


@dataclass(frozen=True, slots=True)
class _Describe:
    """Describes the files of a task."""

    target: FileTarget

    def __call__(self, files: Sequence[SourceFile], attempt: TaskAttempt) -> list[DescribedFile]:
        describe = _Describer(self.target)
        readers = readers_of(self.target.io, (file.location for file in files))
        with ThreadPoolExecutor(readers) as pool:
            done = advancing(pool.map(describe, files))
            return [found for found in done if found is not None]


class _Describer:
    """Describes one file after the other; None for those of unwanted partitions."""

    def __init__(self, target: FileTarget) -> None:
        metadata = target.metadata
        self._target = target
        self._schema = metadata.schema()
        self._columns = table_columns(metadata, target.mapping)
        self._modes = metrics_modes(metadata.properties, self._schema, metadata.sort_order())
        self._measured = measured_columns(self._schema, self._modes)

    def __call__(self, source: SourceFile) -> DescribedFile | None:
        target, metadata, location = self._target, self._target.metadata, source.location
        texts = source.path_values
        from_path = path_partition(texts, metadata, target.mapping, target.time_zone, location)
        if self._is_elsewhere(from_path):
            return None
        file_format, file = describe_stored_file(
            target.io, location, self._schema, target.mapping, source.size
        )
        check_fit(file, self._columns, from_path, location)
        self._check_defaults(file, location)
        check_path_columns(file, texts, from_path, self._schema, location)
        partition = partition_of(file, from_path, metadata, location)
        if any(partition[at] != value for at, value in target.wanted.items()):
            return None
        check_limits(target.io, location, file_format, file, self._schema, target.mapping)
        _check_stored_values(
            target.io, location, file_format, file, from_path, self._schema, target.mapping
        )
        metrics = file.statistics.metrics(self._measured, self._modes)
        data_file = DataFile(
            content=FileContent.DATA,
            file_path=location,
            file_format=file_format,
            spec_id=metadata.default_spec_id,
            partition=partition,
            record_count=file.num_rows,
            file_size_in_bytes=file.size,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=file.split_offsets,
        )
        return DescribedFile(data_file, file.has_own_ids)

    def _check_defaults(self, file: StoredFile, location: str) -> None:
        if not self._target.defaulted:
            return
        stored = {column.field_id for column in file.columns}
        for field in self._schema.fields:
            if field.name in self._target.defaulted and field.field_id not in stored:
                raise InvalidDataError(
                    f"{location} cannot be added: it lacks column {field.name!r}, for which Spark "
                    "reads the default that the column was added with, and others would read null; "
                    "write the rows anew first, such as by INSERT OVERWRITE in Spark"
                )

    def _is_elsewhere(self, from_path: Mapping[int, Any]) -> bool:
        fields = self._target.metadata.spec().fields
        return any(
            fields[at].source_id in from_path and from_path[fields[at].source_id] != value
            for at, value in self._target.wanted.items()
        )


def _check_stored_values(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    file: StoredFile,
    from_path: Mapping[int, Any],
    schema: Schema,
    mapping: NameMapping,
) -> None:
    """Reads the columns whose values a path names, if the file has them and no exact statistics.

    Args:
        from_path: the values that the path names, by field id.
        schema: the table's schema.
        mapping: gives columns their field ids if the file has none.

    Raises:
        InvalidDataError: a column has other values.
        CorruptFileError, MissingFileError, StorageError: the file cannot be read.
    """
    stored = {column.field_id for column in file.columns}
    unproven = [
        field
        for field in schema.fields
        if field.field_id in from_path
        and field.field_id in stored
        and not _is_proven(file, field, from_path[field.field_id])
    ]
    if not unproven:
        return
    request = ReadRequest(Schema(tuple(unproven)))
    opened = open_data_file(io, location, file_format, table_schema=schema, name_mapping=mapping)
    with opened as reader:
        for positioned in reader.batches(request):
            for field, column in zip(unproven, positioned.batch.columns, strict=True):
                value = from_path[field.field_id]
                if not _are_all(column, field, value):
                    raise contradiction(field, value, location)


def _is_proven(file: StoredFile, field: NestedField, value: Any) -> bool:
    found, field_id = file.statistics, field.field_id
    nulls, values = found.null_counts.get(field_id), found.ranges.get(field_id)
    if value is None:
        return nulls is not None and nulls == found.value_counts.get(field_id)
    # Bounds leave NaN out, and do not distinguish -0.0 from 0.0.
    is_exact = field.field_type not in (FLOAT, DOUBLE)
    return (
        is_exact and nulls == 0 and values is not None and values.least == value == values.greatest
    )


def _are_all(column: pa.Array, field: NestedField, value: Any) -> bool:
    (expected,) = repeat(field.field_type, value, 1).to_pylist()
    return all(_is_same(found, expected) for found in _distinct(column))


def _distinct(column: pa.Array) -> Iterable[Any]:
    values: Iterable[Any] = column.unique().to_pylist()
    return values


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # NaN is not equal to itself, but -0.0 is equal to 0.0.
        are_nan = one != one and other != other
        return are_nan or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return bool(one == other)
