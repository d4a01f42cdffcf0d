"""Options of writes that change rows: which change, of which rows, on what it was based."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import boolean, integer, parse

ROW_CHANGE_OPTIONS = ("write-operation", "upsert-keys", "upsert-order-by", "row-kind-column")
"""Options that users give."""

INTERNAL_OPTIONS = (
    "write-id",
    "read-snapshot-id",
    "read-schema-id",
    "conflict-filter",
    "rows-are-ordered",
    "statement",
)
"""Options by which the methods of `Table` say what they have done already."""


class WriteOperation(StrEnum):
    """What the rows of a write are for.

    Those of `POSITION_DELTA` and `REWRITE` name rows of the table by file and position, and come
    from the methods of `Table`.
    """

    APPEND = "append"
    UPSERT = "upsert"
    DELETE = "delete"
    DELTA = "delta"
    POSITION_DELTA = "position-delta"
    REWRITE = "rewrite"


BY_KEY = frozenset({WriteOperation.UPSERT, WriteOperation.DELETE, WriteOperation.DELTA})
"""Operations whose rows name those that they change by their keys."""

_BY_POSITION = frozenset({WriteOperation.POSITION_DELTA, WriteOperation.REWRITE})


@dataclass(frozen=True, slots=True)
class RowChangeOptions:
    """A change of rows.

    Attributes:
        keys: columns joined by commas; None for the table's identifier fields.
        order_by: the column whose greatest value wins among rows of one key.
        row_kind_column: the column that says what a row of `DELTA` does.
        read_snapshot_id: the snapshot whose positions the rows name; None where there was none.
        read_schema_id: the schema by whose names the rows' columns are called; None where these are
            the table's own of the moment.
        conflict_filter: what the operation looked at, as a Spark SQL condition; None for all rows.
        is_ordered: whether the rows of each task come in the order of `order_by`.
        statement: what asks for the change, such as `merge`, for the snapshot's summary.
    """

    operation: WriteOperation
    keys: str | None = None
    order_by: str | None = None
    row_kind_column: str | None = None
    read_snapshot_id: int | None = None
    read_schema_id: int | None = None
    conflict_filter: str | None = None
    is_ordered: bool = False
    statement: str | None = None


def parse_row_change(given: Mapping[str, str]) -> RowChangeOptions | None:
    """The change that options ask for; None for an append or an overwrite.

    Args:
        given: options, their names in lower case.

    Raises:
        InvalidOptionError: an unknown operation, or options that it does not go with.
    """
    operation = parse(given, "write-operation", _operation, WriteOperation.APPEND)
    _refuse_contradictions(operation, given)
    if operation is WriteOperation.APPEND:
        return None
    return RowChangeOptions(
        operation,
        given.get("upsert-keys"),
        given.get("upsert-order-by"),
        given.get("row-kind-column"),
        parse(given, "read-snapshot-id", integer, None),
        parse(given, "read-schema-id", integer, None),
        given.get("conflict-filter"),
        parse(given, "rows-are-ordered", boolean, False),
        given.get("statement"),
    )


def _operation(text: str) -> WriteOperation:
    try:
        return WriteOperation(text.lower())
    except ValueError:
        raise ValueError("expected append, upsert, delete or delta") from None


def _refuse_contradictions(operation: WriteOperation, given: Mapping[str, str]) -> None:
    fits = {
        "upsert-keys": BY_KEY,
        "upsert-order-by": {WriteOperation.UPSERT, WriteOperation.DELTA},
        "row-kind-column": {WriteOperation.DELTA},
        "rows-are-ordered": BY_KEY,
        "read-snapshot-id": _BY_POSITION,
        "read-schema-id": _BY_POSITION,
        "conflict-filter": _BY_POSITION,
        "statement": _BY_POSITION,
    }
    for name, operations in fits.items():
        if name in given and operation not in operations:
            wanted = " or ".join(repr(str(fitting)) for fitting in sorted(operations))
            raise InvalidOptionError(
                f"option {name!r} goes with 'write-operation' = {wanted}, not {str(operation)!r}"
            )
    if operation is WriteOperation.APPEND:
        return
    if operation is WriteOperation.DELTA and "row-kind-column" not in given:
        raise InvalidOptionError(
            "'write-operation' = 'delta' needs option 'row-kind-column', the column that says what "
            "a row does: +I, -U, +U or -D"
        )
    for name in ("overwrite-filter", "overwrite-mode"):
        if name in given:
            raise InvalidOptionError(
                f"options {name!r} and 'write-operation' = {str(operation)!r} contradict each "
                "other: one replaces whole parts of a table, the other single rows"
            )
    if given.get("create", "false").lower() == "true":
        raise InvalidOptionError(
            f"options 'create' and 'write-operation' = {str(operation)!r} contradict each other: "
            "a table that is not there has no rows to change; create it by an append"
        )
