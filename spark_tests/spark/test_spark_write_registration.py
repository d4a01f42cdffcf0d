"""What `register` takes from the session: catalogs, and batches that are not measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from spark_reads import ids, load, session_conf
from spark_writes import save

from icebergds import load_catalog, load_table, register

pytestmark = pytest.mark.spark

_MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


@pytest.fixture
def catalogs(spark: SparkSession, tmp_path: Path) -> Iterator[dict[str, dict[str, str]]]:
    """Catalogs of the session: `lake` on the file system, `sql` in SQLite."""
    pytest.importorskip("sqlalchemy")
    found = {
        "lake": {"warehouse": str(tmp_path / "lake")},
        "sql": {"uri": f"sqlite:///{tmp_path}/sql.db", "warehouse": str(tmp_path / "sql")},
    }
    settings = {
        f"spark.icebergpy.catalog.{name}.{key}": value
        for name, properties in found.items()
        for key, value in properties.items()
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    register(spark)
    yield found
    for key in settings:
        spark.conf.unset(key)
    register(spark)


@pytest.mark.parametrize("name", ["lake", "sql"])
def test_catalogs_of_the_session_are_known_to_saves_and_loads(
    spark: SparkSession, catalogs: dict[str, dict[str, str]], name: str
) -> None:
    catalog = load_catalog(name, **catalogs[name])
    catalog.create_namespace("db")
    save(spark.range(2), "db.t", create="true", catalog=name)
    save(spark.range(2, 3), "db.t", catalog=name)
    assert ids(load(spark, "db.t", catalog=name)) == [0, 1, 2]
    table = catalog.load_table("db.t")
    table.append(spark.range(3, 4))
    assert ids(table.scan().to_df(spark)) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["lake", "sql"])
def test_catalogs_of_the_session_are_known_to_python(
    spark: SparkSession, catalogs: dict[str, dict[str, str]], name: str
) -> None:
    load_catalog(name).create_namespace("db")
    save(spark.range(2), "db.t", create="true", catalog=name)
    assert ids(load_table("db.t", catalog=name).scan().to_df(spark)) == [0, 1]
    assert load_catalog(name).list_tables("db") == [("db", "t")]


@pytest.fixture
def other(spark: SparkSession) -> Iterator[SparkSession]:
    """Another session of the same Spark, which is not active."""
    session = spark.newSession()
    yield session
    for key in session.conf.getAll:
        if key.startswith("spark.icebergpy.catalog."):
            session.conf.unset(key)
    register(session)


def test_sessions_add_their_catalogs(
    other: SparkSession, catalogs: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    other.conf.set("spark.icebergpy.catalog.sea.warehouse", str(tmp_path / "sea"))
    register(other)
    assert load_catalog("sea").properties == {"warehouse": str(tmp_path / "sea")}
    assert load_catalog("lake").properties == catalogs["lake"]


def test_each_session_has_its_own_catalog_of_a_name(
    spark: SparkSession, other: SparkSession, catalogs: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    other.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path / "other"))
    register(other)
    for session, directory in ((spark, "lake"), (other, "other")):
        load_catalog("lake", warehouse=str(tmp_path / directory)).create_namespace("db")
        save(session.range(1), "db.t", create="true", catalog="lake")
        assert (tmp_path / directory / "db" / "t").exists()
    spark.createDataFrame([], "a int")  # Makes the session the active one.
    assert load_catalog("lake").properties == catalogs["lake"]
    other.createDataFrame([], "a int")
    assert load_catalog("lake").properties == {"warehouse": str(tmp_path / "other")}
    spark.createDataFrame([], "a int")


def test_a_session_that_is_registered_again_has_its_catalogs_of_now(
    spark: SparkSession, catalogs: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    spark.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path / "moved"))
    register(spark)
    assert load_catalog("lake").properties == {"warehouse": str(tmp_path / "moved")}


def test_arguments_win_over_the_session(
    catalogs: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    load_catalog("lake").create_namespace("db")
    elsewhere = load_catalog("lake", warehouse=str(tmp_path / "other"))
    assert elsewhere.list_namespaces() == []


def test_options_of_a_save_win_over_the_session(
    spark: SparkSession, catalogs: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    elsewhere = {"catalog": "lake", "catalog.warehouse": str(tmp_path / "other")}
    load_catalog("lake", warehouse=str(tmp_path / "other")).create_namespace("db")
    save(spark.range(1), "db.t", create="true", **elsewhere)
    assert ids(load(spark, tmp_path / "other" / "db" / "t")) == [0]


def test_fast_writes_are_not_measured(spark: SparkSession) -> None:
    with session_conf(spark, _MAX_BYTES, "1000"):
        register(spark)
        assert spark.conf.get(_MAX_BYTES) == "1000"
        register(spark, fast_writes=True)
        assert spark.conf.get(_MAX_BYTES) == "2147483647"


def test_spark_does_not_warn_that_registration_replaces_the_source_it_found(
    spark: SparkSession,
) -> None:
    with warnings_of(spark) as warned:
        register(spark, reader=False, writer=False, native_scans=False)
        spark._jsparkSession.cloneSession()
    assert "replaced" not in warned()
    assert "Loading static" not in warned(), "what Spark tells at a lower level stays hidden"


def test_spark_still_warns_of_other_sources_that_are_replaced(spark: SparkSession) -> None:
    with warnings_of(spark) as warned:
        spark.dataSource.register(Other)
        spark.dataSource.register(Other)
    assert "The data source other replaced a previously registered data source." in warned()


class Other(DataSource):
    @classmethod
    def name(cls) -> str:
        return "other"


@contextmanager
def warnings_of(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """What the JVM warns of in the block, as text."""
    jvm: Any = spark._jvm
    written = jvm.java.io.StringWriter()
    appender = jvm.org.apache.logging.log4j.core.appender.WriterAppender.createAppender(
        None, None, written, "warnings", False, True
    )
    appender.start()
    root = jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration()
    root.getRootLogger().addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("WARN")
    try:
        yield written.toString
    finally:
        spark.sparkContext.setLogLevel("OFF")
        root.getRootLogger().removeAppender("warnings")
