"""What Spark's parser accepts beside what our layer reads, to notice the next release's words."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession
from spark_reads import session_conf

from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.commands import COMMANDS
from icebergds.statements.commands.rows.replaced_rows import newer_clauses
from icebergds.statements.commands.rows.target import newer_options
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.suffixes import spans_of_versions
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.syntax import syntax_error
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.splice import spliced

pytestmark = pytest.mark.spark

_NEVER = (99,)
_4_1, _4_2, _4_3 = (4, 1), (4, 2), (4, 3)
_ROW = "SELECT 1"
_MERGED = "ON x.id = y.id WHEN MATCHED THEN DELETE"
_METRICS = "WITH METRICS LANGUAGE YAML AS"

# Statements of ours: a text, and the first version of Spark whose parser accepts it.
_COMMANDS = [
    ("DELETE FROM t WITH ('a' = 1) WHERE id = 1", _4_3),
    ("DELETE FROM t AS x WITH ('a' = 1) WHERE x.id = 1", _4_3),
    ("DELETE FROM t WITH ('a' = 1) AS x WHERE x.id = 1", _NEVER),
    ("DELETE FROM t@v1 WHERE id = 1", _NEVER),
    ("UPDATE t WITH ('a' = 1) SET id = 1", _4_3),
    ("UPDATE t x WITH ('a' = 1) SET x.id = 1", _4_3),
    ("UPDATE t WITH ('a' = 1) x SET id = 1", _NEVER),
    (f"MERGE INTO t AS x WITH ('a' = 1) USING s WITH ('b' = 1) AS y {_MERGED}", _4_3),
    (f"MERGE INTO t AS x USING s AS y WITH ('b' = 1) {_MERGED}", _NEVER),
    (f"MERGE INTO t AS x USING s@v1 AS y {_MERGED}", _NEVER),
    (f"MERGE INTO t AS x USING (SELECT * FROM s@v1) AS y {_MERGED}", _4_3),
    (f"MERGE WITH SCHEMA EVOLUTION INTO t AS x USING s AS y {_MERGED}", _4_1),
    (f"INSERT INTO t WITH ('a' = 1) {_ROW}", _4_1),
    (f"INSERT INTO t AS x {_ROW}", _NEVER),
    (f"INSERT INTO t@v1 {_ROW}", _NEVER),
    ("INSERT INTO t SELECT * FROM s@v1", _4_3),
    (f"INSERT WITH SCHEMA EVOLUTION INTO t {_ROW}", _4_2),
    (f"INSERT WITH SCHEMA EVOLUTION OVERWRITE t {_ROW}", _4_2),
    (f"INSERT INTO t REPLACE WHERE id IN (SELECT 1) {_ROW}", _4_1),
    (f"INSERT INTO t BY NAME REPLACE WHERE id = 1 {_ROW} AS id", _4_2),
    (f"INSERT INTO t (id) REPLACE WHERE id = 1 {_ROW}", _4_3),
    (f"INSERT INTO t AS x REPLACE WHERE id = 1 {_ROW}", _NEVER),
    (f"INSERT INTO t REPLACE USING (id) {_ROW}", _4_2),
    (f"INSERT INTO t AS x BY NAME REPLACE USING (id) {_ROW} AS id", _4_2),
    (f"INSERT INTO t (id) REPLACE USING (id) {_ROW}", _NEVER),
    (f"INSERT INTO t REPLACE USING () {_ROW}", _NEVER),
    (f"INSERT INTO t REPLACE ON t.id = s.id ({_ROW} AS id) s", _4_2),
    (f"INSERT INTO t AS x WITH ('a' = 1) REPLACE ON x.id = 1 {_ROW}", _4_2),
    (f"INSERT INTO t BY NAME REPLACE ON true {_ROW} AS id", _4_2),
    (f"INSERT INTO t (id) REPLACE ON true {_ROW}", _NEVER),
    (f"INSERT OVERWRITE t REPLACE USING (id) {_ROW}", _NEVER),
    (f"INSERT INTO t PARTITION (id = 1) REPLACE USING (n) {_ROW}", _NEVER),
    (f"WITH c AS ({_ROW}) INSERT INTO t REPLACE USING (id) TABLE c", _4_2),
    ("FROM s INSERT INTO t REPLACE USING (id) SELECT *", _4_2),
    ("COMMENT ON COLUMN t.a IS 'x'", _4_3),
    ("COMMENT ON TABLE t COLUMN (a IS 'x', b.c IS NULL)", _4_3),
    ("SHOW TABLES IN db LIKE 'x' AS JSON", _4_3),
    ("SHOW TABLE EXTENDED LIKE 'x' AS JSON", _4_3),
    ("SHOW PARTITIONS t AS JSON", _4_3),
    ("DESCRIBE EXTENDED t AS JSON", _4_1),
    ("DESCRIBE t@v1", _NEVER),
    ("CREATE TABLE a.b.x LIKE c.d.y", _4_2),
    (f"CREATE VIEW v {_METRICS} $$ a: it's; $$", _4_2),
    (f"CREATE OR REPLACE VIEW v (a, b) COMMENT 'x' {_METRICS} $y$ $$ $y$", _4_2),
]

# Queries, with the tables that we find in them.
_QUERIES = [
    ("SELECT * FROM STREAM t", _4_1, "t"),
    ("SELECT * FROM STREAM (a.t) WITH ('b' = 1) AS x, s", _4_1, ["a.t", "s"]),
    ("SELECT * FROM stream JOIN t", _4_1, ["stream", "t"]),
    ("SELECT * FROM STREAM t WATERMARK x DELAY OF INTERVAL 1 MINUTE AS y, s", _4_1, "ts"),
    ("SELECT * FROM STREAM t IDENTIFIED BY x", _4_3, "t"),
    ("SELECT * FROM STREAM t CHANGES", _4_1, "t"),
    ("SELECT * FROM STREAM t CHANGES FROM VERSION 1 IDENTIFIED BY x", _4_3, "t"),
    ("SELECT * FROM t@v12 AS x, s @V3", _4_3, "ts"),
    ("SELECT * FROM t@20260131120000000", _4_3, "t"),
    ("SELECT * FROM `t@v1`", _4_1, ["t@v1"]),
    ("SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id) = 1", _4_2, "t"),
    ("SELECT id FROM t qualify WHERE id = 1", _4_1, "t"),
    ("FROM t | WHERE x > 1 | JOIN s USING (x) | SELECT y", _4_2, "ts"),
    ("FROM t |> WHERE x > 1", _4_1, "t"),
    ("SELECT a | b FROM t", _4_1, "t"),
    ("SELECT * FROM t, LATERAL UNNEST(t.a) WITH ORDINALITY AS u(a, at), s", _4_3, "ts"),
    ("SELECT * FROM t JOIN s APPROX NEAREST 2 BY DISTANCE abs(t.x - s.x)", _4_2, "ts"),
    ("SELECT * FROM t LEFT JOIN s AS y EXACT NEAREST 2 BY SIMILARITY t.x", _4_2, "ts"),
    ("SELECT * FROM t ASOF JOIN s MATCH_CONDITION (t.a >= s.a) ON t.k = s.k", _4_3, "ts"),
    ("SELECT * FROM t asof JOIN s ON true", _4_1, "ts"),
    ("SELECT * FROM t PIVOT (sum(x) FOR y IN (1, 2)) AS p, s", _4_2, "ts"),
    ("SELECT * FROM t TABLESAMPLE SYSTEM (5 PERCENT), s", _4_2, "ts"),
    ("SELECT * FROM t TABLESAMPLE BERNOULLI (5 PERCENT) x, s", _4_2, "ts"),
    ("SELECT * FROM JSON_TABLE('{}', '$' COLUMNS (x INT PATH '$.x')), s", _4_3, "s"),
    ("SELECT * FROM t changes", _4_1, "t"),
    ("SELECT $$x$$ FROM t", _NEVER, "t"),
]


def read(text: str) -> Cursor:
    tokens = sql_tokens(text)
    assert tokens is not None
    return Cursor(text, tokens)


def is_known(spark: SparkSession, since: tuple[int, ...]) -> bool:
    return tuple(map(int, spark.version.split(".")[:2])) >= since


def test_the_parser_accepts_each_text_from_its_version_on(spark: SparkSession) -> None:
    texts = [*_COMMANDS, *((text, since) for text, since, _ in _QUERIES)]
    with session_conf(spark, "spark.sql.join.asofJoin.enabled", "true"):
        found = [text for text, _ in texts if syntax_error(spark, text) is None]
    assert found == [text for text, since in texts if is_known(spark, since)]


@pytest.mark.every_spark
def test_a_text_is_parsed_as_the_settings_of_its_session_say(
    spark: SparkSession, front: SparkSession
) -> None:
    text = 'SELECT 1 AS "x"'
    front.conf.set("spark.sql.ansi.enabled", "true")
    front.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    active = type(spark).active()
    for session, is_known in ((front, True), (spark, False), (front, True)):
        assert (syntax_error(session, text) is None) is is_known
        assert type(spark).active() is active


def test_every_statement_is_a_command_of_ours() -> None:
    for text, _ in _COMMANDS:
        assert any(command.is_of(read(text)) for command in COMMANDS), text


@pytest.mark.parametrize(("query", "since", "names"), _QUERIES)
def test_tables_are_found_in_queries_that_no_command_takes(
    query: str, since: tuple[int, ...], names: Iterable[str]
) -> None:
    assert [".".join(each.name) for each in find_references(read(query))] == list(names)
    assert not any(command.is_of(read(query)) for command in COMMANDS)


def test_older_sparks_parse_statements_that_change_rows_without_the_newer_words(
    front: SparkSession,
) -> None:
    for text, since in _COMMANDS:
        if since in (_4_2, _4_3) and text.startswith(("DELETE", "UPDATE", "MERGE", "INSERT")):
            assert syntax_error(front, without_newer_words(front, text)) is None, text


def without_newer_words(spark: SparkSession, text: str) -> str:
    cursor = read(text)
    command = next(each for each in ("INSERT", "DELETE", "UPDATE", "MERGE") if cursor.is_at(each))
    cursor.until("T")
    cursor.name()
    spans: Iterable[Span] = newer_clauses(cursor) if command == "INSERT" else newer_options(cursor)
    whole = read(text)
    removed = sorted({*spans, *spans_of_versions(whole)}, key=lambda span: span.start)
    return spliced(whole, [Replacement(span) for span in removed])


def test_all_words_of_spark_are_known(front: SparkSession) -> None:
    """A new word may begin a clause that our layer has to read: see what it does first."""
    rows = front.sql("SELECT keyword FROM sql_keywords()").collect()
    assert {row[0] for row in rows} - set(_WORDS) == set()


_WORDS = frozenset(
    """
    ADD AFTER AGGREGATE ALIGN ALL ALTER ALWAYS ANALYZE AND ANTI ANY ANY_VALUE APPLY APPROX
    ARCHIVE ARRAY AS ASC ASENSITIVE ASOF AT ATOMIC AUTHORIZATION AUTO BEGIN BERNOULLI BETWEEN
    BIGINT BIN BINARY BINDING BIN_DISTRIBUTE_RATIO BIN_END BIN_START BOOLEAN BOTH BUCKET BUCKETS
    BY BYTE CACHE CALL CALLED CASCADE CASE CAST CATALOG CATALOGS CDC CHANGE CHANGES CHAR
    CHARACTER CHECK CLEAR CLOSE CLUSTER CLUSTERED CODEGEN COLLATE COLLATION COLLATIONS
    COLLECTION COLUMN COLUMNS COMMENT COMMIT COMPACT COMPACTIONS COMPENSATION COMPUTE
    CONCATENATE CONDITION CONSTRAINT CONTAINS CONTINUE COST CREATE CROSS CUBE CURRENT
    CURRENT_DATABASE CURRENT_DATE CURRENT_PATH CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP
    CURRENT_USER CURSOR DATA DATABASE DATABASES DATE DATEADD DATEDIFF DATE_ADD DATE_DIFF DAY
    DAYOFYEAR DAYS DBPROPERTIES DEC DECIMAL DECLARE DEFAULT DEFAULT_PATH DEFINED DEFINER DELAY
    DELETE DELIMITED DESC DESCRIBE DETERMINISTIC DFS DIRECTORIES DIRECTORY DISTANCE DISTINCT
    DISTRIBUTE DIV DO DOUBLE DROP ELSE ELSEIF END ENFORCED ERROR ESCAPE ESCAPED EVOLUTION EXACT
    EXCEPT EXCHANGE EXCLUDE EXCLUSIVE EXECUTE EXISTS EXIT EXPLAIN EXPORT EXTEND EXTENDED
    EXTERNAL EXTRACT FALSE FETCH FIELDS FILEFORMAT FILTER FIRST FLOAT FLOW FOLLOWING FOR FOREIGN
    FORMAT FORMATTED FOUND FROM FULL FUNCTION FUNCTIONS GENERATED GEOGRAPHY GEOMETRY GLOBAL
    GRANT GROUP GROUPING HANDLER HAVING HISTORY HOUR HOURS IDENTIFIED IDENTIFIER IDENTITY IF
    IGNORE ILIKE IMMEDIATE IMPORT IN INCLUDE INCLUSIVE INCREMENT INDEX INDEXES INNER INPATH
    INPUT INPUTFORMAT INSENSITIVE INSERT INT INTEGER INTERSECT INTERVAL INTO INVOKER IS ITEMS
    ITERATE JOIN JSON JSON_TABLE KEY KEYS LANGUAGE LAST LATERAL LAZY LEADING LEAVE LEFT LEVEL
    LIKE LIMIT LINES LIST LOAD LOCAL LOCALTIME LOCATION LOCK LOCKS LOGICAL LONG LOOP MACRO MAP
    MATCHED MATCH_CONDITION MATERIALIZED MAX MEASURE MERGE METRICS MICROSECOND MICROSECONDS
    MILLISECOND MILLISECONDS MINUS MINUTE MINUTES MODIFIES MONTH MONTHS MSCK NAME NAMESPACE
    NAMESPACES NANOSECOND NANOSECONDS NATURAL NEAREST NEXT NO NONE NORELY NOT NULL NULLS NUMERIC
    OF OFFSET ON ONLY OPEN OPTION OPTIONS OR ORDER ORDINALITY OUT OUTER OUTPUTFORMAT OVER
    OVERLAPS OVERLAY OVERWRITE PARTITION PARTITIONED PARTITIONS PATH PERCENT PIVOT PLACING
    POSITION PRECEDING PRIMARY PRINCIPALS PROCEDURE PROCEDURES PROPERTIES PURGE QUALIFY QUARTER
    QUERY RANGE READ READS REAL RECORDREADER RECORDWRITER RECOVER RECURSION RECURSIVE REDUCE
    REFERENCES REFRESH RELY RENAME REPAIR REPEAT REPEATABLE REPLACE RESET RESPECT RESTRICT
    RETURN RETURNS REVOKE RIGHT ROLE ROLES ROLLBACK ROLLUP ROW ROWS SCD SCHEMA SCHEMAS SECOND
    SECONDS SECURITY SELECT SEMI SEPARATED SEQUENCE SERDE SERDEPROPERTIES SESSION_USER SET SETS
    SHORT SHOW SIMILARITY SINGLE SKEWED SMALLINT SOME SORT SORTED SOURCE SPECIFIC SQL
    SQLEXCEPTION SQLSTATE START STATISTICS STORED STRATIFY STREAM STREAMING STRING STRUCT SUBSTR
    SUBSTRING SYNC SYSTEM SYSTEM_PATH SYSTEM_TIME SYSTEM_VERSION TABLE TABLES TABLESAMPLE TARGET
    TBLPROPERTIES TERMINATED THEN TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF
    TIMESTAMP_LTZ TIMESTAMP_NTZ TINYINT TO TOUCH TRACK TRAILING TRANSACTION TRANSACTIONS
    TRANSFORM TRIM TRUE TRUNCATE TRY_CAST TYPE UNARCHIVE UNBOUNDED UNCACHE UNIFORM UNION UNIQUE
    UNKNOWN UNLOCK UNNEST UNPIVOT UNSET UNTIL UPDATE USE USER USING VALUE VALUES VAR VARCHAR
    VARIABLE VARIANT VERSION VIEW VIEWS VOID WATERMARK WEEK WEEKS WHEN WHERE WHILE WIDTH WINDOW
    WITH WITHIN WITHOUT X YEAR YEARS ZONE
    """.split()  # noqa: SIM905
)
