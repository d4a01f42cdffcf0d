"""Creates a table from the files of another catalog's table, which stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.options import CommitOptions
from icebergds.errors import AlreadyExistsError, InvalidOptionError, NoSuchTableError
from icebergds.expr.names import in_backticks
from icebergds.operations.imports.add_files import AddFilesRequest, add_files, check_files
from icebergds.operations.imports.source_files import SourceFile
from icebergds.operations.runner import Runner
from icebergds.operations.write.create import NewTable, plan_new_table
from icebergds.operations.write.options import Creation
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import PATHS

# Properties about the table's old catalog, or about Spark's own files.
_DROPPED = frozenset(
    {
        "path",
        "location",
        "provider",
        "transient_lastDdlTime",
        "serialization.format",
        *PATHS,
    }
)
_OF_SPARK = "spark.sql."


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table of files that another catalog keeps.

    Attributes:
        name: the table's name in messages.
        schema: its columns, including those of its partitions.
        partition_columns: names of the columns whose values files have from their partitions.
        location: its directory.
        properties: as its catalog has them.
        files: its data files.
        is_managed: whether its catalog deletes the files if the table is dropped.
        defaulted: names of columns whose value is not null in files that lack them.
    """

    name: str
    schema: Schema
    partition_columns: Sequence[str]
    location: str
    properties: Mapping[str, str]
    files: Sequence[SourceFile]
    is_managed: bool
    defaulted: frozenset[str] = frozenset()


def renamed(before: ForeignTable, after: ForeignTable) -> ForeignTable:
    """A table after it was renamed, with all files that it had before.

    A rename may move a directory. Spark's in-memory catalog then loses the partitions in it.
    """
    old, new = before.location.rstrip("/"), after.location.rstrip("/")
    files = {file.location: file for file in after.files}
    for file in before.files:
        place = file.location
        moved = new + place.removeprefix(old) if place.startswith(old) else place
        files[moved] = replace(file, location=moved)
    return replace(after, files=[files[location] for location in sorted(files)])


def import_table(
    source: ForeignTable,
    address: TableAddress,
    properties: Mapping[str, str],
    *,
    location: str | None,
    apart: bool,
    time_zone: str,
    runner: Runner,
) -> int:
    """Creates a table from a source's files, in one commit.

    Args:
        properties: the properties of the new table, besides those of the source.
        location: the new table's directory; that of the address or the catalog's choice by default.
        apart: whether the directories of both must not overlap.
        time_zone: the zone of instants in folder names.

    Returns:
        The number of files.

    Raises:
        AlreadyExistsError: the new table exists.
        NoSuchNamespaceError: its namespace does not exist.
        InvalidOptionError: the definition is invalid, or the directories overlap.
        InvalidDataError: a file does not fit the source's own columns.
        CorruptFileError, UnsupportedFeatureError, MissingFileError, StorageError: a file cannot be
            read.
        CommitStateUnknownError: it is not known whether the table was created.
    """
    new = check_import(source, address, properties, location=location, apart=apart)
    table = LoadedTable(address, new, new.planned())
    if not source.files:
        new.commit(table.state, [], [])
        return 0
    options = CommitOptions(table_uuid=table.metadata.table_uuid)
    added, _ = add_files(table, _request(source, time_zone), options, runner)
    return added.added_files_count


def check_import_with_files(
    source: ForeignTable,
    address: TableAddress,
    properties: Mapping[str, str],
    *,
    location: str | None,
    time_zone: str,
    runner: Runner,
) -> None:
    """Reads what `import_table` would read, and changes nothing; has its arguments and errors."""
    new = check_import(source, address, properties, location=location, apart=False)
    if source.files:
        table = LoadedTable(address, new, new.planned())
        check_files(table, _request(source, time_zone), runner)


def _request(source: ForeignTable, time_zone: str) -> AddFilesRequest:
    return AddFilesRequest(
        source.files,
        refuses_duplicates=False,
        time_zone=time_zone,
        defaulted=source.defaulted,
    )


def check_import(
    source: ForeignTable,
    address: TableAddress,
    properties: Mapping[str, str],
    *,
    location: str | None,
    apart: bool,
) -> NewTable:
    """Plans the new table, before anything is changed; arguments are those of `import_table`.

    Raises:
        AlreadyExistsError: the new table exists.
        NoSuchNamespaceError: its namespace does not exist.
        InvalidOptionError: the definition is invalid, or the directories overlap.
    """
    kept = {
        name: value
        for name, value in source.properties.items()
        if name not in _DROPPED and not name.startswith(_OF_SPARK)
    }
    creation = Creation(
        partition_by=", ".join(in_backticks([name]) for name in source.partition_columns),
        location=location,
        properties={**kept, **properties},
    )
    new = plan_new_table(address, creation, source.schema)
    with suppress(NoSuchTableError):
        address.load()
        raise AlreadyExistsError(
            f"table {address.path} exists already; choose another name for the new table of the "
            f"files of table {source.name}, or add its files to the table with add_files"
        )
    if apart:
        _refuse_overlap(source, new)
    return new


def _refuse_overlap(source: ForeignTable, new: NewTable) -> None:
    io = new.io
    old, at = (
        io.locate(location).rstrip("/")
        for location in (source.location, new.planned().metadata.location)
    )
    if f"{old}/".startswith(f"{at}/") or f"{at}/".startswith(f"{old}/"):
        raise InvalidOptionError(
            f"the new table's location {at} overlaps with {old}, that of table {source.name}, so "
            "that their files would be mixed; choose another location"
        )
