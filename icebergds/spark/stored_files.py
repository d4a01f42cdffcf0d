"""Reads footers to decide how Spark's Parquet reader finds columns in data files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from icebergds.errors import IcebergError
from icebergds.formats.arrow.types import to_arrow
from icebergds.formats.data_file.file_schema import (
    ColumnKind,
    FileColumn,
    has_ids,
    with_ids,
)
from icebergds.formats.parquet.stored_form import stored_form
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.scan.plan.native_columns import NATIVE_PREFIX
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import DataFile
from icebergds.spec.types import NestedField

StoredNames: TypeAlias = tuple[tuple[int, str], ...]
"""Ids of columns, each with its name in a file; the file lacks the others."""

_PLAIN_NAME = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class FoundBy:
    """How the columns of a file are found: by these names, or by field ids if there are none."""

    names: StoredNames | None


def file_has_ids(io: FileIO, file: DataFile) -> bool:
    """Whether any column of a file has a field id."""
    return has_ids(_columns(io, file))


def is_named(io: FileIO, file: DataFile, fields: Sequence[NestedField]) -> bool:
    """Whether a file has columns under the names of the fields, and no others under these."""
    columns = _columns(io, file)
    ids = {field.field_id for field in fields}
    named = {field.name.lower(): field.field_id for field in fields}
    return all(
        column.field_id == named[name] if name in named else column.field_id not in ids
        for name, column in ((column.name.lower(), column) for column in columns)
    )


def some_of(files: Sequence[DataFile]) -> Iterator[DataFile]:
    """The first file, the last one and one between them."""
    yield from (files[index] for index in {0, len(files) // 2, len(files) - 1})


def found_by(
    plan: ReadPlan, files: Sequence[DataFile], fields: Sequence[NestedField], *, by_id: bool
) -> list[FoundBy | None]:
    """How columns are found in each file of a table with a name mapping; reads all footers.

    The files must be allowed by `scan.plan.native_forms`.

    Args:
        fields: the columns that are read.
        by_id: find columns by field ids in files that have them, otherwise by their names.

    Returns:
        None for files whose columns Spark would read differently from icebergds, or not at all.
    """
    paths = (file.file_path for file in files)
    with ThreadPoolExecutor(readers_of(plan.io, paths)) as pool:
        return list(pool.map(partial(_found_by, plan, fields, by_id), files))


def _found_by(
    plan: ReadPlan, fields: Sequence[NestedField], by_id: bool, file: DataFile
) -> FoundBy | None:
    try:
        columns = _columns(plan.io, file)
    except IcebergError:
        # Reading the file raises the error.
        return None
    if by_id and has_ids(columns):
        return FoundBy(None)
    names = _names(with_ids(columns, plan.table_schema, plan.name_mapping), fields)
    return None if names is None else FoundBy(names)


def _names(columns: Sequence[FileColumn], fields: Sequence[NestedField]) -> StoredNames | None:
    """The names of the columns for the fields; None if Spark may find or read others."""
    of_id: Mapping[int | None, int] = Counter(column.field_id for column in columns)
    of_name = Counter(column.name.lower() for column in columns)
    if any(name.startswith(NATIVE_PREFIX) for name in of_name):
        return None
    wanted = {field.field_id: field for field in fields}
    found: list[tuple[int, str]] = []
    for column in columns:
        field = None if column.field_id is None else wanted.get(column.field_id)
        if field is None:
            continue
        if (
            of_id[column.field_id] > 1
            or of_name[column.name.lower()] > 1
            or not _PLAIN_NAME.fullmatch(column.name)
            or column.name.lower() == "_metadata"
            or not _is_stored_alike(column, field)
        ):
            return None
        found.append((field.field_id, column.name))
    lacked = wanted.keys() - dict(found).keys()
    if any(wanted[each].required and wanted[each].initial_default is None for each in lacked):
        return None
    return tuple(sorted(found))


def _is_stored_alike(column: FileColumn, field: NestedField) -> bool:
    """Whether a column is stored as icebergds stores the field, so that nothing is converted."""
    return column.kind is ColumnKind.LEAF and column.arrow_type == to_arrow(field.field_type)


def _columns(io: FileIO, file: DataFile) -> tuple[FileColumn, ...]:
    return stored_form(io, file.file_path, file.file_size_in_bytes).columns
