"""What the reader of DuckDB tells when it cannot read."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from built.api_tables import new_table, rows
from oracles.duckdb_reader import DuckDBError, DuckDBReader

pytestmark = pytest.mark.interop


@pytest.fixture
def duckdb() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


def test_errors_have_the_words_of_duckdb(duckdb: DuckDBReader) -> None:
    with pytest.raises(DuckDBError, match="no_such_table"):
        duckdb.read("/no_such_table.metadata.json")


def test_a_process_that_died_between_two_reads_is_reported(
    duckdb: DuckDBReader, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    duckdb.read(table.metadata_location)
    assert duckdb._process is not None
    os.kill(duckdb._process.pid, signal.SIGKILL)
    duckdb._process.wait()
    with pytest.raises(DuckDBError, match="exit code -9: no message"):
        duckdb.read(table.metadata_location)
    assert [row[0] for row in duckdb.read(table.metadata_location)] == [1]
