"""Aggregates that metadata answers, and first rows: as if all rows were read, without reading."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from aggregate_frames import (
    DAYS,
    FIRST_OF_FRAMES,
    FRAMES,
    READ_IN_PART_FRAMES,
    SCHEMA,
    of_day,
)
from py4j.clientserver import JavaClient
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_reads import session_conf
from sql_sessions import lake_session, rows

from icebergds import Table, load_catalog, register
from icebergds.errors import InvalidOptionError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

SETTING = "spark.icebergpy.metadata-aggregates"
LOCAL_ROWS = "spark.icebergpy.local-rows"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A file for each day."""
    lake = lake_session(spark, tmp_path_factory.mktemp("aggregates"))
    for key in ("type", "uri", "schema_version", "warehouse"):
        name = f"spark.icebergpy.catalog.lake.{key}"
        _CONF[name] = lake.conf.get(name) or ""
    made = load_catalog("lake").create_table("db.t", SCHEMA, partition_spec="day")
    for number in range(DAYS):
        made.append(of_day(number))
    lake.sql("CREATE VIEW lake.db.view AS SELECT day, id AS number FROM lake.db.t")
    return made


_CONF: dict[str, str] = {}


@pytest.fixture
def lake(spark: SparkSession, table: Table) -> SparkSession:
    session = spark.newSession()
    for name, value in _CONF.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session, sql=True)
    return session


@pytest.fixture
def unreadable(table: Table) -> Iterator[None]:
    """All data files are gone while the test runs."""
    data = Path(table.location()) / "data"
    away = data.with_name("away")
    shutil.move(data, away)
    yield
    shutil.move(away, data)


def both_ways(lake: SparkSession, ask: Callable[[], DataFrame]) -> tuple[Any, Any]:
    """The columns and rows of a query with answers of metadata, and without."""
    found = []
    for setting in ("true", "false"):
        with session_conf(lake, SETTING, setting):
            frame = ask()
            found.append((frame.schema.simpleString(), sorted(map(str, frame.collect()))))
    return found[0], found[1]


ANSWERED = [
    "SELECT count(*) FROM {}",
    "SELECT COUNT( 1 ), count(2), count(id), count(n) AS present FROM {} AS e",
    "SELECT min(ts), max(ts), min(id) + 1, max(v) - min(v) AS width FROM {}",
    "SELECT Min( ID ), max(t.`id`) FROM {}",
    "SELECT count(*) FROM {} WHERE day = DATE '2024-12-31'",
    "SELECT count(*), max(id) FROM {} WHERE id >= 10 AND ts < TIMESTAMP '2025-01-01 12:00:00'",
    "SELECT count(*), max(id) FROM {} WHERE id > 1000",
    "SELECT count(*) FROM {} WHERE false",
    "SELECT min(day), max(day), count(DISTINCT day), count(*) FROM {}",
    "SELECT day, count(*), max(id) FROM {} GROUP BY day",
    "SELECT e.day AS d, count(e.n) AS c FROM {} AS e WHERE e.id > 9 GROUP BY e.day HAVING c > 3 "
    "ORDER BY c, d",
    "SELECT year(ts), count(*) FROM {} WHERE day <> DATE '2024-12-30' GROUP BY 1",
    "SELECT date(ts) AS d, min(v) FROM {} GROUP BY d ORDER BY max(id) DESC",
    "SELECT DISTINCT day FROM {}",
    "SELECT day FROM {} GROUP BY day",
    "SELECT (SELECT count(*) FROM {}) AS n, 1 AS one",
    "WITH c AS (SELECT day, count(*) AS n FROM {} GROUP BY day) SELECT sum(n) FROM c WHERE n > 3",
    "SELECT count(*) FROM {} UNION ALL SELECT max(id) FROM lake.db.t",
    "SELECT * FROM (SELECT day, max(id) AS m FROM {} GROUP BY day) WHERE m > 20",
]


@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("query", ANSWERED)
def test_sql_reads_no_rows(lake: SparkSession, query: str) -> None:
    assert lake.sql(query.format("lake.db.t")).collect() is not None


