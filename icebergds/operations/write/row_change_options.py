"""Parses the options of writes that change rows by key: upserts, deletes, changelogs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import parse
from icebergds.spec.table_properties import UPSERT_MODE, UPSERT_RESOLVE_LIMIT_BYTES


class WriteOperation(StrEnum):
    """What a write does with its rows; all but `APPEND` change existing rows by key."""

    APPEND = "append"
    UPSERT = "upsert"
    DELETE = "delete"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class RowChangeOptions:
    """A change of rows by key.

    Attributes:
        keys: column names joined by commas; None for the table's identifier fields.
        order_by: the column whose greatest value wins among rows with the same key.
        row_kind_column: the column with the kind of each change, for `DELTA`.
        is_ordered: whether each task's rows are sorted by `order_by`.
        keys_meet: whether all rows of a key are in the same task.
        mode: how rows are deleted, instead of as the table's property says.
        resolve_limit: up to how many bytes are read to delete by position, instead of as the
            table's property says.
    """

    operation: WriteOperation
    keys: str | None = None
    order_by: str | None = None
    row_kind_column: str | None = None
    is_ordered: bool = False
    keys_meet: bool = False
    mode: str | None = None
    resolve_limit: int | None = None


def parse_row_change(given: Mapping[str, str]) -> RowChangeOptions | None:
    """Parses a change by key; None for an append or an overwrite.

    Args:
        given: options with names in lower case.

    Raises:
        InvalidOptionError: the operation is unknown or does not take an option.
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
        mode=UPSERT_MODE.of(given) if UPSERT_MODE.name in given else None,
        resolve_limit=UPSERT_RESOLVE_LIMIT_BYTES.of(given),
    )


_BY_KEY = frozenset(set(WriteOperation) - {WriteOperation.APPEND})


def _operation(text: str) -> WriteOperation:
    try:
        return WriteOperation(text.lower())
    except ValueError:
        raise ValueError("expected append, upsert, delete or delta") from None


def _refuse_contradictions(operation: WriteOperation, given: Mapping[str, str]) -> None:
    fits = {
        "upsert-keys": _BY_KEY,
        "upsert-order-by": {WriteOperation.UPSERT, WriteOperation.DELTA},
        "row-kind-column": {WriteOperation.DELTA},
        UPSERT_MODE.name: _BY_KEY,
        UPSERT_RESOLVE_LIMIT_BYTES.name: _BY_KEY,
    }
    for name, operations in fits.items():
        if name in given and operation not in operations:
            wanted = " or ".join(repr(str(fitting)) for fitting in sorted(operations))
            raise InvalidOptionError(
                f"option {name!r} needs 'write-operation' = {wanted}, not {str(operation)!r}"
            )
    if operation is WriteOperation.APPEND:
        return
    if operation is WriteOperation.DELTA and "row-kind-column" not in given:
        raise InvalidOptionError(
            "'write-operation' = 'delta' needs option 'row-kind-column', the column with the kind "
            "of each change: +I, -U, +U or -D"
        )
    for name in ("overwrite-filter", "overwrite-mode"):
        if name in given:
            raise InvalidOptionError(
                f"options {name!r} and 'write-operation' = {str(operation)!r} contradict each "
                "other: the first replaces parts of a table, the second changes rows by key"
            )
    if given.get("create", "false").lower() == "true":
        raise InvalidOptionError(
            f"options 'create' and 'write-operation' = {str(operation)!r} contradict each other: "
            "a table that does not exist has no rows to change; create it with an append"
        )
