"""Views that statements of SQL create, here and in Java Iceberg, are described and read alike."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from java_process import JavaProcess
from oracles.java_environment import jdbc_driver
from pyspark.sql import SparkSession
from shared_catalog import Lake

from icebergds import register

pytestmark = [pytest.mark.interop, pytest.mark.spark]

_DEFINITION = (
    "(i COMMENT 'the i', n) COMMENT 'it''s' TBLPROPERTIES ('p' = 'o''o') AS "
    "SELECT id, upper(name) FROM {db}.t WHERE id > 1"
)
_DESCRIBED = (
    "SELECT * FROM {db}.v",
    "DESCRIBE EXTENDED {db}.v",
    "SHOW CREATE TABLE {db}.v",
    "SHOW TBLPROPERTIES {db}.v",
    "SHOW VIEWS IN {db}",
    "SHOW TABLES IN {db}",
    "SELECT * FROM {db}.w",
)


@pytest.fixture
def lake(java_process: JavaProcess, tmp_path: Path) -> Lake:
    driver = jdbc_driver("sqlite")
    if isinstance(driver, str):
        pytest.skip(driver)
    properties = {
        "uri": f"jdbc:sqlite:{tmp_path}/lake.db",
        "warehouse": str(tmp_path / "warehouse"),
        "jdbc.schema-version": "V1",
    }
    lake = Lake(f"lake_{uuid.uuid4().hex}", java_process, properties)
    lake.open_in_java({"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", **properties})
    return lake


@pytest.fixture
def session(spark: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    session = spark.newSession()
    for key, value in lake.properties.items():
        session.conf.set(f"spark.icebergpy.catalog.{lake.name}.{key}", value)
    register(session, sql=True)
    yield session
    register(session)


def _ours(session: SparkSession, lake: Lake, statement: str) -> list[list[Any]]:
    named = statement.replace("{db}", f"{lake.name}.db")
    return [list(row) for row in session.sql(named).collect()]


@pytest.mark.parametrize("creator", ["ours", "java"])
def test_view_is_described_and_read_alike(session: SparkSession, lake: Lake, creator: str) -> None:
    _ours(session, lake, "CREATE NAMESPACE {db}")
    _ours(session, lake, "CREATE TABLE {db}.t (id bigint, name string)")
    _ours(session, lake, "INSERT INTO {db}.t VALUES (1, 'a'), (2, 'b')")
    for statement in (
        "CREATE VIEW {db}.v AS SELECT 1 AS x",
        f"CREATE OR REPLACE VIEW {{db}}.v {_DEFINITION}",
        "CREATE VIEW {db}.w AS SELECT n, i + 1 AS j FROM {db}.v",
        "ALTER VIEW {db}.v SET TBLPROPERTIES ('q' = '1')",
    ):
        if creator == "java":
            lake.sql(statement)
        else:
            _ours(session, lake, statement)
    for statement in _DESCRIBED:
        ours, java = _ours(session, lake, statement), lake.sql(statement)
        assert sorted(map(str, ours)) == sorted(map(str, java)), statement
    assert _ours(session, lake, "SELECT * FROM {db}.w") == [["B", 3]]
