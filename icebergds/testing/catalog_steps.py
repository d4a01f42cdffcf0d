"""Provides the steps of catalog tests."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import TypeAlias

from icebergds.catalog.base import Catalog, Identifier, PurgingCatalog
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
)
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.types import LONG, STRING, NestedField
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.requirements import (
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.updates.table_updates import (
    SetProperties,
    TableUpdate,
)
from icebergds.spec.values.dates import now_ms

OpenCatalog: TypeAlias = Callable[[], Catalog]
"""Opens the same catalog each time it is called."""

TIMEOUT_S = 120
_ATTEMPTS = 1000
_SCHEMA = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "name", STRING)))


@contextlib.contextmanager
def raises(
    expected: type[IcebergError] | tuple[type[IcebergError], ...], text: str = ""
) -> Iterator[None]:
    """Fails unless the block raises an error of a class with a text in its message."""
    try:
        yield
    except expected as error:
        if text not in str(error):
            raise AssertionError(f"{text!r} is not in the message: {error}") from error
    else:
        raise AssertionError(f"{expected} was not raised")


def create_namespaces(catalog: Catalog, namespace: Identifier) -> None:
    for depth in range(1, len(namespace) + 1):
        with contextlib.suppress(AlreadyExistsError):
            catalog.create_namespace(namespace[:depth], {})


def new_table(
    catalog: Catalog,
    identifier: Identifier,
    properties: dict[str, str] | None = None,
    schema: Schema = _SCHEMA,
) -> list[TableUpdate]:
    location = catalog.new_table_location(identifier)
    return new_table_updates(schema, location=location, properties=properties or {})


def create_table(
    catalog: Catalog,
    identifier: Identifier,
    properties: dict[str, str] | None = None,
    schema: Schema = _SCHEMA,
) -> TableState:
    create_namespaces(catalog, identifier[:-1])
    return catalog.create(identifier, new_table(catalog, identifier, properties, schema))


def drop_table(catalog: Catalog, identifier: Identifier) -> TableState | None:
    """Drops a table; with its files if the catalog cannot keep them."""
    if isinstance(catalog, PurgingCatalog):
        return catalog.purge(identifier)
    return catalog.drop(identifier)


def try_create(catalog: Catalog, identifier: Identifier, updates: list[TableUpdate]) -> bool:
    try:
        catalog.create(identifier, updates)
    except AlreadyExistsError:
        return False
    return True


def create_many(open_catalog: OpenCatalog, count: int) -> list[str]:
    """Tries to create that many tables; returns the names of those that it created."""
    catalog = open_catalog()
    names = [f"t{i}" for i in range(count)]
    return [n for n in names if try_create(catalog, ("a", n), new_table(catalog, ("a", n)))]


def commit_changes(
    catalog: Catalog, identifier: Identifier, updates: Sequence[TableUpdate]
) -> TableState:
    """Commits, and retries while other commits come first."""
    operations = catalog.operations(identifier)
    for _ in range(_ATTEMPTS):
        base = operations.refresh()
        try:
            return operations.commit(base, unchanged(base), updates)
        except CommitConflictError:
            time.sleep(random.random() * 0.01)
    raise AssertionError(f"no success in {_ATTEMPTS} attempts to commit")


def commit_to_new(catalog: Catalog, identifier: Identifier) -> TableState:
    create_table(catalog, identifier)
    return commit_changes(catalog, identifier, [SetProperties({"k": "v"})])


def set_properties(open_catalog: OpenCatalog, prefix: str, count: int) -> None:
    """Sets properties, one per commit."""
    catalog = open_catalog()
    for i in range(count):
        commit_changes(catalog, ("a", "t"), [SetProperties({f"{prefix}.{i}": "set"})])


def check_properties(catalog: Catalog, prefixes: Sequence[str], count: int) -> None:
    found = catalog.load(("a", "t")).metadata.properties
    missing = [f"{p}.{i}" for p in prefixes for i in range(count) if f"{p}.{i}" not in found]
    assert missing == [], f"lost commits: {missing}"


def unchanged(base: TableState) -> list[TableRequirement]:
    uuid = base.metadata.table_uuid
    assert uuid is not None
    return [AssertTableUuid(uuid)]


def new_snapshot(sequence_number: int) -> Snapshot:
    """A snapshot without files, for tests that do not read it."""
    return Snapshot(
        snapshot_id=random.randrange(1, 2**62),
        sequence_number=sequence_number,
        timestamp_ms=now_ms(),
        manifest_list="file:/nowhere/snap.avro",
        summary={"operation": "append"},
        schema_id=0,
    )


def stored(state: TableState) -> TableState:
    """The state read back from its metadata file."""
    data = state.io.read_bytes(state.metadata_location)
    return replace(state, metadata=parse_metadata(data, state.metadata_location))


def process_pool(count: int) -> ProcessPoolExecutor:
    # Not forked from this process: earlier tests may have left threads.
    return ProcessPoolExecutor(count, multiprocessing.get_context("forkserver"))
