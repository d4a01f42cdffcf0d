"""A verb whose storage or database fails at any call leaves the table before it or after it.

It says which: it returns, or raises an error of this package that says that nothing was committed,
or one that says that this is not known. Files and databases are real; the faults are in the calls
of the operating system and of SQLite, or of the client of a storage in memory.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import (
    DAYS,
    TABLE,
    Properties,
    catalog_in,
    create_table,
    rows,
)
from effort import IS_NIGHTLY, given_seed
from fsspec.implementations.memory import MemoryFileSystem

from icebergds.api.catalog import Catalog, load_catalog
from icebergds.api.table import Table
from icebergds.errors import CommitConflictError, IcebergError, StorageError
from icebergds.scan.read.delete_cache import DELETES
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.faulty_system import DISK, faulty_client, faulty_system

_PATIENCE = {
    "commit.retry.num-retries": "2",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.max-wait-ms": "2",
}
_CHANGES = pa.table(
    {**rows(2, 7, day=1).to_pydict(), "kind": ["-D", "+I"]},
    schema=rows(1).schema.append(pa.field("kind", pa.string())),
)
_VERBS: dict[str, Callable[[Catalog, Table], Any]] = {
    "append": lambda _, table: table.append(rows(10, day=1)),
    "overwrite": lambda _, table: table.overwrite(rows(10, day=1), "day = 1"),
    "delete": lambda _, table: table.delete("day = 1"),
    "upsert": lambda _, table: table.upsert(rows(2, 10, day=5), ["id"]),
    "delete_keys": lambda _, table: table.delete_keys(rows(2, 3), ["id"]),
    "delta": lambda _, table: table.delta(_CHANGES, "kind", ["id"]),
    "upgrade": lambda _, table: table.upgrade(3),
    "rewrite_data_files": lambda _, table: table.rewrite_data_files(
        options={"rewrite-all": "true"}
    ),
    "create": lambda catalog, _: catalog.create_table("db.new", DAYS),
    "drop": lambda catalog, _: catalog.drop_table(TABLE),
    "rename": lambda catalog, _: catalog.rename_table(TABLE, "db.other"),
}
_FAULTS = 60 if IS_NIGHTLY else 4
_CASES = [
    (kind, verb)
    for kind in ("filesystem", "sqlite", "memory")
    for verb in _VERBS
    if kind == "sqlite" or verb != "rename"
]


class _Place:
    """A catalog with a table, which is restored before each try.

    Attributes:
        error: what its storage raises.
    """

    error: Exception = DISK

    def __init__(self, directory: Path, kind: str, verb: str) -> None:
        self._now, self._before = directory / "now", directory / "before"
        self._now.mkdir()
        uri = f"sqlite:///{self._now}/c.db" if kind == "sqlite" else None
        self._properties: Properties = catalog_in(self._now, uri)
        self._verb = _VERBS[verb]
        self._fill()
        shutil.copytree(self._now, self._before)

    def _fill(self) -> None:
        table = create_table(self._properties, partition_by="day", **_PATIENCE)
        table.append(pa.concat_tables([rows(1, day=0), rows(2, day=1)]))
        table.append(rows(3, day=1))

    def restore(self) -> None:
        shutil.rmtree(self._now)
        shutil.copytree(self._before, self._now)

    def run(self, faults: Faults | None = None) -> None:
        catalog = load_catalog("lake", location_map=None, **self._properties)
        table = catalog.load_table(TABLE)
        with self._faulty(faults or Faults(counted=())):
            self._verb(catalog, table)

    def _faulty(self, faults: Faults) -> AbstractContextManager[None]:
        return faulty_system(faults)

    def found(self) -> dict[str, tuple[int, int, list[tuple[Any, ...]]]]:
        """The tables, each with its format version, its number of data files, and its rows."""
        catalog = load_catalog("lake", location_map=None, **self._properties)
        tables = {".".join(name): catalog.load_table(name) for name in catalog.list_tables("db")}
        return {
            name: (table.metadata.format_version, len(table.scan().plan_files()), _rows(table))
            for name, table in tables.items()
        }


class _RemotePlace(_Place):
    """A catalog in a storage whose client raises errors that are not the operating system's."""

    error = RuntimeError("the client failed")

    def __init__(self, verb: str) -> None:
        self._properties = {"warehouse": "memory://lake/warehouse"}
        self._verb = _VERBS[verb]
        self._fill()
        self._files = {path: file.getvalue() for path, file in MemoryFileSystem.store.items()}

    def restore(self) -> None:
        MemoryFileSystem.store.clear()
        for path, data in self._files.items():
            MemoryFileSystem().pipe_file(path, data)

    def _faulty(self, faults: Faults) -> AbstractContextManager[None]:
        return faulty_client(faults)


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


