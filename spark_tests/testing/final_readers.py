"""Compares what a simulation leaves with what PyIceberg and DuckDB read of it (`FinalReaders`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from oracles.duckdb_reader import DuckDBReader
from pyiceberg.table import StaticTable

from icebergds.api.table import Table
from icebergds.spec.manifest import FileContent
from icebergds.testing.simulation.rows import as_read
from icebergds.testing.simulation.tables import AuditedTable


@dataclass(slots=True)
class FinalReaders:
    """Other readers of tables to which nobody writes any more.

    Attributes:
        storage: properties of the storage; DuckDB is asked for local tables alone.
        read: how many tables each has read.
        left_out: how many tables each was not asked for, by the reasons.
        problems: what differed.
    """

    duckdb: DuckDBReader
    storage: Mapping[str, str] = field(default_factory=dict)
    read: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def compare(self, of: AuditedTable) -> None:
        """Compares the rows of the main branch with those that the table must have."""
        table = of.place.plain_table()
        expected = as_read(of.shared.rows("main"), table.schema())
        self._ask("PyIceberg", _not_for_pyiceberg, self._by_pyiceberg, table, expected)
        if not self.storage:
            self._ask("DuckDB", _not_for_duckdb, self._by_duckdb, table, expected)

    def _ask(
        self,
        reader: str,
        why_not: Callable[[Table], Iterator[str]],
        read: Callable[[Table], list[tuple[Any, ...]]],
        table: Table,
        expected: list[tuple[Any, ...]],
    ) -> None:
        if (reason := next(why_not(table), None)) is not None:
            self.left_out[f"{reader}: {reason}"] += 1
            return
        self.read[reader] += 1
        try:
            found = sorted(read(table), key=lambda row: (row[0], str(row)))
        except Exception as error:
            self.problems.append(f"{reader} cannot read {table.metadata_location}: {error!r}")
            return
        if found != expected:
            self.problems.append(
                f"{reader} reads of {table.metadata_location} {found}, expected {expected}"
            )

    def _by_pyiceberg(self, table: Table) -> list[tuple[Any, ...]]:
        static = StaticTable.from_metadata(table.metadata_location, dict(self.storage))
        columns = static.scan().to_arrow().columns
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def _by_duckdb(self, table: Table) -> list[tuple[Any, ...]]:
        return self.duckdb.read(table.metadata_location)


def _not_for_both(table: Table) -> Iterator[str]:
    """Why neither reader can read a table; the first reason counts."""
    if "encryption.key-id" in table.properties:
        yield "encrypted"
        return
    formats = {str(text).lower() for text in table.inspect.files()["file_format"].to_pylist()}
    if formats - {"parquet", "puffin"}:
        yield "Avro or ORC"


def _not_for_pyiceberg(table: Table) -> Iterator[str]:
    yield from _not_for_both(table)
    contents = table.inspect.delete_files()["content"].to_pylist()
    if FileContent.EQUALITY_DELETES in contents:
        yield "equality deletes"


def _not_for_duckdb(table: Table) -> Iterator[str]:
    yield from _not_for_both(table)
    if 0 in table.inspect.entries()["sequence_number"].to_pylist():
        yield "files of format version 1"
    if "puffin" in {str(text).lower() for text in table.inspect.files()["file_format"].to_pylist()}:
        # DuckDB 1.5.5 drops rows next to files whose rows are all deleted by them.
        yield "deletion vectors"
