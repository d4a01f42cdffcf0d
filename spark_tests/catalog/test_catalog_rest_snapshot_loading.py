"""Tables of REST catalogs that come with the snapshots of branches and tags; others come later."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rest_proxy import Fault, RestProxy, Seen, rest_proxy
from rest_server import RestServer

import icebergds
from icebergds.api.catalog import Catalog
from icebergds.api.table import Table
from icebergds.errors import (
    CommitStateUnknownError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from icebergds.spec.updates.table_updates import AddSnapshot, SetSnapshotRef
from icebergds.testing.catalog_steps import new_snapshot

_ALL = "snapshots=all"
_REFS = "snapshots=refs"
_NOW = timedelta(0)


@pytest.fixture
def proxy(rest: RestServer) -> Iterator[RestProxy]:
    with rest_proxy(rest.port) as proxy:
        yield proxy


@pytest.fixture
def whole(rest: RestServer) -> Catalog:
    """A new catalog, that loads all snapshots."""
    catalog = icebergds.load_catalog("lake", uri=rest.uri(rest.new_catalog()))
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def lazy(rest: RestServer, whole: Catalog, proxy: RestProxy) -> Catalog:
    """The same catalog by way of the proxy, that loads the snapshots of branches and tags."""
    uri = whole.address("db.t").catalog_properties["uri"]
    return icebergds.load_catalog(
        "lake",
        uri=rest.uri(uri[uri.rindex("/") :], proxy.port),
        **{"snapshot-loading-mode": "REFS", "rest-metrics-reporting-enabled": "false"},
    )


def _append(table: Table, *ids: int) -> None:
    table.append(pa.table({"id": pa.array(ids, pa.int64())}))


def _ids(table: Table, **options: int) -> list[int]:
    return sorted(table.scan(**options).to_arrow()["id"].to_pylist())


def _table(catalog: Catalog, version: int = 2) -> Table:
    """A table of four snapshots, one of which has a tag."""
    table = catalog.create_table("db.t", "id bigint", properties={"format-version": str(version)})
    for number in range(4):
        _append(table, number)
    with table.manage_snapshots() as update:
        update.create_tag("second", table.snapshots()[1].snapshot_id)
    return table


def _loads(proxy: RestProxy) -> list[str]:
    """Which snapshots were asked for since this was called last."""
    asked = [path.partition("?")[2] for path in proxy.paths("GET") if "/tables/" in path]
    proxy.seen.clear()
    return asked


def test_reads_of_branches_and_tags_load_no_other_snapshots(
    whole: Catalog, lazy: Catalog, proxy: RestProxy
) -> None:
    _table(whole)
    table = lazy.load_table("db.t")
    assert _ids(table) == [0, 1, 2, 3]
    assert _ids(table, tag="second") == [0, 1]
    assert _ids(table, snapshot_id=table.refs()["second"].snapshot_id) == [0, 1]
    assert "2 of branches and tags" in repr(table.metadata)
    assert "lake.db.t" in repr(table)
    assert _loads(proxy) == [_REFS]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_snapshots_are_loaded_once_when_they_are_needed(
    whole: Catalog, lazy: Catalog, proxy: RestProxy, version: int
) -> None:
    expected = _table(whole, version)
    table = lazy.load_table("db.t")
    assert list(table.snapshots()) == list(expected.snapshots())
    assert table.inspect.snapshots() == expected.inspect.snapshots()
    assert table.metadata == expected.metadata
    assert _ids(table, snapshot_id=expected.snapshots()[2].snapshot_id) == [0, 1, 2]
    assert _loads(proxy) == [_REFS, _ALL]


def test_an_unchanged_table_is_not_sent_again(
    whole: Catalog, lazy: Catalog, proxy: RestProxy
) -> None:
    _table(whole)
    assert len(lazy.load_table("db.t").snapshots()) == 4
    assert len(lazy.load_table("db.t").snapshots()) == 4
    assert [seen.status for seen in proxy.seen if "/tables/" in seen.path] == [200, 200, 304]


@pytest.mark.parametrize("version", [1, 2])
def test_snapshots_are_those_of_the_version_that_was_loaded(
    whole: Catalog, lazy: Catalog, version: int
) -> None:
    others = _table(whole, version)
    before = list(others.snapshots())
    table = lazy.load_table("db.t")
    _append(others, 9)
    assert list(table.snapshots()) == before
    assert _ids(table.refresh()) == [0, 1, 2, 3, 9]


def test_what_has_expired_meanwhile_is_gone_but_for_what_was_loaded(
    whole: Catalog, lazy: Catalog
) -> None:
    others = _table(whole)
    table = lazy.load_table("db.t")
    ids = [snapshot.snapshot_id for snapshot in others.snapshots()]
    _append(others, 9)
    others.expire_snapshots(snapshot_ids=[ids[0], ids[2], ids[3]])
    assert {snapshot.snapshot_id for snapshot in table.snapshots()} == {ids[1], ids[3]}


def test_changes_keep_every_snapshot(whole: Catalog, lazy: Catalog) -> None:
    others = _table(whole)
    ids = [snapshot.snapshot_id for snapshot in others.snapshots()]
    table = lazy.load_table("db.t")
    _append(table, 4)
    table.delete("id = 0")
    with table.manage_snapshots() as update:
        update.create_branch("old", ids[2])
    assert _ids(table) == [1, 2, 3, 4]
    assert _ids(table, branch="old") == [0, 1, 2]
    found = [snapshot.snapshot_id for snapshot in others.refresh().snapshots()]
    assert found[:4] == ids
    assert len(found) == 6
    assert list(others.inspect.history()["snapshot_id"].to_pylist()) == found
    table.expire_snapshots(snapshot_ids=ids[:1])
    assert len(others.refresh().snapshots()) == 5


def test_a_copy_has_all_snapshots(whole: Catalog, lazy: Catalog) -> None:
    _table(whole)
    copies: tuple[Callable[[Table], Table], ...] = (
        copy.deepcopy,
        lambda table: pickle.loads(pickle.dumps(table)),
    )
    for copied in copies:
        table = lazy.load_table("db.t")
        assert copied(table.metadata) == table.metadata
        assert len(copied(table.metadata).snapshots) == 4


def test_a_table_that_was_replaced_meanwhile_does_not_lend_its_snapshots(
    whole: Catalog, lazy: Catalog
) -> None:
    _table(whole)
    replaced, dropped = lazy.load_table("db.t"), lazy.load_table("db.t")
    whole.drop_table("db.t")
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.t was dropped since it was loaded"):
        dropped.snapshots()
    _table(whole)
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.t was replaced by another table"):
        replaced.snapshots()


def _files(table: Table) -> list[str]:
    """The files that are in the table's directory, but for checksums of the server."""
    directory = Path(table.location().removeprefix("file:"))
    return [str(path) for path in directory.glob("*/[!.]*")]


