"""Scripts of DELETE and UPDATE, for the statements of Java Iceberg's own tests."""

from __future__ import annotations

from sql_cases import SqlCase

_ALL = "SELECT * FROM {ns}.t"
_ROWS = "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hardware'), (null, 'hr')"
_BY_DEP = "PARTITIONED BY (dep)"
_IDS = "CREATE OR REPLACE TEMPORARY VIEW {case}_ids AS SELECT * FROM VALUES %s AS v(value)"
_DEPS = "CREATE OR REPLACE TEMPORARY VIEW {case}_deps AS SELECT * FROM VALUES %s AS v(value)"
# How rows are changed: by rewritten files, position deletes or deletion vectors.
_COW, _MOR, _DV = ("copy-on-write", 2), ("merge-on-read", 2), ("merge-on-read", 3)


def _table(
    mode: tuple[str, int], clauses: str = "", columns: str = "id int, dep string", more: str = ""
) -> str:
    modes = ", ".join(f"'write.{verb}.mode' = '{mode[0]}'" for verb in ("delete", "update"))
    return (
        f"CREATE TABLE {{ns}}.t ({columns}) USING iceberg {clauses} "
        f"TBLPROPERTIES ('format-version' = '{mode[1]}', {modes}{more})"
    )


def _positions_kept(mode: tuple[str, int], clauses: str, granularity: str) -> SqlCase:
    return SqlCase(
        (
            _table(
                mode,
                clauses,
                "id int, data string",
                f", 'write.delete.granularity' = '{granularity}'",
            ),
            "INSERT INTO {ns}.t VALUES (1, 'a'), (1, 'b'), (1, 'c'), (2, 'd'), (2, 'e')",
            "INSERT INTO {ns}.t VALUES (1, 'f'), (3, 'g')",
            "DELETE FROM {ns}.t WHERE id = 1 AND data = 'a'",
            "DELETE FROM {ns}.t WHERE id = 2 AND data = 'd'",
            "DELETE FROM {ns}.t WHERE id = 1 AND data IN ('c', 'f')",
            _ALL,
            "UPDATE {ns}.t SET id = id - 1 WHERE id = 1 OR id = 3",
            "UPDATE {ns}.t SET id = id + 1 WHERE data = 'e'",
            _ALL,
            "SELECT content, record_count FROM {ns}.t.delete_files",
            "SELECT max(id), min(id), count(id) FROM {ns}.t",
        )
    )


