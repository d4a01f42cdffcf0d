"""Conditions on sub-queries, common tables and views choose rows of the tables within."""

from __future__ import annotations

import pytest
from query_needs import conditions_of

from icebergds import Schema, Table, load_catalog
from icebergds.api.table_definition import schema_argument
from icebergds.expr.bind import bind
from icebergds.expr.sql import parse_filter
from icebergds.statements.queries.needed import ViewNeeded

T = "lake.db.t"
COLUMNS = (
    "id bigint, v int, w int, name string, s struct<y: int, v: int>, ts timestamp, arr array<int>"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path_factory.mktemp("warehouse")))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", COLUMNS)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("(SELECT id AS i, v FROM {t}) d WHERE d.i = 1 AND v > 2", "id = 1 AND v > 2"),
        ("(SELECT * FROM {t}) WHERE id = 1", "id = 1"),
        ("(SELECT a.* FROM {t} a) d WHERE d.s.y = 1", "s.y = 1"),
        ("(SELECT s.y FROM {t}) d WHERE d.y = 1", "s.y = 1"),
        ("(SELECT s AS z FROM {t}) d WHERE d.z.y = 1", "s.y = 1"),
        ("(SELECT id, v FROM {t}) AS d(a, b) WHERE b = 1", "v = 1"),
        ("(SELECT i FROM (SELECT id AS i FROM {t}) e) d WHERE d.i = 1", "id = 1"),
        ("((SELECT id FROM {t})) d WHERE d.id = 1", "id = 1"),
        (
            "(SELECT id, v FROM {t} WHERE v = 2 OR w = 3) WHERE id = 1",
            "(v = 2 OR w = 3) AND id = 1",
        ),
        ("(SELECT w AS v, v AS w FROM {t}) WHERE v = 1", "w = 1"),
        ("(SELECT DISTINCT id FROM {t} ORDER BY id) WHERE id = 1", "id = 1"),
        ("(SELECT id, count(*) AS n FROM {t} GROUP BY id) WHERE id = 1 AND n = 2", "id = 1"),
        ("(SELECT id, count(*) AS n FROM {t} x GROUP BY x.id) WHERE id = 1", "id = 1"),
        ("(SELECT id, count(*) AS n FROM {t} GROUP BY 1) WHERE id = 1", "id = 1"),
        ("(SELECT id, sum(v) OVER (PARTITION BY id) AS n FROM {t}) WHERE id = 1", "id = 1"),
        ("(SELECT id, y FROM {t} LATERAL VIEW explode(array(1)) e AS y) WHERE id = 1", "id = 1"),
        (
            "(SELECT date(ts) AS day FROM {t}) WHERE day < '2026-01-02'",
            "ts < TIMESTAMP '2026-01-02T00:00:00Z'",
        ),
        (
            "(SELECT to_date(ts) AS day FROM {t} GROUP BY to_date(ts)) WHERE day < '2026-01-02'",
            "ts < TIMESTAMP '2026-01-02T00:00:00Z'",
        ),
        (
            "(SELECT year(ts) AS y FROM {t}) WHERE y >= 2026",
            "ts >= TIMESTAMP '2026-01-01T00:00:00Z'",
        ),
        (
            "(SELECT lake.system.days(ts) AS d FROM {t}) WHERE d < DATE '2026-01-02'",
            "ts < TIMESTAMP '2026-01-02T00:00:00Z'",
        ),
        ("(SELECT lake.`bucket`(4, id) AS b FROM {t}) WHERE b = 1", "system.bucket(4, id) IN (1)"),
        ("(SELECT lake.truncate(2, name) AS s FROM {t}) WHERE s = 'ab'", "startswith(name, 'ab')"),
        (
            "(SELECT b FROM (SELECT system.bucket(4, id) AS b FROM {t})) WHERE b IN (1, 3)",
            "system.bucket(4, id) IN (1, 3)",
        ),
        (
            "(SELECT lake.system.years(ts) AS y, count(*) AS n FROM {t} "
            "GROUP BY lake.system.years(ts)) WHERE y >= 56",
            "ts >= TIMESTAMP '2026-01-01T00:00:00Z'",
        ),
    ],
)
def test_a_condition_on_a_sub_query_chooses_rows_within(
    table: Table, query: str, expected: str
) -> None:
    assert conditions_of(table, f"SELECT * FROM {query.format(t=T)}") == [expected]


