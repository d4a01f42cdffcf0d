"""Scripts of MERGE, for the statements of Java Iceberg's own tests."""

from __future__ import annotations

from sql_cases import SqlCase

_ALL = "SELECT * FROM {ns}.t"
_MERGE = "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.id "
_THREE = (
    "WHEN MATCHED AND t.id = 1 THEN UPDATE SET * WHEN MATCHED AND t.id = 6 THEN DELETE "
    "WHEN NOT MATCHED AND s.id = 2 THEN INSERT *"
)
_ROWS = "INSERT INTO {ns}.t VALUES (1, 'one'), (6, 'six')"
# How rows are changed: by rewritten files, position deletes or deletion vectors.
_COW, _MOR, _DV = ("copy-on-write", 2), ("merge-on-read", 2), ("merge-on-read", 3)


def _table(
    mode: tuple[str, int], clauses: str = "", columns: str = "id int, dep string", more: str = ""
) -> str:
    return (
        f"CREATE TABLE {{ns}}.t ({columns}) USING iceberg {clauses} TBLPROPERTIES "
        f"('format-version' = '{mode[1]}', 'write.merge.mode' = '{mode[0]}'{more})"
    )


def _source(rows: str, columns: str = "id, dep") -> str:
    return (
        "CREATE OR REPLACE TEMPORARY VIEW {case}_source AS "
        f"SELECT * FROM VALUES {rows} AS v({columns})"
    )


_SOURCE = _source("(2, 'emp-2'), (1, 'emp-1'), (6, 'emp-6')")
_TWICE = _source("(1, 'emp-1'), (1, 'emp-1'), (2, 'emp-2'), (6, 'emp-6')")


def _three(mode: tuple[str, int], *changes: str, more: str = "") -> SqlCase:
    altered = (f"ALTER TABLE {{ns}}.t {change}" for change in changes)
    return SqlCase((_table(mode, more=more), *altered, _ROWS, _SOURCE, f"{_MERGE}{_THREE}", _ALL))


