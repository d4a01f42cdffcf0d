"""Tables with rows changed by every kind of delete, as other readers see them."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.delta_tables import BY_ID, UNPARTITIONED, DeltaTable
from oracles.duckdb_reader import DuckDBReader
from pyiceberg.table import StaticTable

from icebergds.spec.partition import PartitionSpec

pytestmark = pytest.mark.interop

_SPECS = pytest.mark.parametrize("spec", [UNPARTITIONED, BY_ID], ids=["whole", "by id"])


def _by_position(location: Path, version: int, spec: PartitionSpec, granularity: str) -> DeltaTable:
    table = DeltaTable(location, version=version, spec=spec)
    table.append(*((i, f"a{i}") for i in range(500)))
    table.append(*((i, f"b{i}") for i in range(500, 1000)))
    table.change_where(lambda row: row["id"] % 7 == 1, granularity=granularity)
    table.change_where(
        lambda row: row["id"] % 11 == 3,
        lambda row: {**row, "data": "new"},
        granularity=granularity,
    )
    assert len(table.rows()) == 1000 - 143
    return table


@_SPECS
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_pyiceberg_applies_position_delete_files(
    tmp_path: Path, spec: PartitionSpec, granularity: str
) -> None:
    table = _by_position(tmp_path, 2, spec, granularity)
    static = StaticTable.from_metadata(table.table.state.metadata_location)
    read = static.scan().to_arrow().to_pylist()
    assert sorted(((row["id"], row["data"]) for row in read), key=repr) == table.rows()


@_SPECS
@pytest.mark.parametrize(("version", "granularity"), [(2, "file"), (2, "partition"), (3, "file")])
def test_duckdb_applies_deletes_by_position(
    tmp_path: Path, spec: PartitionSpec, version: int, granularity: str
) -> None:
    table = _by_position(tmp_path, version, spec, granularity)
    with DuckDBReader() as duckdb:
        read = duckdb.read(table.table.state.metadata_location)
    assert read is not None
    assert sorted(read, key=repr) == table.rows()


@_SPECS
@pytest.mark.parametrize("version", [2, 3])
def test_duckdb_applies_deletes_by_key(tmp_path: Path, spec: PartitionSpec, version: int) -> None:
    table = DeltaTable(tmp_path, version=version, spec=spec)
    table.append(*((i, f"a{i}") for i in range(1000)))
    rows = [(i % 700, f"b{i}") for i in range(0, 2100, 3)]
    table.keyed("upsert", [table.batch(*rows)])
    kinds = {"kind": ["-D", "-U", "+U", "+I", "-D"] * 10}
    changes = [(i if i % 5 != 3 else 5000 + i, f"c{i}") for i in range(50)]
    table.keyed("delta", [table.batch(*changes, extra=kinds)], kinds="kind")
    with DuckDBReader() as duckdb:
        read = duckdb.read(table.table.state.metadata_location)
    assert read is not None
    assert sorted(read, key=repr) == table.rows()
    assert len(read) == 1000 - 40 + 20
