"""Statements whose words Spark has gained since 4.1, which tables of ours have on every Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession, functions
from sql_sessions import in_spark, lake_session, rows

from icebergds import register
from icebergds.errors import IcebergError, InvalidStatementError, UnsupportedFeatureError
from icebergds.statements.syntax import knows_newest_words

pytestmark = pytest.mark.spark

_ROWS = [(1, "a", 1), (2, "b", 1), (3, "c", 2), (4, None, None)]


@pytest.fixture(scope="module")
def module_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return lake_session(spark, Path(tmp_path_factory.mktemp("newer")))


@pytest.fixture
def lake(module_lake: SparkSession) -> Iterator[SparkSession]:
    """A session with `_ROWS` in `lake.db.t`, partitioned by day, and ids 2, 3, 9 in `lake.db.u`."""
    register(module_lake, sql=True)
    module_lake.sql(
        "CREATE OR REPLACE TABLE lake.db.t (id bigint, name string, day int) PARTITIONED BY (day)"
    )
    module_lake.sql("INSERT INTO lake.db.t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    module_lake.sql("INSERT INTO lake.db.t VALUES (4, NULL, NULL)")
    module_lake.sql(
        "CREATE OR REPLACE TABLE lake.db.u AS SELECT * FROM VALUES (2L, 'B', 2), (3L, 'C', 2), "
        "(9L, 'I', 3) AS v(id, name, day)"
    )
    yield module_lake
    in_spark(module_lake)
    register(module_lake)


def of_table(lake: SparkSession) -> list[tuple[Any, ...]]:
    return rows(lake, "SELECT * FROM lake.db.t ORDER BY id, name, day")


def commits(lake: SparkSession) -> int:
    [[count]] = rows(lake, "SELECT count(*) FROM lake.db.t.snapshots")
    return int(count)


@pytest.mark.parametrize(
    "replaced", ["REPLACE USING (id) {}", "REPLACE ON t.id = s.id ({}) AS s"], ids=["using", "on"]
)
def test_rows_replace_those_that_they_match_also_if_the_query_is_random(
    lake: SparkSession, replaced: str
) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.db.r (id bigint, new boolean)")
    lake.sql("INSERT INTO lake.db.r SELECT id, false FROM range(1000)")
    dice = functions.udf(lambda _: random.randrange(1000), "bigint").asNondeterministic()
    lake.udf.register("dice", dice)
    query = "SELECT DISTINCT dice(id) AS id, true FROM range(300)"
    lake.sql(f"INSERT INTO lake.db.r AS t {replaced.format(query)}")
    count = "SELECT count(*), count(DISTINCT id), count_if(new) BETWEEN 100 AND 300 FROM lake.db.r"
    assert rows(lake, count) == [(1000, 1000, True)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "INSERT INTO lake.db.t REPLACE USING (id) SELECT * FROM lake.db.u",
            [(1, "a", 1), (2, "B", 2), (3, "C", 2), (4, None, None), (9, "I", 3)],
        ),
        (
            "INSERT INTO lake.db.t REPLACE USING (day) VALUES (7, 'g', 1), (8, 'h', NULL)",
            [(3, "c", 2), (4, None, None), (7, "g", 1), (8, "h", None)],
        ),
        (
            "INSERT INTO lake.db.t AS x BY NAME REPLACE USING (Day, ID) "
            "SELECT 1 AS day, 1L AS id UNION ALL SELECT 2, 1L",
            [(1, None, 1), (1, None, 2), (2, "b", 1), (3, "c", 2), (4, None, None)],
        ),
        (
            "INSERT INTO lake.db.t REPLACE ON t.id = s.key + 1 "
            "(SELECT key, concat('n', key), 1 FROM VALUES (1L), (2L) AS v(key)) AS s",
            [(1, "a", 1), (1, "n1", 1), (2, "n2", 1), (4, None, None)],
        ),
        (
            "INSERT INTO lake.db.t AS x REPLACE ON x.id = u.id AND x.day < u.day "
            "SELECT u.* FROM lake.db.u",
            [(1, "a", 1), (2, "B", 2), (3, "C", 2), (3, "c", 2), (4, None, None), (9, "I", 3)],
        ),
        (
            "INSERT INTO lake.db.t x BY NAME REPLACE ON x.day <=> s.day "
            "(SELECT 5L AS id, CAST(NULL AS int) AS day) s",
            [(1, "a", 1), (2, "b", 1), (3, "c", 2), (5, None, None)],
        ),
        (
            "WITH c AS (SELECT 3L AS id) INSERT INTO lake.db.t (id) REPLACE WHERE "
            "id IN (SELECT id FROM lake.db.u WHERE u.name <> t.name) AND EXISTS (TABLE c) TABLE c",
            [(1, "a", 1), (3, None, None), (4, None, None)],
        ),
        (
            "INSERT INTO lake.db.t BY NAME REPLACE WHERE day = 1 SELECT 'x' AS name, 6L AS id",
            [(3, "c", 2), (4, None, None), (6, "x", None)],
        ),
        (
            "INSERT INTO lake.db.t REPLACE WHERE t.id = 1 OR db.t.id = 2 "
            "SELECT t.* FROM lake.db.u t WHERE t.id = 9",
            [(3, "c", 2), (4, None, None), (9, "I", 3)],
        ),
        (
            "INSERT INTO lake.db.t REPLACE WHERE EXISTS (SELECT 1 FROM lake.db.u t "
            "WHERE t.id = db.t.id) SELECT t.* FROM lake.db.u t WHERE t.id = 9",
            [(1, "a", 1), (4, None, None), (9, "I", 3)],
        ),
        (
            "INSERT INTO lake.db.t REPLACE ON true SELECT * FROM lake.db.t WHERE id = 1",
            [(1, "a", 1)],
        ),
        ("INSERT INTO lake.db.t REPLACE ON true SELECT * FROM lake.db.t WHERE id = 0", None),
    ],
)
def test_new_rows_replace_those_that_they_match_in_one_commit(
    lake: SparkSession, statement: str, expected: list[tuple[Any, ...]] | None
) -> None:
    before = commits(lake)
    lake.sql(statement)
    assert of_table(lake) == (_ROWS if expected is None else expected)
    assert commits(lake) == before + (expected is not None)


def test_replaced_rows_may_come_with_columns_that_the_table_lacks(lake: SparkSession) -> None:
    lake.sql(
        "INSERT WITH SCHEMA EVOLUTION INTO lake.db.t BY NAME REPLACE USING (id) "
        "SELECT 2L AS id, 1 AS day, 'x' AS name, 'new' AS more"
    )
    assert of_table(lake)[1:3] == [(2, "x", 1, "new"), (3, "c", 2, None)]


@pytest.mark.parametrize(
    "clause", ["USING (day, id) VALUES (2, 'x', 1)", "ON t.day = s.d (SELECT 2, 'x', 1 AS d) AS s"]
)
def test_only_partitions_of_the_new_rows_are_read_to_replace_rows(
    lake: SparkSession, clause: str
) -> None:
    [[path]] = rows(lake, "SELECT file_path FROM lake.db.t.files WHERE partition.day = 2")
    Path(path.removeprefix("file://")).unlink()
    lake.sql(f"INSERT INTO lake.db.t REPLACE {clause}")
    found = rows(lake, "SELECT * FROM lake.db.t WHERE day = 1 ORDER BY id")
    assert found == [*([(1, "a", 1)] if "USING" in clause else []), (2, "x", 1)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "INSERT INTO lake.db.t (id) REPLACE ON t.id = s.id (SELECT 1L AS id) AS s",
            "INSERT_REPLACE_ON_COLUMN_LIST_NOT_ALLOWED",
        ),
        (
            "INSERT INTO lake.db.t AS x REPLACE WHERE id = 1 SELECT 1, 'a', 1",
            "INSERT_REPLACE_WHERE_TABLE_ALIAS_NOT_ALLOWED",
        ),
        ("INSERT INTO lake.db.t (id) REPLACE USING (id) SELECT 1", "PARSE_SYNTAX|use BY NAME"),
        ("INSERT INTO lake.db.t AS x (id) REPLACE USING (id) SELECT 1", "use BY NAME"),
        ("INSERT INTO lake.db.t@v1 REPLACE USING (id) SELECT 1", "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO lake.db.t REPLACE USING (nme) SELECT 1, 'a', 1", "did you mean name"),
        (
            "INSERT INTO lake.db.t BY NAME REPLACE USING (day) SELECT 1L AS id",
            "column day, which the new rows do not have",
        ),
        (
            "INSERT INTO lake.db.t REPLACE ON t.id = t.id (SELECT 1, 'a', 1) AS t",
            "give them different aliases",
        ),
        (
            "INSERT INTO lake.db.t REPLACE ON t.nope = s.x (SELECT 1 AS x, 'a', 1) AS s",
            "UNRESOLVED_COLUMN",
        ),
        (
            "INSERT INTO lake.db.t REPLACE ON rand() < 1 (SELECT 1 AS x, 'a', 1) AS s",
            "NON_DETERMINISTIC",
        ),
        ("INSERT INTO lake.db.t REPLACE USING (id) SELECT 'x', 'a', 1", "cannot store|CAST_INV"),
        ("INSERT INTO lake.db.t REPLACE USING () SELECT 1, 'a', 1", "PARSE_SYNTAX|expected"),
        ("INSERT INTO lake.db.t REPLACE USING (id) SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("INSERT OVERWRITE lake.db.t REPLACE USING (id) SELECT 1, 'a', 1", "PARSE_SYNTAX|expected"),
    ],
)
def test_what_cannot_be_replaced_is_an_error_before_anything_is_changed(
    lake: SparkSession, statement: str, message: str
) -> None:
    before = commits(lake)
    with pytest.raises((IcebergError, ParseException), match=message):
        lake.sql(statement)
    assert (of_table(lake), commits(lake)) == (_ROWS, before)


def test_tables_to_change_and_their_sources_have_options(lake: SparkSession) -> None:
    by = "'snapshot-property.by' = 'me'"
    [[first]] = rows(lake, "SELECT snapshot_id FROM lake.db.u.refs WHERE name = 'main'")
    lake.sql("INSERT INTO lake.db.u VALUES (4, 'D', 4)")
    lake.sql("CREATE OR REPLACE TABLE lake.db.none AS SELECT * FROM lake.db.u WHERE false")
    changed = [
        f"DELETE FROM lake.db.t WITH ({by}) WHERE id = 1",
        f"DELETE FROM lake.db.t AS x WITH ({by}) WHERE x.id = 2",
        f"UPDATE lake.db.t WITH ({by}) SET name = 'z' WHERE id = 3",
        f"UPDATE lake.db.t x WITH ({by}) SET x.name = 'y' WHERE x.id = 3",
        f"INSERT INTO lake.db.t AS x WITH ({by}) REPLACE ON x.id = 0 TABLE lake.db.none",
        f"MERGE INTO lake.db.t AS x WITH ({by}) USING lake.db.u WITH ('snapshot-id' = {first}) s "
        "ON x.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    ]
    for statement in changed:
        lake.sql(statement)
    assert of_table(lake) == [(2, None, None), (3, "C", 2), (4, None, None), (9, None, None)]
    [[count]] = rows(lake, "SELECT count(*) FROM lake.db.t.snapshots WHERE summary['by'] = 'me'")
    # One found nothing to change.
    assert count == len(changed) - 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM lake.db.t WITH ('isolation' = 'x') WHERE id = 1", "isolation-level"),
        ("UPDATE lake.db.t WITH ('split-size' = 1) SET id = 1", "'split-size'.* of reads"),
        (
            "MERGE INTO lake.db.t WITH (nope = 1) USING lake.db.u s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE",
            "'nope'",
        ),
        (
            "MERGE INTO lake.db.t USING lake.db.u WITH ('fanout-enabled' = true) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE",
            "'fanout-enabled'.* of writes",
        ),
        ("DELETE FROM lake.db.t WITH (a = 1) WERE id = 1", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_unknown_options_are_refused_by_name(
    lake: SparkSession, statement: str, message: str
) -> None:
    with pytest.raises((IcebergError, ParseException), match=message):
        lake.sql(statement)
    assert of_table(lake) == _ROWS


def test_statements_with_newer_words_are_explained(lake: SparkSession) -> None:
    for statement in (
        "DELETE FROM lake.db.t WITH ('isolation-level' = 'none') WHERE day = 1",
        "MERGE INTO lake.db.u x WITH ('isolation-level' = 'none') USING lake.db.t "
        "WITH ('split-size' = 1) s ON x.id = s.id AND s.day = 1 WHEN MATCHED THEN DELETE",
        "INSERT INTO lake.db.u REPLACE ON u.id = s.id (SELECT * FROM lake.db.t WHERE day = 1) AS s",
    ):
        [[plan]] = rows(lake, f"EXPLAIN {statement}")
        assert "== Query of the Statement ==" in plan
        assert "lake.db.t" in plan


def test_comments_of_columns_are_set_in_one_commit(lake: SparkSession) -> None:
    lake.sql("ALTER TABLE lake.db.t ALTER COLUMN name COMMENT 'old'")
    lake.sql("COMMENT ON TABLE lake.db.t COLUMN (id IS 'it''s', NAME IS NULL)")
    found = {row[0]: row[2] for row in rows(lake, "DESCRIBE lake.db.t") if row[1] != ""}
    assert found["id"] == "it's"
    assert not found["name"]
    with pytest.raises(IcebergError, match="column ID is given twice"):
        lake.sql("COMMENT ON TABLE lake.db.t COLUMN (id IS 'x', ID IS 'y')")
    with pytest.raises(IcebergError, match=r"nme.*did you mean"):
        lake.sql("COMMENT ON TABLE lake.db.t COLUMN (nme IS 'x')")


def test_tables_are_listed_as_json(lake: SparkSession) -> None:
    lake.sql("CREATE VIEW IF NOT EXISTS lake.db.w AS SELECT 1 AS x")
    [[listed]] = rows(lake, "SHOW TABLES IN lake.db LIKE 't|u' AS JSON")
    tables = [{"name": name, "namespace": ["db"], "isTemporary": False} for name in "tu"]
    assert json.loads(listed) == {"tables": tables}
    lake.sql("USE lake.db")
    assert lake.sql("SHOW TABLES AS JSON").columns == ["json_metadata"]
    [[extended]] = rows(lake, "SHOW TABLE EXTENDED LIKE 't' AS JSON")
    more = {"catalog": "lake", "type": "MANAGED"}
    assert json.loads(extended) == {"tables": [{**tables[0], **more}]}
    with pytest.raises(UnsupportedFeatureError, match=r"query the metadata table .*\.partitions"):
        lake.sql("SHOW PARTITIONS lake.db.t AS JSON")


def test_a_table_is_created_like_one_of_another_catalog(lake: SparkSession, tmp_path: Path) -> None:
    lake.conf.set("spark.icebergpy.catalog.pond.warehouse", str(tmp_path))
    lake.sql("CREATE TABLE pond.db.like_t LIKE lake.db.t TBLPROPERTIES ('p' = '1')")
    names = [row[0] for row in rows(lake, "DESCRIBE pond.db.like_t")]
    assert names[:3] == ["id", "name", "day"]
    assert rows(lake, "SELECT count(*) FROM pond.db.like_t") == [(0,)]
    lake.conf.unset("spark.icebergpy.catalog.pond.warehouse")


_NEAREST = "FROM lake.db.t JOIN lake.db.u EXACT NEAREST 1 BY DISTANCE abs(t.id - u.id)"
_ASOF = "FROM lake.db.t ASOF JOIN lake.db.u MATCH_CONDITION (t.id >= u.id)"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT id FROM lake.db.t WHERE id < :most "
            "QUALIFY row_number() OVER (PARTITION BY day ORDER BY id DESC) = 1 ORDER BY id",
            [(2,), (3,), (4,)],
        ),
        (
            "SELECT id FROM (SELECT id, day FROM lake.db.t QUALIFY rank() OVER (ORDER BY id) = 1) "
            "WHERE day = 2 AND id < :most LIMIT 1",
            [],
        ),
        (
            "FROM lake.db.t | WHERE id > least AND id < :most | JOIN lake.db.u USING (id) "
            "| SELECT id, u.name | ORDER BY id",
            [(2, "B"), (3, "C")],
        ),
        ("FROM lake.db.t | WHERE day = 1 | AGGREGATE count(*) AS n | WHERE n < :most", [(2,)]),
        (
            "SELECT t.id, x FROM lake.db.t, "
            "LATERAL UNNEST(array(t.id, 10)) WITH ORDINALITY AS n(x, at) "
            "WHERE t.id > least + 2 AND x < :most",
            [(4, 4), (4, 10)],
        ),
        (
            f"SELECT t.id, u.id {_NEAREST} WHERE t.id IN (1, 4) AND 1 < :most ORDER BY 1",
            [(1, 2), (4, 3)],
        ),
        (f"SELECT t.id, u.id {_NEAREST} WHERE u.id = 9 AND 1 < :most", []),
        (f"SELECT t.id, u.id {_ASOF} WHERE u.name = 'B' AND t.id < :most", [(2, 2)]),
        (
            "SELECT * FROM (SELECT day, id FROM lake.db.t WHERE id < :most) "
            "PIVOT (sum(id) FOR day IN (1, 2)) AS p",
            [(3, 3)],
        ),
        ("SELECT count(*) FROM lake.db.t TABLESAMPLE BERNOULLI (100 PERCENT) x", [(4,)]),
        ("SELECT id | 8, t.day FROM lake.db.t WHERE id = 1", [(9, 1)]),
    ],
)
def test_queries_with_newer_words_read_our_tables(
    lake: SparkSession, query: str, expected: list[tuple[Any, ...]]
) -> None:
    lake.conf.set("spark.sql.join.asofJoin.enabled", "true")
    lake.sql("DECLARE OR REPLACE VARIABLE least = 1L")
    is_newer = any(word in query for word in _NEWER)
    if is_newer and not knows_newest_words(lake):
        with pytest.raises((PySparkException, ParseException)):
            lake.sql(query, args={"most": 99} if ":most" in query else None)
        return
    found = lake.sql(query, args={"most": 99} if ":most" in query else None).collect()
    assert [tuple(row) for row in found] == expected


_NEWER = ("QUALIFY", "| WHERE", "UNNEST", "NEAREST", "MATCH_CONDITION", "AS p", "BERNOULLI")


def test_block_samples_are_for_spark_to_refuse(lake: SparkSession) -> None:
    with pytest.raises(PySparkException):
        lake.sql("SELECT count(*) FROM lake.db.t TABLESAMPLE SYSTEM (50 PERCENT)").collect()


def test_new_words_are_still_names(lake: SparkSession) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.db.words AS SELECT 1 AS qualify, 2 AS nearest")
    query = "SELECT qualify, asof.nearest FROM lake.db.words asof JOIN lake.db.t qualify ON true"
    assert rows(lake, f"{query} WHERE qualify.id = 1") == [(1, 2)]
    assert rows(lake, "SELECT qualify.id FROM lake.db.t qualify WHERE qualify.id = 1") == [(1,)]


def test_metric_views_are_spark_s_own(lake: SparkSession, tmp_path: Path) -> None:
    yaml = '$$\nversion: "0.1"\nsource: {}\ndimensions:\n- name: d\n  expr: day\nmeasures:\n'
    yaml += "- name: n\n  expr: count(concat('it''s', ';'))\n$$"
    metrics = "WITH METRICS LANGUAGE YAML AS"
    of_spark = (InvalidStatementError, ParseException)
    with pytest.raises(of_spark, match=r"cannot read tables of lake|METRICS"):
        lake.sql(f"CREATE VIEW mv {metrics} {yaml.format('lake.db.t')}")
    with pytest.raises((UnsupportedFeatureError, ParseException), match=r"metric views|METRICS"):
        lake.sql(f"CREATE VIEW lake.db.mv {metrics} {yaml.format('lake.db.t')}")
    for words in ("CREATE TEMPORARY VIEW", "CREATE OR REPLACE GLOBAL TEMP VIEW"):
        with pytest.raises(
            UnsupportedFeatureError, match=r"no temporary metric .* of lake; create"
        ):
            lake.sql(f"{words} mv {metrics} {yaml.format('lake.db.t')}")
        with pytest.raises(ParseException, match="METRICS"):
            lake.sql(f"{words} mv {metrics} {yaml.format('plain')}")
    if not knows_newest_words(lake):
        return
    lake.sql(f"CREATE TABLE plain USING parquet LOCATION '{tmp_path}/p' AS SELECT 1 AS day")
    try:
        lake.sql(f"CREATE VIEW mv {metrics} {yaml.format('plain')};")
        query = "SELECT d, measure(n) FROM mv WHERE d IN (SELECT day FROM lake.db.t) GROUP BY d"
        assert rows(lake, query) == [(1, 1)]
    finally:
        lake.sql("DROP VIEW IF EXISTS mv")
        lake.sql("DROP TABLE plain")
