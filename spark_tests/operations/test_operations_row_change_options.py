"""Options of writes that change rows."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.operations.write.options import parse_write_options
from icebergds.operations.write.row_change_options import (
    INTERNAL_OPTIONS,
    ROW_CHANGE_OPTIONS,
    RowChangeOptions,
    WriteOperation,
)


def change(**options: str) -> RowChangeOptions | None:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return parse_write_options({"path": "/t", **named}).row_change


def test_rows_are_appended_unless_something_else_is_said() -> None:
    assert change() is None
    assert change(write_operation="Append") is None


def test_every_option_says_something() -> None:
    keyed = change(
        WRITE_OPERATION="DELTA",
        upsert_keys="a, b",
        upsert_order_by="at",
        row_kind_column="op",
        rows_are_ordered="true",
    )
    assert keyed == RowChangeOptions(WriteOperation.DELTA, "a, b", "at", "op", is_ordered=True)
    positions = change(
        write_operation="rewrite",
        read_snapshot_id="7",
        conflict_filter="a = 1",
        statement="merge",
    )
    assert positions == RowChangeOptions(
        WriteOperation.REWRITE,
        read_snapshot_id=7,
        conflict_filter="a = 1",
        statement="merge",
    )
    write_id = "6a5ab2bd-3c2c-4e5d-9f83-8c6dd5f0b0b4"
    named = {"path": "/t", "write-operation": "upsert", "write-id": write_id}
    assert parse_write_options(named).write_id == write_id


def test_internal_options_are_not_suggested() -> None:
    with pytest.raises(InvalidOptionError) as raised:
        change(statment="merge")
    assert not any(name in str(raised.value) for name in INTERNAL_OPTIONS)
    assert all(name in str(raised.value) for name in ROW_CHANGE_OPTIONS)


@pytest.mark.parametrize(
    "options",
    [
        {"upsert_keys": "id"},
        {"conflict_filter": "a = 1", "write_operation": "upsert"},
        {"row_kind_column": "op", "write_operation": "upsert"},
        {"upsert_order_by": "at", "write_operation": "delete"},
        {"write_operation": "delta"},
        {"write_operation": "upsert", "overwrite_filter": "a = 1"},
        {"write_operation": "upsert", "create": "true"},
        {"write_operation": "rewrite", "read_snapshot_id": "x"},
        {"write_id": "me"},
        {"write_id": "../me"},
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        change(**options)