READ_IN_PART = [
    "SELECT count(*) FROM {} WHERE id < 15",
    "SELECT count(*), min(id), max(ts), count(n) FROM {} AS e WHERE e.id >= 15",
    "SELECT max(id), min(id) FROM {} WHERE id > 12 AND id < 35",
    "SELECT day, count(*), count(n), min(v) FROM {} WHERE id > 5 GROUP BY day",
    "SELECT date(ts) AS d, max(n) FROM {} AS e WHERE e.ts > TIMESTAMP '2024-12-31 04:00:00' "
    "GROUP BY d",
    "SELECT count(DISTINCT day), count(*) FROM {} WHERE id > 25",
    "SELECT DISTINCT day FROM {} WHERE id > 25",
    "SELECT lake.db.t.day, count(*) FROM lake.db.t WHERE lake.db.t.id > 25 GROUP BY lake.db.t.day",
    "SELECT (SELECT max(id) FROM {} WHERE id < 33) AS m, s FROM {} WHERE id = 3",
]
READ = [
    "SELECT min(s), count(*) FROM {}",
    "SELECT count(*) FROM {} WHERE v + 1 > 3",
    "SELECT sum(id) FROM {}",
    "SELECT s, count(*) FROM {} GROUP BY s",
    "SELECT month(ts), count(*) FROM {} GROUP BY 1",
    "SELECT day, count(*) FROM {} GROUP BY ROLLUP (day)",
    "SELECT count(*) FILTER (WHERE id > 3) FROM {}",
    "SELECT DISTINCT count(*) OVER () FROM {}",
    "SELECT count(id, n) FROM {}",
    "SELECT count(DISTINCT id) FROM {}",
    "SELECT max(id) FROM {} TABLESAMPLE (100 PERCENT)",
    "SELECT count(*) FROM {} AS a JOIN {} AS b ON a.id = b.id",
    "SELECT max(struct(id, s)) FROM {}",
    "SELECT max(id) FROM {} GROUP BY n",
    "SELECT day AS id, count(*) FROM {} GROUP BY day",
    "SELECT (SELECT count(*) FROM {} AS i WHERE i.id = o.id) AS c FROM {} AS o",
    "SELECT count(*) FROM lake.db.view WHERE number > 11",
    "SELECT max(x) FROM {} AS e(x, b, c, d, e, f)",
]


@pytest.mark.parametrize("query", [*ANSWERED, *READ_IN_PART, *READ])
def test_sql_gives_the_rows_and_names_of_reading(lake: SparkSession, query: str) -> None:
    answered, read = both_ways(lake, lambda: lake.sql(query.replace("{}", "lake.db.t")))
    assert answered == read


def test_parameters_in_what_is_not_read_are_left_out(lake: SparkSession) -> None:
    query = "SELECT count(*) FROM lake.db.t WHERE id >= ? AND id < ?"
    assert [tuple(row) for row in lake.sql(query, args=[10, 20]).collect()] == [(10,)]
    assert [tuple(row) for row in lake.sql(query, args=[10, 25]).collect()] == [(15,)]
    named = "SELECT day, count(*) FROM lake.db.t WHERE id >= :low GROUP BY day"
    assert len(lake.sql(named, args={"low": 25}).collect()) == 2


def test_names_in_another_case_are_refused_where_case_matters(lake: SparkSession) -> None:
    queries = ("SELECT max(ID) FROM lake.db.t", "SELECT count(*) FROM lake.db.t WHERE ID > 3")
    for query in queries:
        assert len(rows(lake, query)) == 1
        with (
            session_conf(lake, "spark.sql.caseSensitive", "true"),
            pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"),
        ):
            lake.sql(query)


NATIVE = pytest.mark.parametrize("native", ["true", "false"])


@NATIVE
@pytest.mark.usefixtures("unreadable")
@pytest.mark.parametrize("name", FRAMES)
def test_dataframes_read_no_rows(lake: SparkSession, name: str, native: str) -> None:
    with session_conf(lake, "spark.icebergpy.native-scans", native):
        assert FRAMES[name](lake.table("lake.db.t")).collect() is not None
        assert lake.table("lake.db.t").where("id >= 20").count() == 20


@NATIVE
@pytest.mark.parametrize("name", [*FRAMES, *READ_IN_PART_FRAMES])
def test_dataframes_give_the_rows_and_names_of_reading(
    lake: SparkSession, name: str, native: str
) -> None:
    ask = {**FRAMES, **READ_IN_PART_FRAMES}[name]
    with session_conf(lake, "spark.icebergpy.native-scans", native):
        answered, read = both_ways(lake, lambda: ask(lake.table("lake.db.t")))
    assert answered == read


