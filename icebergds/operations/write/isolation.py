"""Chooses which concurrent commits make an overwrite or a change of rows fail."""

from __future__ import annotations

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import commit_base
from icebergds.commit.options import IsolationLevel
from icebergds.commit.row_selection import rows_matching
from icebergds.commit.validation import Isolation, check_isolation
from icebergds.errors import ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.read_marks import ReadMark, oldest_read
from icebergds.spec.table_properties import ISOLATION_LEVEL


def isolation_of(options: WriteOptions, table: LoadedTable, statement: str) -> IsolationLevel:
    """The level of a statement: the option, or else that of the table property.

    Args:
        statement: `delete`, `update` or `merge`.

    Raises:
        InvalidOptionError: the property is malformed.
    """
    if options.isolation_level is not None:
        return IsolationLevel(options.isolation_level)
    return IsolationLevel(ISOLATION_LEVEL[statement].of(table.metadata.properties))


def overwrite_isolation(options: WriteOptions, table: LoadedTable) -> Isolation:
    """The isolation of an overwrite, from what its rows may have been computed from.

    With a filter it is that of a delete. Without one it is serializable if the rows are known to
    come from the table itself, and none otherwise: then it replaces whatever is there when it
    commits. An option says otherwise.

    Raises:
        InvalidOptionError: a table property is malformed.
    """
    level = IsolationLevel(options.isolation_level or IsolationLevel.NONE)
    if options.overwrite_filter is not None:
        level = isolation_of(options, table, "delete")
    elif options.isolation_level is None and _read_mark(options, table) is not None:
        level = IsolationLevel.SERIALIZABLE
    return Isolation(level, _read_snapshot_id(options, table))


def check_marked_rows(options: WriteOptions, table: LoadedTable, isolation: Isolation) -> None:
    """Checks an overwrite of all rows by rows that are known to come from the table itself.

    Its commit would find the same, but only after the rows are written.

    Raises:
        ValidationError: the table has changed since the rows were read.
    """
    mark = _read_mark(options, table)
    if mark is None or options.overwrite_mode == "dynamic" or options.overwrite_filter is not None:
        return
    try:
        check_rows_since_read(options, table, isolation.level, TRUE)
    except ValidationError as error:
        state = (
            "without a snapshot" if mark.snapshot_id is None else f"at snapshot {mark.snapshot_id}"
        )
        raise ValidationError(
            f"{error}. The rows of this overwrite come from a load of the table {state}: a "
            "DataFrame and a temporary view stay at the snapshot of their creation, also where "
            "they are written to. Load the table, or create the view, again; or set option "
            "'isolation-level' = 'none' to replace what was committed since, too"
        ) from None


def check_rows_since_read(
    options: WriteOptions, table: LoadedTable, level: IsolationLevel, row_filter: Expr
) -> None:
    """Checks that the rows to overwrite are still those that new rows may have been computed from.

    An idempotent write that the table has already passes: its commit does nothing.

    Args:
        row_filter: the rows to overwrite.

    Raises:
        ValidationError: a commit between the caller's reads and the table's state changed some.
    """
    isolation = Isolation(level, _read_snapshot_id(options, table))
    head, repeated = table.metadata.head_of(options.branch), options.idempotent_write
    if head is None or head.snapshot_id == isolation.from_snapshot_id:
        return
    if repeated is not None and repeated.is_committed(table.metadata, options.branch):
        return
    base = commit_base(table.state, options.branch)
    check_isolation(base, isolation, rows_matching(base, row_filter, case_sensitive=False))


def _read_snapshot_id(options: WriteOptions, table: LoadedTable) -> int | None:
    if options.validate_from_snapshot_id is not None:
        return options.validate_from_snapshot_id
    if (mark := _read_mark(options, table)) is not None:
        return mark.snapshot_id
    head = (table.seen or table.metadata).head_of(options.branch)
    return None if head is None else head.snapshot_id


def _read_mark(options: WriteOptions, table: LoadedTable) -> ReadMark | None:
    return oldest_read(options.read_marks, table.metadata, options.branch)
