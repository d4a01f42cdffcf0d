"""Parses the arguments of a removal of orphan files, and defines its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.display import block, counted, html_table, size_text, time_text
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.types import is_text
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.recursive_listing import FILE_SCHEMA
from icebergds.operations.maintenance.unused_files.file_identity import Aliases
from icebergds.operations.options.arguments import (
    flag_argument,
    integer_argument,
    mapping_argument,
    names_argument,
    text_argument,
)
from icebergds.operations.options.moments import moment_or_age
from icebergds.operations.options.rows import arrow_rows
from icebergds.operations.options.values import boolean, one_of, options_of, parse
from icebergds.spec.values.dates import now_ms

_DAY_MS = 24 * 60 * 60 * 1000
_DEFAULT_AGE_MS = 3 * _DAY_MS
_DEFAULT_DELETES = 4
# As many as Java returns with the same option.
_SAMPLE = 20_000
_STREAM_RESULTS, _OTHER_TABLES, _WRONG_COUNTS = "stream-results", "other-tables", "wrong-counts"
_OPTIONS = (_STREAM_RESULTS, _OTHER_TABLES, _WRONG_COUNTS)


class PrefixMismatch(StrEnum):
    """What to do with a file whose path is referenced with another scheme or authority."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


class OtherTables(StrEnum):
    """What to do with files of other tables.

    `KEEP` leaves all files in the directories of other tables; files of a table that shares the
    location cannot be distinguished and are still an error. `DELETE` treats them as orphans.
    """

    ERROR = "error"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class OrphanOptions:
    """The parsed arguments of a removal of orphan files.

    Attributes:
        older_than_ms: only files that were modified before are removed.
        location: the directory to search; the table's location if None.
        file_list: files to examine instead of listing a directory, with columns of `FILE_SCHEMA`;
            times and sizes may be null.
        most_locations: how many locations the result has at most.
    """

    older_than_ms: int
    location: str | None
    dry_run: bool
    max_concurrent_deletes: int
    file_list: pa.Table | None
    aliases: Aliases
    prefix_mismatch: PrefixMismatch
    other_tables: OtherTables
    wrong_counts: WrongCounts
    most_locations: int | None


def parse_orphan_options(
    *,
    older_than: Any,
    location: Any,
    dry_run: Any,
    max_concurrent_deletes: Any,
    file_list: Any,
    equal_schemes: Any,
    equal_authorities: Any,
    prefix_mismatch_mode: Any,
    options: Any,
    older_than_name: str = "older_than",
) -> OrphanOptions:
    """Checks the arguments of `Table.remove_orphan_files`.

    Args:
        older_than_name: what errors call `older_than`.

    Raises:
        InvalidOptionError: one is of the wrong type or value, an option is unknown, or
            `older_than` is less than 24 hours ago without a list of files.
    """
    given = options_of("remove_orphan_files", mapping_argument("options", options), _OPTIONS)
    deletes = integer_argument("max_concurrent_deletes", max_concurrent_deletes)
    if deletes is not None and deletes <= 0:
        raise InvalidOptionError(f"max_concurrent_deletes = {deletes}: expected a number above 0")
    mode = text_argument("prefix_mismatch_mode", prefix_mismatch_mode)
    given_mode = {} if mode is None else {"prefix_mismatch_mode": mode}
    return OrphanOptions(
        older_than_ms=_older_than(older_than_name, older_than, is_listing=file_list is None),
        location=text_argument("location", location),
        dry_run=flag_argument("dry_run", dry_run),
        max_concurrent_deletes=_DEFAULT_DELETES if deletes is None else deletes,
        file_list=None if file_list is None else _file_list(file_list),
        aliases=Aliases(
            _flattened("equal_schemes", equal_schemes),
            _flattened("equal_authorities", equal_authorities),
        ),
        prefix_mismatch=PrefixMismatch(
            parse(given_mode, "prefix_mismatch_mode", one_of(*PrefixMismatch), "error")
        ),
        other_tables=OtherTables(parse(given, _OTHER_TABLES, one_of(*OtherTables), "error")),
        wrong_counts=WrongCounts(parse(given, _WRONG_COUNTS, one_of(*WrongCounts), "fail")),
        most_locations=_SAMPLE if parse(given, _STREAM_RESULTS, boolean, False) else None,
    )


def _older_than(name: str, value: Any, *, is_listing: bool) -> int:
    moment = _moment(name, value)
    now = now_ms()
    if is_listing and moment > now - _DAY_MS:
        shown = time_text(moment) if isinstance(value, int) else repr(value)
        raise InvalidOptionError(
            f"{name} = {shown} is less than 24 hours ago: files of writes that are still under "
            "way would be removed, and their commits would leave a table that cannot be read; "
            f"give a time before {time_text(now - _DAY_MS)}, or an age of at least a day. Only "
            "remove_orphan_files with a file_list takes a later time"
        )
    return moment