def test_frames_of_answers_are_as_any_other(lake: SparkSession) -> None:
    days = lake.table("lake.db.t").groupBy("day").agg(f.count("*").alias("n"))
    assert days.first() is not None
    assert days.agg(f.sum("n")).collect() == [(40,)]
    assert days.join(lake.table("lake.db.t"), "day").count() == 40
    assert days.where("n = 10").count() == 4
    days.createOrReplaceTempView("days_of_t")
    assert rows(lake, "SELECT sum(n) FROM days_of_t") == [(40,)]


def test_the_setting_the_option_and_the_property_have_rows_read(
    lake: SparkSession, table: Table
) -> None:
    def explained(query: str) -> bool:
        [(text,)] = rows(lake, f"EXPLAIN {query}")
        return "answered from metadata" in text

    query = "SELECT count(*) FROM lake.db.t"
    assert explained(query)
    assert not explained(f"{query} WITH (`metadata-aggregates` = 'false')")
    for name in (SETTING, "spark.sql.iceberg.aggregate-push-down.enabled"):
        with session_conf(lake, name, "false"):
            assert not explained(query)
    name = "db.with_property"
    copy = load_catalog("lake").create_table(
        name, SCHEMA, properties={"read.metadata-aggregates": "false"}
    )
    copy.append(of_day(0))
    query = "SELECT count(*) FROM lake.db.with_property"
    assert not explained(query)
    assert explained(f"{query} WITH (`metadata-aggregates` = 'true')")
    assert rows(lake, query) == [(10,)]


FIRST_ROWS = {
    "SELECT id FROM {} ORDER BY ts DESC LIMIT 5": 1,
    "SELECT id, ts AS x FROM {} ORDER BY x LIMIT 3": 1,
    "SELECT id AS ts, ts AS id FROM {} ORDER BY ts DESC LIMIT 4": 1,
    "SELECT * FROM {} WHERE day > DATE '2024-12-30' ORDER BY id, s LIMIT 3 OFFSET 2": 1,
    "SELECT s, id FROM {} ORDER BY 2 DESC LIMIT 12": 2,
    "SELECT * FROM (SELECT id FROM {} ORDER BY id DESC LIMIT 12) WHERE id < 32": 2,
    # Nulls come first, and all files have some.
    "SELECT n FROM {} ORDER BY n LIMIT 4": 4,
    "SELECT n FROM {} ORDER BY n DESC NULLS FIRST LIMIT 4": 4,
    "SELECT -id AS id FROM {} ORDER BY id LIMIT 3": 4,
    "SELECT id FROM {} ORDER BY id + 1 LIMIT 3": 4,
    "SELECT max(id) FROM {} GROUP BY s ORDER BY 1 LIMIT 3": 4,
}


@pytest.mark.parametrize(("query", "files"), FIRST_ROWS.items())
def test_the_first_rows_are_read_from_the_files_that_have_them(
    lake: SparkSession, query: str, files: int
) -> None:
    plain = lake.createDataFrame(pa.concat_tables([of_day(day) for day in range(DAYS)]))
    plain.createOrReplaceTempView("plain")
    assert rows(lake, query.format("lake.db.t")) == rows(lake, query.format("plain"))
    [(text,)] = rows(lake, f"EXPLAIN {query.format('lake.db.t')}")
    skipped = "as others have the first rows" in text
    assert f"{files} of 4 kept" in text
    assert skipped == (files < 4)


def test_any_rows_are_read_from_few_files(lake: SparkSession) -> None:
    assert len(rows(lake, "SELECT * FROM lake.db.t LIMIT 7")) == 7
    assert len(rows(lake, "SELECT upper(s) FROM lake.db.t WHERE id > 12 LIMIT 17")) == 17
    for query, files in {"LIMIT 7": 1, "LIMIT 17": 2, "LIMIT 100": 4}.items():
        [(text,)] = rows(lake, f"EXPLAIN SELECT * FROM lake.db.t {query}")
        assert f"{files} of 4 kept" in text
    exploded = "SELECT explode(array()) FROM lake.db.t LIMIT 7"
    [(text,)] = rows(lake, f"EXPLAIN {exploded}")
    assert "4 of 4 kept" in text


