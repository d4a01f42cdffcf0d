"""Scripts of SQL on definitions of tables, for the statements of Java Iceberg's own tests."""

from __future__ import annotations

from sql_cases import SqlCase

_T = "CREATE TABLE {ns}.t (id bigint NOT NULL, data string, category string, ts timestamp)"
_ROWS = "INSERT INTO {ns}.t VALUES (1, 'a', 'x', null), (2, 'b', 'y', null)"
_MORE = "INSERT INTO {ns}.t VALUES (3, 'c', 'x', null)"


def _altered(*changes: str, create: str = f"{_T} USING iceberg") -> SqlCase:
    return SqlCase((create, *(f"ALTER TABLE {{ns}}.t {change}" for change in changes)))


def _of_version(version: int, columns: str, *rest: str) -> SqlCase:
    properties = f"TBLPROPERTIES ('format-version' = '{version}')"
    create = f"CREATE TABLE {{ns}}.t ({columns}) USING iceberg"
    return SqlCase((f"{create} {rest[0]} {properties}", *rest[1:]))


def _field_and_column_dropped(version: int) -> SqlCase:
    return _of_version(
        version,
        "id int, a bigint, ts timestamp",
        "",
        "INSERT INTO {ns}.t VALUES (1, 10, TIMESTAMP '2024-03-01 19:25:00')",
        "ALTER TABLE {ns}.t ADD PARTITION FIELD bucket(16, a) AS a_bucket",
        "ALTER TABLE {ns}.t ADD PARTITION FIELD year(ts) AS ts_part",
        "INSERT INTO {ns}.t VALUES (2, 20, TIMESTAMP '2024-04-01 19:25:00')",
        "ALTER TABLE {ns}.t DROP PARTITION FIELD a_bucket",
        "ALTER TABLE {ns}.t DROP PARTITION FIELD ts_part",
        "INSERT INTO {ns}.t VALUES (3, 30, TIMESTAMP '2024-05-01 19:25:00')",
        "ALTER TABLE {ns}.t DROP COLUMN a",
        "ALTER TABLE {ns}.t DROP COLUMN ts",
        "SELECT * FROM {ns}.t WHERE id >= 1",
        "DELETE FROM {ns}.t WHERE id >= 2",
        "SELECT * FROM {ns}.t",
    )