@pytest.mark.parametrize(
    "query",
    [
        "(SELECT id FROM {t} LIMIT 1) WHERE id = 1",
        "(SELECT id FROM {t} LIMIT 1 OFFSET 1) WHERE id = 1",
        "((SELECT id FROM {t}) LIMIT 1) WHERE id = 1",
        "(SELECT id FROM {t} TABLESAMPLE (1 ROWS)) WHERE id = 1",
        "(SELECT id FROM {t}) TABLESAMPLE (1 ROWS) WHERE id = 1",
        "(SELECT id + 1 AS id FROM {t}) WHERE id = 1",
        "(SELECT id, id AS ID FROM {t}) WHERE id = 1",
        "(SELECT * EXCEPT (v), w AS v FROM {t}) WHERE v = 1",
        "(SELECT max(id) AS id FROM {t}) WHERE id = 1",
        "(SELECT v, max(id) AS id FROM {t} GROUP BY v) WHERE id = 1",
        "(SELECT id, v FROM {t} GROUP BY id, v WITH ROLLUP) WHERE id = 1",
        "(SELECT id, v FROM {t} GROUP BY CUBE (id, v)) WHERE id = 1",
        "(SELECT id, count(*) FROM {t} GROUP BY ALL) WHERE id = 1",
        "(SELECT date(ts) AS day FROM {t} GROUP BY ts, v) WHERE day < '2026-01-02'",
        "(SELECT lake.system.days(ts) AS d FROM {t} GROUP BY ts) WHERE d < DATE '2026-01-02'",
        "(SELECT system.days(ts) AS d FROM {t}) WHERE year(d) = 2026",
        "(SELECT system.bucket(v, id) AS b FROM {t}) WHERE b = 1",
        "(SELECT system.bucket(4, id) AS b, count(*) FROM {t} GROUP BY id) WHERE b = 1",
        "(SELECT id, sum(v) OVER (PARTITION BY v) AS n FROM {t}) WHERE id = 1",
        "(SELECT id, sum(v) OVER (PARTITION BY 1) AS n FROM {t}) WHERE id = 1",
        "(SELECT id, sum(v) OVER (PARTITION BY -1) AS n FROM {t}) WHERE id = 1",
        "(SELECT id, sum(v) OVER w AS n FROM {t} WINDOW w AS (PARTITION BY id)) WHERE id = 1",
        "(SELECT id, rand() AS r FROM {t}) WHERE id = 1",
        "(SELECT id, monotonically_increasing_id() AS r FROM {t}) WHERE id = 1",
        "(SELECT id FROM {t} NATURAL JOIN other) WHERE id = 1",
        "(SELECT id FROM {t} JOIN other) WHERE id = 1",
        "(SELECT * FROM {t} JOIN other) WHERE id = 1",
        "other LEFT JOIN (SELECT id FROM {t}) d ON other.x = d.id WHERE d.id IS NULL",
        "other FULL JOIN (SELECT id FROM {t}) d ON d.id = 1",
        "(SELECT id FROM {t}) d WHERE d.id IN (SELECT x FROM other WHERE d.id = 1)",
        "(SELECT id AS x FROM {t}) d PIVOT (max(x) FOR x IN (1)) WHERE x = 1",
    ],
)
def test_what_may_depend_on_other_rows_chooses_nothing(table: Table, query: str) -> None:
    assert conditions_of(table, f"SELECT 1 FROM {query.format(t=T)}") == ["TRUE"]


def test_an_outer_join_lets_conditions_of_its_own_in(table: Table) -> None:
    derived = f"(SELECT id, v FROM {T}) d"
    joined = f"SELECT 1 FROM other LEFT JOIN {derived} ON d.v = 1"
    assert conditions_of(table, f"{joined} WHERE d.id = 2") == ["v = 1"]
    inner = f"SELECT b.id FROM {T} a LEFT JOIN {T} b ON a.id = b.id"
    assert conditions_of(table, f"SELECT 1 FROM ({inner}) d WHERE d.id = 2") == ["TRUE", "id = 2"]
    assert conditions_of(table, f"SELECT 1 FROM ({inner}) d WHERE d.id IS NULL") == ["TRUE"] * 2


def test_branches_of_a_set_operation_are_chosen_by_position(table: Table) -> None:
    query = f"SELECT * FROM (SELECT v, w FROM {T} {{}} SELECT w, v FROM {T}) WHERE v = 1"
    for operation in ("UNION ALL", "UNION", "EXCEPT", "INTERSECT"):
        assert conditions_of(table, query.format(operation)) == ["v = 1", "w = 1"]


