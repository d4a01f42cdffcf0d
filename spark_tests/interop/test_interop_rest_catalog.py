"""One REST server that is a catalog of icebergds and of Java Iceberg."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from java_process import JavaProcess
from shared_catalog import ROWS, Lake, SharedCatalog, rows
from sigv4_proxy import sigv4_options, sigv4_proxy

if TYPE_CHECKING:
    from rest_server import RestServer

pytestmark = pytest.mark.interop


@pytest.fixture
def lake(rest: RestServer, java_process: JavaProcess) -> Lake:
    properties = {"uri": rest.uri(rest.new_catalog())}
    lake = Lake(f"lake_{uuid.uuid4().hex}", java_process, properties)
    lake.open_in_java({"type": "rest", **properties})
    lake.ours().create_namespace("db")
    return lake


@pytest.fixture
def signed_lake(rest: RestServer, java_in_aws: JavaProcess) -> Iterator[Lake]:
    """The same behind a proxy that lets signed requests pass only."""
    with sigv4_proxy(rest.port) as proxy:
        properties = {"uri": rest.uri(rest.new_catalog(), proxy.port), **sigv4_options()}
        lake = Lake(f"lake_{uuid.uuid4().hex}", java_in_aws, properties)
        lake.open_in_java({"type": "rest", **properties})
        lake.ours().create_namespace("db")
        yield lake


def test_both_write_where_requests_are_signed(signed_lake: Lake) -> None:
    shared = SharedCatalog()
    shared.test_both_write_to_a_table_that_java_made(signed_lake)


class TestRestCatalog(SharedCatalog):
    pass


def test_namespaces_are_shared(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE {c}.theirs WITH DBPROPERTIES ('made_by' = 'java')")
    lake.sql("CREATE NAMESPACE {c}.db.below")
    lake.ours().create_namespace("ours", {"made_by": "us"})
    assert lake.ours().list_namespaces() == [("db",), ("ours",), ("theirs",)]
    assert lake.ours().list_namespaces("db") == [("db", "below")]
    assert lake.ours().load_namespace_properties("theirs")["made_by"] == "java"
    lake.sql("ALTER NAMESPACE {c}.ours SET DBPROPERTIES ('k' = 'v')")
    found = lake.ours().load_namespace_properties("ours")
    assert (found["made_by"], found["k"]) == ("us", "v")
    lake.ours().drop_namespace("theirs")
    lake.sql("DROP NAMESPACE {c}.ours")
    assert lake.ours().list_namespaces() == [("db",)]


def test_views_are_shared(lake: Lake) -> None:
    lake.ours().create_table("db.t", ROWS).append(rows({1: "a", 2: "b"}))
    lake.ours().create_view("db.ours", ROWS, "SELECT id, s FROM t WHERE id > 1")
    assert lake.sql("SELECT * FROM {db}.ours") == [[2, "b"]]
    lake.sql("CREATE VIEW {db}.theirs (one COMMENT 'first') AS SELECT 1 AS a")
    view = lake.ours().load_view("db.theirs")
    assert (view.sql_for("spark"), view.schema().fields[0].doc) == ("SELECT 1 AS a", "first")
    view.replace_version("SELECT 2 AS a")
    assert lake.sql("SELECT * FROM {db}.theirs") == [[2]]
    lake.sql("DROP VIEW {db}.ours")
    assert lake.ours().list_views("db") == [("db", "theirs")]


def test_a_table_of_version_3_with_vectors_is_shared(lake: Lake) -> None:
    version = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.ours().create_table("db.t", ROWS, properties=version)
    table.append(pa.concat_tables([rows({1: "a", 2: "b", 3: "c"})]))
    lake.sql("DELETE FROM {db}.t WHERE id = 2")
    lake.both_read("t", {1: "a", 3: "c"})
    assert table.refresh().inspect.delete_files()["file_format"].to_pylist() == ["PUFFIN"]
