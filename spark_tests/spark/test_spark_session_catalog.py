"""`spark.catalog` of a session whose SQL is ours: it answers as with Java Iceberg's catalogs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import CatalogMetadata, Column, Database, Table
from sql_sessions import in_spark, lake_session, rows

from icebergds import load_catalog, register
from icebergds.errors import NoSuchNamespaceError, NoSuchTableError, UnsupportedFeatureError
from icebergds.spark.patches import own as own_attribute

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A table `lake.db.t` of one row, a view `lake.db.v`, and a table `own` of Spark's."""
    session = lake_session(spark, tmp_path_factory.mktemp("session_catalog"))
    # Spark decodes the tables and functions of its own catalog only in compiled code.
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    catalog = load_catalog("lake")
    catalog.create_namespace("db.sub", {"comment": "inner", "location": "/inner"})
    catalog.create_namespace(("a-b",))
    catalog.create_table(
        "db.t",
        "id bigint NOT NULL COMMENT 'the key', day date, s struct<a:int>",
        partition_spec="day, bucket(4, id)",
        properties={"comment": "a table"},
    )
    session.sql("INSERT INTO lake.db.t VALUES (1, DATE'2024-01-01', NULL)")
    session.sql("CREATE VIEW lake.db.v AS SELECT id FROM lake.db.t")
    session.createDataFrame([(1,)], "x int").createOrReplaceTempView("of_session")
    return session


@pytest.fixture
def lake(session: SparkSession) -> Iterator[SparkSession]:
    yield session
    in_spark(session)
    session.catalog.clearCache()


T = Table("t", "lake", ["db"], "a table", "MANAGED", isTemporary=False)


def test_tables_and_namespaces_are_found_by_whole_names(lake: SparkSession) -> None:
    catalog = lake.catalog
    assert catalog.tableExists("lake.db.t")
    assert catalog.tableExists("lake.db.v")
    assert catalog.tableExists("lake.db.t.snapshots")
    assert catalog.tableExists("lake.db.t.branch_main")
    assert catalog.tableExists("t", "lake.db")
    assert not catalog.tableExists("lake.db.t.branch_nope")
    assert not catalog.tableExists("lake.db.nope")
    assert not catalog.tableExists("lake.nope.t")
    assert catalog.databaseExists("lake.db")
    assert catalog.databaseExists("lake.db.sub")
    assert not catalog.databaseExists("lake.nope")
    assert not catalog.databaseExists("lake")
    assert catalog.getTable("lake.db.t") == T
    assert catalog.listTables("lake.db") == [T]
    assert catalog.listTables("lake.db", "x*") == []
    assert catalog.listTables("lake.`a-b`") == []
    with pytest.raises(NoSuchTableError, match="nope"):
        catalog.getTable("lake.db.nope")
    with pytest.raises(NoSuchNamespaceError, match="nope"):
        catalog.listTables("lake.nope")


def test_tables_and_namespaces_are_described(lake: SparkSession) -> None:
    catalog = lake.catalog
    assert catalog.getDatabase("lake.db.sub") == Database("db.sub", "lake", "inner", "/inner")
    with pytest.raises(NoSuchNamespaceError, match="name a namespace"):
        catalog.getDatabase("lake")
    assert catalog.getTable("lake.db.v") == Table("v", "lake", ["db"], None, "VIEW", False)
    snapshots = catalog.getTable("lake.db.t.snapshots")
    assert snapshots == Table("snapshots", "lake", ["db", "t"], None, "MANAGED", False)
    assert catalog.listColumns("lake.db.t") == [
        Column("id", "the key", "bigint", False, isPartition=False, isBucket=True, isCluster=False),
        Column("day", None, "date", True, isPartition=True, isBucket=False, isCluster=False),
        Column("s", None, "struct<a:int>", True, False, False, False),
    ]
    assert [each.name for each in catalog.listColumns("t", "lake.db")] == ["id", "day", "s"]
    assert [each.name for each in catalog.listColumns("lake.db.v")] == ["id"]
    assert "snapshot_id" in [each.name for each in catalog.listColumns("lake.db.t.snapshots")]


def test_names_are_relative_to_what_was_chosen(lake: SparkSession) -> None:
    catalog = lake.catalog
    assert CatalogMetadata("lake", None) in catalog.listCatalogs()
    assert [each.name for each in catalog.listCatalogs("l*")] == ["lake"]
    lake.sql("USE lake")
    assert (catalog.currentCatalog(), catalog.currentDatabase()) == ("lake", "")
    assert [each.name for each in catalog.listDatabases()] == ["`a-b`", "db"]
    assert [each.name for each in catalog.listDatabases("d*")] == ["db"]
    assert catalog.tableExists("db.t")
    assert not catalog.tableExists("t")
    catalog.setCurrentDatabase("db")
    assert rows(lake, "SELECT current_catalog(), current_database()") == [("lake", "db")]
    assert catalog.tableExists("t")
    assert catalog.getTable("t") == T
    assert catalog.listTables() == [T]
    assert [each.name for each in catalog.listColumns("t")] == ["id", "day", "s"]
    assert catalog.databaseExists("db")
    assert rows(lake, "SELECT id FROM t") == [(1,)]
    catalog.setCurrentDatabase("`a-b`")
    assert catalog.currentDatabase() == "`a-b`"
    with pytest.raises(NoSuchNamespaceError, match="nope"):
        catalog.setCurrentDatabase("nope")
    catalog.setCurrentDatabase("")
    assert catalog.currentDatabase() == ""
    catalog.setCurrentCatalog("spark_catalog")
    assert (catalog.currentCatalog(), catalog.currentDatabase()) == ("spark_catalog", "default")
    catalog.setCurrentCatalog("lake")
    assert catalog.currentCatalog() == "lake"


