"""Change data in Spark's own syntax: the clause CHANGES, and `changes` of readers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    StreamingQueryException,
)
from pyspark.sql import DataFrame, SparkSession
from spark_reads import load
from sql_sessions import in_spark, lake_session, rows

import icebergds
from icebergds import Table
from icebergds.errors import (
    InvalidOptionError,
    InvalidStatementError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

COLUMNS = ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]
UPDATE = [
    *((2, "B", "update_postimage", 2), (2, "b", "update_preimage", 2), (3, "c", "insert", 3)),
]
REWRITE = [(2, "B", "insert", 2), (2, "b", "delete", 2), (3, "c", "insert", 3)]


@pytest.fixture(scope="module")
def module_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    lake = lake_session(spark, Path(tmp_path_factory.mktemp("changes")))
    lake.sql(
        "CREATE TABLE lake.db.t (id bigint, name string) "
        "TBLPROPERTIES ('format-version' = '3', 'write.update.mode' = 'merge-on-read')"
    )
    lake.sql("INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b')")
    lake.sql("ALTER TABLE lake.db.t CREATE TAG first")
    lake.sql("UPDATE lake.db.t SET name = 'B' WHERE id = 2")
    lake.sql("INSERT INTO lake.db.t VALUES (3, 'c')")
    return lake


@pytest.fixture
def lake(module_lake: SparkSession) -> Iterator[SparkSession]:
    """In three commits: the rows 1 and 2; 2 is updated; 3 is inserted."""
    icebergds.register(module_lake, sql=True)
    yield module_lake
    in_spark(module_lake)
    icebergds.register(module_lake)


@pytest.fixture
def table(lake: SparkSession) -> Table:
    return icebergds.load_table("lake.db.t")


def changes(df: DataFrame) -> list[tuple[Any, ...]]:
    assert df.columns == COLUMNS
    return sorted(tuple(row)[:4] for row in df.collect())


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("FROM VERSION {1} EXCLUSIVE", REWRITE),
        ("FROM VERSION {2}", REWRITE),
        ("FROM VERSION {2} INCLUSIVE WITH (computeUpdates = true)", UPDATE),
        ("FROM SYSTEM_VERSION 'first' EXCLUSIVE TO VERSION 'main' EXCLUSIVE", REWRITE[:2]),
        ("FROM VERSION 3", REWRITE[2:]),
        ("FROM TIMESTAMP '{at_2}'", REWRITE),
        ("FROM TIMESTAMP '{at_1}' EXCLUSIVE TO SYSTEM_TIME '{at_2}'", REWRITE[:2]),
        (
            "FROM VERSION 1 WITH ('deduplicationMode' = 'netChanges')",
            [(1, "a", "insert", 1), (2, "B", "insert", 2), (3, "c", "insert", 3)],
        ),
    ],
)
def test_changes_of_a_range_are_queried(
    lake: SparkSession, table: Table, clause: str, found: list[tuple[Any, ...]]
) -> None:
    written = _with_places(clause, table)
    assert changes(lake.sql(f"SELECT * FROM lake.db.t CHANGES {written}")) == found


def _with_places(clause: str, table: Table) -> str:
    for number, snapshot in enumerate(table.snapshots(), 1):
        at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC).isoformat(
            " ", "milliseconds"
        )
        clause = clause.replace(f"{{{number}}}", str(snapshot.snapshot_id))
        clause = clause.replace(f"{{at_{number}}}", at)
    return clause


def test_the_clause_stands_wherever_a_query_names_a_table(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    joined = "SELECT c.id, t.name FROM t JOIN t CHANGES FROM VERSION 2 AS c ON t.id = c.id"
    assert sorted(rows(lake, f"{joined} WHERE c._change_type <> 'delete'")) == [(2, "B"), (3, "c")]
    nested = "WITH c AS (SELECT * FROM t CHANGES FROM VERSION 3 c) SELECT count(*) FROM c"
    assert rows(lake, nested) == [(1,)]
    assert rows(lake, "SELECT count(*) FROM db.t.branch_main CHANGES FROM VERSION 2") == [(3,)]
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT id FROM t CHANGES FROM VERSION 3")
    assert rows(lake, "SELECT * FROM v") == [(3,)]
    lake.sql("CREATE OR REPLACE TABLE copy AS SELECT id, name FROM t VERSION AS OF 'first'")
    lake.sql(
        "MERGE INTO copy USING (SELECT * FROM t CHANGES FROM VERSION :v) AS s "
        "ON copy.id = s.id AND s._change_type = 'insert' "
        "WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED AND s._change_type = 'insert' THEN INSERT (id, name) "
        "VALUES (s.id, s.name)",
        args={"v": 2},
    )
    assert sorted(rows(lake, "TABLE copy")) == [(1, "a"), (2, "B"), (3, "c")]


def test_versions_and_times_are_parameters(lake: SparkSession, table: Table) -> None:
    query = "SELECT id FROM lake.db.t CHANGES FROM VERSION {} EXCLUSIVE WHERE id > {}"
    assert lake.sql(query.format(":v", ":n"), args={"v": "first", "n": 2}).collect() == [(3,)]
    assert lake.sql(query.format("?", "?"), args=["first", 2]).collect() == [(3,)]
    at = datetime.fromtimestamp(table.snapshots()[-1].timestamp_ms / 1000)
    query = "SELECT id FROM lake.db.t CHANGES FROM TIMESTAMP :at"
    assert lake.sql(query, args={"at": at}).collect() == [(3,)]


def test_changes_is_the_name_of_columns_and_aliases(lake: SparkSession) -> None:
    query = "SELECT 1 AS changes, qualify, changes.id FROM (SELECT id AS qualify, id FROM lake.db.t"
    assert sorted(rows(lake, f"{query} changes) changes")) == [(1, i, i) for i in (1, 2, 3)]
    assert rows(lake, "SELECT max(changes.id) FROM lake.db.t changes") == [(3,)]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("lake.db.t CHANGES FROM VERSION 9", NoSuchSnapshotError, "snapshot 9 does not exist"),
        (
            "lake.db.t CHANGES FROM TIMESTAMP 'never'",
            (InvalidStatementError, PySparkException),
            "INVALID_TIMESTAMP|CAST_INVALID_INPUT",
        ),
        (
            "lake.db.t CHANGES FROM TIMESTAMP (SELECT now())",
            # Spark's own where it knows the clause.
            (InvalidStatementError, ParseException),
            "INVALID_TIMESTAMP_EXPR",
        ),
        (
            "lake.db.t CHANGES FROM VERSION 1 WITH (deduplicationMode = 'all')",
            InvalidOptionError,
            "INVALID_DEDUPLICATION_MODE",
        ),
        (
            "STREAM lake.db.t CHANGES FROM VERSION 1 TO VERSION 2",
            InvalidOptionError,
            "does not support option 'endingVersion'; a stream has no end",
        ),
        (
            "STREAM lake.db.t CHANGES FROM VERSION 1 WITH (deduplicationMode = 'netChanges')",
            InvalidOptionError,
            "does not support deduplicationMode=netChanges",
        ),
        ("STREAM lake.db.t VERSION AS OF 1", InvalidOptionError, "does not support option 'vers"),
        ("STREAM lake.db.t.files", UnsupportedFeatureError, "metadata tables are not read as str"),
        ("STREAM lake.db.t", AnalysisException, "must be executed with writeStream"),
        ("lake.db.t CHANGES FROM VERSION", InvalidStatementError, "expected a snapshot id or a n"),
        ("lake.db.t CHANGES FROM VERSION 1 AS WHERE x (", ParseException, "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_is_wrong_with_changes_is_told(
    lake: SparkSession, query: str, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        lake.sql(f"SELECT * FROM {query}").collect()


@pytest.mark.parametrize(
    ("relation", "columns", "found"),
    [
        ("t CHANGES FROM VERSION 'first' EXCLUSIVE", "*", REWRITE),
        ("t CHANGES FROM VERSION 2 WITH (computeUpdates = true)", "*", UPDATE),
        ("db.t CHANGES FROM TIMESTAMP '{at_2}' AS c", "c.*", REWRITE),
        ("(lake.db.t) WHERE id > 1", "id, name", [(2, "B"), (3, "c")]),
        ("lake.db.t WITH ('stream-from' = 'earliest')", "t.id", None),
        ("lake.db.t.branch_main AS b", "b.id, id", [(1, 1), (2, 2), (3, 3)]),
    ],
)
def test_a_query_of_a_stream_is_a_stream(
    lake: SparkSession,
    table: Table,
    tmp_path: Path,
    relation: str,
    columns: str,
    found: list[tuple[Any, ...]] | None,
) -> None:
    lake.sql("USE lake.db")
    rows = lake.sql(f"SELECT {columns} FROM STREAM {_with_places(relation, table)}")
    assert rows.isStreaming
    if found is None:
        # The stream begins with the update, which does not only append.
        with pytest.raises(StreamingQueryException, match="overwrite"):
            _streamed(rows, tmp_path)
        return
    assert _streamed(rows, tmp_path) == found


def test_streams_are_joined_and_in_views(lake: SparkSession, tmp_path: Path) -> None:
    lake.sql("USE lake.db")
    lake.sql("CREATE OR REPLACE TABLE names AS SELECT id, upper(name) AS name FROM t")
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW news AS SELECT * FROM STREAM t CHANGES")
    joined = "SELECT news.id, names.name FROM {} JOIN names ON news.id = names.id WHERE news.id > 1"
    for number, view in enumerate(("news", "STREAM news")):
        found = _streamed(lake.sql(joined.format(view)), tmp_path / str(number))
        assert found == [(2, "B"), (3, "C")]
    counted = "SELECT count(*), max(id) FROM STREAM t"
    assert lake.sql(counted).isStreaming
    assert "stream of lake.db.t" in lake.sql(f"EXPLAIN {counted}").collect()[0][0]
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW olds AS SELECT * FROM t")
    for view in ("olds", "lake.db.w"):
        lake.sql("CREATE OR REPLACE VIEW lake.db.w AS SELECT id FROM lake.db.t")
        with pytest.raises(InvalidStatementError, match=f"the query of the view {view} reads no"):
            lake.sql(f"SELECT * FROM STREAM {view}")
    with pytest.raises(AnalysisException, match="must be executed with writeStream"):
        lake.sql("INSERT INTO names SELECT id, name FROM STREAM t")


def test_streams_have_watermarks_and_names(lake: SparkSession, tmp_path: Path) -> None:
    counted = (
        "SELECT window.start AS at, count(*) AS n FROM STREAM lake.db.t CHANGES "
        "WATERMARK _commit_timestamp DELAY OF INTERVAL 1 MINUTE "
        "GROUP BY window(t._commit_timestamp, '1 DAY')"
    )
    assert lake.sql(counted).isStreaming
    named = "SELECT * FROM STREAM lake.db.t IDENTIFIED BY source"
    if hasattr(lake.readStream, "name"):
        # Spark has the name, which a setting of its own must allow.
        with pytest.raises(AnalysisException, match="Source name 'source' was provided"):
            lake.sql(named)
    else:
        with pytest.raises(UnsupportedFeatureError, match="has no names of sources"):
            lake.sql(named)


def test_changes_of_a_view_are_refused(lake: SparkSession) -> None:
    lake.sql("CREATE OR REPLACE VIEW lake.db.w AS SELECT id FROM lake.db.t")
    with pytest.raises(InvalidStatementError, match="is a view: it has no versions, no changes"):
        lake.sql("SELECT * FROM lake.db.w CHANGES FROM VERSION 1")


def test_readers_have_changes(lake: SparkSession, tmp_path: Path) -> None:
    reader = lake.read.option("startingVersion", "first").option("startingBoundInclusive", False)
    assert changes(reader.changes("lake.db.t")) == REWRITE
    lake.sql("USE lake.db")
    assert changes(lake.read.option("startingVersion", 2).changes("t")) == REWRITE
    stream = lake.readStream.option("startingVersion", 2).option("computeUpdates", True)
    assert stream.changes("t").columns == COLUMNS
    assert _streamed(stream.changes("t"), tmp_path) == UPDATE


def test_a_stream_of_changes_goes_on_with_new_commits(lake: SparkSession, tmp_path: Path) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.db.s AS SELECT 1L AS id, 'a' AS name")
    first = icebergds.load_table("lake.db.s").snapshots()[-1].snapshot_id

    def streamed() -> list[tuple[Any, ...]]:
        stream = lake.readStream.option("startingVersion", first).changes("lake.db.s")
        return [row[:3] for row in _streamed(stream, tmp_path)]

    assert streamed() == [(1, "a", "insert")]
    lake.sql("UPDATE lake.db.s SET name = 'A'")
    assert streamed() == [(1, "A", "insert"), (1, "a", "delete")]


def _streamed(stream: DataFrame, directory: Path) -> list[tuple[Any, ...]]:
    """The rows that a query reads now, after those that it has read before, but for their times."""
    found: list[tuple[Any, ...]] = []
    collect = lambda df, _: found.extend(tuple(row)[:4] for row in df.collect())  # noqa: E731
    writer = stream.writeStream.foreachBatch(collect)
    checkpoint = str(directory / "checkpoint")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(found)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("endingVersion", "3", "'endingVersion'; a stream has no end"),
        ("deduplicationMode", "netChanges", "does not support deduplicationMode=netChanges"),
        ("stream-from", "now", "'stream-from' and 'startingVersion' contradict"),
    ],
)
def test_streams_refuse_what_needs_an_end(
    lake: SparkSession, tmp_path: Path, option: str, value: str, message: str
) -> None:
    stream = lake.readStream.option("startingVersion", "1").option(option, value)
    with pytest.raises(PySparkException, match=message):
        _streamed(stream.changes("lake.db.t"), tmp_path)


def test_readers_leave_other_tables_to_spark(lake: SparkSession) -> None:
    lake.range(1).createOrReplaceTempView("own")
    for reader in (lake.read, lake.readStream):
        with pytest.raises(
            (PySparkException, AttributeError), match=r"CHANGE_DATA|has no attribute"
        ):
            reader.changes("own")


def test_changes_are_read_in_any_session(
    spark: SparkSession, lake: SparkSession, table: Table
) -> None:
    found = icebergds.changes(lake, "lake.db.t", startingVersion=2, computeUpdates=True)
    assert changes(found) == UPDATE
    lake.sql("USE lake.db")
    assert changes(icebergds.changes(lake, "db.t.branch_main", startingVersion=2)) == REWRITE
    assert changes(icebergds.changes(spark, table.location(), startingVersion=2)) == REWRITE
    with pytest.raises(icebergds.NoSuchTableError):
        icebergds.changes(lake, "lake.db.nothing")
    with pytest.raises(InvalidOptionError, match="did you mean 'startingVersion'"):
        icebergds.changes(lake, "lake.db.t", startVersion=2)


def test_the_format_takes_the_options_in_unregistered_sessions(
    spark: SparkSession, table: Table
) -> None:
    location = table.location()
    assert changes(load(spark, location, STARTINGVERSION="2", computeUpdates="true")) == UPDATE
    columns = "id, _commit_snapshot_id, _commit_version"
    chosen = load(spark, location, startingVersion="3", columns=columns)
    assert list(map(tuple, chosen.collect())) == [(3, table.snapshots()[-1].snapshot_id, 3)]
    schema = "_commit_version bigint, _change_type string"
    reader = spark.read.format("icebergpy").option("startingVersion", "2").schema(schema)
    assert sorted(map(tuple, reader.load(location).collect())) == [
        *((2, "delete"), (2, "insert"), (3, "insert")),
    ]