def _rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def _faults(calls: int, error: Exception) -> list[Fault]:
    """Each call fails once or from then on, before its effect or after it; some of these."""
    ways = product(range(calls), (When.BEFORE, When.AFTER), (False, True))
    faults = [Fault(call, when, error, lasting) for call, when, lasting in ways]
    return random.Random(given_seed() or 0).sample(faults, min(_FAULTS, len(faults)))


@pytest.mark.parametrize(("kind", "verb"), _CASES)
def test_a_fault_leaves_before_or_after_and_is_told(tmp_path: Path, kind: str, verb: str) -> None:
    place = _RemotePlace(verb) if kind == "memory" else _Place(tmp_path, kind, verb)
    before = place.found()
    counting = Faults(counted=None)
    place.run(counting)
    after = place.found()
    assert before != after
    for fault in _faults(len(counting.calls), place.error):
        place.restore()
        named = f"{counting.calls[fault.call]}, {fault}"
        outcome: Exception | None = None
        try:
            place.run(Faults([fault], counted=None))
        except Exception as error:
            outcome = error
        found = place.found()
        if outcome is None:
            assert found == after, named
            continue
        assert isinstance(outcome, IcebergError), named
        if outcome.outcome_unknown:
            assert found in (before, after), named
            continue
        assert found == before, f"{named}: {outcome}"
        assert isinstance(outcome, StorageError | CommitConflictError), named
        assert isinstance(outcome, CommitConflictError) or "nothing was committed" in str(
            outcome
        ), f"{named}: {outcome}"
        place.run()
        assert place.found() == after, named


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_fault_in_a_read_is_an_error_or_all_rows_are_there(
    tmp_path: Path, file_format: str
) -> None:
    table = create_table(
        catalog_in(tmp_path), partition_by="day", **{"write.format.default": file_format}
    )
    table.append(pa.concat_tables([rows(1, day=0), rows(2, 3, day=1)]))
    table.delete_keys(rows(2), ["id"])
    expected = _rows(table)
    counting = Faults(counted=None)
    with faulty_system(counting):
        _rows(table)
    assert {"open", "OSFile", "OSFile.read"} <= set(counting.calls)
    for fault in _faults(len(counting.calls), DISK):
        DELETES.clear()
        outcome: Any = None
        try:
            with faulty_system(Faults([fault], counted=None)):
                outcome = _rows(table.refresh())
        except StorageError as error:
            outcome = error.location
        assert outcome == expected or Path(outcome).is_relative_to(tmp_path)


def test_columns_that_were_added_before_a_fault_are_told(tmp_path: Path) -> None:
    table = create_table(catalog_in(tmp_path))
    # No directory can be made there, so the data file cannot be written.
    (Path(table.location()) / "data").write_bytes(b"")
    wider = pa.table({"id": pa.array([1], pa.int64()), "more": ["x"]})
    with pytest.raises(StorageError, match="'merge-schema' may have added before are kept"):
        table.append(wider, options={"merge-schema": "true"})
    assert "more" in [field.name for field in table.refresh().schema().fields]
    with pytest.raises(StorageError) as raised:
        table.append(wider)
    assert "merge-schema" not in str(raised.value)