def test_what_is_not_ours_is_answered_by_spark(lake: SparkSession) -> None:
    catalog, own = lake.catalog, own_attribute(lake, "catalog")
    view = Table("of_session", None, [], None, "TEMPORARY", isTemporary=True)
    for use in ("spark_catalog", "lake.db"):
        lake.sql(f"USE {use}")
        assert catalog.tableExists("of_session")
        assert catalog.getTable("of_session") == view
        assert catalog.databaseExists("spark_catalog.default")
        assert not catalog.tableExists("spark_catalog.default.nope")
        assert not catalog.isCached("of_session")
        assert catalog.functionExists("abs")
        with pytest.raises(AnalysisException):
            catalog.getTable("spark_catalog.default.nope")
        assert len(catalog.listFunctions()) >= len(own.listFunctions())
    in_spark(lake)
    assert catalog.listTables() == own.listTables()
    assert catalog.listDatabases() == own.listDatabases()
    assert not catalog.databaseExists("db")
    with pytest.raises(AnalysisException):
        catalog.setCurrentDatabase("nope")


def test_rows_are_cached_until_they_change(lake: SparkSession) -> None:
    catalog = lake.catalog
    assert not catalog.isCached("lake.db.t")
    catalog.cacheTable("lake.db.t", StorageLevel.MEMORY_ONLY)
    assert catalog.isCached("lake.db.t")
    catalog.refreshTable("lake.db.t")
    catalog.cacheTable("lake.db.t")
    assert rows(lake, "SELECT id FROM lake.db.t") == [(1,)]
    catalog.uncacheTable("lake.db.t")
    assert not catalog.isCached("lake.db.t")
    catalog.cacheTable("lake.db.t")
    catalog.clearCache()
    assert not catalog.isCached("lake.db.t")
    with pytest.raises(NoSuchTableError, match="nope"):
        catalog.isCached("lake.db.nope")
    with pytest.raises(UnsupportedFeatureError, match="only whole tables"):
        catalog.cacheTable("lake.db.v")


def test_tables_are_created(lake: SparkSession) -> None:
    schema = lake.range(1).schema
    lake.sql("USE lake.db.sub")
    made = lake.catalog.createTable("made", source="orc", schema=schema, description="d", x="y")
    assert (made.columns, made.count()) == (["id"], 0)
    table = load_catalog("lake").load_table("db.sub.made")
    assert table.properties.items() >= {
        ("comment", "d"),
        ("x", "y"),
        ("option.x", "y"),
        ("write.format.default", "orc"),
    }
    lake.catalog.createTable("lake.db.sub.other", schema=schema)
    assert [each.name for each in lake.catalog.listTables()] == ["made", "other"]
    with pytest.raises(UnsupportedFeatureError, match="USING csv"):
        lake.catalog.createTable("lake.db.sub.bad", source="csv", schema=schema)
    lake.sql("DROP TABLE made")
    lake.sql("DROP TABLE other")


def test_functions_of_catalogs_are_known(lake: SparkSession) -> None:
    catalog = lake.catalog
    assert catalog.functionExists("lake.system.bucket")
    assert not catalog.functionExists("lake.system.nope")
    found = catalog.getFunction("lake.system.bucket")
    assert (found.name, found.catalog, found.namespace) == ("bucket", "lake", ["system"])
    listed = catalog.listFunctions("lake.system", "buck*")
    assert [each.name for each in listed if each.catalog == "lake"] == ["bucket"]


def test_methods_of_newer_sparks_are_ours_where_there_are_any(lake: SparkSession) -> None:
    catalog = lake.catalog
    if not hasattr(catalog, "dropTable"):
        pytest.skip("this Spark has none of them")
    catalog.createDatabase("lake.other", properties={"comment": "c"})
    catalog.createDatabase("lake.other", ifNotExists=True)
    assert catalog.getDatabase("lake.other").description == "c"
    catalog.createTable("lake.other.t", schema=lake.range(1).schema)
    lake.sql("INSERT INTO lake.other.t VALUES (1)")
    assert catalog.getTableProperties("lake.other.t")["format-version"] == "2"
    assert catalog.getCreateTableString("lake.other.t").startswith("CREATE TABLE lake.other.t")
    catalog.analyzeTable("lake.other.t")
    catalog.truncateTable("lake.other.t")
    assert rows(lake, "SELECT * FROM lake.other.t") == []
    with pytest.raises(UnsupportedFeatureError, match="partitions"):
        catalog.listPartitions("lake.other.t")
    catalog.dropTable("lake.other.t", purge=True)
    catalog.dropTable("lake.other.t", ifExists=True)
    assert [each.name for each in catalog.listViews("lake.db")] == ["v", "of_session"]
    lake.sql("CREATE VIEW lake.other.w AS SELECT 1 AS one")
    catalog.dropView("lake.other.w")
    catalog.dropDatabase("lake.other")
    assert not catalog.databaseExists("lake.other")


def test_methods_keep_their_signatures_and_registration_gives_them_back(
    session: SparkSession, spark: SparkSession
) -> None:
    ours, own = session.catalog, type(session.catalog)(session)
    assert type(ours) is type(spark.catalog)
    for name, method in vars(ours).items():
        if callable(method) and not name.startswith("_"):
            assert inspect.signature(method) == inspect.signature(getattr(own, name)), name
    register(session)
    assert not session.catalog.databaseExists("lake.db")
    register(session, sql=True)
    assert session.catalog.databaseExists("lake.db")
    assert not spark.catalog.databaseExists("lake.db")