CASES: dict[str, SqlCase] = {
    "merges_of_all_clauses": SqlCase(
        (
            _table(_MOR),
            "INSERT INTO {ns}.t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')",
            _source("(1, 'emp-1'), (2, 'emp-2'), (5, 'emp-5')"),
            f"{_MERGE}WHEN MATCHED AND t.id = 1 THEN UPDATE SET * "
            "WHEN MATCHED AND t.id = 2 THEN DELETE WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET dep = 'invalid' "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE",
            _ALL,
            f"{_MERGE}WHEN NOT MATCHED BY SOURCE THEN DELETE",
            _ALL,
        )
    ),
    "merges_not_matched_by_source": SqlCase(
        (
            _table(_COW, "PARTITIONED BY (dep)"),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hr'), (3, 'support')",
            _source("(1, 'x'), (2, 'y')"),
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.id AND t.dep = 'hr' "
            "WHEN MATCHED THEN UPDATE SET dep = 'support' "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET dep = 'invalid'",
            _ALL,
        )
    ),
    "merges_of_parts_of_conditions": SqlCase(
        (
            _table(_COW, "PARTITIONED BY (dep, sub)", "id int, salary int, dep string, sub string"),
            "INSERT INTO {ns}.t VALUES (1, 100, 'd1', 'sd1'), (6, 600, 'd6', 'sd6'), "
            "(2, 7, 'd2', 'sd3')",
            _source(
                "(1, 101, 'd1', 'sd1'), (2, 200, 'd2', 'sd2'), (3, 300, 'd3', 'sd3')",
                "id, salary, dep, sub",
            ),
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.id AND "
            "((t.dep = 'd1' AND t.sub IN ('sd1', 'sd3')) OR (t.dep = 'd6' AND t.sub IN "
            "('sd2', 'sd6'))) WHEN MATCHED THEN UPDATE SET salary = s.salary "
            "WHEN NOT MATCHED THEN INSERT *",
            _ALL,
        )
    ),
    "merges_by_partitions": SqlCase(
        (
            _table(_MOR, columns="id bigint, dep string"),
            "ALTER TABLE {ns}.t ADD PARTITION FIELD dep",
            "INSERT INTO {ns}.t VALUES (1, 'software')",
            "INSERT INTO {ns}.t VALUES (1, 'hr')",
            _source("(1, 'finance'), (2, 'hardware')"),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id AND t.dep IN ('software') "
            "AND s.id < 10 WHEN MATCHED AND s.id = 1 THEN UPDATE SET dep = s.dep "
            "WHEN NOT MATCHED THEN INSERT (dep, id) VALUES (s.dep, s.id)",
            _ALL,
        )
    ),
    "merges_into_nothing": SqlCase(
        (
            _table(_DV),
            _source("(1, 'emp-1'), (2, 'emp-2'), (3, 'emp-3')"),
            f"{_MERGE}WHEN NOT MATCHED AND (s.id >= 2) THEN INSERT *",
            _ALL,
            f"{_MERGE}WHEN NOT MATCHED THEN INSERT *",
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON 1 != 1 "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            _ALL,
            "MERGE INTO {ns}.t AS t USING (SELECT CAST(id AS int) AS id, 'r' AS dep "
            "FROM range(0, 5)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
            "MERGE INTO {ns}.t.branch_missing AS t USING {case}_source AS s ON t.id == s.id "
            "WHEN NOT MATCHED THEN INSERT *",
        )
    ),
    "merges_that_update": SqlCase(
        (
            _table(_MOR),
            "INSERT INTO {ns}.t VALUES (1, 'one'), (6, 'six'), (null, 'none')",
            _SOURCE,
            f"{_MERGE}WHEN MATCHED AND t.id = 1 THEN UPDATE SET *",
            _ALL,
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.id AND t.id < 3 "
            "WHEN MATCHED THEN UPDATE SET dep = 'less'",
            _ALL,
            f"{_MERGE}WHEN MATCHED AND t.id = 6 THEN DELETE",
            _ALL,
        )
    ),
    "merges_beside_nulls": SqlCase(
        (
            _table(_COW, columns="id int, value int"),
            "INSERT INTO {ns}.t VALUES (1, 2), (6, null), (7, null)",
            _source("(1, 100), (7, 5)", "id, value"),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id "
            "WHEN MATCHED AND t.id = 1 THEN UPDATE SET id = 123, value = 456",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id "
            "WHEN MATCHED THEN UPDATE SET id = 124",
            _ALL,
            _source("(124, 100)", "id, value"),
            f"{_MERGE}WHEN MATCHED THEN DELETE",
            _ALL,
        )
    ),
    "merges_of_named_columns": SqlCase(
        (
            _table(_DV),
            _ROWS,
            _SOURCE,
            f"{_MERGE}WHEN MATCHED AND t.id = 1 THEN UPDATE SET t.id = s.id, t.dep = s.dep "
            "WHEN MATCHED AND t.id = 6 THEN DELETE "
            "WHEN NOT MATCHED AND s.id = 2 THEN INSERT (t.id, t.dep) VALUES (s.id, s.dep)",
            _ALL,
        )
    ),
    "merges_from_queries": SqlCase(
        (
            _table(_COW),
            "INSERT INTO {ns}.t VALUES (2, 'two'), (6, 'six')",
            _source("(2, 'emp-3'), (1, 'emp-2'), (5, 'emp-6')"),
            "WITH cte1 AS (SELECT id + 1 AS id, dep FROM {case}_source) "
            "MERGE INTO {ns}.t AS t USING cte1 AS s ON t.id == s.id "
            "WHEN MATCHED AND t.id = 2 THEN UPDATE SET * WHEN MATCHED AND t.id = 6 THEN DELETE "
            "WHEN NOT MATCHED AND s.id = 3 THEN INSERT *",
            _ALL,
            "MERGE INTO {ns}.t AS t USING (SELECT * FROM {case}_source WHERE id = 2 UNION ALL "
            "SELECT * FROM {case}_source WHERE id = 1 OR id = 5) AS s ON t.id == s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.id = 5 THEN INSERT *",
            _ALL,
        )
    ),
    "merges_beside_doubled_rows": SqlCase(
        (
            _table(_COW),
            _ROWS,
            _source("(1, 'on'), (1, 'off'), (6, 'on')", "id, state"),
            f"{_MERGE}WHEN MATCHED AND t.id = 6 THEN DELETE",
        ),
        (),
        {3: "rows that no clause changes may match several rows of the source here"},
    ),
    "merges_of_doubled_rows": SqlCase(
        (
            _table(_COW),
            _ROWS,
            _TWICE,
            f"{_MERGE}{_THREE}",
            f"{_MERGE}WHEN MATCHED AND t.id = 1 THEN DELETE "
            "WHEN NOT MATCHED AND s.id = 2 THEN INSERT *",
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id > s.id "
            "WHEN MATCHED AND t.id = 6 THEN UPDATE SET id = 10",
            _ALL,
            f"{_MERGE}WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.id = 2 THEN INSERT *",
            _ALL,
        )
    ),
    "merges_of_doubled_rows_by_positions": SqlCase(
        (
            _table(_MOR),
            _ROWS,
            "CREATE OR REPLACE TEMPORARY VIEW {case}_source AS SELECT CAST(v.id AS int) AS id, "
            "'r' AS dep FROM range(100) v UNION ALL SELECT 1, 's'",
            f"{_MERGE}WHEN MATCHED AND t.id = 1 THEN UPDATE SET id = 10 "
            "WHEN MATCHED AND t.id = 6 THEN DELETE "
            "WHEN NOT MATCHED AND s.id = 2 THEN INSERT (id, dep) VALUES (s.id, null)",
            f"{_MERGE}WHEN MATCHED AND t.id = 1 THEN UPDATE SET id = 10 "
            "WHEN MATCHED AND t.id = 6 THEN DELETE",
            _ALL,
            f"{_MERGE}WHEN MATCHED THEN DELETE",
            _ALL,
        )
    ),
    "merges_by_identity": _three(
        _COW, "ADD PARTITION FIELD identity(dep)", more=", 'write.distribution-mode' = 'none'"
    ),
    "merges_by_buckets": _three(
        _MOR,
        "ADD PARTITION FIELD bucket(2, dep)",
        more=", 'write.merge.distribution-mode' = 'hash'",
    ),
    "merges_by_prefixes": _three(
        _DV, "ADD PARTITION FIELD truncate(dep, 2)", more=", 'write.distribution-mode' = 'range'"
    ),
    "merges_in_order": _three(_COW, "ADD PARTITION FIELD dep", "WRITE ORDERED BY (id)"),
    "merges_by_days": SqlCase(
        (
            _table(_MOR, "PARTITIONED BY (days(ts))", "id int, ts timestamp"),
            "INSERT INTO {ns}.t VALUES (1, TIMESTAMP '2000-01-01 00:00:00'), "
            "(6, TIMESTAMP '2000-01-06 00:00:00')",
            _source(
                "(2, TIMESTAMP '2001-01-02 00:00:00'), (1, TIMESTAMP '2001-01-01 00:00:00'), "
                "(6, TIMESTAMP '2001-01-06 00:00:00')",
                "id, ts",
            ),
            f"{_MERGE}{_THREE}",
            "SELECT id, CAST(ts AS string) AS ts FROM {ns}.t",
        )
    ),
    "merges_with_themselves": SqlCase(
        (
            _table(_COW),
            "INSERT INTO {ns}.t VALUES (1, 'v1'), (2, 'v2')",
            "MERGE INTO {ns}.t t USING {ns}.t s ON t.id == s.id "
            "WHEN MATCHED AND t.id = 1 THEN UPDATE SET dep = 'x' WHEN NOT MATCHED THEN INSERT *",
            "CACHE TABLE {ns}.t",
            "MERGE INTO {ns}.t t USING {ns}.t s ON t.id == s.id "
            "WHEN MATCHED AND t.id = 2 THEN UPDATE SET dep = 'y' WHEN NOT MATCHED THEN INSERT *",
            _ALL,
            "UNCACHE TABLE {ns}.t",
            _source("(1), (null)", "value"),
            "MERGE INTO {ns}.t t USING (SELECT id AS value FROM {ns}.t r JOIN {case}_source ON "
            "r.id = {case}_source.value) s ON t.id == s.value "
            "WHEN MATCHED AND t.id = 1 THEN UPDATE SET dep = 'z' "
            "WHEN NOT MATCHED THEN INSERT (dep, id) VALUES ('invalid', -1)",
            _ALL,
        )
    ),
    "merges_of_more_columns": SqlCase(
        (
            _table(_MOR, columns="id int, v string"),
            "INSERT INTO {ns}.t VALUES (1, 'v1'), (2, 'v2'), (null, 'v0')",
            _source(
                "(1, -1, 'v1_1'), (3, -1, 'v3'), (4, -1, 'v4'), (null, -1, 'n')", "id, extra, v"
            ),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (v, id) VALUES (s.v, s.id)",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id <=> s.id "
            "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v) "
            "WHEN NOT MATCHED THEN INSERT (v, id) VALUES (s.v, s.id)",
            _ALL,
        )
    ),
    "merges_by_nulls": SqlCase(
        (
            _table(_COW, columns="id int, v string"),
            "INSERT INTO {ns}.t VALUES (null, 'v1'), (2, 'v2'), (1, 'v3')",
            _source("(null, 'v1_1'), (2, 'v2_2'), (1, 'v1_1'), (3, 'v3_3')", "id, v"),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id WHEN MATCHED AND s.id = 1 "
            "AND NULL THEN UPDATE SET v = s.v WHEN MATCHED AND s.v = 'v1_1' AND NULL THEN DELETE "
            "WHEN NOT MATCHED AND s.id = 3 AND NULL THEN INSERT (v, id) VALUES (s.v, s.id)",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id WHEN MATCHED AND s.id = 1 "
            "AND NULL THEN UPDATE SET v = s.v WHEN MATCHED AND s.v = 'v1_1' THEN DELETE "
            "WHEN NOT MATCHED AND s.id = 3 AND NULL THEN INSERT (v, id) VALUES (s.v, s.id)",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id "
            "WHEN MATCHED AND s.id = 2 THEN UPDATE SET v = s.v "
            "WHEN MATCHED AND s.v = 'v2_2' THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (v, id) VALUES (s.v, s.id)",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id AND NULL "
            "WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (v, id) VALUES (s.v, s.id)",
            _ALL,
        ),
        operations_differ="Java rewrites files of which no row changes",
    ),
    "merges_that_insert": SqlCase(
        (
            _table(_DV, columns="id string, v string"),
            "INSERT INTO {ns}.t VALUES ('a', 'v1'), ('b', 'v2')",
            _source(
                "('a', 'v1_1', true), ('a', 'v1_2', false), ('c', 'v3', true), "
                "('d', 'v4_1', true), ('d', 'v4_2', false)",
                "id, v, is_new",
            ),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id "
            "WHEN NOT MATCHED AND is_new = TRUE AND s.id = 'c' "
            "THEN INSERT (v, id) VALUES (s.v || '+', s.id)",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id "
            "WHEN NOT MATCHED THEN INSERT *",
            _ALL,
        )
    ),
    "merges_that_insert_variously": SqlCase(
        (
            _table(_COW),
            "INSERT INTO {ns}.t VALUES (0, 'emp-0')",
            _source("(1, 'emp-1'), (2, 'emp-2'), (3, 'emp-3')"),
            f"{_MERGE}WHEN NOT MATCHED AND s.id = 1 THEN INSERT (dep, id) VALUES (s.dep, -1) "
            "WHEN NOT MATCHED AND s.id = 2 THEN INSERT *",
            _ALL,
            f"{_MERGE}WHEN NOT MATCHED AND s.id = 1 THEN INSERT (dep, id) VALUES (s.dep, -2) "
            "WHEN NOT MATCHED THEN INSERT *",
            _ALL,
        )
    ),
    "merges_of_unordered_columns": SqlCase(
        (
            _table(_MOR, columns="id int, a int, b string"),
            "INSERT INTO {ns}.t VALUES (1, 2, 'str')",
            _source("(1, -2, 'new_1'), (2, -20, 'new_2')", "id, c1, c2"),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.iD == s.Id "
            "WHEN MATCHED THEN UPDATE SET B = c2, A = c1, t.Id = s.ID "
            "WHEN NOT MATCHED THEN INSERT (b, A, iD) VALUES (c2, c1, id)",
            _ALL,
            _source("('n', 1, 1001), ('m', 7, 7007)", "b, id, a"),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            _ALL,
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.a "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.a)",
            _ALL,
        )
    ),
    "merges_of_fields": SqlCase(
        (
            _table(
                _COW,
                columns="id int, "
                "s struct<c1: int, c2: struct<a: array<int>, m: map<string, string>>>",
            ),
            "INSERT INTO {ns}.t VALUES (1, named_struct('c1', 2, 'c2', "
            "named_struct('a', array(1, 2), 'm', map('a', 'b')))), (2, null)",
            _source("(1, -2), (2, -3)", "id, c1"),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET "
            "t.s.c1 = s.c1, t.s.c2.a = array(-1, -2), t.s.c2.m = map('k', 'v')",
            _ALL,
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.c1 = NULL, t.s.c2 = NULL",
            _ALL,
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s = "
            "named_struct('c1', 100, 'c2', named_struct('a', array(1), 'm', map('x', 'y')))",
            _ALL,
        )
    ),
    "merges_with_casts": SqlCase(
        (
            _table(_MOR, columns="id int NOT NULL, s string, n struct<n1: int, n2: int>"),
            "INSERT INTO {ns}.t VALUES (1, 'value', null)",
            _source("(1, -2)", "id, c1"),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s = s.c1, t.n.n1 = s.c1",
            _ALL,
            "CREATE OR REPLACE TEMPORARY VIEW {case}_view AS SELECT s FROM {ns}.t",
            "CACHE TABLE {case}_view",
            "SELECT * FROM {case}_view",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET s = 'new'",
            "SELECT * FROM {case}_view",
            "UNCACHE TABLE {case}_view",
        )
    ),
    "merges_that_are_wrong": SqlCase(
        (
            "CREATE TABLE {ns}.t (id int, c struct<n1: int, n2: struct<dn1: int, dn2: int>> "
            "NOT NULL, a array<struct<c1: int, c2: int>>, m map<string, string>) USING iceberg",
            "INSERT INTO {ns}.t VALUES (1, named_struct('n1', 2, 'n2', "
            "named_struct('dn1', 3, 'dn2', 4)), null, null)",
            _source("(-100, -200)", "id, c2"),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.invalid_col = s.c2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.c.n2.invalid_col = s.c2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.c.n2.dn1 = s.c2 "
            "WHEN NOT MATCHED THEN INSERT (id, invalid_col) VALUES (s.id, null)",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.c.n2.dn1 = s.c2 "
            "WHEN NOT MATCHED THEN INSERT (id, c.n2) VALUES (s.id, null)",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.c.n2.dn1 = s.c2 "
            "WHEN NOT MATCHED THEN INSERT (id, id) VALUES (s.id, null)",
            f"{_MERGE}WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.a.c1 = s.c2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.m.key = 'new_key'",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.id = 1, t.c.n1 = 2, t.id = 2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.c.n1 = 1, t.id = 2, t.c.n1 = 2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET "
            "c.n1 = 1, c = named_struct('n1', 1, 'n2', named_struct('dn1', 1, 'dn2', 2))",
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id AND rand() > t.id "
            "WHEN MATCHED THEN UPDATE SET t.c.n1 = -1",
            f"{_MERGE}WHEN MATCHED AND rand() > t.id THEN UPDATE SET t.c.n1 = -1",
            f"{_MERGE}WHEN MATCHED AND rand() > t.id THEN DELETE",
            f"{_MERGE}WHEN NOT MATCHED AND rand() > c2 THEN INSERT (id, c) VALUES (1, null)",
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id AND max(t.id) == 1 "
            "WHEN MATCHED THEN UPDATE SET t.c.n1 = -1",
            f"{_MERGE}WHEN MATCHED AND sum(t.id) < 1 THEN UPDATE SET t.c.n1 = -1",
            f"{_MERGE}WHEN MATCHED AND sum(t.id) THEN DELETE",
            f"{_MERGE}WHEN NOT MATCHED AND sum(c2) < 1 THEN INSERT (id, c) VALUES (1, null)",
            f"{_MERGE}WHEN NOT MATCHED AND c.n1 = 1 THEN INSERT (id, c) VALUES (s.id, null)",
            "MERGE INTO {case}_source t USING {ns}.t s ON t.id == s.id "
            "WHEN MATCHED THEN UPDATE SET *",
            _ALL,
        )
    ),
    "merges_by_subqueries": SqlCase(
        (
            _table(_COW, columns="id int, v int"),
            "INSERT INTO {ns}.t VALUES (1, 1), (2, 2)",
            _source("(1, 10), (5, 50)", "id, v"),
            "MERGE INTO {ns}.t t USING {case}_source s ON t.id == s.id AND t.id < "
            "(SELECT max(v) FROM {case}_source) WHEN MATCHED THEN UPDATE SET t.v = s.v",
            f"{_MERGE}WHEN MATCHED AND t.id < (SELECT max(v) FROM {{case}}_source) "
            "THEN UPDATE SET t.v = s.v",
            f"{_MERGE}WHEN MATCHED AND t.id NOT IN (SELECT v FROM {{case}}_source) THEN DELETE",
            f"{_MERGE}WHEN NOT MATCHED AND s.id IN (SELECT v FROM {{case}}_source) "
            "THEN INSERT (id, v) VALUES (1, null)",
            _ALL,
        ),
        (),
        dict.fromkeys(range(3, 8), "sub-queries in conditions of MERGE are not refused here"),
    ),
    "merges_wrongly_assigned": SqlCase(
        (
            _table(
                _COW,
                columns="id int NOT NULL, s struct<n1: int NOT NULL, "
                "n2: struct<dn1: int, dn2: int>> NOT NULL",
            ),
            "INSERT INTO {ns}.t VALUES (1, "
            "named_struct('n1', 2, 'n2', named_struct('dn1', 3, 'dn2', 4)))",
            _source(
                "(1, named_struct('n1', 1), 'str', named_struct('dn3', 1, 'dn1', 2))",
                "id, c2, c3, c4",
            ),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.id = cast(NULL AS int)",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.n1 = NULL",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s = s.c2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.n1 = s.c3",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.n2 = s.c4",
            "SET spark.sql.storeAssignmentPolicy=strict",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.id = NULL",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.n1 = NULL",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s = s.c2",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.n1 = s.c3",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET t.s.n2 = s.c4",
            "RESET spark.sql.storeAssignmentPolicy",
            _ALL,
        )
    ),
    "merges_on_audited_branches": SqlCase(
        (
            _table(_COW, columns="id int", more=", 'write.wap.enabled' = 'true'"),
            "INSERT INTO {ns}.t VALUES (-1)",
            _source("(0), (1), (-1)", "id"),
            "SET spark.wap.branch=audit",
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            _ALL,
            "SELECT * FROM {ns}.t.branch_audit",
            "SELECT * FROM {ns}.t.branch_main",
            "RESET spark.wap.branch",
            _ALL,
        )
    ),
    "merges_counted": SqlCase(
        (
            _table(_COW, columns="id int, dep string, salary int"),
            "INSERT INTO {ns}.t VALUES (1, 'hr', 100), (2, 'software', 200), "
            "(3, 'finance', 300), (4, 'marketing', 400), (5, 'sales', 500)",
            _source(
                "(1, 'hr', 150), (2, 'software', 250), (3, 'finance', 350), (6, 'new', 600), "
                "(7, 'newer', 700)",
                "id, dep, salary",
            ),
            f"{_MERGE}WHEN MATCHED AND t.salary < 200 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET salary = s.salary WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE AND t.salary > 400 THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET dep = 'orphaned'",
            _ALL,
            "SELECT map_filter(summary, (k, v) -> k LIKE 'spark.merge-into%') AS counted "
            "FROM {ns}.t.snapshots",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.merge.mode' = 'merge-on-read')",
            _source("(2, 'x'), (4, 'y'), (8, 'z')"),
            f"{_MERGE}WHEN MATCHED AND t.id = 2 THEN UPDATE SET dep = s.dep "
            "WHEN MATCHED THEN DELETE",
            "SELECT map_filter(summary, (k, v) -> k LIKE 'spark.merge-into%') AS counted "
            "FROM {ns}.t.snapshots",
        ),
        differs=dict.fromkeys((5, 9), "Java counts rows by the kind of clause, too"),
    ),
    "merges_of_positions": SqlCase(
        (
            _table(_MOR, more=", 'write.delete.granularity' = 'partition'"),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hr'), (3, 'hr')",
            "INSERT INTO {ns}.t VALUES (4, 'hr'), (5, 'hr'), (6, 'hr')",
            "CREATE OR REPLACE TEMPORARY VIEW {case}_source AS "
            "SELECT CAST(id AS int) AS value FROM range(1, 10)",
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.value AND "
            "(id = 1 OR id = 4) WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (id, dep) VALUES (-1, 'other')",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.delete.granularity' = 'file')",
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.value AND id = 5 "
            "WHEN MATCHED THEN UPDATE SET id = id + 2",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '3')",
            "MERGE INTO {ns}.t AS t USING {case}_source AS s ON t.id == s.value AND id = 6 "
            "WHEN MATCHED THEN UPDATE SET id = id + 1",
            _ALL,
        )
    ),
    "merges_sorted": SqlCase(
        (
            _table(_MOR, "PARTITIONED BY (dep)"),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'hr')",
            "ALTER TABLE {ns}.t WRITE ORDERED BY id",
            _source("(1), (3)", "id"),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET id = t.id + 10 "
            "WHEN NOT MATCHED THEN INSERT (id, dep) VALUES (s.id, 'hr')",
            "SELECT content, sort_order_id, record_count FROM {ns}.t.files",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')",
            _source("(2), (4)", "id"),
            f"{_MERGE}WHEN MATCHED THEN UPDATE SET dep = 'it' "
            "WHEN NOT MATCHED THEN INSERT (id, dep) VALUES (s.id, 'new')",
            "SELECT content, sort_order_id, record_count FROM {ns}.t.files",
        )
    ),
    "merges_that_widen": SqlCase(
        (
            _table(_COW),
            "INSERT INTO {ns}.t VALUES (1, 'hr'), (2, 'software')",
            _source("(1, 'hr', 100), (3, 'finance', 300)", "id, dep, salary"),
            "MERGE WITH SCHEMA EVOLUTION INTO {ns}.t AS t USING {case}_source AS s "
            "ON t.id == s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "SELECT id, dep, salary FROM {ns}.t",
            _source("(1, 'hr-updated'), (4, 'finance')"),
            "MERGE WITH SCHEMA EVOLUTION INTO {ns}.t AS t USING {case}_source AS s "
            "ON t.id == s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "SELECT id, dep, salary FROM {ns}.t",
            _source("(1, 1000000000000), (5, 3000000000000)", "id, salary"),
            "MERGE WITH SCHEMA EVOLUTION INTO {ns}.t AS t USING {case}_source AS s "
            "ON t.id == s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "SELECT id, dep, salary FROM {ns}.t",
            "ALTER TABLE {ns}.t SET TBLPROPERTIES "
            "('write.spark.auto-schema-evolution.enabled' = 'false')",
            _source("(1, 'hr', 'more')", "id, dep, extra"),
            "MERGE WITH SCHEMA EVOLUTION INTO {ns}.t AS t USING {case}_source AS s "
            "ON t.id == s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            _ALL,
        )
    ),
    "merges_that_widen_fields": SqlCase(
        (
            _table(_COW, columns="id int, s struct<c1: int, c2: string>"),
            "INSERT INTO {ns}.t VALUES (1, named_struct('c1', 10, 'c2', 'a')), "
            "(2, named_struct('c1', 20, 'c2', 'b'))",
            _source(
                "(1, named_struct('c1', 100, 'c2', 'aa', 'c3', 1000)), "
                "(3, named_struct('c1', 300, 'c2', 'cc', 'c3', 3000))",
                "id, s",
            ),
            "MERGE WITH SCHEMA EVOLUTION INTO {ns}.t AS t USING {case}_source AS s "
            "ON t.id == s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            _ALL,
            _source(
                "(1, named_struct('c1', 11, 'c2', 'a')), (4, named_struct('c1', 30, 'c2', 'c'))",
                "id, s",
            ),
            "SET spark.sql.mergeNestedTypeCoercion.enabled=true",
            "MERGE WITH SCHEMA EVOLUTION INTO {ns}.t AS t USING {case}_source AS s "
            "ON t.id == s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "RESET spark.sql.mergeNestedTypeCoercion.enabled",
            _ALL,
        ),
        (),
        dict.fromkeys((7, 9), "structs of fewer fields are refused, whatever that setting"),
    ),
}
