"""Options of writes that change rows."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.operations.write.options import parse_write_options
from icebergds.operations.write.row_change_options import RowChangeOptions, WriteOperation


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
    )
    assert keyed == RowChangeOptions(WriteOperation.DELTA, "a, b", "at", "op")


def test_unknown_options_are_told_the_known_ones() -> None:
    with pytest.raises(InvalidOptionError) as raised:
        change(statment="merge")
    names = ("write-operation", "upsert-keys", "row-kind-column", "write.upsert.mode")
    assert all(name in str(raised.value) for name in names)


@pytest.mark.parametrize(
    "options",
    [
        {"upsert_keys": "id"},
        {"row_kind_column": "op", "write_operation": "upsert"},
        {"upsert_order_by": "at", "write_operation": "delete"},
        {"write_operation": "delta"},
        {"write_operation": "upsert", "overwrite_filter": "a = 1"},
        {"write_operation": "upsert", "create": "true"},
        {"write_operation": "rewrite"},
        {"write_id": "me"},
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        change(**options)
