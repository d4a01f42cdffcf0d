"""Defaults of columns of each type, from their values in Python to the stored schema."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icebergds import Table, load_catalog, load_table
from icebergds.errors import InvalidOptionError
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    StructType,
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id bigint", properties={"format-version": "3"})


@pytest.mark.parametrize(
    ("kind", "initial", "written"),
    [
        (BOOLEAN, True, False),
        (INT, 123, 456),
        (LONG, 123, 2**40),
        (FLOAT, 19.25, 22.5),
        (DOUBLE, 19.25, 22.27),
        (DOUBLE, 1.7e308, -1.7e308),
        (DecimalType(10, 2), Decimal("19.25"), Decimal("22.27")),
        (STRING, "abc", "def"),
        (DATE, date(1990, 3, 1), date(1991, 3, 1)),
        (TIME, time(19, 25, 22), time(22, 25, 22)),
        (TIMESTAMP, datetime(1990, 5, 1, 22, 1, 1), datetime(2000, 5, 1, 22, 1, 1)),
        (TIMESTAMPTZ, datetime(1990, 5, 1, tzinfo=UTC), datetime(2000, 5, 1, tzinfo=UTC)),
        (TIMESTAMP_NS, datetime(1990, 5, 1, 22, 1, 1), datetime(2000, 5, 1, 22, 1, 1)),
        (BINARY, b"123", b"456"),
        (FixedType(4), b"1234", b"5678"),
        (UUID, uuid.UUID(int=5), uuid.UUID(int=6)),
    ],
    ids=str,
)
def test_required_columns_and_fields_of_structs_have_defaults_of_every_type(
    table: Table, kind: IcebergType, initial: Any, written: Any
) -> None:
    def value(given: Any) -> Any:
        return given.bytes if isinstance(given, uuid.UUID) else given

    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with table.update_schema() as update:
        update.add_column("c", kind, required=True, default_value=initial)
        update.add_column("s", StructType(()))
    table.update_schema().add_column("s.c", kind, required=True, default_value=initial).commit()
    table.update_schema().set_default("c", written).set_default("s.c", written).commit()
    table.append(pa.table({"id": pa.array([2], pa.int64())}))
    found = load_table(table.location())
    top, inner = (found.schema().fields_by_id[i] for i in (2, 4))
    assert (top.initial_default, top.write_default) == (inner.initial_default, inner.write_default)
    rows = {row["id"]: row["c"] for row in found.scan().to_arrow().to_pylist()}
    assert rows == {1: value(initial), 2: value(written)}


@pytest.mark.parametrize("given", [22.27, "22.27", Decimal("22.27")])
def test_the_default_of_a_float_column_is_the_nearest_value(table: Table, given: Any) -> None:
    table.update_schema().add_column("new", FLOAT, default_value=given).commit()
    nearest = pa.scalar(22.27, pa.float32()).as_py()
    assert table.schema().fields[-1].initial_default == nearest
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    assert table.scan().to_arrow()["new"].to_pylist() == [nearest]


def test_the_text_of_the_greatest_float_is_its_default(table: Table) -> None:
    table.update_schema().add_column("new", FLOAT, default_value=3.4028235e38).commit()
    greatest = float(np.finfo(np.float32).max)
    assert table.schema().fields[-1].initial_default == greatest


@pytest.mark.parametrize("given", [1e39, "1e39", Decimal("-1e39"), "x", True, 2**24 + 1])
def test_what_no_float_comes_near_is_refused(table: Table, given: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"lake\.db\.t: default .* of type float"):
        table.update_schema().add_column("new", FLOAT, default_value=given)


# Java Iceberg does not open a table with such a default: it is no JSON number.
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("given", ["nan", "-infinity", float("inf"), float("nan")])
def test_a_default_that_json_has_no_number_for_is_refused(
    table: Table, kind: str, given: Any
) -> None:
    with pytest.raises(InvalidOptionError, match=r"lake\.db\.t: default .* a finite number"):
        table.update_schema().add_column("new", kind, default_value=given)
    table.update_schema().add_column("new", kind).commit()
    with pytest.raises(InvalidOptionError, match=r"lake\.db\.t: default .* a finite number"):
        table.update_schema().set_default("new", given)
