"""Catalogs of a session's settings: known as soon as they are set, and errors that say how."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

import icebergds
from icebergds import register, unregister
from icebergds.errors import InvalidStatementError, NoSuchTableError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_WAREHOUSE = "spark.icebergpy.catalog.lake.warehouse"
_LINE = rf'spark\.conf\.set\("{_WAREHOUSE}", "<location>"\)'


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A registered session without catalogs."""
    session = spark.newSession()
    register(session, sql=True)
    yield session
    register(session)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM lake.db.t",
        "SELECT * FROM lake.db.t.files",
        "SELECT * FROM lake.db.t VERSION AS OF 1",
        "INSERT INTO lake.db.t VALUES (1)",
        "CREATE TABLE lake.db.t (id int) USING iceberg",
        "CREATE TABLE lake.db.t AS SELECT 1 AS id",
        "DROP TABLE IF EXISTS lake.db.t",
        "DESCRIBE lake.db.t",
        "SHOW TABLES IN lake.db",
        "CREATE NAMESPACE lake.db",
        "USE lake.db",
        "CALL lake.system.expire_snapshots('db.t')",
        "ALTER TABLE lake.db.t ADD COLUMN x int",
        "MERGE INTO lake.db.t t USING (SELECT 1 AS i) s ON t.id = i WHEN MATCHED THEN DELETE",
        "SELECT lake.system.bucket(4, 1)",
    ],
)
def test_statements_say_how_a_missing_catalog_is_configured(
    session: SparkSession, statement: str
) -> None:
    with pytest.raises(InvalidStatementError, match=f"no catalog lake is configured.*{_LINE}"):
        session.sql(statement)


def test_other_names_say_how_a_missing_catalog_is_configured(session: SparkSession) -> None:
    with pytest.raises(InvalidStatementError, match=_LINE):
        session.table("lake.db.t")
    with pytest.raises(NoSuchTableError, match=f"table lake.db.t: .*{_LINE}"):
        session.range(1).writeTo("lake.db.t").append()
    with pytest.raises(NoSuchTableError, match=_LINE):
        session.range(1).writeTo("lake.db.t").option("x", "y").create()
    with pytest.raises(NoSuchTableError, match=_LINE):
        session.read.format("icebergpy").table("lake.db.t")


def test_errors_of_names_of_sparks_own_catalog_stay(session: SparkSession) -> None:
    for name in ("spark_catalog.a.b.c", "nowhere.t", "t"):
        with pytest.raises(AnalysisException):
            session.sql(f"SELECT * FROM {name}")
        with pytest.raises(AnalysisException):
            session.range(1).writeTo(name).append()


def test_catalogs_are_known_as_soon_as_they_are_set(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set(_WAREHOUSE, str(tmp_path / "a"))
    session.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
    assert session.table("lake.db.t").count() == 1
    assert session.read.format("icebergpy").load("lake.db.t").count() == 1
    session.range(2).selectExpr("int(id)").writeTo("lake.db.t").append()
    assert icebergds.load_table("lake.db.t").scan().count() == 3
    # The data source itself, in processes of its own.
    register(session, sql=True, reader=False, native_scans=False)
    assert session.read.format("icebergpy").load("lake.db.t").count() == 3
    session.conf.set(_WAREHOUSE, str(tmp_path / "b"))
    with pytest.raises(NoSuchTableError):
        session.sql("SELECT * FROM lake.db.t")
    session.sql(f"SET {_WAREHOUSE.replace('lake', 'later')}={tmp_path / 'a'}")
    assert session.sql("SELECT * FROM later.db.t").count() == 3
    session.conf.unset(_WAREHOUSE)
    with pytest.raises(InvalidStatementError, match=r"no catalog lake .*there are later"):
        session.sql("SELECT * FROM lake.db.t")


def test_each_session_follows_its_own_settings(
    spark: SparkSession, session: SparkSession, tmp_path: Path
) -> None:
    other = spark.newSession()
    unregister(other)
    other.conf.set(_WAREHOUSE, str(tmp_path))
    with pytest.raises(InvalidStatementError, match="there are none"):
        session.sql("SELECT * FROM lake.db.t")


def test_statements_do_not_read_all_settings(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.conf.set(_WAREHOUSE, str(tmp_path))
    session.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
    session.range(1).createOrReplaceTempView("v")

    def refused(self: RuntimeConfig) -> None:
        raise AssertionError("all settings are read")

    monkeypatch.setattr(RuntimeConfig, "getAll", property(refused))
    session.conf.set("spark.sql.shuffle.partitions", "1")
    assert session.sql("SELECT * FROM lake.db.t JOIN v").count() == 1
    assert session.table("lake.db.t").count() == session.table("v").count() == 1