def _moment(name: str, value: Any) -> int:
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.astimezone()
    moment = moment_or_age(name, value)
    return now_ms() - _DEFAULT_AGE_MS if moment is None else moment


def _file_list(value: Any) -> pa.Table:
    if (rows := arrow_rows(value, "file_list")) is not None:
        return _table_of_files(pa.table(rows))
    names = None if isinstance(value, str) else names_argument("file_list", value)
    if names is None:
        raise InvalidOptionError(
            f"file_list = {value!r}: expected a list of locations, or a table of Arrow, pandas "
            "or polars"
        )
    columns = {"location": list(names), "modified_ms": [None] * len(names)}
    return pa.table({**columns, "size_in_bytes": columns["modified_ms"]}, FILE_SCHEMA)


def _table_of_files(given: pa.Table) -> pa.Table:
    """A table of files in the form of Java's `file_list_view`."""
    if not {"file_path", "last_modified"} <= set(given.column_names):
        raise InvalidOptionError(
            f"file_list has the columns {', '.join(given.column_names)}; expected file_path "
            "(string) and last_modified (timestamp)"
        )
    paths, times = given["file_path"], given["last_modified"]
    if not pa.types.is_timestamp(times.type):
        raise InvalidOptionError(
            f"file_list: last_modified is of type {times.type}, expected a timestamp"
        )
    kind = paths.type.value_type if pa.types.is_dictionary(paths.type) else paths.type
    if not is_text(kind):
        raise InvalidOptionError(f"file_list: file_path is of type {paths.type}, expected a string")
    texts = [storage(chunk).cast(pa.string()) for chunk in paths.chunks]
    paths = pa.chunked_array(texts, pa.string())
    if paths.null_count:
        raise InvalidOptionError("file_list: a file_path is null")
    # Rounded up, so that no file seems older than it is.
    ceiled = pc.ceil_temporal(times, unit="millisecond")
    milliseconds = ceiled.cast(pa.timestamp("ms", times.type.tz)).cast(pa.int64())
    sizes = pa.nulls(len(paths), pa.int64())
    return pa.table([paths, milliseconds, sizes], schema=FILE_SCHEMA)


def _flattened(name: str, value: Any) -> Mapping[str, str]:
    """Aliases by name; as in Java, a key may list several names: `{"s3a,s3n": "s3"}`."""
    given = mapping_argument(name, value)
    return {
        alias.strip().lower(): meant.strip().lower()
        for names, meant in given.items()
        for alias in names.split(",")
    }


@dataclass(frozen=True, slots=True, repr=False)
class OrphanFiles:
    """The files that nothing in a table refers to.

    Attributes:
        orphan_file_locations: the orphan files; with the option `stream-results` only some.
        orphan_files_count: how many there are.
        orphan_bytes_count: their sizes together, as far as they are known; those of a `file_list`
            are not.
        deleted_files_count: how many of them were deleted; 0 in a dry run.
        failed_deletes: why others could not be deleted, by location.
        undated_files_count: further files that nothing refers to, but whose age the storage does
            not report, so that they are never deleted.
        examined_files_count: how many files were listed, or given as a list.
        dry_run: whether nothing was to be deleted.
    """

    orphan_file_locations: tuple[str, ...] = ()
    orphan_files_count: int = 0
    orphan_bytes_count: int = 0
    deleted_files_count: int = 0
    failed_deletes: Mapping[str, str] = field(default_factory=dict)
    undated_files_count: int = 0
    examined_files_count: int = 0
    dry_run: bool = False

    def __repr__(self) -> str:
        return block(f"OrphanFiles: {self._summary()}", self.orphan_file_locations, "file")

    def _repr_html_(self) -> str:
        rows = [(path, self.failed_deletes.get(path, "")) for path in self.orphan_file_locations]
        header = ("orphan_file_location", "not deleted because")
        return html_table(f"Orphan files: {self._summary()}", header, rows, "file")

    def _summary(self) -> str:
        size = f" ({size_text(self.orphan_bytes_count)})" if self.orphan_bytes_count else ""
        found = (
            f"{counted(self.orphan_files_count, 'orphan')}{size} among "
            f"{counted(self.examined_files_count, 'file')}"
        )
        told = [found]
        if self.dry_run:
            told.append("nothing deleted (dry run)")
        elif self.orphan_files_count:
            told.append(f"{self.deleted_files_count:,} deleted")
        if self.failed_deletes:
            told.append(f"{len(self.failed_deletes):,} could not be deleted")
        if self.undated_files_count:
            told.append(f"{self.undated_files_count:,} more of unknown age kept")
        return ", ".join(told)
