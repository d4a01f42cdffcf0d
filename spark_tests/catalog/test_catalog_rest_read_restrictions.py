"""Tables of which a REST catalog restricts what a user may read: their rows are not read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from rest_proxy import RestProxy, rest_proxy
from rest_server import RestServer

import icebergds
from icebergds.api.catalog import Catalog
from icebergds.api.table import Table
from icebergds.catalog.address import TableAddress
from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError

_REGION = {
    "type": "eq",
    "left": {"type": "reference", "id": 2},
    "right": {"type": "literal", "value": "US"},
}
_MASKED = {
    "required-row-filter": _REGION,
    "required-column-projections": [{"action": "mask-alphanum", "field-id": 3}],
}
_SCHEMA = "id bigint, region string, mail string"
_ROWS = pa.table({"id": [1, 2], "region": ["US", "EU"], "mail": ["a@b.c", "d@e.f"]})


@pytest.fixture
def proxy(rest: RestServer) -> Iterator[RestProxy]:
    with rest_proxy(rest.port) as proxy:
        yield proxy


@pytest.fixture
def administrator(rest: RestServer) -> Catalog:
    """A catalog with a table of two partitions, as its server knows it."""
    catalog = icebergds.load_catalog("lake", uri=rest.uri(rest.new_catalog()))
    catalog.create_namespace("db")
    catalog.create_table("db.t", _SCHEMA, partition_spec=["region"]).append(_ROWS)
    return catalog


@pytest.fixture
def catalog(rest: RestServer, administrator: Catalog, proxy: RestProxy) -> Catalog:
    """The same catalog for a user, who has not loaded the table yet."""
    return icebergds.load_catalog("lake", **_by_proxy(rest, administrator, proxy))


def _by_proxy(rest: RestServer, catalog: Catalog, proxy: RestProxy) -> dict[str, str]:
    uri = catalog.properties["uri"]
    uri = rest.uri(uri[uri.rindex("/") :], proxy.port)
    return {"uri": uri, "rest-metrics-reporting-enabled": "false"}


def restrict(proxy: RestProxy, restrictions: Any, loads_only: bool = True) -> None:
    """Adds read restrictions to the answers that load tables, or to those that change them, too."""

    def rewrite(seen: Any, body: Any) -> Any:
        is_load = "metadata" in body and (seen.method == "GET" or not loads_only)
        return {**body, "read-restrictions": restrictions} if is_load else body

    proxy.rewrite = rewrite


def _count(table: Table) -> int:
    return table.scan().to_arrow().num_rows


@pytest.mark.parametrize(
    ("restrictions", "named"),
    [
        (_MASKED, ["filter of rows by region", "column mail by the action mask-alphanum"]),
        ({"required-row-filter": False}, ["filter of rows"]),
        ({"required-row-filter": {}}, ["filter of rows"]),
        ({"required-row-filter": {"type": "not-null", "term": "region"}}, ["rows by region"]),
        (
            {"required-column-projections": [{"action": "future", "field-id": 99}]},
            ["column with the field id 99 by the action future"],
        ),
        ({"required-groups": {"k": 3}}, ["'required-groups'"]),
    ],
)
def test_rows_are_not_read_under_restrictions(
    catalog: Catalog, proxy: RestProxy, restrictions: Any, named: list[str]
) -> None:
    restrict(proxy, restrictions)
    table = catalog.load_table("db.t")
    with pytest.raises(UnsupportedFeatureError, match="engine that enforces them") as raised:
        table.scan().to_arrow()
    assert all(name in str(raised.value) for name in ["lake.db.t", *named])


@pytest.mark.parametrize(
    "restrictions",
    [
        None,
        {},
        {"required-row-filter": None, "required-column-projections": []},
        {"required-row-filter": True, "required-column-projections": None},
        {"required-row-filter": {"type": "true"}},
        {"required-row-filter": {"type": "literal", "value": True}},
    ],
)
def test_restrictions_that_restrict_nothing_pass(
    catalog: Catalog, proxy: RestProxy, restrictions: Any
) -> None:
    restrict(proxy, restrictions)
    assert _count(catalog.load_table("db.t")) == 2


@pytest.mark.parametrize(
    "restrictions",
    ["x", {"required-column-projections": {}}, {"required-column-projections": [{"field-id": 1}]}],
)
def test_malformed_restrictions_fail_the_load(
    catalog: Catalog, proxy: RestProxy, restrictions: Any
) -> None:
    restrict(proxy, restrictions)
    with pytest.raises(InvalidMetadataError, match=r"read-restrictions.*lake\.db\.t"):
        catalog.load_table("db.t")


_READS: dict[str, Callable[[Table], object]] = {
    "to_arrow": lambda table: table.scan().to_arrow(),
    "columns": lambda table: table.scan(columns="id").to_arrow(),
    "batches": lambda table: table.scan().to_arrow_batch_reader().read_all(),
    "count": lambda table: table.scan().count(),
    "files": lambda table: table.scan().plan_files(),
    "summary": lambda table: table.scan().plan_summary(),
    "changes": lambda table: table.changes().to_arrow(),
    "appends": lambda table: table.appends(table.snapshots()[0].snapshot_id).to_arrow(),
    **{
        name: lambda table, name=name: getattr(table.inspect, name)()
        for name in (
            "files", "data_files", "delete_files", "entries", "manifests", "partitions",
            "position_deletes", "all_files", "all_data_files", "all_delete_files", "all_entries",
            "all_manifests",
        )
    },
    "delete": lambda table: table.delete("id = 1"),
    "delete of a partition": lambda table: table.delete("region = 'US'"),
    "delete of all": lambda table: table.delete("true"),
    "overwrite": lambda table: table.overwrite(_ROWS, "region = 'US'"),
    "upsert": lambda table: table.upsert(_ROWS, keys=["id"]),
    "delete of keys": lambda table: table.delete_keys(_ROWS.select(["id"]), keys=["id"]),
    "compaction": lambda table: table.rewrite_data_files(options={"rewrite-all": "true"}),
    "equality deletes": lambda table: table.convert_equality_deletes(),
    "position deletes": lambda table: table.rewrite_position_delete_files(),
    "health": lambda table: table.health(),
    "maintenance": lambda table: table.maintain(),
    "table statistics": lambda table: table.compute_table_stats(),
    "partition statistics": lambda table: table.compute_partition_stats(),
    "copy": lambda table: table.rewrite_table_path(table.location(), "file:/elsewhere"),
}  # fmt: skip


def test_nothing_tells_of_restricted_rows(catalog: Catalog, proxy: RestProxy) -> None:
    restrict(proxy, _MASKED)
    table = catalog.load_table("db.t")
    before = table.metadata_location
    refused = "column mail by the action mask-alphanum"
    for read in _READS.values():
        with pytest.raises(UnsupportedFeatureError, match=refused):
            read(table)
    assert table.refresh().metadata_location == before


def test_what_reads_no_rows_works_under_restrictions(
    administrator: Catalog, catalog: Catalog, proxy: RestProxy
) -> None:
    restrict(proxy, _MASKED)
    table = catalog.load_table("db.t")
    table.append(_ROWS)
    with table.update_schema() as update:
        update.add_column("more", "int")
    with table.manage_snapshots() as update:
        update.create_tag("now", table.snapshots()[-1].snapshot_id)
    assert len(table.inspect.snapshots()) == len(table.inspect.history()) == 2
    assert len(table.inspect.refs()) == 2
    table.rewrite_manifests()
    table.expire_snapshots(retain_last=1)
    assert _count(administrator.load_table("db.t")) == 4
    catalog.rename_table("db.t", "db.u")
    catalog.drop_table("db.u")


def test_an_unchanged_table_keeps_its_restrictions(catalog: Catalog, proxy: RestProxy) -> None:
    restrict(proxy, _MASKED)
    catalog.load_table("db.t")
    restrict(proxy, None)
    table = catalog.load_table("db.t")
    assert proxy.seen[-1].status == 304
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        _count(table)


def test_the_newest_answer_decides(
    administrator: Catalog, catalog: Catalog, proxy: RestProxy
) -> None:
    others, table = administrator.load_table("db.t"), catalog.load_table("db.t")
    assert _count(table) == 2
    restrict(proxy, _MASKED)
    others.append(_ROWS)
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        _count(table.refresh())
    restrict(proxy, None)
    others.append(_ROWS)
    assert _count(table.refresh()) == 6


def test_answers_to_commits_without_restrictions_keep_them(
    catalog: Catalog, proxy: RestProxy
) -> None:
    restrict(proxy, _MASKED)
    table = catalog.load_table("db.t")
    table.append(_ROWS)
    for known in (table, catalog.load_table("db.t")):
        with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
            _count(known)


def test_answers_to_commits_may_have_restrictions(catalog: Catalog, proxy: RestProxy) -> None:
    table = catalog.load_table("db.t")
    restrict(proxy, _MASKED, loads_only=False)
    table.append(_ROWS)
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        _count(table)
    created = catalog.create_table("db.new", _SCHEMA)
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        _count(created)


def test_pickled_tables_keep_their_restrictions(catalog: Catalog, proxy: RestProxy) -> None:
    restrict(proxy, _MASKED)
    table: Table = pickle.loads(pickle.dumps(catalog.load_table("db.t")))
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        _count(table)
    address: TableAddress = pickle.loads(pickle.dumps(catalog.address("db.t")))
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        address.load().io.require_rows()


def test_a_server_does_not_plan_reads_under_restrictions(
    rest: RestServer, administrator: Catalog, proxy: RestProxy
) -> None:
    restrict(proxy, _MASKED)
    given = _by_proxy(rest, administrator, proxy)
    catalog = icebergds.load_catalog("lake", **given, **{"scan-planning-mode": "server"})
    with pytest.raises(UnsupportedFeatureError, match="mask-alphanum"):
        _count(catalog.load_table("db.t"))
    assert proxy.paths("POST") == []
