"""Tables of random evolutions, writes and transactions, as Java Iceberg, PyIceberg and DuckDB read
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, Phase, given, strategies as st
from java_process import JavaProcess
from oracles.canon import canonical_rows
from oracles.comparison import difference
from oracles.duckdb_reader import DuckDBError, DuckDBReader
from our_tables import Writer
from pyiceberg.table import StaticTable
from strategies.evolving_table import EvolvingTable

from icebergds import Table
from icebergds.spec.json.schema import schema_to_json

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


@pytest.mark.parametrize("version", [1, 2, 3])
def test_other_readers_find_the_rows_of_evolved_tables(
    java_process: JavaProcess, our_writer: Writer, duckdb: DuckDBReader, version: int
) -> None:
    numbers = count()
    outcomes: Counter[str] = Counter()

    # The same tables each time: a fault of another reader must not come up at random.
    @examples(
        32, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = f"evolved_v{version}_{next(numbers)}"
        made = EvolvingTable(data.draw, our_writer.directory / "warehouse", name, version)
        for _ in range(data.draw(st.integers(5, 14))):
            made.step()
        if made.table.current_snapshot() is None:
            return
        ours = made.table.scan().to_arrow()
        assert sorted(ours.to_pylist(), key=lambda row: row["id"]) == made.expected()
        expected = canonical_rows(ours, schema_to_json(made.table.schema()))
        by_java = java_process.ask("rows", table=name)
        for reader in ("generic", "spark"):
            problem = difference(by_java[reader], expected, f"{name} by Java, {reader}")
            assert problem is None, problem
        for reader, rows in (
            ("pyiceberg", _by_pyiceberg(made.table)),
            ("duckdb", _by_duckdb(duckdb, made.table)),
        ):
            if rows is None:
                outcomes[f"{reader} refused"] += 1
                continue
            assert rows == _plain(_values(ours)), f"{name} by {reader}"
            outcomes[f"{reader} agreed"] += 1

    check()
    assert outcomes["pyiceberg agreed"], outcomes
    assert outcomes["duckdb agreed"], outcomes


def _by_pyiceberg(table: Table) -> list[str] | None:
    try:
        read = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    except Exception:
        return None
    return _plain(_values(read))


def _by_duckdb(duckdb: DuckDBReader, table: Table) -> list[str] | None:
    try:
        return _plain(duckdb.read(table.metadata_location))
    except DuckDBError:
        return None


def _values(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _plain(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))