@NATIVE
@pytest.mark.parametrize("name", FIRST_OF_FRAMES)
def test_the_first_rows_of_dataframes_are_those_of_all(
    lake: SparkSession, name: str, native: str
) -> None:
    ask, files = FIRST_OF_FRAMES[name]
    plain = lake.createDataFrame(pa.concat_tables([of_day(day) for day in range(DAYS)]))
    with session_conf(lake, "spark.icebergpy.native-scans", native):
        frame = ask(lake.table("lake.db.t"))
        assert frame.collect() == ask(plain).collect()
        assert len(frame.inputFiles()) == (files if native == "true" else 0)
        whole = lake.table("lake.db.t")
        assert len(whole.limit(3).collect()) == 3
        assert len(whole.collect()) == 40


def plan_text(frame: DataFrame) -> str:
    classic: Any = frame._jdf
    return str(classic.queryExecution().executedPlan().toString())


FEW = {
    "SELECT * FROM lake.db.t WHERE id = 17": True,
    "SELECT id, s AS u FROM lake.db.t WHERE n IN (2, 4) AND day = DATE '2024-12-31'": True,
    "SELECT * FROM (SELECT s, id FROM lake.db.t WHERE id = 5) AS t WHERE t.s = 'x'": True,
    "SELECT id FROM lake.db.t LIMIT 3": True,
    "SELECT id FROM lake.db.t WHERE id > 12": False,
    "SELECT id FROM lake.db.t": False,
    # Spark may compute expressions on rows in its plan by other rules.
    "SELECT upper(s) FROM lake.db.t WHERE id = 17": False,
    "SELECT id FROM lake.db.t WHERE typeof(s) = 'string' AND id = 3": False,
    "SELECT sum(id) FROM lake.db.t WHERE id = 3": False,
}


@pytest.mark.parametrize(("query", "is_local"), FEW.items())
def test_few_rows_are_read_by_the_driver(lake: SparkSession, query: str, is_local: bool) -> None:
    expected = rows(lake, query)
    with session_conf(lake, LOCAL_ROWS, "12"):
        frame = lake.sql(query)
        assert ("Scan parquet" not in plan_text(frame)) == is_local
        found = [tuple(row) for row in frame.collect()]
    assert len(found) == len(expected)
    if "LIMIT" not in query:
        assert sorted(found) == sorted(expected)


def test_more_rows_than_the_setting_are_read_by_a_job(lake: SparkSession) -> None:
    query = "SELECT id FROM lake.db.t WHERE s = 'x' AND day = DATE '2024-12-31'"
    for most, is_local in (("9", False), ("10", True)):
        with session_conf(lake, LOCAL_ROWS, most):
            frame = lake.sql(query)
            assert ("Scan parquet" not in plan_text(frame)) == is_local
            assert sorted(frame.collect()) == [(number,) for number in range(10, 20)]
    with (
        session_conf(lake, LOCAL_ROWS, "few"),
        pytest.raises(InvalidOptionError, match=r"local-rows = 'few': expected a number of rows"),
    ):
        lake.sql(query)


CALLS = {
    "SELECT count(*), max(ts) FROM lake.db.t": 40,
    "SELECT * FROM lake.db.t WHERE id = 17": 40,
    "SELECT * FROM lake.db.t LIMIT 3": 40,
    "SELECT * FROM lake.db.t WHERE id > 17": 40,
}


@pytest.mark.parametrize(("query", "most"), CALLS.items())
def test_a_query_takes_few_calls_to_the_jvm(
    lake: SparkSession, monkeypatch: pytest.MonkeyPatch, query: str, most: int
) -> None:
    lake.conf.set(LOCAL_ROWS, "12")
    # The first queries look up classes.
    for _ in range(2):
        lake.sql(query).collect()
    calls = []
    send = JavaClient.send_command

    def counted(self: JavaClient, command: str, *given: Any, **named: Any) -> Any:
        calls.append(command)
        return send(self, command, *given, **named)

    monkeypatch.setattr(JavaClient, "send_command", counted)
    lake.sql(query).collect()
    # Objects that Python has collected are freed by calls, too.
    assert len([each for each in calls if not each.startswith("m")]) <= most
