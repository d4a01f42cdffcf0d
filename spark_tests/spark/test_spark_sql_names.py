"""Names that are given in other ways than as they are: statements must not mean other tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from sql_sessions import in_spark, lake_session, rows

from icebergds import register
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    InvalidStatementError,
    NoSuchTableError,
    UnsupportedFeatureError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(scope="module")
def module_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    lake = lake_session(spark, Path(tmp_path_factory.mktemp("names")))
    lake.sql("CREATE NAMESPACE lake.staging")
    lake.sql("CREATE TABLE lake.staging.t AS SELECT 1L AS id")
    return lake


@pytest.fixture
def lake(module_lake: SparkSession) -> Iterator[SparkSession]:
    """A session with the rows 1 and 2 in `lake.db.t`, and row 1 in `lake.staging.t`."""
    register(module_lake, sql=True)
    module_lake.sql("CREATE OR REPLACE TABLE lake.db.t AS SELECT id, 0 AS v FROM range(1, 3)")
    yield module_lake
    in_spark(module_lake)
    register(module_lake)


def test_identifier_names_tables_in_queries(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    assert rows(lake, "SELECT t.id FROM IDENTIFIER('t') WHERE t.id = 2") == [(2,)]
    [[count]] = lake.sql(
        "SELECT count(*) FROM IDENTIFIER('lake.' || :name) WHERE id > :least",
        args={"name": "db.t", "least": 1},
    ).collect()
    assert count == 1
    query = "SELECT ? + t.id FROM IDENTIFIER('lake.' || ?) t JOIN IDENTIFIER(?) u USING (id) "
    found = lake.sql(f"{query}WHERE id = ?", args=[10, "db.t", "lake.db.t", 2]).collect()
    assert found == [(12,)]
    assert lake.sql("SELECT max(id) FROM IDENTIFIER(?)", args=["lake.db.t"]).collect() == [(2,)]
    assert rows(lake, "DESCRIBE IDENTIFIER('t')")[0] == ("id", "bigint", None)


def test_identifier_names_namespaces(lake: SparkSession) -> None:
    named = {"args": {"name": "lake.staging"}}
    found = lake.sql("SHOW TABLES IN IDENTIFIER(:name)", **named).collect()
    assert [each[1] for each in found] == ["t"]
    lake.sql("USE IDENTIFIER(:name)", **named)
    assert rows(lake, "SHOW CURRENT NAMESPACE") == [("lake", "staging")]
    assert ("staging",) in rows(lake, "SHOW NAMESPACES IN IDENTIFIER('lake')")
    assert rows(lake, "DESCRIBE NAMESPACE IDENTIFIER('lake.staging')")[1][1] == "staging"


@pytest.mark.parametrize(
    "expression",
    ["explode(array('t', 'u'))", "'t' LIMIT 0", "'t', 'u'", "'t' FROM VALUES (1), (2)"],
)
def test_identifier_of_no_single_text_is_refused_as_by_spark(
    lake: SparkSession, expression: str
) -> None:
    lake.sql("USE lake.db")
    with pytest.raises(PySparkException):
        lake.sql(f"SELECT * FROM IDENTIFIER({expression})")


def test_identifier_of_null_names_no_table(lake: SparkSession) -> None:
    with pytest.raises(InvalidStatementError, match="expected an expression whose value is one t"):
        lake.sql("TRUNCATE TABLE IDENTIFIER(NULL)")


def test_names_that_lack_their_namespace_are_completed_in_the_error(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    for name in ("t.files", "t.branch_main"):
        with pytest.raises(NoSuchTableError, match=rf"did you mean lake\.db\.{name}\?"):
            lake.sql(f"SELECT * FROM {name}")
    with pytest.raises(NoSuchTableError, match=r"^(?!.*did you mean)"):
        lake.sql("SELECT * FROM u.files")


def test_endless_parentheses_are_refused(lake: SparkSession) -> None:
    query = f"SELECT {'(' * 2000}id{')' * 2000} FROM lake.db.t"
    with pytest.raises(InvalidStatementError, match=r"^SELECT \(+\.\.\.: parentheses are nested"):
        lake.sql(query)


def test_versions_are_given_by_parameters(lake: SparkSession) -> None:
    [[snapshot]] = rows(lake, "SELECT snapshot_id FROM lake.db.t.refs WHERE name = 'main'")
    query = "SELECT max(id) FROM lake.db.t VERSION AS OF :snapshot WHERE id < :most"
    lake.sql("DELETE FROM lake.db.t WHERE id = 2")
    assert lake.sql(query, args={"snapshot": snapshot, "most": 9}).collect() == [(2,)]
    in_order = "SELECT max(id) FROM lake.db.t TIMESTAMP AS OF ? WHERE id < ?"
    assert lake.sql(in_order, args=[datetime.now(), 9]).collect() == [(1,)]


def test_versions_are_given_behind_a_sign(lake: SparkSession) -> None:
    [[first]] = rows(lake, "SELECT snapshot_id FROM lake.db.t.refs WHERE name = 'main'")
    lake.sql("DELETE FROM lake.db.t WHERE id = 2")
    [[time]] = rows(
        lake,
        "SELECT date_format(made_current_at + INTERVAL 1 MILLISECOND, 'yyyyMMddHHmmssSSS') "
        f"FROM lake.db.t.history WHERE snapshot_id = {first}",
    )
    for at in (f"@v{first}", f" @V{first}", f"@{time}"):
        assert rows(lake, f"SELECT max(t.id) FROM lake.db.t{at}") == [(2,)]
        assert lake.table(f"lake.db.t{at}").count() == 2
        assert lake.read.format("icebergpy").table(f"lake.db.t{at}").count() == 2
    query = f"SELECT max(n.id), max(o.id) FROM lake.db.t n RIGHT JOIN `lake`.db.t@v{first} o"
    assert rows(lake, f"{query} USING (id)") == [(1, 2)]
    lake.sql("USE lake.db")
    assert lake.table(f"t@v{first}").count() == 2
    lake.sql(f"INSERT INTO t SELECT id + 10, v FROM t@v{first}")
    assert sorted(rows(lake, f"TABLE t EXCEPT TABLE t@v{first}")) == [(11, 0), (12, 0)]


def test_a_name_with_a_sign_that_is_quoted_is_the_name_of_a_table(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE lake.db.`t@v1` AS SELECT 7 AS id")
    assert rows(lake, "SELECT `t@v1`.id FROM lake.db.`t@v1`") == [(7,)]
    assert lake.table("lake.db.`t@v1`").count() == 1
    lake.sql("DROP TABLE lake.db.`t@v1`")


def test_versions_of_views_and_two_versions_are_refused(lake: SparkSession) -> None:
    lake.sql("CREATE TEMPORARY VIEW of_t AS SELECT * FROM lake.db.t")
    for version in ("@v1", " VERSION AS OF 1", " TIMESTAMP AS OF now()"):
        with pytest.raises(InvalidStatementError, match="of_t is a view: it has no versions"):
            lake.sql(f"SELECT * FROM of_t{version}")
    with pytest.raises(InvalidOptionError, match="MULTIPLE_TIME_TRAVEL_SPEC"):
        lake.sql("SELECT * FROM lake.db.t@v1 VERSION AS OF 2")
    reader = lake.read.format("icebergpy").option("versionAsOf", "1")
    with pytest.raises(InvalidOptionError, match="'versionasof' and the end of the name both say"):
        reader.table("lake.db.t@v1")
    lake.sql("DROP VIEW of_t")


def test_execute_immediate_means_the_tables_that_its_text_means(lake: SparkSession) -> None:
    lake.sql("USE lake.db")
    lake.sql("EXECUTE IMMEDIATE 'INSERT INTO t VALUES (?, ?)' USING 3, 4")
    found = rows(lake, "EXECUTE IMMEDIATE 'SELECT v FROM t WHERE id = :id' USING 3 AS id")
    assert found == [(4,)]
    with pytest.raises(UnsupportedFeatureError, match="INTO of a query on lake"):
        lake.sql("EXECUTE IMMEDIATE 'SELECT id FROM t' INTO x")


def test_statements_of_scripts_do_not_go_to_tables_of_sparks_instead(lake: SparkSession) -> None:
    [[count]] = rows(lake, "BEGIN SELECT count(*) FROM lake.db.t; END")
    assert count == 2
    refused = [
        "BEGIN DELETE FROM lake.db.t; END",
        "BEGIN IF 1 = 1 THEN INSERT INTO lake.db.t VALUES (1, 1); END IF; END",
    ]
    unqualified = [
        "BEGIN SELECT 1; CREATE TABLE u AS SELECT 1 AS a; END",
        "x: BEGIN EXECUTE IMMEDIATE 'DROP TABLE t'; END x",
    ]
    for statement in refused:
        with pytest.raises(UnsupportedFeatureError, match=r"in BEGIN \.\.\. END, only queries"):
            lake.sql(statement)
    lake.sql("USE lake.db")
    for statement in unqualified:
        with pytest.raises(UnsupportedFeatureError, match=r"in BEGIN \.\.\. END, only queries"):
            lake.sql(statement)


def test_tables_of_the_same_last_part_are_told_apart(lake: SparkSession) -> None:
    exists = "EXISTS (SELECT 1 FROM lake.staging.t WHERE staging.t.id = db.t.id)"
    assert rows(lake, f"SELECT id FROM lake.db.t WHERE {exists}") == [(1,)]
    assert rows(lake, "SELECT t.id FROM lake.db.t EXCEPT SELECT t.id FROM lake.staging.t") == [(2,)]
    lake.sql(f"UPDATE lake.db.t SET v = 1 WHERE {exists}")
    assert sorted(rows(lake, "SELECT * FROM lake.db.t")) == [(1, 1), (2, 0)]
    lake.sql(f"DELETE FROM lake.db.t WHERE {exists}")
    assert rows(lake, "SELECT lake.db.t.* FROM lake.db.t") == [(2, 0)]


def test_names_in_double_quotes_are_names_if_the_session_says_so(lake: SparkSession) -> None:
    lake.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        lake.sql('UPDATE "lake"."db".t SET "v" = 5 WHERE "id" = 1')
        assert rows(lake, 'SELECT x."v" FROM "lake".db."t" AS "x" WHERE "id" = 1') == [(5,)]
    finally:
        lake.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")


def test_errors_name_places_of_the_whole_statement(lake: SparkSession) -> None:
    if not isinstance(lake, SparkSession):
        pytest.skip("Spark Connect gives no places")
    for statement in (
        "INSERT INTO lake.db.t SELECT id, nope FROM lake.db.t",
        "INSERT INTO lake.db.t SELECT DEFAULT, nope FROM lake.db.t",
        "WITH a AS (SELECT 1)\nINSERT INTO lake.db.t SELECT 1, nope FROM lake.db.t, a",
        "MERGE INTO lake.db.t USING (SELECT nope FROM lake.db.t) s ON true\nWHEN MATCHED THEN "
        "DELETE",
    ):
        before, _ = statement.split("nope")
        line, position = before.count("\n") + 1, len(before.rpartition("\n")[2])
        with pytest.raises(AnalysisException, match=f"line {line} pos {position};"):
            lake.sql(statement)


def test_errors_of_conditions_name_tables_as_they_were_written(lake: SparkSession) -> None:
    for statement in (
        "DELETE FROM lake.db.t WHERE id IN (SELECT nope FROM lake.db.t)",
        "UPDATE lake.db.t SET id = 1 WHERE id IN (SELECT nope FROM lake.db.t)",
    ):
        with pytest.raises(
            InvalidFilterError, match=r"'id IN \(SELECT nope FROM lake\.db\.t\)': .*`nope`"
        ):
            lake.sql(statement)


def test_all_columns_may_stand_beside_metadata_columns(lake: SparkSession) -> None:
    plain = lake.sql("SELECT * FROM lake.db.t")
    both = lake.sql("SELECT x.*, _pos FROM lake.db.t x WHERE _file LIKE '%.parquet'")
    assert both.columns == [*plain.columns, "_pos"]
    assert sorted(both.drop("_pos").collect()) == sorted(plain.collect())


def test_explain_shows_sparks_error(lake: SparkSession) -> None:
    [[text]] = rows(lake, "EXPLAIN SELECT nope FROM lake.db.t")
    assert "UNRESOLVED_COLUMN" in text


def test_a_sub_query_of_many_rows_in_a_condition_is_sparks_error(lake: SparkSession) -> None:
    with pytest.raises(PySparkException, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        lake.sql("DELETE FROM lake.db.t WHERE id = (SELECT id FROM lake.db.t)")


def test_an_unknown_name_in_braces_leaves_nothing_behind(lake: SparkSession) -> None:
    before = rows(lake, "SHOW TABLES IN spark_catalog.default")
    with pytest.raises(InvalidStatementError, match=r"\{y\} has no value \(there are x\)"):
        lake.sql("SELECT * FROM lake.db.t, {x}, {y}", x=lake.range(1))
    assert rows(lake, "SHOW TABLES IN spark_catalog.default") == before


def test_functions_that_would_read_our_tables_are_refused(lake: SparkSession) -> None:
    for head in ("FUNCTION f()", "OR REPLACE TEMPORARY FUNCTION f() RETURNS TABLE (id bigint)"):
        with pytest.raises(UnsupportedFeatureError, match=r"functions cannot read lake\.db\.t"):
            lake.sql(f"CREATE {head} RETURN SELECT max(id) FROM lake.db.t")


def test_a_misspelt_catalog_is_suggested(lake: SparkSession) -> None:
    with pytest.raises(InvalidStatementError, match=r"no catalog lak is configured .*mean lake"):
        lake.sql("SELECT * FROM lak.db.t")
