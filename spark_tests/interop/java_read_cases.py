"""Scripts of queries and inserts, for the statements of Java Iceberg's own tests."""

from __future__ import annotations

from sql_cases import SqlCase

_ALL = "SELECT * FROM {ns}.t"
_T = "CREATE TABLE {ns}.t (id bigint, data string, float float) USING iceberg"
_ROWS = "INSERT INTO {ns}.t VALUES (1, 'a', 1.0), (2, 'b', 2.0), (3, 'c', float('NaN'))"
_MORE = "INSERT INTO {ns}.t VALUES (4, 'd', 4.0), (5, 'e', 5.0)"
_FILES = "SELECT content, partition, spec_id, record_count FROM {ns}.t.files"
_V3 = "TBLPROPERTIES ('format-version' = '3')"


def _written(clauses: str, *, on_branch: bool = False) -> SqlCase:
    into = "{ns}.t.branch_b" if on_branch else "{ns}.t"
    return SqlCase(
        (
            f"CREATE TABLE {{ns}}.t (id bigint, data string) USING iceberg {clauses}",
            "INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "ALTER TABLE {ns}.t CREATE BRANCH b",
            f"INSERT INTO {into} VALUES (4, 'd'), (5, 'e')",
            f"SELECT count(*) FROM {into}",
            "SET spark.sql.sources.partitionOverwriteMode=dynamic",
            f"INSERT OVERWRITE {into} VALUES (4, 'f'), (5, 'g')",
            "RESET spark.sql.sources.partitionOverwriteMode",
            f"SELECT * FROM {into}",
            f"INSERT OVERWRITE {into} VALUES (6, 'h')",
            f"SELECT * FROM {into}",
            f"INSERT OVERWRITE {into} SELECT * FROM {into} WHERE id > 7",
            f"SELECT count(*) FROM {into}",
        )
    )


def _filtered(
    columns: str, partitioning: str, rows: str, *conditions: str, differs: str = ""
) -> SqlCase:
    """Filters of a table; `differs` says why the last gives other rows."""
    return SqlCase(
        (
            f"CREATE TABLE {{ns}}.t ({columns}) USING iceberg PARTITIONED BY ({partitioning})",
            f"INSERT INTO {{ns}}.t VALUES {rows}",
            *(f"SELECT * FROM {{ns}}.t WHERE {condition}" for condition in conditions),
        ),
        differs={1 + len(conditions): differs} if differs else {},
    )


def _aggregates(*columns: str) -> str:
    listed = ", ".join(f"max({name}), min({name}), count({name})" for name in columns)
    return f"SELECT count(*), {listed} FROM {{ns}}.t"


def _pushed_functions(mode: str, clauses: str) -> SqlCase:
    return SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, salary int, dep string, ts timestamp) USING iceberg "
            f"PARTITIONED BY ({clauses}) TBLPROPERTIES ('write.delete.mode' = '{mode}', "
            f"'write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}')",
            "INSERT INTO {ns}.t VALUES (1, 100, 'hr', TIMESTAMP '1975-01-01 06:00:00'), "
            "(2, 200, 'hr', TIMESTAMP '1975-01-01 06:00:00'), "
            "(3, 300, 'hr', TIMESTAMP '1975-02-01 06:00:00'), "
            "(4, 400, 'it', TIMESTAMP '1974-01-01 06:00:00'), "
            "(5, 500, 'it', TIMESTAMP '1974-01-02 06:00:00'), "
            "(6, 600, 'hardware', TIMESTAMP '1974-01-02 07:00:00')",
            "CREATE OR REPLACE TEMPORARY VIEW {case}_changes AS "
            "SELECT * FROM VALUES (1L), (2L), (4L), (6L), (9L) AS v(id)",
            "DELETE FROM {ns}.t t WHERE lake.system.bucket(4, dep) IN (2, 3) AND lake.system."
            "days(ts) = date('1975-01-01') AND id IN (SELECT id FROM {case}_changes WHERE id = 1)",
            "DELETE FROM {ns}.t WHERE lake.system.hours(ts) = 35041",
            _ALL,
            "UPDATE {ns}.t t SET salary = -1 WHERE lake.system.years(ts) = 4 "
            "AND id IN (SELECT id FROM {case}_changes)",
            "UPDATE {ns}.t SET salary = -2 WHERE lake.system.truncate(1, dep) = 'h' "
            "AND lake.system.months(ts) > 60",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_changes c ON t.id = c.id AND "
            "lake.system.truncate(1, t.dep) = 'h' AND lake.system.years(ts) = 4 "
            "WHEN MATCHED THEN UPDATE SET salary = -3 "
            "WHEN NOT MATCHED THEN INSERT (id, salary, dep, ts) VALUES (c.id + 100, 1, 'n', null)",
            _ALL,
        )
    )