CASES: dict[str, SqlCase] = {
    "created_transforms": SqlCase(
        (
            f"{_T} USING iceberg PARTITIONED BY (HOURS(ts))",
            f"{_T} USING iceberg PARTITIONED BY (hours(ts))",
            "CREATE TABLE IF NOT EXISTS {ns}.t (a int) USING iceberg PARTITIONED BY (hour(ts))",
            "CREATE TABLE {ns}.u (ts timestamp) USING iceberg PARTITIONED BY (Hour(ts))",
            "CREATE TABLE {ns}.v (id int, data string) USING iceberg "
            "PARTITIONED BY (truncate(id, 3), BUCKET(2, data))",
            "CREATE TABLE {ns}.w (`a.b` int, `c``d` date) USING iceberg "
            "PARTITIONED BY (`a.b`, days(`c``d`))",
            "DESCRIBE {ns}.w",
        ),
        ("t", "u", "v", "w"),
        {2: "Spark looks for the columns of a table that exists, too"},
    ),
    "created_in_the_root": SqlCase(
        (
            "CREATE TABLE lake.rooted (id bigint) USING iceberg",
            "INSERT INTO lake.rooted VALUES (1)",
            "SELECT * FROM lake.rooted",
            "DROP TABLE lake.rooted",
        ),
        (),
    ),
    "created_formats": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint NOT NULL, data string) USING parquet",
            "CREATE TABLE {ns}.u (id bigint) USING crocodile",
            "CREATE TABLE {ns}.u (id bigint) USING avro",
            "INSERT INTO {ns}.u VALUES (1)",
        ),
        ("t", "u"),
    ),
    "created_commit_properties": SqlCase(
        (
            f"{_T} USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = 'x', p2 = 'x')",
            f"{_T} USING iceberg TBLPROPERTIES ('commit.retry.max-wait-ms' = '-1')",
            f"{_T} USING iceberg TBLPROPERTIES "
            "('commit.retry.num-retries' = '1', 'commit.retry.max-wait-ms' = '3000', p1 = 2)",
        ),
    ),
    "versions": SqlCase(
        (
            f"{_T} USING iceberg TBLPROPERTIES ('format-version' = '1')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '2')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '1')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '99')",
            "SHOW TBLPROPERTIES {ns}.t ('format-version')",
        )
    ),
    "replaced_by_queries": SqlCase(
        (
            "CREATE TABLE {ns}.s (id bigint NOT NULL, data string) USING iceberg "
            "PARTITIONED BY (truncate(id, 3))",
            "INSERT INTO {ns}.s VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
            "CREATE TABLE {ns}.t USING iceberg TBLPROPERTIES ('p1' = 'v1', 'p2' = 'v2') "
            "AS SELECT * FROM {ns}.s",
            "REPLACE TABLE {ns}.t USING iceberg PARTITIONED BY (part) "
            "TBLPROPERTIES ('p1' = 'new', 'p3' = 'v3') AS SELECT id, data, "
            "CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END AS part FROM {ns}.s ORDER BY 3, 1",
            "SELECT * FROM {ns}.t",
            "CREATE OR REPLACE TABLE {ns}.t USING iceberg PARTITIONED BY (part, id) AS "
            "SELECT 2 * id AS id, data, 'all' AS part FROM {ns}.s ORDER BY 3, 1",
            "SELECT * FROM {ns}.t",
            "SELECT count(*) FROM {ns}.t VERSION AS OF {id:0}",
            "CREATE TABLE {ns}.u USING iceberg PARTITIONED BY (bucket(2, id)) "
            "AS SELECT * FROM {ns}.s",
            "CREATE TABLE {ns}.v USING iceberg PARTITIONED BY (id) "
            "AS SELECT * FROM {ns}.s ORDER BY id",
            "SELECT count(*) FROM {ns}.v.files",
        ),
        ("s", "t", "u", "v"),
        operations_differ="rows of a table that is replaced are appended to an empty one",
    ),
    "timestamps_without_zone": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, ntz timestamp_ntz, tz timestamp) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, TIMESTAMP_NTZ '2021-01-01 00:00:00', "
            "TIMESTAMP '2021-02-01 00:00:00'), (2, TIMESTAMP_NTZ '2021-01-01 00:00:00.123456', "
            "TIMESTAMP '2021-02-01 00:00:00.123+02:00')",
            "CREATE TABLE {ns}.u USING iceberg AS SELECT * FROM {ns}.t",
            "SELECT * FROM {ns}.u",
            "INSERT INTO {ns}.t SELECT id + 10, tz, ntz FROM {ns}.t",
            "SELECT * FROM {ns}.t WHERE ntz > TIMESTAMP_NTZ '2021-01-01 00:00:00'",
            "SELECT * FROM {ns}.t WHERE tz = '2021-02-01 00:00:00'",
        ),
        ("t", "u"),
    ),
    "added_nested_columns": _altered(
        "ADD COLUMN point struct<x: double NOT NULL, y: double NOT NULL> AFTER id",
        "ADD COLUMN point.z double COMMENT 'May be null' FIRST",
        "ADD COLUMN list array<struct<a: int, b: int, c: int>>",
        "ADD COLUMN list.element.d int",
        "ADD COLUMN m map<struct<x: int>, struct<a: int, b: int>>",
        "ADD COLUMN m.value.c int",
        "ADD COLUMN m.key.y int",
        "ADD COLUMN c3 int NOT NULL",
        "ALTER COLUMN list.element.d TYPE bigint",
        "RENAME COLUMN m.value.c TO e",
        "DROP COLUMN list.element.b",
        "DROP COLUMN m.key.x",
    ),
    "set_not_null": _altered(
        "ALTER COLUMN id SET NOT NULL",
        "ALTER COLUMN data SET NOT NULL",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN id COMMENT 'Record id'",
        "ALTER COLUMN ts AFTER id",
        "ALTER COLUMN ts FIRST",
        "ALTER COLUMN ts AFTER nothing",
    ),
    "set_reserved": _altered(
        "SET TBLPROPERTIES ('prop' = 'value')",
        "UNSET TBLPROPERTIES ('prop')",
        "SET TBLPROPERTIES ('sort-order' = 'value')",
        "SET TBLPROPERTIES ('identifier-fields' = 'value')",
        "SET TBLPROPERTIES ('provider' = 'value')",
    ),
    "added_fields": _altered(
        "ADD PARTITION FIELD category",
        "ADD PARTITION FIELD bucket(16, id)",
        "ADD PARTITION FIELD truncate(data, 4)",
        "ADD PARTITION FIELD years(ts)",
        "DROP PARTITION FIELD years(ts)",
        "ADD PARTITION FIELD month(ts)",
        "DROP PARTITION FIELD month(ts)",
        "ADD PARTITION FIELD day(ts)",
        "DROP PARTITION FIELD days(ts)",
        "ADD PARTITION FIELD hour(ts)",
        "ADD PARTITION FIELD hours(ts)",
        "DROP PARTITION FIELD truncate(4, data)",
        "ADD PARTITION FIELD nothing",
        "ADD PARTITION FIELD truncate(category, 2) AS ts_hour",
    ),
    "added_years": _altered("ADD PARTITION FIELD year(ts)"),
    "added_months": _altered("ADD PARTITION FIELD months(ts)"),
    "added_days": _altered("ADD PARTITION FIELD days(ts)"),
    "replaced_fields": _altered(
        "ADD PARTITION FIELD days(ts)",
        "REPLACE PARTITION FIELD days(ts) WITH hours(ts)",
        "REPLACE PARTITION FIELD hours(ts) WITH months(ts) AS when",
        "REPLACE PARTITION FIELD when WITH days(ts) AS day_col",
        "REPLACE PARTITION FIELD day_col WITH hours(ts)",
        "REPLACE PARTITION FIELD nothing WITH hours(ts)",
        "REPLACE PARTITION FIELD ts_hour WITH hours(ts) AS again",
        "ADD PARTITION FIELD bucket(16, id) AS shard",
        "DROP PARTITION \n FIELD shard",
    ),
    "described_fields": SqlCase(
        (
            f"{_T} USING iceberg",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD bucket(16, id) AS shard",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD truncate(data, 4)",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD years(ts)",
            "DESCRIBE {ns}.t",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD years(ts)",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD truncate(4, data)",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD shard",
            "DESCRIBE {ns}.t",
        )
    ),
    "dropped_sources_v1": _of_version(
        1,
        "id bigint NOT NULL, ts timestamp, day_of_ts date",
        "PARTITIONED BY (day_of_ts)",
        "ALTER TABLE {ns}.t REPLACE PARTITION FIELD day_of_ts WITH days(ts)",
        "ALTER TABLE {ns}.t DROP COLUMN day_of_ts",
    ),
    "dropped_sources_v2": _of_version(
        2,
        "id bigint NOT NULL, ts timestamp, day_of_ts date",
        "PARTITIONED BY (day_of_ts)",
        "ALTER TABLE {ns}.t REPLACE PARTITION FIELD day_of_ts WITH days(ts)",
        "ALTER TABLE {ns}.t DROP COLUMN day_of_ts",
    ),
    "dropped_fields_v1": _field_and_column_dropped(1),
    "dropped_fields_v2": _field_and_column_dropped(2),
    "readded_column": SqlCase(
        (
            f"{_T} USING iceberg PARTITIONED BY (category)",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD category",
            "ALTER TABLE {ns}.t DROP COLUMN category",
            "ALTER TABLE {ns}.t ADD COLUMN category string",
            "INSERT INTO {ns}.t (id, category, data) VALUES (1, 'books', 'a')",
            "SELECT id, category, data FROM {ns}.t",
        )
    ),
    "nested_identifiers": _altered(
        "SET IDENTIFIER FIELDS id",
        "SET IDENTIFIER FIELDS id, location.lon",
        "DROP IDENTIFIER FIELDS id",
        "SET IDENTIFIER FIELDS id, location.lon",
        "DROP IDENTIFIER FIELDS id, location.lon",
        "SET IDENTIFIER FIELDS nothing",
        "DROP IDENTIFIER FIELDS nothing",
        "SET IDENTIFIER FIELDS location.lon",
        "DROP IDENTIFIER FIELDS id",
        "DROP IDENTIFIER FIELDS location.lat",
        "SET IDENTIFIER FIELDS id2",
        "DROP COLUMN location",
        create="CREATE TABLE {ns}.t (id bigint NOT NULL, id2 bigint, location "
        "struct<lon: bigint NOT NULL, lat: bigint NOT NULL> NOT NULL) USING iceberg",
    ),
    "written_orders": _altered(
        "WRITE ORDERED BY category ASC, id DESC",
        "WRITE ORDERED BY category DESC, bucket(16, id), id",
        "WRITE UNORDERED DISTRIBUTED BY PARTITION",
        "WRITE ORDERED BY nothing",
        "WRITE DISTRIBUTED BY PARTITION ORDERED BY id",
        create=f"{_T} USING iceberg PARTITIONED BY (category)",
    ),
    "written_orders_by_case": SqlCase(
        (
            "CREATE TABLE {ns}.t (Id bigint NOT NULL, Category string) USING iceberg",
            "SET spark.sql.caseSensitive=true",
            "ALTER TABLE {ns}.t WRITE ORDERED BY category, id",
            "SET spark.sql.caseSensitive=false",
            "ALTER TABLE {ns}.t WRITE ORDERED BY category, id",
        ),
        differs={2: "columns of an order are found whatever their case, if no other is meant"},
    ),
    "written_locally": _altered(
        "WRITE LOCALLY ORDERED BY category DESC, bucket(16, id), id",
    ),
    "written_locally_by_partition": _altered(
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id",
        "WRITE LOCALLY ORDERED BY id",
        create=f"{_T} USING iceberg PARTITIONED BY (category)",
    ),
    "written_locally_partitioned": _altered(
        "WRITE LOCALLY ORDERED BY category DESC",
        create=f"{_T} USING iceberg PARTITIONED BY (id)",
    ),
    "written_unordered": _altered(
        "WRITE DISTRIBUTED BY PARTITION UNORDERED",
        create=f"{_T} USING iceberg PARTITIONED BY (category)",
    ),
    "written_inverted": _altered(
        "WRITE ORDERED BY id DISTRIBUTED BY PARTITION",
        create=f"{_T} USING iceberg PARTITIONED BY (category)",
    ),
    "branch_retention": SqlCase(
        (
            f"{_T} USING iceberg",
            _ROWS,
            "ALTER TABLE {ns}.t CREATE BRANCH b1 AS OF VERSION {id:0} RETAIN 10 DAYS "
            "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 2 days",
            "ALTER TABLE {ns}.t CREATE BRANCH b1",
            "ALTER TABLE {ns}.t CREATE BRANCH b2",
            "ALTER TABLE {ns}.t CREATE BRANCH b3 WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
            "ALTER TABLE {ns}.t CREATE BRANCH b4 WITH SNAPSHOT RETENTION 2 HOURS",
            "ALTER TABLE {ns}.t CREATE BRANCH IF NOT EXISTS b4",
            "ALTER TABLE {ns}.t CREATE BRANCH b5 WITH SNAPSHOT RETENTION",
            "ALTER TABLE {ns}.t CREATE BRANCH b5 RETAIN 10 MINUTES",
            "ALTER TABLE {ns}.t CREATE BRANCH b6 RETAIN",
            "ALTER TABLE {ns}.t CREATE BRANCH b6 RETAIN abc DAYS",
            "ALTER TABLE {ns}.t CREATE BRANCH b6 RETAIN 5 SECONDS",
            "ALTER TABLE {ns}.t CREATE BRANCH 123",
            "ALTER TABLE {ns}.t CREATE BRANCH b6 AS OF VERSION 17",
            "ALTER TABLE {ns}.t CREATE TAG g1",
            "ALTER TABLE {ns}.t DROP BRANCH g1",
            "ALTER TABLE {ns}.t DROP BRANCH nothing",
            "ALTER TABLE {ns}.t DROP BRANCH IF EXISTS nothing",
            "ALTER TABLE {ns}.t DROP BRANCH 123",
            "ALTER TABLE {ns}.t DROP BRANCH main",
            "ALTER TABLE {ns}.t DROP BRANCH b2",
        )
    ),
    "branches_replaced": SqlCase(
        (
            f"{_T} USING iceberg",
            "ALTER TABLE {ns}.t CREATE OR REPLACE BRANCH e",
            _ROWS,
            _MORE,
            "ALTER TABLE {ns}.t CREATE TAG g1",
            "ALTER TABLE {ns}.t REPLACE BRANCH g1 AS OF VERSION {id:1}",
            "ALTER TABLE {ns}.t CREATE OR REPLACE BRANCH b1 AS OF VERSION {id:2}",
            "ALTER TABLE {ns}.t CREATE OR REPLACE BRANCH b1 AS OF VERSION {id:1}",
            "SELECT id FROM {ns}.t.branch_b1",
            "ALTER TABLE {ns}.t REPLACE BRANCH b1 AS OF VERSION {id:2} RETAIN 10 HOURS",
            "SELECT id FROM {ns}.t.branch_b1",
            "ALTER TABLE {ns}.t REPLACE BRANCH b1 AS OF VERSION {id:1} "
            "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 MINUTES",
            "ALTER TABLE {ns}.t CREATE BRANCH b2 RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS",
            "ALTER TABLE {ns}.t REPLACE BRANCH b2 AS OF VERSION {id:1} RETAIN 1 DAYS "
            "WITH SNAPSHOT RETENTION 4 SNAPSHOTS 5 DAYS",
            "ALTER TABLE {ns}.t REPLACE BRANCH some AS OF VERSION {id:1}",
            "ALTER TABLE {ns}.t REPLACE BRANCH b2 AS OF VERSION 17",
        )
    ),
    "tags_alone": SqlCase(
        (
            f"{_T} USING iceberg",
            "ALTER TABLE {ns}.t CREATE TAG g0",
            _ROWS,
            _MORE,
            "ALTER TABLE {ns}.t CREATE TAG g1 AS OF VERSION {id:0} RETAIN 10 DAYS",
            "ALTER TABLE {ns}.t CREATE TAG g2 AS OF VERSION {id:0} RETAIN",
            "ALTER TABLE {ns}.t CREATE TAG g2 RETAIN abc DAYS",
            "ALTER TABLE {ns}.t CREATE TAG g2 AS OF VERSION {id:0} RETAIN 5 SECONDS",
            "ALTER TABLE {ns}.t CREATE TAG g2 AS OF VERSION -1",
            "ALTER TABLE {ns}.t CREATE TAG g2 AS OF VERSION 17",
            "ALTER TABLE {ns}.t CREATE TAG g1",
            "ALTER TABLE {ns}.t CREATE TAG 123",
            "ALTER TABLE {ns}.t CREATE TAG IF NOT EXISTS g1 RETAIN 3 days",
            "ALTER TABLE {ns}.t CREATE BRANCH b1",
            "ALTER TABLE {ns}.t REPLACE Tag b1",
            "ALTER TABLE {ns}.t REPLACE Tag g1 AS OF VERSION {id:1}",
            "SELECT id FROM {ns}.t.tag_g1",
            "ALTER TABLE {ns}.t REPLACE TAG some AS OF VERSION {id:1}",
            "ALTER TABLE {ns}.t REPLACE TAG g1 AS OF VERSION {id:0} RETAIN 5 HOURS",
            "ALTER TABLE {ns}.t CREATE OR REPLACE TAG g1 AS OF VERSION {id:1}",
            "ALTER TABLE {ns}.t CREATE OR REPLACE TAG g3 AS OF VERSION {id:0}",
            "ALTER TABLE {ns}.t CREATE TAG g4",
            "ALTER TABLE {ns}.t DROP TAG 123",
            "ALTER TABLE {ns}.t DROP TAG nothing",
            "ALTER TABLE {ns}.t DROP TAG b1",
            "ALTER TABLE {ns}.t DROP TAG IF EXISTS nothing",
            "ALTER TABLE {ns}.t DROP TAG g4",
        )
    ),
    "namespace_properties": SqlCase(
        (
            "CREATE NAMESPACE {ns}.n COMMENT 'namespace doc'",
            "CREATE NAMESPACE {ns}.m WITH PROPERTIES ('prop' = 'value')",
            "CREATE NAMESPACE {ns}.o",
            "DROP NAMESPACE {ns}.o",
            "SHOW TABLES IN {ns}.o",
            "CREATE NAMESPACE {ns}.o",
            "SHOW TABLES IN {ns}.o",
            "CREATE TABLE {ns}.o.table (id bigint) USING iceberg",
            "SHOW TABLES IN {ns}.o",
            "DROP NAMESPACE {ns}.o",
            "SHOW NAMESPACES IN {ns}",
            "SHOW NAMESPACES IN {ns}.o",
            "ALTER NAMESPACE {ns}.o SET PROPERTIES ('prop' = 'value')",
            "USE lake",
            "SHOW CURRENT NAMESPACE",
            "USE spark_catalog.default",
            "DROP TABLE {ns}.o.table",
            "DROP NAMESPACE IF EXISTS {ns}.o",
            "DROP NAMESPACE IF EXISTS {ns}.o",
        ),
        (),
    ),
    "kept_from_purges": SqlCase(
        (
            f"{_T} USING iceberg",
            _ROWS,
            "ALTER TABLE {ns}.t SET TBLPROPERTIES (gc.enabled = false)",
            "DROP TABLE {ns}.t PURGE",
            "SELECT id FROM {ns}.t",
            "DROP TABLE {ns}.t",
            "SELECT id FROM {ns}.t",
        ),
        (),
    ),
}