def _after_a_commit(proxy: RestProxy, others: Table, fault: Fault | None) -> None:
    """Breaks the next commit; then another one comes, and only snapshots with a name are given."""

    def of_commit(seen: Seen) -> Fault | None:
        if seen.method != "POST":
            return None
        proxy.fault = then
        return fault

    def then(seen: Seen) -> None:
        proxy.fault = lambda seen: None
        proxy.refuse = lambda seen: 501 if seen.path.endswith(_ALL) else None
        _append(others.refresh(), 9)

    proxy.fault = of_commit


def test_a_commit_is_unknown_if_its_answer_and_its_snapshot_cannot_be_had(
    whole: Catalog, lazy: Catalog, proxy: RestProxy
) -> None:
    others = _table(whole)
    others.set_properties({"commit.status-check.num-retries": "0"})
    table = lazy.load_table("db.t")
    _after_a_commit(proxy, others, Fault.ANSWER_LOST)
    with pytest.raises(CommitStateUnknownError, match=r"lake\.db\.t"):
        _append(table, 5)
    assert _ids(others.refresh()) == [0, 1, 2, 3, 5, 9]


@pytest.mark.parametrize("fault", [None, Fault.ANSWER_LOST])
def test_a_transaction_whose_snapshots_cannot_be_had_is_not_undone(
    whole: Catalog, lazy: Catalog, proxy: RestProxy, fault: Fault | None
) -> None:
    others = _table(whole)
    others.set_properties({"commit.status-check.num-retries": "0"})
    whole.create_table("db.other", "id bigint")
    expected = nullcontext() if fault is None else pytest.raises(CommitStateUnknownError)
    with expected, lazy.transaction() as tx:
        for name in ("db.t", "db.other"):
            _append(tx.table(name), 5)
        _after_a_commit(proxy, others, fault)
    assert _ids(others.refresh()) == [0, 1, 2, 3, 5, 9]
    assert _ids(whole.load_table("db.other")) == [5]


