"""Catalogs and tables for tests of the REST catalog."""

from __future__ import annotations

from icebergds.catalog.base import Identifier
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.rest.catalog import RestCatalog
from icebergds.commit.operations import TableState
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, Snapshot, SnapshotRef
from icebergds.spec.updates.table_updates import AddSnapshot, SetSnapshotRef, TableUpdate
from icebergds.testing import catalog_steps

TABLE: Identifier = ("db", "t")


def open_rest_catalog(uri: str, **properties: str) -> RestCatalog:
    """A catalog that reports no commits, so that its requests can be counted."""
    given = {
        "type": "rest",
        "uri": uri,
        "rest.client.max-retries": "2",
        "rest-metrics-reporting-enabled": "false",
        **properties,
    }
    catalog = load_catalog("lake", given)
    assert isinstance(catalog, RestCatalog)
    return catalog


def create_table(catalog: RestCatalog, identifier: Identifier = TABLE) -> TableState:
    return catalog_steps.create_table(catalog, identifier)


def appending(state: TableState | None = None) -> tuple[Snapshot, list[TableUpdate]]:
    """A snapshot after the state of a table, without files, and the updates that append it."""
    last = 0 if state is None else state.metadata.last_sequence_number
    snapshot = catalog_steps.new_snapshot(last + 1)
    main = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(snapshot.snapshot_id, RefType.BRANCH))
    return snapshot, [AddSnapshot(snapshot), main]
