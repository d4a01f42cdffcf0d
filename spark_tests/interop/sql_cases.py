"""Scripts of SQL that Java Iceberg and icebergds must run alike.

Most are those that Iceberg's documentation shows, shortened. A case names the tables that are to
be equal in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SqlCase:
    """A script, run on a namespace of its own.

    Attributes:
        statements: one after the other; `{ns}` is the namespace.
        tables: what is compared in the end.
        differs: why the results of some statements differ, by their number.
        operations_differ: why the snapshots are of other operations; empty if they are not.
    """

    statements: tuple[str, ...]
    tables: tuple[str, ...] = ("t",)
    differs: Mapping[int, str] = field(default_factory=dict)
    operations_differ: str = ""


_T = "CREATE TABLE {ns}.t (id bigint, data string, category string) USING iceberg"
_BY_CATEGORY = f"{_T} PARTITIONED BY (category)"
_ROWS = "INSERT INTO {ns}.t VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'x')"
_MORE = "INSERT INTO {ns}.t VALUES (4, 'd', 'z')"
_ALL = "SELECT * FROM {ns}.t"

CASES: dict[str, SqlCase] = {
    "create": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint NOT NULL COMMENT 'unique id', data string) "
            "USING iceberg COMMENT 'a table' TBLPROPERTIES ('write.format.default' = 'parquet')",
            "CREATE TABLE IF NOT EXISTS {ns}.t (other int) USING iceberg",
            "CREATE TABLE {ns}.t (other int) USING iceberg",
            "SHOW TABLES IN {ns}",
            "SHOW COLUMNS IN {ns}.t",
        )
    ),
    "partitions": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string, category string, ts timestamp) "
            "USING iceberg PARTITIONED BY (bucket(16, id), days(ts), category, truncate(4, data))",
            "CREATE TABLE {ns}.u (a int, ts timestamp, d date) USING iceberg "
            "PARTITIONED BY (hour(ts), years(d), bucket(4, a))",
            "CREATE TABLE {ns}.r (a int, ts timestamp) USING iceberg "
            "PARTITIONED BY (hours(ts), months(ts))",
            "CREATE TABLE {ns}.v (a int) USING iceberg PARTITIONED BY (nothing)",
            "CREATE TABLE {ns}.w (a int) USING iceberg PARTITIONED BY (rounds(a))",
        ),
        ("t", "u"),
        {2: "Java knows hours and months of one column as redundant; the specification does not"},
    ),
    "ctas": SqlCase(
        (
            _T,
            _ROWS,
            "CREATE TABLE {ns}.u USING iceberg PARTITIONED BY (category) AS SELECT * FROM {ns}.t",
            "SELECT * FROM {ns}.u",
            "REPLACE TABLE {ns}.u USING iceberg TBLPROPERTIES ('key' = 'value') "
            "AS SELECT id, data FROM {ns}.t WHERE id > 1",
            "SELECT * FROM {ns}.u",
            "CREATE OR REPLACE TABLE {ns}.u USING iceberg AS SELECT id FROM {ns}.t",
            "SELECT * FROM {ns}.u",
            "REPLACE TABLE {ns}.missing USING iceberg AS SELECT 1 AS id",
        ),
        ("t", "u"),
        operations_differ="rows of a table that is replaced are appended to an empty one",
    ),
    "properties": SqlCase(
        (
            _T,
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('read.split.target-size' = '268435456')",
            "SHOW TBLPROPERTIES {ns}.t ('read.split.target-size')",
            "ALTER TABLE {ns}.t UNSET TBLPROPERTIES ('read.split.target-size')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('comment' = 'text')",
        )
    ),
    "columns": SqlCase(
        (
            _T,
            "ALTER TABLE {ns}.t ADD COLUMNS (new_column string COMMENT 'docs')",
            "ALTER TABLE {ns}.t ADD COLUMN point struct<x: double, y: double>",
            "ALTER TABLE {ns}.t ADD COLUMN point.z double",
            "ALTER TABLE {ns}.t ADD COLUMN points array<struct<x: double>>",
            "ALTER TABLE {ns}.t ADD COLUMN points.element.z double",
            "ALTER TABLE {ns}.t ADD COLUMN m map<struct<x: int>, struct<a: int>>",
            "ALTER TABLE {ns}.t ADD COLUMN m.value.b int",
            "ALTER TABLE {ns}.t ADD COLUMN after_id bigint AFTER id",
            "ALTER TABLE {ns}.t ADD COLUMN first bigint FIRST",
            "ALTER TABLE {ns}.t RENAME COLUMN data TO payload",
            "ALTER TABLE {ns}.t RENAME COLUMN point.x TO a",
            "ALTER TABLE {ns}.t ADD COLUMN f float",
            "ALTER TABLE {ns}.t ALTER COLUMN f TYPE double",
            "ALTER TABLE {ns}.t ALTER COLUMN f COMMENT 'a double'",
            "ALTER TABLE {ns}.t ALTER COLUMN f FIRST",
            "ALTER TABLE {ns}.t ALTER COLUMN point.z AFTER a",
            "ALTER TABLE {ns}.t DROP COLUMN category",
            "ALTER TABLE {ns}.t DROP COLUMN point.z",
            "ALTER TABLE {ns}.t DROP COLUMN nothing",
            "ALTER TABLE {ns}.t ALTER COLUMN f TYPE int",
            "DESCRIBE {ns}.t",
        )
    ),
    "nullability": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint NOT NULL, a int) USING iceberg",
            "ALTER TABLE {ns}.t ALTER COLUMN id DROP NOT NULL",
            "ALTER TABLE {ns}.t ALTER COLUMN a SET NOT NULL",
            "INSERT INTO {ns}.t VALUES (NULL, 1)",
            _ALL,
        )
    ),
    "fields": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, ts timestamp, category string) USING iceberg",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD category",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD bucket(16, id) AS shard",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD days(ts)",
            "ALTER TABLE {ns}.t REPLACE PARTITION FIELD ts_day WITH months(ts)",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD category",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD shard",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD shard",
        )
    ),
    "orders": SqlCase(
        (
            _BY_CATEGORY,
            "ALTER TABLE {ns}.t WRITE ORDERED BY category, id",
            "ALTER TABLE {ns}.t WRITE ORDERED BY category ASC NULLS LAST, id DESC NULLS FIRST",
            "ALTER TABLE {ns}.t WRITE LOCALLY ORDERED BY bucket(4, id), data",
            "ALTER TABLE {ns}.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY category, id",
            "ALTER TABLE {ns}.t WRITE DISTRIBUTED BY PARTITION",
        )
    ),
    "unordered": SqlCase(
        (
            _T,
            "ALTER TABLE {ns}.t WRITE ORDERED BY id",
            "ALTER TABLE {ns}.t WRITE UNORDERED",
        )
    ),
    "identifiers": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint NOT NULL, data string NOT NULL, x int) USING iceberg",
            "ALTER TABLE {ns}.t SET IDENTIFIER FIELDS id, data",
            "ALTER TABLE {ns}.t DROP IDENTIFIER FIELDS data",
            "ALTER TABLE {ns}.t SET IDENTIFIER FIELDS x",
            "ALTER TABLE {ns}.t DROP IDENTIFIER FIELDS x",
        )
    ),
    "branches": SqlCase(
        (
            _T,
            _ROWS,
            "ALTER TABLE {ns}.t CREATE BRANCH audit",
            "ALTER TABLE {ns}.t CREATE BRANCH IF NOT EXISTS audit",
            "ALTER TABLE {ns}.t CREATE BRANCH audit",
            "ALTER TABLE {ns}.t CREATE BRANCH kept AS OF VERSION {id:0} RETAIN 7 DAYS "
            "WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS",
            "ALTER TABLE {ns}.t CREATE TAG first AS OF VERSION {id:0} RETAIN 365 DAYS",
            "INSERT INTO {ns}.t.branch_audit VALUES (9, 'z', 'z')",
            "SELECT * FROM {ns}.t.branch_audit",
            "SELECT * FROM {ns}.t VERSION AS OF 'audit'",
            _MORE,
            "SELECT * FROM {ns}.t VERSION AS OF 'first'",
            "SELECT * FROM {ns}.t.tag_first",
            "SELECT * FROM {ns}.t VERSION AS OF {id:0}",
            "SELECT * FROM {ns}.t FOR SYSTEM_VERSION AS OF {id:0}",
            "ALTER TABLE {ns}.t REPLACE TAG first AS OF VERSION {id:1} RETAIN 2 HOURS",
            "ALTER TABLE {ns}.t CREATE OR REPLACE BRANCH kept RETAIN 1 DAYS",
            "ALTER TABLE {ns}.t DROP BRANCH audit",
            "ALTER TABLE {ns}.t DROP BRANCH IF EXISTS audit",
            "ALTER TABLE {ns}.t DROP TAG nothing",
            "SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, "
            "max_snapshot_age_in_ms FROM {ns}.t.refs",
        )
    ),
    "inserts": SqlCase(
        (
            _BY_CATEGORY,
            _ROWS,
            "INSERT INTO {ns}.t (category, id) VALUES ('y', 5)",
            "INSERT INTO {ns}.t BY NAME SELECT 'w' AS category, 6 AS id, 'f' AS data",
            "INSERT INTO {ns}.t SELECT id + 10, data, category FROM {ns}.t WHERE category = 'x'",
            "INSERT INTO {ns}.t VALUES (1, 'a')",
            "INSERT INTO {ns}.t VALUES ('no number', 'a', 'x')",
            _ALL,
            "INSERT OVERWRITE {ns}.t PARTITION (category = 'x') SELECT 7, 'g'",
            _ALL,
            "INSERT OVERWRITE {ns}.t SELECT 8, 'h', 'v'",
            _ALL,
        )
    ),
    "rows": SqlCase(
        (
            _BY_CATEGORY,
            _ROWS,
            "DELETE FROM {ns}.t WHERE id = 2",
            _ALL,
            "UPDATE {ns}.t SET data = concat(data, '!'), category = 'w' WHERE id = 3",
            _ALL,
            "UPDATE {ns}.t AS t SET t.data = 'all'",
            "DELETE FROM {ns}.t AS x WHERE x.id IN (SELECT id FROM {ns}.t WHERE id < 2)",
            _ALL,
            "DELETE FROM {ns}.t WHERE nothing = 1",
            "DELETE FROM {ns}.t",
            _ALL,
            "TRUNCATE TABLE {ns}.t",
        )
    ),
    "merges": SqlCase(
        (
            _T,
            _ROWS,
            "CREATE TABLE {ns}.s (id bigint, data string, category string) USING iceberg",
            "INSERT INTO {ns}.s VALUES (2, 'B', 'y'), (3, NULL, 'x'), (4, 'D', 'z')",
            "MERGE INTO {ns}.t t USING (SELECT * FROM {ns}.s) s ON t.id = s.id "
            "WHEN MATCHED AND s.data IS NULL THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET t.data = s.data "
            "WHEN NOT MATCHED AND s.id > 0 THEN INSERT *",
            _ALL,
            "MERGE INTO {ns}.t USING {ns}.s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT (id, data) VALUES (s.id, 'new') "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET data = 'gone' "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            _ALL,
            "MERGE INTO {ns}.t USING (SELECT 2 AS id UNION ALL SELECT 2) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET data = 'twice'",
            _ALL,
        ),
        ("t", "s"),
    ),
    "metadata_tables": SqlCase(
        (
            _BY_CATEGORY,
            _ROWS,
            _MORE,
            "DELETE FROM {ns}.t WHERE category = 'z'",
            "SELECT operation, summary['added-records'] FROM {ns}.t.snapshots",
            "SELECT is_current_ancestor FROM {ns}.t.history",
            "SELECT content, file_format, record_count, partition FROM {ns}.t.files",
            "SELECT partition, record_count, file_count FROM {ns}.t.partitions",
            "SELECT count(*) FROM {ns}.t.manifests",
            "SELECT count(*) FROM {ns}.t.all_data_files",
            "SELECT f.record_count, s.operation FROM {ns}.t.entries e "
            "JOIN {ns}.t.snapshots s ON e.snapshot_id = s.snapshot_id "
            "JOIN {ns}.t.files f ON f.file_path = e.data_file.file_path",
            "SELECT * FROM {ns}.t.nothing",
        )
    ),
    "queries": SqlCase(
        (
            _BY_CATEGORY,
            _ROWS,
            "SELECT t.id, {ns}.t.data, {case}.t.category FROM {ns}.t WHERE t.id > 1",
            "SELECT count(*) AS n, category FROM {ns}.t GROUP BY category",
            "SELECT a.id FROM {ns}.t a LEFT JOIN {ns}.t b ON a.id = b.id AND b.category = 'x' "
            "WHERE b.id IS NULL",
            "WITH t AS (SELECT * FROM {ns}.t WHERE category = 'x') SELECT max(id) FROM t",
            "SELECT * FROM (VALUES (1, 'v'), (9, 'w')) AS v(id, w) JOIN {ns}.t USING (id)",
            "SELECT id, row_number() OVER (PARTITION BY category ORDER BY id DESC) FROM {ns}.t",
            "SELECT nothing FROM {ns}.t",
            "SELECT * FROM {ns}.missing",
            "SELECT * FROM {ns}.t GROUP",
            "SELECT * FROM {ns}.t GROUP BY",
        )
    ),
    "functions": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, ts timestamp, s string, d decimal(9, 2)) "
            "USING iceberg",
            "INSERT INTO {ns}.t VALUES (34, TIMESTAMP '2017-11-16 22:31:08', 'iceberg', 14.20), "
            "(NULL, NULL, NULL, NULL), (-1, TIMESTAMP '1969-12-31 23:59:59', '', -0.05)",
            "SELECT lake.system.bucket(16, id) AS a, lake.system.bucket(16, s) AS b, "
            "lake.system.bucket(16, d) AS c, lake.system.bucket(16, ts) AS e FROM {ns}.t",
            "SELECT lake.system.truncate(10, id) AS a, lake.system.truncate(3, s) AS b, "
            "lake.system.truncate(50, d) AS c FROM {ns}.t",
            "SELECT lake.system.years(ts) AS a, lake.system.months(ts) AS b, "
            "lake.system.days(ts) AS c, lake.system.hours(ts) AS e FROM {ns}.t",
            "SELECT count(*) FROM {ns}.t WHERE lake.system.days(ts) = DATE '2017-11-16'",
        )
    ),
    "rollbacks": SqlCase(
        (
            _T,
            _ROWS,
            _MORE,
            "CALL lake.system.rollback_to_snapshot('{case}.t', {id:0})",
            _ALL,
            "CALL lake.system.set_current_snapshot(table => '{case}.t', snapshot_id => {id:1})",
            _ALL,
            "CALL lake.system.cherrypick_snapshot('{case}.t', {id:1})",
            "CALL lake.system.ancestors_of('{case}.t')",
            "CALL lake.system.rollback_to_snapshot('{case}.t')",
            "CALL lake.system.rollback_to_snapshot(table => '{case}.t', nothing => 1)",
            "CALL lake.system.rollback('{case}.t', 1)",
            "CALL lake.system.rollback_to_snapshot('{case}.missing', 1)",
        )
    ),
    "fast_forwards": SqlCase(
        (
            _T,
            _ROWS,
            "ALTER TABLE {ns}.t CREATE BRANCH audit",
            "INSERT INTO {ns}.t.branch_audit VALUES (9, 'z', 'z')",
            "CALL lake.system.fast_forward('{case}.t', 'main', 'audit')",
            _ALL,
        )
    ),
    "maintenance": SqlCase(
        (
            _BY_CATEGORY,
            _ROWS,
            _MORE,
            "INSERT INTO {ns}.t VALUES (5, 'e', 'x')",
            "INSERT INTO {ns}.t VALUES (6, 'f', 'x')",
            "CALL lake.system.rewrite_data_files(table => '{case}.t', "
            "options => map('min-input-files', '2'), where => 'category = \"x\"')",
            "CALL lake.system.rewrite_manifests('{case}.t')",
            "CALL lake.system.rewrite_position_delete_files('{case}.t')",
            "CALL lake.system.expire_snapshots(table => '{case}.t', "
            "older_than => TIMESTAMP '2020-01-01 00:00:00', retain_last => 1)",
            "CALL lake.system.remove_orphan_files(table => '{case}.t', dry_run => true)",
            _ALL,
        ),
        differs={6: "Java's rewrite of files leaves more manifests"},
    ),
    "statistics": SqlCase(
        (
            _BY_CATEGORY,
            _ROWS,
            "CALL lake.system.compute_table_stats('{case}.t')",
            "CALL lake.system.compute_partition_stats('{case}.t')",
        )
    ),
    "changelogs": SqlCase(
        (
            _T,
            _ROWS,
            "DELETE FROM {ns}.t WHERE id = 1",
            "CALL lake.system.create_changelog_view(table => '{case}.t', "
            "changelog_view => '{case}_changes')",
            "SELECT id, data, _change_type, _change_ordinal FROM {case}_changes",
        )
    ),
    "drops": SqlCase(
        (
            _T,
            "ALTER TABLE {ns}.t RENAME TO {ns}.u",
            "DROP TABLE {ns}.t",
            "DROP TABLE IF EXISTS {ns}.missing",
            "DROP TABLE {ns}.missing",
            "SHOW TABLES IN {ns}",
        ),
        (),
    ),
    "namespaces": SqlCase(
        (
            "CREATE NAMESPACE {ns}.inner",
            "CREATE NAMESPACE {ns}.inner",
            "CREATE NAMESPACE IF NOT EXISTS {ns}.inner",
            "SHOW NAMESPACES IN {ns}",
            "USE {ns}.inner",
            "CREATE TABLE t (id int) USING iceberg",
            "INSERT INTO t VALUES (1)",
            "SELECT * FROM t",
            "SHOW TABLES",
            "SELECT t.id, inner.t.id FROM t",
            "DROP NAMESPACE {ns}.inner",
            "DROP TABLE t PURGE",
            "DROP NAMESPACE {ns}.inner",
            "USE spark_catalog.default",
        ),
        (),
    ),
    "descriptions": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint NOT NULL COMMENT 'unique id', data string, "
            "ts timestamp) USING iceberg PARTITIONED BY (days(ts), bucket(4, id))",
            "DESCRIBE TABLE {ns}.t",
            "DESCRIBE {ns}.t id",
            "SHOW TBLPROPERTIES {ns}.t ('format')",
            "REFRESH TABLE {ns}.t",
            "DESCRIBE {ns}.missing",
        )
    ),
}