@pytest.mark.parametrize(
    "query",
    [
        # 1 and '1' are one value of text; '01' is another.
        "SELECT v FROM {t} UNION ALL SELECT name FROM {t}",
        "SELECT v FROM {t} UNION ALL SELECT id FROM {t}",
        "SELECT v FROM {t} UNION ALL SELECT k FROM other",
        "SELECT v, w FROM {t} UNION ALL BY NAME SELECT w, v FROM {t}",
        "SELECT v FROM {t} UNION ALL SELECT v FROM {t} LIMIT 1",
        "SELECT v FROM {t} UNION ALL (SELECT v FROM {t} LIMIT 1)",
        # The place of a column is not known behind what may be several.
        "SELECT posexplode(arr), v, w FROM {t} UNION ALL SELECT v, w, posexplode(arr) FROM {t}",
        "SELECT f(id), v, w FROM {t} UNION ALL SELECT v, w, f(id) FROM {t}",
        "SELECT * FROM {t} PIVOT (max(w) FOR id IN (1 AS w, 2 AS v)) UNION ALL SELECT * FROM {t}",
        "SELECT v FROM {t} PIVOT (max(name) FOR id IN (1 AS v)) UNION ALL SELECT v FROM {t}",
    ],
)
def test_a_set_operation_whose_columns_are_cast_chosen_or_unknown_lets_nothing_in(
    table: Table, query: str
) -> None:
    found = conditions_of(table, f"SELECT * FROM ({query.format(t=T)}) WHERE v = 1")
    assert set(found) == {"TRUE"}


def test_columns_without_names_count_in_set_operations(table: Table) -> None:
    one, other = f"(SELECT v + 1, v, w FROM {T})", f"(SELECT w, v, w + 1 FROM {T})"
    query = f"SELECT * FROM (SELECT * FROM {one} UNION ALL SELECT * FROM {other}) WHERE v = 1"
    assert conditions_of(table, query) == ["v = 1", "v = 1"]


def test_the_name_of_a_lateral_view_is_no_struct(table: Table) -> None:
    view = f"{T} LATERAL VIEW explode(arr) s AS y"
    assert conditions_of(table, f"SELECT 1 FROM {view} WHERE s.y = 1") == ["TRUE"]
    assert conditions_of(table, f"SELECT 1 FROM (SELECT s.y FROM {view}) WHERE y = 1") == ["TRUE"]


def test_queries_many_levels_deep_are_read_whole(table: Table) -> None:
    further = "".join(f", c{at} AS (SELECT * FROM c{at - 1})" for at in range(1, 500))
    chain = f"WITH c0 AS (SELECT * FROM {T}){further} SELECT * FROM c499 WHERE id = 1"
    assert conditions_of(table, chain) == ["TRUE"]


def test_conditions_that_double_with_each_level_are_given_up(table: Table) -> None:
    joined = "SELECT a.id, b.v FROM c{0} a JOIN c{0} b ON a.w = b.w"
    further = "".join(f", c{at} AS ({joined.format(at - 1)})" for at in range(1, 40))
    query = f"WITH c0 AS (SELECT * FROM {T}){further} SELECT * FROM c39 WHERE id = 1 AND v = 2"
    assert conditions_of(table, query) == ["TRUE"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM c WHERE id = 1", "id = 1"),
        ("SELECT * FROM c a JOIN c b ON a.w = b.w AND a.id = 1 AND b.v = 2", "id = 1 OR v = 2"),
        ("SELECT * FROM c WHERE id = 1 UNION ALL SELECT * FROM c WHERE id = 2", "id = 1 OR id = 2"),
        ("SELECT * FROM c WHERE id = 1 UNION ALL SELECT * FROM c", "TRUE"),
        ("SELECT * FROM c WHERE id = 1 UNION ALL TABLE c", "TRUE"),
        ("SELECT * FROM c WHERE id = 1 UNION ALL SELECT * FROM IDENTIFIER('c')", "TRUE"),
        ("SELECT * FROM c WHERE id = 1 AND v IN (SELECT v FROM c)", "TRUE"),
        (
            "SELECT * FROM c WHERE id = 1 AND v IN (SELECT v FROM c x WHERE x.v = 2)",
            "id = 1 OR v = 2",
        ),
        ("SELECT * FROM c TABLESAMPLE (1 ROWS) WHERE id = 1", "TRUE"),
        ("SELECT * FROM (c JOIN other) WHERE id = 1", "TRUE"),
        ("SELECT * FROM (SELECT * FROM c) d WHERE d.id = 1", "id = 1"),
        ("SELECT 1 FROM (SELECT * FROM c) d, c WHERE d.id = 1 AND c.id = 2", "id = 2 OR id = 1"),
    ],
)
def test_a_common_table_is_chosen_by_all_that_read_it(
    table: Table, query: str, expected: str
) -> None:
    assert conditions_of(table, f"WITH c AS (SELECT * FROM {T}) {query}") == [expected]