CASES: dict[str, SqlCase] = {
    "deletes_of_partitions": SqlCase(
        (
            _table(_MOR, _BY_DEP),
            "DELETE FROM {ns}.t WHERE id IN (1)",
            "DELETE FROM {ns}.t WHERE dep = 'hr'",
            _ROWS,
            "INSERT INTO {ns}.t VALUES (3, 'hr'), (2, 'it')",
            "DELETE FROM {ns}.t WHERE id = 1 AND id > 20",
            "DELETE FROM {ns}.t AS t WHERE t.id > 10",
            "DELETE FROM {ns}.t AS t WHERE t.id IS NULL",
            "DELETE FROM {ns}.t AS t WHERE t.id = 1",
            _ALL,
            "SELECT partition, record_count, file_count FROM {ns}.t.partitions",
            "DELETE FROM {ns}.t WHERE dep = 'hr'",
            "DELETE FROM {ns}.t WHERE id = 10 OR dep LIKE '%ware'",
            "SELECT partition, record_count FROM {ns}.t.partitions",
            _ALL,
        )
    ),
    "deletes_by_ranges_of_partitions": SqlCase(
        (
            _table(_COW, _BY_DEP),
            "INSERT INTO {ns}.t VALUES (1, 'dep1'), (2, 'dep2'), (null, 'dep3'), (4, 'dep2')",
            "DELETE FROM {ns}.t WHERE id = 4",
            "DELETE FROM {ns}.t WHERE dep > 'dep2' OR dep = CAST(4 AS STRING) OR dep = 'dep2'",
            _ALL,
            "DELETE FROM {ns}.t",
            _ALL,
        )
    ),
    "deletes_by_constants": SqlCase(
        (
            _table(_COW),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hardware')",
            "DELETE FROM {ns}.t WHERE false",
            "DELETE FROM {ns}.t WHERE 50 <> 50",
            "DELETE FROM {ns}.t WHERE 1 > null",
            "DELETE FROM {ns}.t WHERE id = 1 AND rand() > 0.5",
            _ALL,
            "DELETE FROM {ns}.t WHERE 21 = 21",
            _ALL,
        )
    ),
    "deletes_by_nulls": SqlCase(
        (
            _table(_DV),
            "INSERT INTO {ns}.t VALUES (0, null), (1, 'hr'), (2, 'hardware'), (null, 'hr')",
            "DELETE FROM {ns}.t WHERE dep = null",
            "DELETE FROM {ns}.t WHERE dep = 'software'",
            "DELETE FROM {ns}.t WHERE dep <=> NULL",
            _ALL,
            "DELETE FROM {ns}.t WHERE id IN (1, null)",
            _ALL,
            "DELETE FROM {ns}.t WHERE id NOT IN (null, 1)",
            "DELETE FROM {ns}.t WHERE id NOT IN (1, 10)",
            _ALL,
        )
    ),
    "deletes_by_fields": SqlCase(
        (
            _table(_COW, columns="id int, complex struct<c1: int, c2: string>"),
            "INSERT INTO {ns}.t VALUES (1, named_struct('c1', 3, 'c2', 'v1')), "
            "(2, named_struct('c1', 2, 'c2', 'v2')), (3, named_struct('c1', 7, 'c2', 'v3'))",
            "DELETE FROM {ns}.t WHERE complex.c1 > 8",
            "DELETE FROM {ns}.t WHERE complex.c1 = id + 2",
            "SELECT id FROM {ns}.t",
            "DELETE FROM {ns}.t t WHERE t.complex.c1 = id",
            "DELETE FROM {ns}.t WHERE complex.c2 = 'v3'",
            "SELECT id FROM {ns}.t",
        )
    ),
    "deletes_by_subqueries": SqlCase(
        (
            _table(_MOR),
            _ROWS,
            _IDS % "(0), (1), (null)",
            _DEPS % "('software'), ('hr')",
            "DELETE FROM {ns}.t WHERE id IN (SELECT * FROM {case}_ids) "
            "AND dep IN (SELECT * FROM {case}_deps)",
            _ALL,
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (-1, 'hr'), (2, 'hr')",
            "DELETE FROM {ns}.t WHERE id IS NULL OR id IN (SELECT value + 2 FROM {case}_ids)",
            _ALL,
            "INSERT INTO {ns}.t VALUES (null, 'hr'), (2, 'hr'), (2, 'hardware')",
            "DELETE FROM {ns}.t WHERE id IN (SELECT value + 2 FROM {case}_ids) AND dep = 'hr'",
            _ALL,
            "DELETE FROM {ns}.t WHERE (id, dep) IN (SELECT * FROM VALUES (2, 'hardware'), "
            "(null, 'hr') AS v(id, dep))",
            _ALL,
            "DELETE FROM {ns}.t t WHERE id <= (SELECT min(value) FROM {case}_ids)",
            _ALL,
        )
    ),
    "deletes_by_absence": SqlCase(
        (
            _table(_DV),
            _ROWS,
            _IDS % "(-1), (-2), (null)",
            _DEPS % "('software'), ('hr')",
            "DELETE FROM {ns}.t WHERE id NOT IN (SELECT * FROM {case}_ids)",
            _ALL,
            "DELETE FROM {ns}.t WHERE id NOT IN (SELECT * FROM {case}_ids WHERE value IS NOT NULL)",
            _ALL,
            _ROWS,
            "DELETE FROM {ns}.t WHERE id NOT IN (SELECT * FROM {case}_ids) "
            "OR dep IN ('software', 'hr')",
            _ALL,
            _ROWS,
            "DELETE FROM {ns}.t t WHERE id NOT IN (SELECT * FROM {case}_ids WHERE value IS NOT "
            "NULL) AND EXISTS (SELECT 1 FROM {case}_deps d WHERE t.dep = d.value)",
            _ALL,
            "DELETE FROM {ns}.t t WHERE id NOT IN (SELECT * FROM {case}_ids WHERE value IS NOT "
            "NULL) OR EXISTS (SELECT 1 FROM {case}_deps d WHERE t.dep = d.value)",
            _ALL,
        )
    ),
    "deletes_by_existence": SqlCase(
        (
            _table(_COW),
            _ROWS,
            _IDS % "(-1), (-2), (null)",
            _DEPS % "('software'), ('hr')",
            "DELETE FROM {ns}.t t WHERE EXISTS (SELECT 1 FROM {case}_ids d WHERE t.id = d.value)",
            _ALL,
            "DELETE FROM {ns}.t t WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids d WHERE t.id = d.value + 2)",
            _ALL,
            "DELETE FROM {ns}.t t WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids d WHERE t.id = d.value) OR t.id IS NULL",
            _ALL,
            _ROWS,
            "DELETE FROM {ns}.t t WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids i WHERE t.id = i.value + 2) "
            "AND EXISTS (SELECT 1 FROM {case}_deps d WHERE t.dep = d.value)",
            _ALL,
            "DELETE FROM {ns}.t t WHERE NOT EXISTS "
            "(SELECT 1 FROM {case}_ids i WHERE t.id = i.value + 2) "
            "AND NOT EXISTS (SELECT 1 FROM {case}_deps d WHERE t.dep = d.value)",
            _ALL,
            "DELETE FROM {ns}.t t WHERE NOT EXISTS "
            "(SELECT 1 FROM {case}_ids d WHERE t.id = d.value + 2) OR t.id = 1",
            _ALL,
        )
    ),
    "deletes_across_specs": SqlCase(
        (
            _table(_MOR, columns="id int, dep string, category string"),
            "INSERT INTO {ns}.t VALUES (1, 'hr', 'c1')",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD dep",
            "INSERT INTO {ns}.t VALUES (2, 'hr', 'c1'), (3, 'hr', 'c1')",
            "ALTER TABLE {ns}.t ADD PARTITION FIELD category",
            "INSERT INTO {ns}.t VALUES (5, 'hr', 'c1')",
            "ALTER TABLE {ns}.t DROP PARTITION FIELD category",
            "INSERT INTO {ns}.t VALUES (7, 'hr', 'c1'), (8, 'hr', 'c1')",
            "DELETE FROM {ns}.t WHERE id IN (1, 3, 5, 7)",
            _ALL,
        )
    ),
    "deletes_that_group": SqlCase(
        (
            _table(_MOR, _BY_DEP),
            "INSERT INTO {ns}.t VALUES (0, 'hr'), (1, 'hr'), (2, 'hr'), (1, 'it')",
            "INSERT INTO {ns}.t VALUES (0, 'ops'), (1, 'ops'), (2, 'ops')",
            _IDS % "(1), (100)",
            "DELETE FROM {ns}.t t WHERE id IN (SELECT * FROM {case}_ids)",
            _ALL,
            "UPDATE {ns}.t t SET id = -1 WHERE id IN (SELECT value + 1 FROM {case}_ids)",
            _ALL,
        )
    ),
    "deletes_of_small_row_groups": SqlCase(
        (
            _table(
                _COW,
                _BY_DEP,
                more=", 'write.parquet.row-group-size-bytes' = '100'"
                ", 'read.split.target-size' = '100'",
            ),
            "INSERT INTO {ns}.t SELECT CAST(id AS int), 'hr' FROM range(201)",
            "DELETE FROM {ns}.t WHERE id IN (200, 201)",
            "UPDATE {ns}.t SET id = -1 WHERE id IN (199, 201)",
            "SELECT count(*), min(id), max(id) FROM {ns}.t",
        )
    ),
    "deletes_of_other_tables": SqlCase(
        (
            "CREATE OR REPLACE TEMPORARY VIEW {case}_view AS SELECT 1 AS c1, 2 AS c2",
            "DELETE FROM {case}_view WHERE c1 = -100",
            "UPDATE {case}_view SET c1 = -1 WHERE c2 = 1",
            _table(_COW),
            "DELETE FROM {ns}.t.branch_missing WHERE id IN (1)",
            "UPDATE {ns}.t.branch_missing SET id = 1",
            "INSERT INTO {ns}.t.branch_missing VALUES (4, 'd')",
            _ROWS,
            "DELETE FROM {ns}.t.snapshot_id_{id:0} WHERE id < 4",
            "DELETE FROM {ns}.t.at_timestamp_{ms:0} WHERE id < 4",
            "INSERT INTO {ns}.t.snapshot_id_{id:0} VALUES (4, 'd')",
            "INSERT OVERWRITE {ns}.t.snapshot_id_{id:0} VALUES (4, 'd')",
            "INSERT INTO {ns}.t.at_timestamp_{ms:0} VALUES (4, 'd')",
            "DELETE FROM {ns}.t.tag_missing WHERE id < 4",
        )
    ),
    "deletes_seen_by_caches": SqlCase(
        (
            _table(_COW, _BY_DEP),
            _ROWS,
            "CREATE OR REPLACE TEMPORARY VIEW {case}_view AS SELECT * FROM {ns}.t WHERE id = 1",
            "CACHE TABLE {case}_view",
            "SELECT * FROM {case}_view",
            "UPDATE {ns}.t SET dep = 'it' WHERE id = 1",
            "SELECT * FROM {case}_view",
            "DELETE FROM {ns}.t WHERE id = 1",
            "SELECT * FROM {case}_view",
            "UNCACHE TABLE {case}_view",
        )
    ),
    "deletes_on_branches": SqlCase(
        (
            _table(_MOR, _BY_DEP),
            _ROWS,
            "ALTER TABLE {ns}.t CREATE BRANCH b",
            "DELETE FROM {ns}.t.branch_b WHERE id = 1",
            "UPDATE {ns}.t.branch_b SET id = 7 WHERE id IS NULL",
            "DELETE FROM {ns}.t.branch_b WHERE dep = 'hardware'",
            "SELECT * FROM {ns}.t.branch_b",
            _ALL,
            "INSERT OVERWRITE {ns}.t.branch_b VALUES (9, 'z')",
            "SELECT * FROM {ns}.t VERSION AS OF 'b'",
        )
    ),
    "audited_rows": SqlCase(
        (
            _table(_COW, _BY_DEP, more=", 'write.wap.enabled' = 'true'"),
            "INSERT INTO {ns}.t VALUES (0, 'hr'), (1, 'hr'), (2, 'it')",
            "ALTER TABLE {ns}.t CREATE BRANCH other",
            "SET spark.wap.branch=audit",
            "DELETE FROM {ns}.t WHERE id = 0",
            _ALL,
            "SELECT * FROM {ns}.t.branch_main",
            "SELECT * FROM {ns}.t.branch_audit",
            "DELETE FROM {ns}.t WHERE dep = 'it'",
            "UPDATE {ns}.t SET id = 5 WHERE id = 1",
            "INSERT INTO {ns}.t VALUES (6, 'ops')",
            _ALL,
            "INSERT INTO {ns}.t.branch_other VALUES (7, 'ops')",
            "SELECT * FROM {ns}.t.branch_other",
            "DELETE FROM {ns}.t.branch_other WHERE id = 0",
            "DELETE FROM {ns}.t",
            _ALL,
            "SELECT * FROM {ns}.t VERSION AS OF 'main'",
            "SET spark.wap.id=audit1",
            "INSERT INTO {ns}.t VALUES (8, 'ops')",
            "RESET spark.wap.id",
            "RESET spark.wap.branch",
            _ALL,
        )
    ),
    "staged_rows": SqlCase(
        (
            _table(_COW, more=", 'write.wap.enabled' = 'true'"),
            _ROWS,
            "SET spark.wap.id=staged1",
            "INSERT INTO {ns}.t VALUES (9, 'z')",
            _ALL,
            "RESET spark.wap.id",
            "CALL lake.system.publish_changes('{case}.t', 'staged1')",
            _ALL,
            "CALL lake.system.publish_changes('{case}.t', 'missing')",
            "CALL lake.system.publish_changes('{case}.t')",
            "CALL lake.system.publish_changes(wap_id => 'staged1', table => '')",
            "CALL lake.system.publish_changes('{case}.t', 'staged1')",
        )
    ),
    "positions_kept": _positions_kept(_MOR, "", "file"),
    "positions_kept_by_partition": _positions_kept(_MOR, "PARTITIONED BY (id)", "partition"),
    "vectors_kept": _positions_kept(_DV, "PARTITIONED BY (id)", "file"),
    "positions_before_vectors": SqlCase(
        (
            _table(_MOR, more=", 'write.delete.granularity' = 'partition'"),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hr'), (3, 'hr')",
            "INSERT INTO {ns}.t VALUES (4, 'hr'), (5, 'hr'), (6, 'hr')",
            "DELETE FROM {ns}.t WHERE id = 1 OR id = 4",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.delete.granularity' = 'file')",
            "DELETE FROM {ns}.t WHERE id = 5",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '3')",
            "UPDATE {ns}.t SET id = id + 1 WHERE id = 6",
            "DELETE FROM {ns}.t WHERE id = 2",
            _ALL,
            "TRUNCATE TABLE {ns}.t",
            _ALL,
        )
    ),
    "truncates": SqlCase(
        (
            _table(_DV, columns="id bigint NOT NULL, data string"),
            "INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "DELETE FROM {ns}.t WHERE id = 1",
            "DELETE FROM {ns}.t WHERE id = 2",
            _ALL,
            "TRUNCATE TABLE {ns}.t",
            _ALL,
            "TRUNCATE TABLE {ns}.missing",
        )
    ),
    "deletes_by_binaries": SqlCase(
        (
            _table(_COW, "PARTITIONED BY (data)", "id bigint NOT NULL, data binary"),
            "INSERT INTO {ns}.t VALUES (1, X'e3bcd1'), (2, X'bcd1')",
            "DELETE FROM {ns}.t WHERE data = X'bcd1'",
            "SELECT * FROM {ns}.t WHERE data = X'e3bcd1'",
        )
    ),
    "deletes_by_truncated_numbers": SqlCase(
        (
            _table(_COW, "PARTITIONED BY (truncate(id, 2))", "id bigint NOT NULL, data string"),
            "INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "DELETE FROM {ns}.t WHERE id > 2",
            "DELETE FROM {ns}.t WHERE id < 2",
            _ALL,
        )
    ),
    "updates": SqlCase(
        (
            _table(_MOR, _BY_DEP),
            "UPDATE {ns}.t SET dep = 'invalid' WHERE id IN (1)",
            "UPDATE {ns}.t SET id = -1 WHERE dep = 'hr'",
            _ROWS,
            "UPDATE {ns}.t SET id = -1 WHERE id > 10",
            "UPDATE {ns}.t SET id = cast('-1' AS int) WHERE id = 2",
            "UPDATE {ns}.t t SET `t`.`id` = -2 WHERE t.dep LIKE '%r'",
            _ALL,
            "UPDATE {ns}.t SET id = -3 WHERE dep IN ('hardware') AND id == -1",
            "UPDATE {ns}.t AS t SET t.dep = 'changed'",
            _ALL,
            "UPDATE {ns}.t SET id = -1 WHERE id = 1 AND rand() > 0.5",
            "UPDATE {ns}.t SET nothing = 1",
        )
    ),
    "updates_of_several": SqlCase(
        (
            _table(_COW, "PARTITIONED BY (bucket(8, c2))", "id int, c1 int, c2 int, s string"),
            "INSERT INTO {ns}.t VALUES (1, 11, 111, 'a'), (2, 22, 222, 'b'), (3, 33, 333, 'c')",
            "UPDATE {ns}.t SET `c2` = c2 - 2, c1 = `c1` - 1 WHERE id <=> 1",
            _ALL,
            "UPDATE {ns}.t SET s = -1 WHERE id = 1",
            "ALTER TABLE {ns}.t WRITE ORDERED BY c1",
            "UPDATE {ns}.t SET c1 = -22 WHERE id NOT IN (1, 3)",
            "ALTER TABLE {ns}.t WRITE LOCALLY ORDERED BY id",
            "UPDATE {ns}.t SET c1 = -33 WHERE id = 3",
            "ALTER TABLE {ns}.t WRITE DISTRIBUTED BY PARTITION ORDERED BY id",
            "UPDATE {ns}.t SET c2 = -11 WHERE id = 1",
            _ALL,
            "SELECT DISTINCT sort_order_id FROM {ns}.t.files",
        )
    ),
    "updates_by_nulls": SqlCase(
        (
            _table(_DV),
            "INSERT INTO {ns}.t VALUES (0, null), (1, 'hr'), (2, 'hardware'), (null, 'hr')",
            "UPDATE {ns}.t SET id = -1 WHERE dep = NULL",
            "UPDATE {ns}.t SET id = -1 WHERE dep = 'software'",
            "UPDATE {ns}.t SET dep = 'invalid', id = -1 WHERE dep <=> NULL",
            _ALL,
            "UPDATE {ns}.t SET id = -1 WHERE id IN (1, null)",
            "UPDATE {ns}.t SET id = 100 WHERE id NOT IN (null, 1)",
            _ALL,
            "UPDATE {ns}.t SET id = 100 WHERE id NOT IN (1, 10)",
            _ALL,
        )
    ),
    "updates_of_fields": SqlCase(
        (
            _table(
                _COW,
                columns="id int, "
                "s struct<c1: int, c2: struct<a: array<int>, m: map<string, string>>>",
            ),
            "INSERT INTO {ns}.t VALUES (1, named_struct('c1', 2, 'c2', "
            "named_struct('a', array(1, 2), 'm', map('a', 'b')))), (2, null)",
            "UPDATE {ns}.t SET s.c1 = -1, s.c2.m = map('k', 'v'), s.c2.a = array(-1)",
            _ALL,
            "UPDATE {ns}.t SET s.c1 = NULL, s.c2 = NULL WHERE id IN (1)",
            _ALL,
            "UPDATE {ns}.t SET s = named_struct('c1', 1, 'c2', "
            "named_struct('a', array(1), 'm', null))",
            _ALL,
        )
    ),
    "updates_by_subqueries": SqlCase(
        (
            _table(_MOR),
            _ROWS,
            _IDS % "(0), (1), (null)",
            _DEPS % "('software'), ('hr')",
            "UPDATE {ns}.t SET id = -1 WHERE id IN (SELECT * FROM {case}_ids) "
            "AND dep IN (SELECT * FROM {case}_deps)",
            _ALL,
            "UPDATE {ns}.t SET id = 5 WHERE id IS NULL OR id IN (SELECT value + 1 FROM {case}_ids)",
            _ALL,
            "INSERT INTO {ns}.t VALUES (null, 'hr'), (2, 'hr')",
            "UPDATE {ns}.t SET id = 10 WHERE id IN (SELECT value + 2 FROM {case}_ids) "
            "AND dep = 'hr'",
            "UPDATE {ns}.t SET dep = 'x', id = -1 WHERE (id, dep) IN "
            "(SELECT * FROM VALUES (2, 'hardware'), (null, 'hr') AS v(id, dep))",
            _ALL,
            "UPDATE {ns}.t SET id = -7 WHERE id <= (SELECT min(value) FROM {case}_ids)",
            _ALL,
        )
    ),
    "updates_by_absence": SqlCase(
        (
            _table(_COW),
            _ROWS,
            _IDS % "(-1), (-2), (null)",
            _DEPS % "('hr'), (null)",
            "UPDATE {ns}.t SET id = -1 WHERE id NOT IN (SELECT * FROM {case}_ids)",
            "UPDATE {ns}.t SET id = -1 WHERE id NOT IN "
            "(SELECT * FROM {case}_ids WHERE value IS NOT NULL)",
            _ALL,
            "UPDATE {ns}.t SET id = 5 WHERE id NOT IN (SELECT * FROM {case}_ids) "
            "OR dep IN ('software', 'hr')",
            _ALL,
            "UPDATE {ns}.t t SET id = 6 WHERE NOT EXISTS "
            "(SELECT 1 FROM {case}_ids u WHERE t.id = u.value + 6)",
            "UPDATE {ns}.t t SET id = 7 WHERE NOT EXISTS "
            "(SELECT 1 FROM {case}_ids u WHERE t.id = u.value) OR t.id = 1",
            _ALL,
            "UPDATE {ns}.t t SET id = 10 WHERE NOT EXISTS "
            "(SELECT 1 FROM {case}_ids i WHERE t.id = i.value) "
            "AND EXISTS (SELECT 1 FROM {case}_deps d WHERE t.dep = d.value)",
            _ALL,
        )
    ),
    "updates_by_existence": SqlCase(
        (
            _table(_DV),
            _ROWS,
            _IDS % "(-1), (-2), (null)",
            _DEPS % "('hr'), (null)",
            "UPDATE {ns}.t t SET id = -1 WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids u WHERE t.id = u.value)",
            "UPDATE {ns}.t t SET dep = 'x', id = -1 WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids u WHERE t.id = u.value + 2)",
            _ALL,
            "UPDATE {ns}.t t SET id = -2 WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids u WHERE t.id = u.value) OR t.id IS NULL",
            _ALL,
            "UPDATE {ns}.t t SET id = 1 WHERE EXISTS "
            "(SELECT 1 FROM {case}_ids i WHERE t.id = i.value) "
            "AND EXISTS (SELECT 1 FROM {case}_deps d WHERE t.dep = d.value)",
            _ALL,
        )
    ),
    "updates_by_themselves": SqlCase(
        (
            _table(_COW),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hr')",
            "UPDATE {ns}.t SET dep = 'x' WHERE id IN (SELECT id + 1 FROM {ns}.t)",
            _ALL,
            "UPDATE {ns}.t SET dep = 'y' WHERE id = "
            "(SELECT count(*) FROM (SELECT DISTINCT id FROM {ns}.t) AS t)",
            _ALL,
            "UPDATE {ns}.t SET id = (SELECT id - 2 FROM {ns}.t WHERE id = 1)",
            _ALL,
        )
    ),
    "updates_that_are_wrong": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int NOT NULL, a array<struct<c1: int, c2: int>>, "
            "m map<string, string>, s struct<n1: int NOT NULL, n2: struct<dn1: int, dn2: int>> "
            "NOT NULL) USING iceberg",
            "INSERT INTO {ns}.t VALUES (0, null, null, "
            "named_struct('n1', 1, 'n2', named_struct('dn1', 3, 'dn2', 4)))",
            "UPDATE {ns}.t SET a.c1 = 1",
            "UPDATE {ns}.t SET m.key = 'new_key'",
            "UPDATE {ns}.t t SET t.id = 1, t.s.n1 = 2, t.id = 2",
            "UPDATE {ns}.t t SET t.s.n1 = 1, t.id = 2, t.s.n1 = 2",
            "UPDATE {ns}.t SET s.n1 = 1, s = named_struct('n1', 1, 'n2', "
            "named_struct('dn1', 1, 'dn2', 2))",
            "UPDATE {ns}.t t SET t.id = NULL",
            "UPDATE {ns}.t t SET t.s.n1 = NULL",
            "UPDATE {ns}.t t SET t.s = named_struct('n1', 1)",
            "UPDATE {ns}.t t SET t.s.n1 = 'str'",
            "UPDATE {ns}.t t SET t.s.n2 = named_struct('dn3', 1, 'dn1', 2)",
            "SET spark.sql.storeAssignmentPolicy=strict",
            "UPDATE {ns}.t t SET t.id = NULL",
            "UPDATE {ns}.t t SET t.s.n1 = NULL",
            "UPDATE {ns}.t t SET t.s = named_struct('n1', 1)",
            "UPDATE {ns}.t t SET t.s.n1 = 'str'",
            "UPDATE {ns}.t t SET t.s.n2 = named_struct('dn3', 1, 'dn1', 2)",
            "RESET spark.sql.storeAssignmentPolicy",
            _ALL,
        )
    ),
    "sorted_row_changes": SqlCase(
        (
            _table(_MOR, _BY_DEP),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hr')",
            "ALTER TABLE {ns}.t WRITE ORDERED BY id",
            "UPDATE {ns}.t SET id = id + 10 WHERE id = 1",
            "SELECT content, sort_order_id, record_count FROM {ns}.t.files",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')",
            "DELETE FROM {ns}.t WHERE id = 2",
            "SELECT content, sort_order_id, record_count FROM {ns}.t.files",
            "INSERT INTO {ns}.t VALUES (3, 'hr')",
            "SELECT content, sort_order_id, record_count FROM {ns}.t.files",
        )
    ),
}