def test_a_table_is_purged_with_what_others_commit_meanwhile(
    whole: Catalog, lazy: Catalog, proxy: RestProxy
) -> None:
    others = _table(whole)
    loads = iter(range(9))

    def commit_first(seen: Seen) -> None:
        # Another commit comes between the last two looks at the table.
        if seen.path.endswith(_ALL) and next(loads) == 1:
            _append(others, 9)

    proxy.fault = commit_first
    lazy.purge_table("db.t")
    assert next(loads) >= 2
    assert _files(others) == []


def test_snapshots_are_those_of_the_version_even_if_clocks_differ(
    whole: Catalog, lazy: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(whole, 1)
    operations = whole._catalog.operations(("db", "t"))
    # Writers of Java Iceberg take the time of their own machines.
    for seconds in (40, 20, 0):
        state = operations.refresh()
        snapshot = replace(
            new_snapshot(0),
            parent_snapshot_id=state.metadata.current_snapshot_id,
            timestamp_ms=table.metadata.last_updated_ms + 1000 * seconds,
        )
        ref = SnapshotRef(snapshot.snapshot_id, RefType.BRANCH)
        operations.commit(state, [], [AddSnapshot(snapshot), SetSnapshotRef(MAIN_BRANCH, ref)])
    table.refresh()
    loaded = lazy.load_table("db.t")
    table.set_properties({"a": "b"})
    assert list(loaded.snapshots()) == list(table.snapshots())


def test_tables_with_statistics_are_loaded_from_servers_that_leave_out_no_such_snapshots(
    whole: Catalog, lazy: Catalog
) -> None:
    table = _table(whole)
    table.compute_table_stats(snapshot_id=table.snapshots()[0].snapshot_id)
    assert lazy.load_table("db.t").metadata == table.metadata


def test_statistics_that_the_server_leaves_out_are_no_orphans(
    whole: Catalog, lazy: Catalog, proxy: RestProxy
) -> None:
    table = _table(whole)
    table.compute_table_stats()

    def without(seen: Seen, body: Any) -> Any:
        if seen.path.endswith(_REFS):
            body["metadata"].pop("statistics")
        return body

    proxy.rewrite = without
    loaded = lazy.load_table("db.t")
    assert loaded.metadata.statistics == ()
    found = loaded.remove_orphan_files(_NOW, file_list=_files(table), dry_run=True)
    assert found.orphan_file_locations == ()
    lazy.purge_table("db.t")
    assert _files(table) == []


def test_orphans_are_not_removed_if_the_current_metadata_file_is_unknown(
    whole: Catalog, lazy: Catalog, proxy: RestProxy
) -> None:
    table = _table(whole)

    def without(seen: Seen, body: Any) -> Any:
        body.pop("metadata-location", None)
        return body

    proxy.rewrite = without
    with pytest.raises(UnsupportedFeatureError, match=r"lake\.db\.t: .*metadata file"):
        lazy.load_table("db.t").remove_orphan_files(_NOW, file_list=_files(table))
    assert _ids(whole.load_table("db.t")) == [0, 1, 2, 3]