def test_common_tables_may_read_each_other_and_name_their_columns(table: Table) -> None:
    tables = f"c (a, b) AS (SELECT id, v FROM {T}), d AS (SELECT a AS x, b FROM c WHERE b = 1)"
    query = f"WITH {tables} SELECT * FROM d WHERE x = 2"
    assert conditions_of(table, query) == ["v = 1 AND id = 2"]
    both = f"WITH {tables} SELECT * FROM d, c WHERE d.x = 2 AND c.a = 3"
    assert conditions_of(table, both) == ["id = 3 OR v = 1 AND id = 2"]


def test_a_common_table_that_reads_itself_is_read_whole(table: Table) -> None:
    inner = f"SELECT id FROM {T} UNION ALL SELECT id + 1 FROM c"
    query = f"WITH RECURSIVE c AS ({inner}) SELECT * FROM c WHERE id = 1"
    assert conditions_of(table, query) == ["TRUE"]


def test_a_common_table_may_have_the_name_of_a_table(table: Table) -> None:
    query = f"WITH t AS (SELECT * FROM {T}) SELECT * FROM t WHERE id = 1"
    assert conditions_of(table, query) == ["id = 1"]
    # Names of tables that the list gives later, or the table itself, are others'.
    own = f"c AS (SELECT t.id FROM c JOIN {T})"
    assert conditions_of(table, f"WITH {own} SELECT * FROM c WHERE id = 1") == ["id = 1"]
    circle = f"a AS (SELECT * FROM b WHERE id = 1), b AS (SELECT a.k, t.v FROM a JOIN {T})"
    assert conditions_of(table, f"WITH {circle} SELECT * FROM b WHERE v = 2") == ["v = 2"]
    inner = f"WITH b AS (SELECT * FROM a JOIN {T}) SELECT * FROM b"
    nested = f"a AS (SELECT * FROM b), c AS ({inner}) SELECT * FROM c WHERE v = 2"
    assert conditions_of(table, f"WITH {nested}") == ["TRUE"]


def test_names_of_common_tables_that_occur_twice_let_nothing_in(table: Table) -> None:
    inner = f"WITH c AS (SELECT v AS id FROM {T}) SELECT * FROM c WHERE id = 2"
    query = f"WITH c AS (SELECT id FROM {T}) SELECT * FROM ({inner}) d, c WHERE c.id = 1"
    assert conditions_of(table, query) == ["TRUE", "TRUE"]


def _of_view(columns: str, condition: str, of_query: list[str] | None = None) -> ViewNeeded:
    schema: Schema = schema_argument(columns)
    return ViewNeeded(schema, bind(parse_filter(condition), schema), of_query)


BEFORE = "ts < TIMESTAMP '2026-01-02T00:00:00Z'"


@pytest.mark.parametrize(
    ("query", "columns", "condition", "expected"),
    [
        ("id, name FROM {t}", "a bigint, b string", "a = 1 AND b = 'c'", "id = 1 AND name = 'c'"),
        ("id FROM {t} WHERE name = 'x'", "a bigint", "a > 2", "name = 'x' AND id > 2"),
        ("name FROM {t}", "a string", "a = 'it''s'", r"name = 'it\'s'"),
        ("date(ts), 1 FROM {t} GROUP BY date(ts)", "a date, n int", "a < '2026-01-02'", BEFORE),
        ("lake.system.days(ts) FROM {t}", "a date", "a < '2026-01-02'", BEFORE),
        ("system.bucket(4, id) FROM {t}", "a int", "a = 3", "system.bucket(4, id) IN (3)"),
        ("system.truncate(2, name) FROM {t}", "a string", "a = 'ab'", "startswith(name, 'ab')"),
        # The view casts these to what it had when it was created.
        ("v FROM {t}", "a bigint", "a = 1", "TRUE"),
        ("v FROM {t}", "a string", "a = '1'", "TRUE"),
        ("year(ts) FROM {t}", "a bigint", "a = 2026", "TRUE"),
        ("id, v FROM {t}", "a bigint", "a = 1", "TRUE"),
        ("id FROM {t} LIMIT 1", "a bigint", "a = 1", "TRUE"),
    ],
)
def test_a_condition_on_a_view_chooses_rows_within(
    table: Table, query: str, columns: str, condition: str, expected: str
) -> None:
    needed = _of_view(columns, condition)
    assert conditions_of(table, f"SELECT {query.format(t=T)}", needed) == [expected]


def test_columns_of_a_temporary_view_are_those_of_their_names(table: Table) -> None:
    query = f"SELECT v, w FROM {T}"
    same = _of_view("a int, b int", "a = 1", of_query=["V", "w"])
    assert conditions_of(table, query, same) == ["v = 1"]
    others = _of_view("a int, b int", "a = 1", of_query=["w", "v"])
    assert conditions_of(table, query, others) == ["TRUE"]
