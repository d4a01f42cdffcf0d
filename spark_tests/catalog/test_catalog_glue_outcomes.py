"""What operations of a Glue catalog say when the connection to Glue, or Glue itself, fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_tables import TABLE, create_table, metadata_files, set_property
from faulty_proxy import FaultyProxy, Refusal, Spoil
from moto_server import MotoServer

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    StorageError,
)
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing.catalog_steps import new_table

_THROTTLED = Refusal(400, "ThrottlingException", "Rate exceeded")


@pytest.fixture
def catalog(moto: MotoServer, tmp_path: Path) -> Catalog:
    """A catalog with a direct connection."""
    return load_catalog("lake", moto.properties("glue") | {"warehouse": str(tmp_path)})


@pytest.fixture
def once(moto: MotoServer, proxy: FaultyProxy, tmp_path: Path) -> Catalog:
    """The same catalog by way of the proxy; it sends each request once."""
    return _proxied(moto, proxy, tmp_path, retries=0)


@pytest.fixture
def twice(moto: MotoServer, proxy: FaultyProxy, tmp_path: Path) -> Catalog:
    """The same catalog by way of the proxy; it repeats a request that fails."""
    return _proxied(moto, proxy, tmp_path, retries=1)


def _proxied(moto: MotoServer, proxy: FaultyProxy, tmp_path: Path, retries: int) -> Catalog:
    properties = moto.properties("glue", proxy.endpoint) | {"warehouse": str(tmp_path)}
    return load_catalog("lake", properties | {"glue.max-retries": str(retries)})


def test_a_commit_that_others_built_on_is_found(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil(
        "UpdateTable",
        Spoil.CUT_AFTER,
        then=lambda: [set_property(catalog, f"later{i}") for i in range(3)],
    )
    committed = set_property(once)
    loaded = catalog.load(TABLE).metadata
    assert loaded.properties.keys() >= {"k", "later0", "later2"}
    assert committed.metadata_location in [e.metadata_file for e in loaded.metadata_log]


def test_a_commit_that_may_still_land_is_unknown_and_keeps_its_file(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    created = create_table(catalog)
    proxy.spoil("UpdateTable", Spoil.CUT_BEFORE)
    with pytest.raises(
        CommitStateUnknownError, match=r"lake\.db\.t: it is unknown whether .*00001-"
    ):
        set_property(once)
    assert len(metadata_files(created)) == 2


def test_a_commit_that_others_overtook_is_a_conflict(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    created = create_table(catalog)
    others = lambda: [set_property(catalog, f"other{i}") for i in range(2)]  # noqa: E731
    proxy.spoil("UpdateTable", Spoil.CUT_BEFORE, then=others)
    with pytest.raises(CommitConflictError):
        set_property(once)
    assert len(metadata_files(created)) == 3


def test_a_commit_after_a_change_of_the_entry_alone_is_a_conflict(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy, moto: MotoServer
) -> None:
    created = create_table(catalog)
    glue = moto.client("glue")
    entry = glue.get_table(DatabaseName="db", Name="t")["Table"]
    kept = {key: entry[key] for key in ("Name", "Parameters", "StorageDescriptor")}
    proxy.spoil(
        "GetTable",
        None,
        then=lambda: glue.update_table(DatabaseName="db", TableInput=kept),
    )
    operations = once.operations(TABLE)
    base = catalog.load(TABLE)

    with pytest.raises(CommitConflictError, match="changed in Glue"):
        operations.commit(base, [], [SetProperties({"k": "v"})])
    assert len(metadata_files(created)) == 1


def test_a_commit_that_is_throttled_failed(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    created = create_table(catalog)
    proxy.spoil("UpdateTable", _THROTTLED)
    with pytest.raises(StorageError, match=r"Rate exceeded.*glue\.max-retries"):
        set_property(once)
    assert len(metadata_files(created)) == 1


def test_a_conflict_after_throttling_is_certain(
    catalog: Catalog, twice: Catalog, proxy: FaultyProxy
) -> None:
    catalog.create_namespace(("db",), {})
    updates = new_table(catalog, TABLE)
    proxy.spoil("CreateTable", _THROTTLED, then=lambda: create_table(catalog))

    with pytest.raises(AlreadyExistsError):
        twice.create(TABLE, updates)
    assert len(metadata_files(catalog.load(TABLE))) == 1


def test_a_creation_that_may_still_land_is_unknown_and_keeps_its_file(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    catalog.create_namespace(("db",), {})
    proxy.spoil("CreateTable", Spoil.CUT_BEFORE)
    with pytest.raises(CommitStateUnknownError):
        once.create(TABLE, new_table(once, TABLE))
    directory = f"{catalog.new_table_location(TABLE)}/metadata"
    assert len(catalog.io.list(directory)) == 1


def test_a_table_that_is_committed_to_meanwhile_is_not_renamed(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil("CreateTable", None, then=lambda: set_property(catalog))
    with pytest.raises(CommitConflictError, match="not renamed"):
        once.rename(TABLE, ("db", "u"))
    assert catalog.list_tables(("db",)) == [TABLE]
    assert catalog.load(TABLE).metadata.properties["k"] == "v"


def test_a_table_that_may_have_both_names_is_said_to(
    catalog: Catalog, once: Catalog, proxy: FaultyProxy
) -> None:
    create_table(catalog)
    proxy.spoil("DeleteTable", Spoil.CUT_BEFORE)
    with pytest.raises(CommitStateUnknownError, match=r"rename table lake\.db\.t to lake\.db\.u"):
        once.rename(TABLE, ("db", "u"))
    assert catalog.list_tables(("db",)) == [TABLE, ("db", "u")]