def _lineage(clauses: str) -> SqlCase:
    # The id of a new row depends on its place in the file.
    read = (
        "SELECT id, data, if(id < 200, _row_id, -1) AS row_id, "
        "_last_updated_sequence_number AS sequence FROM {ns}.t"
    )
    return SqlCase(
        (
            f"CREATE TABLE {{ns}}.t (id int, data string) USING iceberg {clauses}",
            "INSERT INTO {ns}.t VALUES (100, 'a'), (101, 'b'), (102, 'c'), (103, 'd')",
            read,
            "MERGE INTO {ns}.t AS t USING (SELECT * FROM VALUES (101, 'b2'), (200, 'f') "
            "AS v(id, data)) AS s ON t.id == s.id WHEN MATCHED THEN UPDATE SET t.data = s.data "
            "WHEN NOT MATCHED THEN INSERT *",
            read,
            "UPDATE {ns}.t AS t SET data = 'b3' WHERE id = 102",
            "DELETE FROM {ns}.t WHERE id = 100",
            read,
            "MERGE INTO {ns}.t AS t USING (SELECT 101 AS id) AS s ON t.id == s.id "
            "WHEN MATCHED THEN UPDATE SET data = 'm' "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 103 THEN UPDATE SET data = 'n' "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 102 THEN DELETE",
            read,
        )
    )


