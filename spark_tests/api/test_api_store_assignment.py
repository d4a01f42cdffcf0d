"""Every way to write rows takes values of other types, and refuses those out of range."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.contents import data_files

from icebergds import Table, load_catalog
from icebergds.errors import InvalidDataError

COLUMNS = pa.schema([("id", pa.int32()), ("price", pa.decimal128(4, 2)), ("day", pa.date32())])
MOMENT = datetime(2026, 1, 1, 23, tzinfo=UTC)


def new_table(tmp_path: Path, columns: pa.Schema = COLUMNS) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    return catalog.create_table("t", columns, properties={"format-version": "2"})


def wider(*rows: tuple[int, str]) -> pa.Table:
    """Rows in wider types than those of the table."""
    return pa.table(
        {
            "id": pa.array([id for id, _ in rows], pa.int64()),
            "price": pa.array([Decimal(price) for _, price in rows], pa.decimal128(9, 3)),
            "day": pa.array([MOMENT for _ in rows], pa.timestamp("us", "UTC")),
        }
    )


def prices(table: Table) -> dict[int, Decimal]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: row["price"] for row in rows}


WRITES: dict[str, Callable[[Table, pa.Table], Any]] = {
    "append": lambda table, rows: table.append(rows),
    "overwrite": lambda table, rows: table.overwrite(rows),
    "dynamic": lambda table, rows: table.dynamic_partition_overwrite(rows),
    "upsert": lambda table, rows: table.upsert(rows, "id"),
    "delta": lambda table, rows: table.delta(
        rows.append_column("kind", pa.array(["+I"] * len(rows))), "kind", "id"
    ),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_values_are_assigned(tmp_path: Path, write: Callable[[Table, pa.Table], Any]) -> None:
    table = new_table(tmp_path)
    write(table, wider((1, "1.005"), (2, "99.994")))
    assert prices(table) == {1: Decimal("1.01"), 2: Decimal("99.99")}
    assert set(table.scan().to_arrow()["day"].to_pylist()) == {date(2026, 1, 1)}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(
    ("id", "price", "named"),
    [(3, "99.995", "'price' .* value 99.995 "), (2**31, "1", "'id' .* value 2147483648 ")],
)
def test_nothing_is_written_if_a_value_is_out_of_range(
    tmp_path: Path, write: Callable[[Table, pa.Table], Any], id: int, price: str, named: str
) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidDataError, match=named):
        write(table, wider((1, "1"), (id, price)))
    assert table.refresh().current_snapshot() is None
    assert data_files(table.location()) == []


def test_keys_to_delete_may_be_of_another_type_but_are_not_rounded(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(wider((1, "1"), (2, "2")))
    keys = pa.table({"id": pa.array([Decimal("1.0")], pa.decimal128(4, 1))})
    table.delete_keys(keys, "id")
    assert prices(table) == {2: Decimal("2.00")}
    keys = pa.table({"id": pa.array([Decimal("2.4")], pa.decimal128(4, 1))})
    with pytest.raises(InvalidDataError, match=r"'id' .* value 2\.4 "):
        table.delete_keys(keys, "id")
    assert prices(table) == {2: Decimal("2.00")}


def test_what_is_next_to_a_key_in_its_struct_is_assigned(tmp_path: Path) -> None:
    stored = pa.struct(
        {"id": pa.int32(), "price": pa.decimal128(4, 2), "at": COLUMNS.field("day").type}
    )
    table = new_table(tmp_path, pa.schema([("s", stored)]))
    given = pa.struct(
        {"id": pa.int64(), "price": pa.decimal128(9, 3), "at": pa.timestamp("us", "UTC")}
    )
    row = {"id": 1, "price": Decimal("1.005"), "at": MOMENT}
    table.upsert(pa.table({"s": pa.array([row], given)}), "s.id")
    assert table.scan().to_arrow()["s"].to_pylist() == [
        {"id": 1, "price": Decimal("1.01"), "at": date(2026, 1, 1)}
    ]


def test_the_option_sets_the_time_zone(tmp_path: Path) -> None:
    table = new_table(
        tmp_path, pa.schema([("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    )
    rows = pa.table(
        {
            "day": pa.array([MOMENT], pa.timestamp("us", "UTC")),
            "at": pa.array([date(2026, 1, 1)], pa.date32()),
        }
    )
    with pytest.raises(InvalidDataError, match=r"column 'at' .*time-zone"):
        table.append(rows)
    table.append(rows, options={"time-zone": "Asia/Tokyo"})
    assert table.scan().to_arrow().to_pylist() == [
        {"day": date(2026, 1, 2), "at": datetime(2025, 12, 31, 15, tzinfo=UTC)}
    ]


def test_with_merge_schema_a_wider_type_widens_the_column(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int32()), ("price", pa.decimal128(4, 2))]))
    rows = pa.table({"id": [2**31], "price": pa.array([Decimal("100.25")], pa.decimal128(5, 2))})
    table.append(rows, options={"merge-schema": "true"})
    assert [str(field.field_type) for field in table.schema().fields] == ["long", "decimal(5, 2)"]
    assert prices(table) == {2**31: Decimal("100.25")}


def test_with_merge_schema_a_type_that_widens_nothing_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("price", pa.decimal128(4, 2))]))
    rows = pa.table({"price": pa.array([Decimal("1.005")], pa.decimal128(4, 3))})
    with pytest.raises(InvalidDataError, match="neither is widened"):
        table.append(rows, options={"merge-schema": "true"})
