"""Further scripts of SQL that Java Iceberg and icebergds must run alike: of tables' definitions."""

from __future__ import annotations

from sql_cases import SqlCase

_COLUMNS = "(id bigint NOT NULL, s string, st struct<x: int, y: int>, ts timestamp, f float)"
_T = f"CREATE TABLE {{ns}}.t {_COLUMNS} USING iceberg"
_ROWS = "INSERT INTO {ns}.t VALUES (1, 'a', null, null, 1)"
_MORE = "INSERT INTO {ns}.t VALUES (2, 'b', null, null, 2)"
_V3 = "TBLPROPERTIES ('format-version' = '3')"


def _altered(*changes: str, create: str = _T) -> SqlCase:
    return SqlCase((create, *(f"ALTER TABLE {{ns}}.t {change}" for change in changes)))


DEFINITIONS: dict[str, SqlCase] = {
    "created_types": SqlCase(
        (
            "CREATE TABLE {ns}.t (a struct<b: array<struct<c: int COMMENT 'd'>>, "
            "e: map<string, struct<f: date>>> NOT NULL, g decimal(9, 2), h binary, "
            "i timestamp_ntz, j boolean, k double, l smallint, m char(3), n varchar(5))",
        )
    ),
    "created_clauses": SqlCase(
        (
            f"{_T} COMMENT 'a table' CLUSTERED BY (id) INTO 8 BUCKETS OPTIONS ('k' = 'v') "
            "TBLPROPERTIES ('a' = 'b', n = 1, 'format-version' = '1')",
            "CREATE TABLE {ns}.u (id int) USING orc PARTITIONED BY (p string, q date)",
            "CREATE TABLE {ns}.v (id int) USING delta",
            "CREATE TABLE {ns}.v (id int, s string) USING iceberg CLUSTERED BY (id, s) "
            "INTO 8 BUCKETS",
            "CREATE TABLE {ns}.v (id int) USING iceberg TBLPROPERTIES ('provider' = 'x')",
            "CREATE TABLE {ns}.v (id int) USING iceberg LOCATION 'a' LOCATION 'b'",
            "CREATE TABLE {ns}.v (id int) USING iceberg AS SELECT 1",
            "SHOW TABLES IN {ns}",
        ),
        ("t", "u"),
    ),
    "defaults": SqlCase(
        (
            f"CREATE TABLE {{ns}}.t (id int) USING iceberg {_V3}",
            f"CREATE TABLE {{ns}}.u (id int DEFAULT 1) USING iceberg {_V3}",
        ),
        differs={1: "Java Iceberg refuses defaults in SQL"},
    ),
    "replaced_definitions": SqlCase(
        (
            _T,
            _ROWS,
            _MORE,
            "REPLACE TABLE {ns}.t (s string, id bigint COMMENT 'c') USING iceberg "
            "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('l' = 'm')",
            "SELECT count(*) FROM {ns}.t",
            "SELECT count(*) FROM {ns}.t VERSION AS OF {id:1}",
            "CREATE OR REPLACE TABLE {ns}.u (a int) USING iceberg",
            "REPLACE TABLE {ns}.missing (a int) USING iceberg",
        ),
        ("t", "u"),
    ),
    "added_columns": _altered(
        "ADD COLUMN p int COMMENT 'c' FIRST",
        "ADD COLUMNS (q array<struct<z: int>> AFTER id, st.w map<string, int>)",
        "ADD COLUMN q.element.v double FIRST",
        "ADD COLUMNS a int, b struct<c: int, d: array<int>>",
        "ADD COLUMN s int",
        "ADD COLUMN k int NOT NULL",
    ),
    "dropped_columns": _altered(
        "DROP COLUMN st.x",
        "DROP COLUMNS (ts, f)",
        "DROP COLUMNS IF EXISTS nope, st",
        "DROP COLUMN s",
        create=f"{_T} PARTITIONED BY (s)",
    ),
    "changed_columns": _altered(
        "ALTER COLUMN st.x TYPE bigint, s COMMENT 'd', ts FIRST, id DROP NOT NULL",
        "ALTER COLUMN s TYPE int",
        "CHANGE COLUMN f f double COMMENT 'c'",
        "CHANGE COLUMN f g double",
        "RENAME COLUMN s TO `s 2`",
        "RENAME COLUMN f TO ts",
        "RENAME COLUMN F TO fraction",
        "REPLACE COLUMNS (id bigint, z string COMMENT 'c')",
    ),
    "reserved_properties": SqlCase(
        (
            _T,
            _ROWS,
            _MORE,
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('current-snapshot-id' = '{id:0}', 'a' = 'b')",
            "SELECT id FROM {ns}.t",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('cherry-pick-snapshot-id' = '{id:1}')",
            "SELECT id FROM {ns}.t",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('current-snapshot-id' = '17')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '3')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('sort-order' = 'id')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('identifier-fields' = 'id')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('owner' = 'me')",
            "ALTER TABLE {ns}.t UNSET TBLPROPERTIES IF EXISTS ('nope', 'a')",
            "COMMENT ON TABLE {ns}.t IS 'it''s'",
        )
    ),
    "no_comment": SqlCase((f"{_T} COMMENT 'c'", "COMMENT ON TABLE {ns}.t IS NULL")),
    "partition_fields": _altered(
        "ADD PARTITION FIELD bucket(16, id)",
        "ADD PARTITION FIELD bucket(16, id)",
        "ADD PARTITION FIELD days(id)",
        "REPLACE PARTITION FIELD bucket(16, id) WITH truncate(4, s) AS prefix",
        "DROP PARTITION FIELD s",
        "DROP PARTITION FIELD ts_day",
        "DROP PARTITION FIELD nope",
        "ADD PARTITION (s = 'a')",
        "DROP PARTITION (s = 'a')",
        create=f"{_T} PARTITIONED BY (s, days(ts))",
    ),
    "write_orders": _altered(
        "WRITE ORDERED BY (st.x DESC, bucket(4, id) NULLS LAST)",
        "WRITE",
        "WRITE ORDERED BY zorder(id, s)",
        "WRITE ORDERED BY id DISTRIBUTED BY PARTITION",
    ),
    "references_alone": SqlCase(
        (
            _T,
            "ALTER TABLE {ns}.t CREATE BRANCH b RETAIN 1 DAYS",
            "ALTER TABLE {ns}.t CREATE TAG c",
            "ALTER TABLE {ns}.t REPLACE BRANCH b",
            "ALTER TABLE {ns}.t DROP BRANCH main",
            "SELECT count(*) FROM {ns}.t.branch_b",
        )
    ),
    "references_moved": SqlCase(
        (
            _T,
            _ROWS,
            _MORE,
            "ALTER TABLE {ns}.t CREATE BRANCH b AS OF VERSION {id:0} RETAIN 7 DAYS "
            "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS",
            "ALTER TABLE {ns}.t REPLACE BRANCH b WITH SNAPSHOT RETENTION 5 MINUTES",
            "ALTER TABLE {ns}.t REPLACE BRANCH gone",
            "ALTER TABLE {ns}.t CREATE OR REPLACE TAG g AS OF VERSION {id:0}",
            "ALTER TABLE {ns}.t DROP BRANCH g",
            "SELECT id FROM {ns}.t.branch_b",
            "SELECT id FROM {ns}.t.tag_g",
        )
    ),
    "purges": SqlCase(
        (_T, _ROWS, "DROP TABLE {ns}.t PURGE", "DROP TABLE IF EXISTS {ns}.t PURGE", _T, _MORE),
    ),
}
"""Names of cases are those of namespaces."""