CASES: dict[str, SqlCase] = {
    "selects": SqlCase(
        (
            _T,
            _ROWS,
            "SELECT * FROM {ns}.t WHERE float = float('NaN')",
            "SELECT * FROM {ns}.t ORDER BY id LIMIT 2",
            "SELECT id FROM {ns}.t ORDER BY id",
            "SELECT data FROM {ns}.t WHERE id = 2",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('read.split.target-size' = '1024')",
            "REFRESH TABLE {ns}.t",
            _ALL,
        )
    ),
    "time_travel": SqlCase(
        (
            _T,
            _ROWS,
            "ALTER TABLE {ns}.t CREATE TAG g",
            "ALTER TABLE {ns}.t CREATE BRANCH b",
            "ALTER TABLE {ns}.t CREATE TAG `{id:0}`",
            _MORE,
            "SELECT id FROM {ns}.t.snapshot_id_{id:0}",
            "SELECT id FROM {ns}.t.at_timestamp_{ms:0}",
            "SELECT id FROM {ns}.t VERSION AS OF '{id:0}'",
            "SELECT id FROM {ns}.t FOR SYSTEM_VERSION AS OF 'g'",
            "SELECT id FROM {ns}.t FOR SYSTEM_VERSION AS OF 'b'",
            "SELECT id FROM {ns}.t TIMESTAMP AS OF '{time:0}'",
            "SELECT id FROM {ns}.t TIMESTAMP AS OF ({ms:0} / 1000)",
            "SELECT id FROM {ns}.t FOR SYSTEM_TIME AS OF '{time:1}'",
            "SELECT id FROM {ns}.t TIMESTAMP AS OF '2020-01-01'",
            "SELECT id FROM {ns}.t TIMESTAMP AS OF now()",
            "SELECT * FROM {ns}.t VERSION AS OF 'missing'",
            "SELECT * FROM {ns}.t VERSION AS OF 17",
            "SELECT * FROM {ns}.t.snapshot_id_{id:0} VERSION AS OF {id:0}",
            "SELECT * FROM {ns}.t.at_timestamp_{ms:0} VERSION AS OF {id:0}",
            "SELECT * FROM {ns}.t.snapshot_id_{id:0} TIMESTAMP AS OF '{time:0}'",
            "SELECT * FROM {ns}.t.at_timestamp_{ms:0} TIMESTAMP AS OF '{time:0}'",
            "SELECT * FROM {ns}.t.branch_b VERSION AS OF {id:0}",
            "SELECT * FROM {ns}.t.branch_b TIMESTAMP AS OF now()",
            "SELECT * FROM {ns}.t.branch_missing",
            "SELECT count(id) FROM {ns}.t VERSION AS OF {id:0}",
            "ALTER TABLE {ns}.t DROP TAG `{id:0}`",
        )
    ),
    "branches_after_changes": SqlCase(
        (
            _T,
            _ROWS,
            "ALTER TABLE {ns}.t CREATE BRANCH b",
            "ALTER TABLE {ns}.t DROP COLUMN float",
            "ALTER TABLE {ns}.t ADD COLUMN new_col date",
            "INSERT INTO {ns}.t VALUES (4, 'd', date('2024-04-04'))",
            "SELECT * FROM {ns}.t VERSION AS OF {id:0}",
            "SELECT * FROM {ns}.t VERSION AS OF 'b'",
            "SELECT * FROM {ns}.t.branch_b",
            "INSERT INTO {ns}.t.branch_b VALUES (6L, 'f', cast('2023-06-06' AS date))",
            "SELECT * FROM {ns}.t VERSION AS OF 'b'",
            "SELECT * FROM {ns}.t.branch_b WHERE new_col IS NOT NULL",
        )
    ),
    "renamed_after_travel": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, col double) USING iceberg PARTITIONED BY (col) "
            "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
            "INSERT INTO {ns}.t VALUES (1, 100.0), (2, 200.0), (3, 0.0), (5, 200.0)",
            "DELETE FROM {ns}.t WHERE id = 5",
            "ALTER TABLE {ns}.t RENAME COLUMN col TO value",
            "INSERT INTO {ns}.t VALUES (4, 400.0)",
            "SELECT * FROM {ns}.t VERSION AS OF {id:1} WHERE col > 0",
            "SELECT * FROM {ns}.t VERSION AS OF {id:0} WHERE col > 0",
            "SELECT * FROM {ns}.t WHERE value > 100",
        )
    ),
    "filters_of_simple_types": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, b boolean, i int, f float, d double, s string, "
            "day date, ts timestamp, bin binary) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, true, 1, 1.1, 1.3, '1.5', date('2021-01-01'), "
            "to_timestamp('2021-01-01T00:00:00'), X''), (2, false, 2, 2.2, 2.4, '2.6', "
            "date('2022-02-02'), to_timestamp('2022-02-02T00:00:00'), X'1111'), "
            "(3, true, 3, 3.3, 3.6, '3.9', date('2023-03-03'), "
            "to_timestamp('2023-03-03T00:00:00'), X'11')",
            "SELECT id FROM {ns}.t WHERE b = true AND i > 1",
            "SELECT f FROM {ns}.t WHERE f > 1.1f",
            "SELECT d FROM {ns}.t WHERE d > 1.3",
            "SELECT s FROM {ns}.t WHERE s > '1.5'",
            "SELECT day FROM {ns}.t WHERE day > to_date('2021-01-01')",
            "SELECT ts FROM {ns}.t WHERE ts > to_timestamp('2021-01-01')",
            "SELECT id, bin FROM {ns}.t WHERE bin > X'11'",
        )
    ),
    "filters_of_structs": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int NOT NULL, c struct<c1: int, c2: string>, "
            "address struct<street: string NOT NULL>) USING iceberg",
            "INSERT INTO {ns}.t VALUES (0, named_struct('c1', 3, 'c2', 'v1'), null)",
            "INSERT INTO {ns}.t VALUES (1, named_struct('c1', 2, 'c2', 'v2'), STRUCT('123 St'))",
            "SELECT id FROM {ns}.t WHERE c = named_struct('c1', 3, 'c2', 'v1')",
            "SELECT id FROM {ns}.t WHERE address.street IS NULL",
            "SELECT id FROM {ns}.t WHERE address.street IS NOT NULL",
            "SELECT max(c.c1), min(c.c1), count(c.c1) FROM {ns}.t",
            "SELECT count(c), count(DISTINCT c) FROM {ns}.t",
        )
    ),
    "filters_of_variants": SqlCase(
        (
            f"CREATE TABLE {{ns}}.t (id bigint, v variant) USING iceberg {_V3}",
            'INSERT INTO {ns}.t VALUES (1, parse_json(\'{"a": "foo", "n": 25}\')), '
            '(2, parse_json(\'{"a": "bar", "n": 30}\')), (3, null)',
            "SELECT id FROM {ns}.t WHERE try_variant_get(v, '$.n', 'int') > 26",
            "SELECT id FROM {ns}.t WHERE variant_get(v, '$.a', 'string') = 'foo'",
            "SELECT id FROM {ns}.t WHERE v IS NULL",
            "SELECT id, to_json(v) FROM {ns}.t",
        ),
        (),
    ),
    "filters_by_identity": _filtered(
        "id int, salary int, dep string",
        "dep",
        "(1, 100, 'd1'), (2, 200, 'd2'), (3, 300, 'd3'), (4, 400, 'd4'), (6, 600, null)",
        "dep IS NULL AND id = 6",
        "dep IS NOT NULL AND salary > 100",
        "dep = 'd1'",
        "dep > 'd3'",
        "dep IN ('d4', 'd1', null)",
        "dep NOT IN ('d2', 'd4')",
        "dep LIKE 'd%' AND id > 3",
        "NOT (dep = 'd1')",
        "dep <=> NULL OR dep >= 'd4'",
    ),
    "filters_by_decimals": _filtered(
        "id int, salary decimal(10, 2), dep string",
        "dep",
        "(1, 100.01, 'd1'), (2, 100.05, 'd1')",
        "dep = 'd1' AND salary > 100.03",
        "salary IN (100.01, 7)",
    ),
    "filters_by_hours": _filtered(
        "id int, t timestamp",
        "hours(t)",
        "(1, TIMESTAMP '2021-06-30T01:00:00.000Z'), (2, TIMESTAMP '2021-06-30T02:00:00.000Z'), "
        "(3, null)",
        "t IS NULL",
        "t > TIMESTAMP '2021-06-30T01:00:00.000Z'",
        "t >= TIMESTAMP '2021-06-30T02:00:00.000Z'",
        "t < TIMESTAMP '2021-06-30T02:00:00.000Z'",
    ),
    "filters_by_days": _filtered(
        "id int, t timestamp",
        "days(t)",
        "(1, TIMESTAMP '2021-06-15T01:00:00.000Z'), (2, TIMESTAMP '2021-06-30T02:00:00.000Z'), "
        "(3, TIMESTAMP '2021-07-15T10:00:00.000Z'), (4, null)",
        "t IS NULL",
        "t < TIMESTAMP '2021-07-05T01:00:00.000Z'",
        "date(t) = '2021-06-30'",
        "t BETWEEN TIMESTAMP '2021-06-30T00:00:00Z' AND TIMESTAMP '2021-07-15T09:00:00Z'",
    ),
    "filters_by_months": _filtered(
        "id int, t timestamp",
        "months(t)",
        "(1, TIMESTAMP '2021-06-30T01:00:00.000Z'), (2, TIMESTAMP '2021-07-15T10:00:00.000Z'), "
        "(4, null)",
        "t IS NULL",
        "t < TIMESTAMP '2021-07-01T00:00:00.000Z'",
        "t <> TIMESTAMP '2021-07-15T10:00:00.000Z'",
    ),
    "filters_by_years": _filtered(
        "id int, t timestamp",
        "years(t)",
        "(1, TIMESTAMP '2021-06-30T01:00:00.000Z'), (2, TIMESTAMP '2022-09-25T02:00:00.000Z'), "
        "(3, null)",
        "t IS NULL",
        "t < TIMESTAMP '2022-01-01T00:00:00.000Z'",
        "year(t) = 2022",
    ),
    "filters_by_buckets": _filtered(
        "id int, salary int, dep string",
        "dep, bucket(8, id), truncate(1, dep)",
        "(1, 100, 'd1'), (2, 200, 'd2'), (3, 300, 'a3')",
        "id = 1 AND dep = 'd1'",
        "id IN (1, 2) AND dep LIKE 'd%'",
        "dep >= 'd1' AND salary > 100",
    ),
    "filters_by_floats": _filtered(
        "id int, salary double",
        "salary",
        "(1, 100.5), (2, double('NaN')), (3, double('infinity')), (4, double('-infinity'))",
        "salary = 100.5",
        "salary = double('NaN')",
        "salary != double('NaN')",
        "salary = double('infinity')",
        "salary = double('-infinity')",
        "salary > 1000",
        differs="NaN is above all numbers in Spark; Java skips its partition",
    ),
    "filters_across_specs": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, dep string, sub string, t timestamp) USING iceberg "
            "PARTITIONED BY (truncate(2, dep), hours(t))",
            "INSERT INTO {ns}.t VALUES (1, 'd1', 'sd1', TIMESTAMP '2021-06-30T01:00:00.000Z')",
            "ALTER TABLE {ns}.t REPLACE PARTITION FIELD hours(t) WITH months(t)",
            "ALTER TABLE {ns}.t REPLACE PARTITION FIELD truncate(2, dep) WITH truncate(1, dep)",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD sub",
            "INSERT INTO {ns}.t VALUES (2, 'd2', 'sd2', TIMESTAMP '2021-05-30T01:00:00.000Z')",
            "SELECT * FROM {ns}.t WHERE dep > 'd1' AND sub = 'sd2'",
            "SELECT * FROM {ns}.t WHERE dep LIKE 'd%'",
            "SELECT * FROM {ns}.t WHERE t < TIMESTAMP '2021-06-01T00:00:00.000Z'",
            "SELECT * FROM {ns}.t WHERE sub IN ('sd1', 'sd3') AND id > 0",
            "SELECT _spec_id, id, _partition FROM {ns}.t",
        )
    ),
    "pruned_joins": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string, day date, ts timestamp) USING iceberg "
            "PARTITIONED BY (day, bucket(8, id))",
            "INSERT INTO {ns}.t SELECT id, cast(id % 3 AS string), date_add(date '2021-01-01', "
            "cast(id % 7 AS int)), null FROM range(0, 50)",
            "CREATE TABLE {ns}.dim (id bigint, day date) USING iceberg",
            "INSERT INTO {ns}.dim VALUES (1, date '2021-01-02'), (8, date '2021-01-03')",
            "SELECT t.* FROM {ns}.t t JOIN {ns}.dim d ON t.day = d.day AND d.id = 1",
            "SELECT t.* FROM {ns}.t t JOIN {ns}.dim d ON t.id = d.id",
            "SELECT count(*) FROM {ns}.t WHERE id = (SELECT max(id) FROM {ns}.dim)",
            "SELECT count(*) FROM {ns}.t WHERE day IN (SELECT day FROM {ns}.dim)",
        ),
        ("t", "dim"),
    ),
    "aggregates": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, i int, b boolean, f float, d double, "
            "n decimal(14, 2), bin binary, s string, day date, ts timestamp) USING iceberg "
            "PARTITIONED BY (id)",
            "INSERT INTO {ns}.t VALUES (1, null, false, null, null, 11.11, X'1111', '1111', "
            "date('2021-11-10'), null), (1, null, true, 2.222, 2.222222, 22.22, X'2222', 'bb', "
            "date('2021-11-11'), timestamp('2021-11-11 22:22:22')), (2, 33, false, 3.333, "
            "3.333333, 33.33, X'3333', 'c', null, timestamp('2021-11-12 22:22:22')), "
            "(3, null, true, null, 6.666666, null, null, null, date('2021-11-14'), null)",
            _aggregates("id", "i", "b", "f", "d", "n", "bin", "s", "day", "ts"),
            "SELECT max(i), count(*) FROM {ns}.t WHERE id > 1",
            "SELECT count(DISTINCT i), sum(i), avg(d) FROM {ns}.t",
            "SELECT max(day), min(ts) FROM {ns}.t WHERE i IS NULL",
            "SELECT count(i), max(id) FROM {ns}.t GROUP BY id",
            "SELECT max(id) FROM {ns}.t HAVING max(id) > 5",
            "SELECT count(*) FROM {ns}.t VERSION AS OF {id:0} WHERE false",
            "DELETE FROM {ns}.t WHERE d = 3.333333",
            _aggregates("id", "i", "d"),
        )
    ),
    "aggregates_of_floats": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, a float, n float, m double) USING iceberg "
            "PARTITIONED BY (id)",
            "INSERT INTO {ns}.t VALUES (1, float('nan'), null, 1.0), (1, float('nan'), null, "
            "double('NaN')), (2, float('nan'), null, double('infinity')), "
            "(2, float('nan'), null, double('-infinity')), (3, float('nan'), null, 2)",
            _aggregates("a", "n", "m"),
            "SELECT max(m), min(m) FROM {ns}.t WHERE id = 2",
            "SELECT max(m), min(m) FROM {ns}.t WHERE id = 1",
            "SELECT max(m), min(m) FROM {ns}.t WHERE id = 3",
        )
    ),
    "aggregates_without_metrics": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data double, c struct<c1: int, c2: string>) "
            "USING iceberg TBLPROPERTIES ('write.metadata.metrics.default' = 'none', "
            "'write.metadata.metrics.column.id' = 'counts')",
            "INSERT INTO {ns}.t VALUES (1, 1111, null), (1, 2222, null), "
            "(2, 3333, named_struct('c1', 3, 'c2', 'v1'))",
            "SELECT count(data) FROM {ns}.t",
            "SELECT count(id), max(id) FROM {ns}.t",
            "SELECT count(c), count(*) FROM {ns}.t",
            "SELECT value_counts, null_value_counts, lower_bounds FROM {ns}.t.files",
        ),
        differs={5: "without bounds there is no map of them, in Java an empty one"},
    ),
    "metadata_of_deletes": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string) USING iceberg PARTITIONED BY (data) "
            "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')",
            "INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'a')",
            "INSERT INTO {ns}.t VALUES (1, 'b'), (2, 'b')",
            "DELETE FROM {ns}.t WHERE id = 1 AND data = 'a'",
            "DELETE FROM {ns}.t WHERE id = 1 AND data = 'b'",
            "SELECT content, record_count, partition FROM {ns}.t.delete_files "
            "WHERE partition.data = 'a'",
            "SELECT content, record_count, partition FROM {ns}.t.data_files "
            "WHERE partition.data = 'a'",
            _FILES,
            "SELECT pos, partition, spec_id FROM {ns}.t.position_deletes",
            "SELECT partition, record_count, file_count, position_delete_record_count, "
            "position_delete_file_count FROM {ns}.t.partitions",
            "SELECT content, added_data_files_count, added_delete_files_count "
            "FROM {ns}.t.all_manifests WHERE content = 1",
            "SELECT DISTINCT content FROM {ns}.t.all_manifests WHERE content != 0",
            "SELECT DISTINCT content FROM {ns}.t.all_manifests WHERE NOT (content = 0)",
            "SELECT count(*) FROM {ns}.t.all_manifests WHERE reference_snapshot_id = {id:1}",
            "DELETE FROM {ns}.t",
            "SELECT content, partition FROM {ns}.t.all_files WHERE partition.data = 'a'",
            "SELECT content, record_count FROM {ns}.t.all_data_files",
            "SELECT content, record_count FROM {ns}.t.all_delete_files",
            "SELECT status, data_file.record_count FROM {ns}.t.entries",
            "SELECT count(*) FROM {ns}.t.all_entries WHERE status = 1",
        )
    ),
    "metadata_log": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, data string) USING iceberg PARTITIONED BY (data)",
            "SELECT latest_schema_id, latest_sequence_number FROM {ns}.t.metadata_log_entries",
            "INSERT INTO {ns}.t VALUES (1, 'a')",
            "INSERT INTO {ns}.t VALUES (1, 'a')",
            "SELECT latest_snapshot_id, latest_schema_id, latest_sequence_number "
            "FROM {ns}.t.metadata_log_entries",
            "SELECT latest_sequence_number FROM {ns}.t.metadata_log_entries "
            "WHERE latest_snapshot_id = {id:1}",
            "ALTER TABLE {ns}.t ADD COLUMN category string",
            "SELECT partition, record_count FROM {ns}.t.files VERSION AS OF {id:0}",
            "CREATE OR REPLACE TABLE {ns}.t (id bigint, data string) USING iceberg "
            "PARTITIONED BY (data)",
            "SELECT latest_snapshot_id, latest_schema_id, latest_sequence_number "
            "FROM {ns}.t.metadata_log_entries",
            "INSERT INTO {ns}.t VALUES (1, 'a')",
            "SELECT count(*) FROM {ns}.t.metadata_log_entries",
        )
    ),
    "metadata_of_references": SqlCase(
        (
            _T,
            _ROWS,
            "ALTER TABLE {ns}.t CREATE BRANCH b RETAIN 10 MINUTES "
            "WITH SNAPSHOT RETENTION 20 SNAPSHOTS 30 MINUTES",
            "ALTER TABLE {ns}.t CREATE TAG g RETAIN 50 MINUTES",
            "SELECT * FROM {ns}.t.refs",
            "SELECT * FROM {ns}.t.refs WHERE type = 'TAG'",
            "SELECT name, type FROM {ns}.t.refs WHERE name = 'main' AND type = 'BRANCH'",
            "SELECT name, max_reference_age_in_ms FROM {ns}.t.refs WHERE name = 'b'",
        )
    ),
    "metadata_across_specs": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint NOT NULL, category string, data string) "
            "USING iceberg TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')",
            "INSERT INTO {ns}.t VALUES (1, 'a1', 'b1')",
            _FILES,
            "ALTER TABLE {ns}.t ADD PARTITION FIELD data",
            "INSERT INTO {ns}.t VALUES (2, 'a2', 'b2')",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD category",
            "INSERT INTO {ns}.t VALUES (3, 'a3', 'b3')",
            _FILES,
            "SELECT partition FROM {ns}.t.files WHERE partition.category = 'a3'",
            "SELECT partition FROM {ns}.t.files WHERE partition.data = 'b2'",
            "SELECT partition FROM {ns}.t.files WHERE partition.category IS NULL",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD data",
            "INSERT INTO {ns}.t VALUES (4, 'a4', 'b4')",
            "SELECT partition, spec_id, record_count, file_count FROM {ns}.t.partitions",
            "SELECT partition FROM {ns}.t.partitions WHERE partition.category = 'a4'",
            "SELECT partition FROM {ns}.t.partitions WHERE partition.data = 'b3'",
            "SELECT partition FROM {ns}.t.partitions WHERE partition.data IS NOT NULL",
            "SELECT status, data_file.partition FROM {ns}.t.entries",
            "ALTER TABLE {ns}.t REPLACE PARTITION FIELD category WITH category AS renamed",
            "SELECT partition FROM {ns}.t.partitions WHERE partition.renamed = 'a4'",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD bucket(2, id)",
            "INSERT INTO {ns}.t VALUES (5, 'a5', 'b5')",
            "SELECT partition, spec_id FROM {ns}.t.partitions",
        )
    ),
    "partition_named_partition": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, partition int) USING iceberg PARTITIONED BY (partition)",
            "INSERT INTO {ns}.t VALUES (1, 1), (2, 1), (3, 2), (2, 2)",
            _ALL,
            "SELECT partition, record_count FROM {ns}.t.files",
        )
    ),
    "metadata_columns": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, category string, data string) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, 'a1', 'b1')",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD data",
            "INSERT INTO {ns}.t VALUES (2, 'a1', 'b1'), (3, 'a1', 'b1')",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD bucket(8, category)",
            "INSERT INTO {ns}.t VALUES (4, 'a1', 'b1')",
            "SELECT _spec_id, _partition, id FROM {ns}.t",
            "SELECT _pos, _deleted, id FROM {ns}.t WHERE _spec_id = 1",
            "SELECT count(DISTINCT _file) FROM {ns}.t",
            "SELECT f.record_count, t.id FROM {ns}.t t JOIN {ns}.t.files f "
            "ON f.file_path = t._file",
        )
    ),
    "lineage": _lineage("TBLPROPERTIES ('format-version' = '3')"),
    "lineage_of_vectors": _lineage(
        "PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '3', "
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
        "'write.merge.mode' = 'merge-on-read')"
    ),
    "functions_everywhere": SqlCase(
        (
            "CREATE TABLE {ns}.t (id bigint, ts timestamp, s string) USING iceberg "
            "PARTITIONED BY (bucket(5, id), days(ts), truncate(2, s))",
            "INSERT INTO {ns}.t SELECT id, timestamp_seconds(id * 40000), "
            "concat('s', cast(id % 3 AS string), 'x') FROM range(0, 20)",
            "SELECT count(*) FROM {ns}.t WHERE lake.system.years(ts) = 0",
            "SELECT count(*) FROM {ns}.t WHERE lake.system.months(ts) > 0",
            "SELECT id FROM {ns}.t WHERE lake.system.days(ts) = date('1970-01-03')",
            "SELECT count(*) FROM {ns}.t WHERE lake.system.hours(ts) >= 100",
            "SELECT id FROM {ns}.t WHERE lake.system.bucket(5, id) <= 1",
            "SELECT count(*) FROM {ns}.t WHERE lake.system.bucket(5, s) = 3",
            "SELECT id FROM {ns}.t WHERE lake.system.truncate(2, s) = 's1' AND id < 9",
            "SELECT lake.system.truncate(2, s) AS p, count(*) FROM {ns}.t GROUP BY 1",
            "USE lake",
            "SELECT system.bucket(2, 34) AS b",
            "SELECT system.years(date '2017-05-01') AS a, system.days(timestamp_ntz "
            "'2017-12-01 10:12:55') AS b, system.months(cast(null AS date)) AS c",
            "SELECT system.truncate(10, decimal(9.99)) AS a, system.truncate(4, X'0102030405') "
            "AS b, system.truncate(3, cast(-5 AS tinyint)) AS c",
            "SELECT system.bucket(16, X'0001') AS a, system.bucket(16, date '2017-11-16') AS b, "
            "system.bucket(16, cast(null AS int)) AS c, system.bucket(16, 14.20) AS d",
            "SELECT undefined_function(1, 2)",
            "SELECT lake.system.bucket(2)",
            "SELECT lake.system.bucket(-2, 1) AS b",
            "SELECT lake.system.bucket(2, true) AS b",
            "SELECT lake.system.years('text') AS y",
            "SELECT lake.system.hours(date '2017-01-01') AS h",
            "SELECT lake.system.truncate(2, 1.5f) AS t",
            # Without 'system', as long as no namespace is current.
            "SELECT bucket(2, 34) AS b, lake.bucket(2, 34) AS c, DAYS(date '2017-05-01') AS d",
            "SELECT id FROM {ns}.t WHERE bucket(5, id) = 1 AND years(ts) = 0",
            "USE {ns}",
            "SELECT system.bucket(2, 34) AS b, lake.bucket(2, 34) AS c",
            "SELECT bucket(2, 34) AS b",
            "USE spark_catalog.default",
            "SELECT bucket(2, 34) AS b",
            "SELECT system.bucket(2, 34) AS b",
        ),
        differs={17: "Java takes numbers of buckets below one"},
    ),
    "functions_in_rewritten_rows": _pushed_functions("copy-on-write", "bucket(4, dep), years(ts)"),
    "functions_in_positions": _pushed_functions("merge-on-read", "truncate(1, dep), days(ts)"),
    "changes": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, data string) USING iceberg PARTITIONED BY (data)",
            "INSERT INTO {ns}.t VALUES (1, 'a')",
            "INSERT INTO {ns}.t VALUES (2, 'b')",
            "INSERT OVERWRITE {ns}.t SELECT -2, 'b'",
            "INSERT INTO {ns}.t VALUES (3, 'c')",
            "DELETE FROM {ns}.t WHERE id = 3",
            "SELECT id, data, _change_type, _change_ordinal FROM {ns}.t.changes",
            "SELECT id, _change_type FROM {ns}.t.changes WHERE id = 3",
            "SELECT count(*) FROM {ns}.t.changes WHERE _spec_id = 0",
            "CALL lake.system.rewrite_manifests('{case}.t')",
            "SELECT id, _change_type FROM {ns}.t.changes",
            "CALL lake.system.rollback_to_snapshot('{case}.t', {id:1})",
            "SELECT id, _change_type FROM {ns}.t.changes",
        ),
        differs={
            8: "changes have no metadata columns but their own",
            9: "manifests without live files are not counted",
        },
        operations_differ="as they are not rewritten",
    ),
    "views_of_tables": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, salary int) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, 100), (10, 1000)",
            "CREATE OR REPLACE TEMPORARY VIEW {case}_v AS SELECT * FROM {ns}.t WHERE salary < 999",
            "SELECT * FROM {case}_v",
            "INSERT INTO {ns}.t VALUES (2, 200)",
            "SELECT * FROM {case}_v",
            "ALTER TABLE {ns}.t ADD COLUMN added int",
            "INSERT INTO {ns}.t VALUES (3, 300, -1)",
            "SELECT * FROM {case}_v",
            "SELECT * FROM {ns}.t",
            "ALTER TABLE {ns}.t ALTER COLUMN salary TYPE bigint",
            "DROP TABLE {ns}.t",
            "CREATE TABLE {ns}.t (id int, salary int) USING iceberg",
            "INSERT INTO {ns}.t VALUES (4, 400)",
            "SELECT * FROM {case}_v",
            "DROP VIEW {case}_v",
        ),
    ),
    "views_of_dropped_columns": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, salary int, extra int) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, 100, 10)",
            "CREATE OR REPLACE TEMPORARY VIEW {case}_v AS SELECT * FROM {ns}.t",
            "SELECT * FROM {case}_v",
            "ALTER TABLE {ns}.t DROP COLUMN extra",
            "SELECT * FROM {case}_v",
            "ALTER TABLE {ns}.t ADD COLUMN extra int",
            "INSERT INTO {ns}.t VALUES (2, 200, 20)",
            "SELECT * FROM {case}_v",
            "ALTER TABLE {ns}.t DROP COLUMN extra",
            "ALTER TABLE {ns}.t ADD COLUMN extra string",
            "SELECT * FROM {case}_v",
            "DROP VIEW {case}_v",
        ),
    ),
    "cached_tables": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, salary int) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, 100)",
            "CACHE TABLE {ns}.t",
            _ALL,
            "INSERT INTO {ns}.t VALUES (2, 200)",
            _ALL,
            "ALTER TABLE {ns}.t ADD COLUMN added int",
            "INSERT INTO {ns}.t VALUES (3, 300, -1)",
            _ALL,
            "REFRESH TABLE {ns}.t",
            _ALL,
            "UNCACHE TABLE {ns}.t",
            _ALL,
        )
    ),
    "written": _written(""),
    "written_by_prefix": _written("PARTITIONED BY (truncate(id, 3))"),
    "written_on_branch": _written("PARTITIONED BY (truncate(id, 3))", on_branch=True),
    "written_as_selected": SqlCase(
        (
            "CREATE TABLE {ns}.s (id bigint, data string, category string, ts timestamp) "
            "USING iceberg",
            "INSERT INTO {ns}.s VALUES (13, '1', 'bgd16', timestamp('2021-11-10 11:20:10')), "
            "(21, '2', 'bgd13', timestamp('2021-11-10 11:20:10')), "
            "(12, '3', 'bgd14', timestamp('2021-11-11 11:20:10')), "
            "(222, '3', 'bgd15', timestamp('2021-11-10 11:20:10'))",
            "CREATE TABLE {ns}.t (id bigint, data string, category string, ts timestamp) "
            "USING iceberg PARTITIONED BY (days(ts), category)",
            "INSERT INTO {ns}.t SELECT id, data, category, ts FROM {ns}.s ORDER BY ts, category",
            "CREATE TABLE {ns}.u (id bigint, data string, category string, ts timestamp) "
            "USING iceberg PARTITIONED BY (bucket(8, data))",
            "INSERT INTO {ns}.u SELECT id, data, category, ts FROM {ns}.s "
            "ORDER BY lake.system.bucket(8, data)",
            "CREATE TABLE {ns}.v (id bigint, data string, category string, ts timestamp) "
            "USING iceberg PARTITIONED BY (truncate(data, 4), truncate(id, 4))",
            "INSERT INTO {ns}.v SELECT id, data, category, ts FROM {ns}.s ORDER BY "
            "lake.system.truncate(4, data), lake.system.truncate(4, id)",
            _FILES,
        ),
        ("s", "t", "u", "v"),
    ),
    "written_in_order": SqlCase(
        (
            "CREATE TABLE {ns}.t (c1 int, c2 string, `c.3` string) USING iceberg "
            "PARTITIONED BY (`c.3`) TBLPROPERTIES ('write.distribution-mode' = 'range')",
            "INSERT INTO {ns}.t VALUES (1, null, 'A'), (2, 'x', 'B'), (3, 'y', 'A'), (4, 'z', 'C')",
            "ALTER TABLE {ns}.t WRITE ORDERED BY `c.3`, c2",
            "INSERT INTO {ns}.t VALUES (5, 'w', 'A'), (6, 'v', 'B')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.distribution-mode' = 'hash')",
            "INSERT INTO {ns}.t VALUES (7, 'w', 'A'), (8, 'v', 'C')",
            "SELECT partition, sort_order_id, record_count FROM {ns}.t.files",
            _ALL,
            "CREATE TABLE {ns}.u (c1 int, `c``3` string) USING iceberg "
            "PARTITIONED BY (bucket(2, c1), `c``3`)",
            "INSERT INTO {ns}.u VALUES (1, 'A'), (2, 'B'), (3, 'A')",
            "SELECT * FROM {ns}.u WHERE `c``3` = 'A'",
            "CREATE TABLE {ns}.v (n decimal(20, 2), s string, b binary, l bigint) USING iceberg "
            "PARTITIONED BY (bucket(2, n), bucket(2, s), bucket(2, b), truncate(2, l))",
            "INSERT INTO {ns}.v VALUES (20.5, 'randomvalue', X'11', 7), "
            "(30.25, 'other', X'22', 8), (-4, null, null, -7)",
            "SELECT partition FROM {ns}.v.files",
        ),
        ("t", "u", "v"),
    ),
    "default_keywords": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, data string, n int) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, DEFAULT, DEFAULT), (2, 'x', 3)",
            "INSERT INTO {ns}.t (n, id) VALUES (DEFAULT, 4)",
            _ALL,
            "ALTER TABLE {ns}.t ADD COLUMN more string DEFAULT 'default-value'",
            "UPDATE {ns}.t SET data = DEFAULT WHERE id = 2",
            _ALL,
        )
    ),
}
