"""What a query can need of tables, without Spark: the rows are compared in `spark_tests/spark`."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest
from query_needs import conditions_of, needed_of

from icebergds import Table, load_catalog
from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_text import sql_text
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.operations.conditions import default_setting
from icebergds.operations.read.options import ReadOptions
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries import joined_values
from icebergds.statements.queries.pruning import prune
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.relations import Relation
from icebergds.statements.text.cursor import Cursor


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path_factory.mktemp("warehouse")))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id bigint, v int, name string, s struct<y: int, v: int>")


T = "lake.db.t"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("v = 1", "v = 1"),
        ("t.v = 1 AND lake.db.t.id > 2 AND db.t.id < 5", "v = 1 AND id > 2 AND id < 5"),
        ("v = 1 OR v = 2 AND rand() < 1", "v = 1 OR v = 2"),
        (
            "(v = 1 AND upper(name) = 'A') OR (v = 3 AND name = 'b')",
            "v = 1 OR v = 3 AND name = 'b'",
        ),
        ("v = 1 OR upper(name) = 'A'", "TRUE"),
        ("s.y = 1 AND t.s.v = 2", "s.y = 1 AND s.v = 2"),
        ("v = id", "TRUE"),
        ("v = :p", "TRUE"),
    ],
)
def test_conjuncts_of_where_that_compare_columns_choose(
    table: Table, condition: str, expected: str
) -> None:
    assert conditions_of(table, f"SELECT 1 FROM {T} WHERE {condition}") == [expected]


@pytest.mark.parametrize(
    ("joins", "left", "right"),
    [
        ("JOIN {t} b ON a.v = 1 AND b.v = 2", "v = 1", "v = 2"),
        ("LEFT JOIN {t} b ON a.v = 1 AND b.v = 2", "TRUE", "v = 2"),
        ("RIGHT JOIN {t} b ON a.v = 1 AND b.v = 2", "v = 1", "TRUE"),
        ("FULL JOIN {t} b ON a.v = 1 AND b.v = 2", "TRUE", "TRUE"),
        ("LEFT SEMI JOIN {t} b ON a.v = 1 AND b.v = 2", "v = 1", "v = 2"),
        ("LEFT ANTI JOIN {t} b ON a.v = 1 AND b.v = 2", "TRUE", "v = 2"),
        ("LEFT JOIN {t} b ON a.id = b.id WHERE a.v = 1 AND b.v = 2", "v = 1", "v = 2"),
        ("LEFT JOIN {t} b ON a.id = b.id WHERE b.v IS NULL", "TRUE", "TRUE"),
        ("LEFT JOIN {t} b ON a.id = b.id WHERE b.v = 1 OR b.v IS NULL", "TRUE", "TRUE"),
        ("RIGHT JOIN {t} b ON a.id = b.id WHERE a.v IS NULL AND b.v = 1", "TRUE", "v = 1"),
        ("FULL JOIN {t} b ON a.id = b.id WHERE a.v = 1 AND b.v IS NULL", "v = 1", "TRUE"),
        (", {t} b WHERE a.v = 1 AND b.v = 2", "v = 1", "v = 2"),
        ("JOIN {t} b USING (v) WHERE v = 1", "TRUE", "TRUE"),
        ("NATURAL JOIN {t} b WHERE v = 1", "TRUE", "TRUE"),
        ("JOIN {t} b ON a.id = b.id WHERE v = 1", "TRUE", "TRUE"),
    ],
)
def test_conditions_choose_rows_of_the_sides_that_they_decide_over(
    table: Table, joins: str, left: str, right: str
) -> None:
    query = f"SELECT 1 FROM {T} a {joins.format(t=T)}"
    assert conditions_of(table, query) == [left, right]


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ("SELECT 1 FROM {t} v WHERE v.id > 5", ["id > 5"]),
        ("SELECT 1 FROM {t} a JOIN {t} s ON s.v = 1 AND a.s.v = 2", ["s.v = 2", "v = 1"]),
        ("SELECT 1 FROM {t} s WHERE s.y = 1", ["TRUE"]),
    ],
)
def test_a_qualifier_may_be_called_as_a_column_is(
    table: Table, query: str, conditions: list[str]
) -> None:
    assert conditions_of(table, query.format(t=T)) == conditions


def test_a_later_join_decides_over_a_side_that_may_be_missing_only_if_nulls_fail(
    table: Table,
) -> None:
    joined = f"{T} a LEFT JOIN {T} b ON a.id = b.id"
    assert conditions_of(table, f"SELECT 1 FROM {joined} JOIN {T} c ON b.v = 1") == [
        "TRUE",
        "v = 1",
        "TRUE",
    ]
    assert conditions_of(table, f"SELECT 1 FROM {joined} JOIN {T} c ON b.v IS NULL") == ["TRUE"] * 3


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM {t} JOIN other o ON t.id = o.id WHERE v = 1",
        "SELECT 1 FROM {t} AS t(a, v, c, d) WHERE v = 1",
        "SELECT 1 FROM {t} PIVOT (sum(id) FOR v IN (1, 2)) WHERE name = 'a'",
        "SELECT 1 FROM {t} TABLESAMPLE (50 PERCENT) WHERE v = 1",
        "SELECT 1 FROM (SELECT v + 1 AS v FROM {t}) WHERE v = 1",
        "SELECT 1 FROM {t} |> WHERE v = 1",
        "SELECT count(*) FROM {t} HAVING max(v) = 1",
        "SELECT 1 FROM ({t} LEFT JOIN other ON true) WHERE v = 1",
    ],
)
def test_what_may_mean_something_else_chooses_nothing(table: Table, query: str) -> None:
    assert conditions_of(table, query.format(t=T)) == ["TRUE"]


def test_sub_queries_have_conditions_of_their_own(table: Table) -> None:
    query = (
        f"WITH c AS (SELECT * FROM {T} WHERE v = 1) SELECT * FROM c WHERE c.id NOT IN "
        f"(SELECT id FROM {T} u WHERE u.v = 2 AND u.id = c.id AND c.v = 3)"
    )
    assert conditions_of(table, query) == ["v = 1", "v = 2"]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id FROM {t} WHERE V = 1", ["id", "v"]),
        ("SELECT count(*) FROM {t}", ["id"]),
        ("SELECT * FROM {t}", None),
        ("SELECT t.* FROM {t}", None),
        ("SELECT struct(*) FROM {t}", None),
        ("SELECT s.y FROM {t}", ["s.y"]),
        ("SELECT t.`s`.Y, lake.db.t.s.v FROM {t} WHERE s.y > 1", ["v", "s.y", "s.v"]),
        ("SELECT s.y, s FROM {t}", ["s"]),
        ("SELECT s.y, s.* FROM {t}", None),
        ("SELECT s.y, s['v'] FROM {t}", ["s"]),
        ("SELECT s.y, (s).v FROM {t}", ["v", "s"]),
        ("SELECT s.y.z, s.y FROM {t}", ["s.y"]),
        ("SELECT s.nothing FROM {t}", ["s"]),
        ("SELECT s.y, s.nothing FROM {t}", ["s"]),
        ("SELECT s.id, s.y FROM {t}, other s", ["id", "s"]),
        ("WITH s AS (SELECT 1 AS y) SELECT s.y FROM {t}, s", ["s"]),
        ("SELECT id FROM (SELECT * FROM {t})", None),
        ("SELECT id FROM {t} NATURAL JOIN other", None),
        ("SELECT id FROM {t} AS t(id, b, c, d)", None),
        ("SELECT x.c FROM {t} a, LATERAL (SELECT a.*) x(b, c, d, e)", None),
        ("SELECT x.c FROM {t} a, LATERAL (SELECT *) x(b, c, d, e)", None),
        ("SELECT id FROM {t} a, LATERAL (SELECT * FROM other o WHERE o.k = a.v) x", ["id", "v"]),
        ("SELECT id FROM {t} a WHERE EXISTS (SELECT * FROM other)", ["id"]),
        ("TABLE {t}", None),
        ("FROM {t}", None),
        ("SELECT `name`, _file FROM {t}", ["name", "_file"]),
        ("SELECT sum(id) FROM {t} PIVOT (sum(id) FOR v IN (1, 2))", None),
    ],
)
def test_columns_that_the_query_may_need_are_read(
    table: Table, query: str, columns: list[str] | None
) -> None:
    [needed] = needed_of(table, query.format(t=T))
    found = needed.columns
    assert (None if found is None else [".".join(path) for path in found]) == columns


@pytest.mark.parametrize(
    ("query", "as_one"),
    [
        ("SELECT id, (SELECT max(k) FROM o WHERE o.k = t.id) FROM {t}", True),
        ("SELECT * FROM (SELECT EXISTS (SELECT 1 FROM o WHERE k = id) AS e FROM {t})", True),
        ("SELECT id FROM {t} WHERE v = (SELECT max(k) FROM o WHERE o.k = t.id)", False),
        ("SELECT id FROM (SELECT id FROM {t})", False),
    ],
)
def test_rows_are_no_union_for_sub_queries_among_columns(
    table: Table, query: str, as_one: bool
) -> None:
    [needed] = needed_of(table, query.format(t=T))
    assert needed.as_one == as_one


def test_a_text_that_settings_change_may_need_whole_structs(table: Table) -> None:
    settings = {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}
    query = 'SELECT s.y, "s" FROM lake.db.t'
    [needed] = needed_of(table, query, setting=settings.get)
    assert needed.columns == [("s",)]


@pytest.mark.parametrize(
    ("query", "stars"),
    [
        ("SELECT *, _file FROM {t}", [("*", "`id`, `v`, `name`, `s`")]),
        ("SELECT DISTINCT * FROM {t} WHERE _pos = 1", [("*", "`id`, `v`, `name`, `s`")]),
        ("SELECT _file, x.*, 2 * 3 FROM {t} x", [("x.*", "x.`id`, x.`v`, x.`name`, x.`s`")]),
    ],
)
def test_all_columns_beside_metadata_columns_are_written_out(
    table: Table, query: str, stars: list[tuple[str, str]]
) -> None:
    text = query.format(t=T)
    [needed] = needed_of(table, text)
    assert [(star.span.of(text), star.text) for star in needed.stars] == stars
    assert needed.columns is not None
    assert list(needed.columns[:4]) == [("id",), ("v",), ("name",), ("s",)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT *, _file FROM {t} a JOIN other",
        "SELECT * EXCEPT (v), _file FROM {t}",
        "SELECT struct(*), _file FROM {t}",
        "SELECT lake.db.t.*, _file FROM {t}",
        "SELECT *, _file FROM {t} AS t(a, b, c, d)",
        "FROM {t} WHERE _pos = 1",
        "SELECT * FROM (SELECT *, _file FROM {t})",
    ],
)
def test_metadata_columns_beside_other_stars_are_refused(table: Table, query: str) -> None:
    with pytest.raises(InvalidStatementError, match=r"cannot be read beside \* here; list"):
        needed_of(table, query.format(t=T))


@pytest.fixture(scope="module")
def days(table: Table) -> Table:
    """A table of a file for each day, and one of them that Python has no date for."""
    catalog = load_catalog("lake", warehouse=table.location().removesuffix("/db/t"))
    days = catalog.create_table("db.days", "day date, v int", partition_spec="day")
    days.append(pa.table({"day": pa.array([0, 1, 2, _YEAR_10000], pa.date32()), "v": [1, 2, 3, 4]}))
    return days


_YEAR_10000 = 2_932_897


def conditions_of_days(query: str, **tables: Table) -> list[str]:
    tokens = sql_tokens(query)
    assert tokens is not None
    cursor = Cursor(query, tokens)
    relations = []
    for reference in find_references(cursor):
        found, name = tables[reference.name[2]], CatalogName("lake", reference.name[1:])
        source = NamedTable(name, found)
        relations.append(Relation(reference, name, source, ReadOptions(), schema=found.schema()))
    needed = prune(cursor, relations, default_setting, "UTC")
    return [
        sql_text(need.condition, relation.schema)
        for need, relation in zip(needed, relations, strict=True)
        if relation.schema is not None
    ]


def test_values_of_a_joined_table_choose(days: Table) -> None:
    query = "SELECT 1 FROM lake.db.days a JOIN lake.db.days b ON a.day = b.day AND b.v < 3"
    assert conditions_of_days(query, days=days) == [
        "day IN (DATE '1970-01-01', DATE '1970-01-02')",
        "v < 3",
    ]


@pytest.fixture(scope="module")
def arrived(table: Table) -> dict[str, Table]:
    """Large tables of six files, in the order of ids and in none; and a small one."""
    catalog = load_catalog("lake", warehouse=table.location().removesuffix("/db/t"))
    found = {}
    for name in ("in_order", "anyhow", "small"):
        found[name] = catalog.create_table(f"db.{name}", "id bigint, s string")
    noise = [hashlib.sha256(str(at).encode()).hexdigest() for at in range(600)]
    for part in range(6):
        ids = range(100 * part, 100 * part + 100)
        found["in_order"].append(pa.table({"id": list(ids), "s": noise[100 * part :][:100]}))
        found["anyhow"].append(pa.table({"id": list(range(part, 600, 6)), "s": noise[:100]}))
    found["small"].append(pa.table({"id": [5, 250], "s": ["x", "y"]}))
    return found


@pytest.mark.parametrize(
    ("query", "is_chosen"),
    [
        ("lake.db.in_order a JOIN lake.db.small b ON a.id = b.id WHERE b.s = 'y'", True),
        ("lake.db.in_order WHERE id IN (SELECT id FROM lake.db.small WHERE s = 'y')", True),
        ("lake.db.anyhow a JOIN lake.db.small b ON a.id = b.id WHERE b.s = 'y'", False),
        # All values of a small table are often those of the large one.
        ("lake.db.in_order a JOIN lake.db.small b ON a.id = b.id", False),
        ("lake.db.in_order a JOIN lake.db.anyhow b ON a.id = b.id WHERE b.s > 'f'", False),
        # Fewer files are not worth it.
        ("lake.db.small a JOIN lake.db.small b ON a.id = b.id WHERE b.s = 'y'", False),
    ],
)
def test_values_choose_among_files_whose_bounds_differ(
    arrived: dict[str, Table], query: str, is_chosen: bool
) -> None:
    for _ in range(2):
        found = conditions_of_days(f"SELECT 1 FROM {query}", **arrived)
        assert ("id = 250" in found[0]) == is_chosen


def test_tables_whose_values_would_not_matter_are_not_planned_for_them(
    arrived: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []
    plan_scan = joined_values.plan_scan

    def counted(state: Any, *given: Any, **named: Any) -> Any:
        planned.append(state.name)
        return plan_scan(state, *given, **named)

    monkeypatch.setattr(joined_values, "plan_scan", counted)
    joined = "SELECT 1 FROM lake.db.in_order a JOIN lake.db.anyhow b ON a.id = b.id"
    assert conditions_of_days(joined, **arrived) == ["TRUE", "TRUE"]
    assert planned == []
    conditions_of_days(f"{joined} WHERE b.s > 'f'", **arrived)
    assert planned == [arrived["anyhow"]._state.name]


def test_bounds_that_are_not_known_tell_no_files_apart(arrived: dict[str, Table]) -> None:
    table = arrived["in_order"]
    table.set_properties({"write.metadata.metrics.default": "none"})
    query = "SELECT 1 FROM lake.db.in_order a JOIN lake.db.small b ON a.id = b.id WHERE b.s = 'y'"
    for part in range(7):
        table.append(pa.table({"id": [900 + part], "s": ["z"]}))
    assert conditions_of_days(query, **arrived)[0] == "TRUE"


_FEW = "JOIN {t} b ON a.day = b.day AND b.v < 2"


@pytest.mark.parametrize(
    ("query", "is_chosen"),
    [
        ("(SELECT day AS d FROM {t}) a JOIN (SELECT * FROM {t} WHERE v < 2) b ON d = b.day", True),
        (f"(SELECT day, sum(v) FROM {{t}} GROUP BY 1) a {_FEW}", True),
        ("(SELECT day FROM {t}) WHERE day IN (SELECT c.day FROM {t} c WHERE c.v < 2)", True),
        (f"(SELECT max(day) AS day, v FROM {{t}} GROUP BY v) a {_FEW}", False),
        (f"(SELECT day FROM {{t}} LIMIT 2) a {_FEW}", False),
    ],
)
def test_values_of_a_joined_table_choose_within_sub_queries(
    days: Table, query: str, is_chosen: bool
) -> None:
    found = conditions_of_days(f"SELECT 1 FROM {query.format(t='lake.db.days')}", days=days)
    assert found[0] == ("day = DATE '1970-01-01'" if is_chosen else "TRUE")


@pytest.mark.parametrize(
    ("query", "is_chosen"),
    [
        ("EXISTS (SELECT 1 FROM {t} b WHERE b.day = a.day AND b.v < 2)", True),
        ("v > 0 AND EXISTS (SELECT * FROM {t} WHERE a.day = days.day AND v < 2)", True),
        ("NOT EXISTS (SELECT 1 FROM {t} b WHERE b.day = a.day AND b.v < 2)", False),
        ("v > 0 OR EXISTS (SELECT 1 FROM {t} b WHERE b.day = a.day AND b.v < 2)", False),
        ("EXISTS (SELECT max(v) FROM {t} b WHERE b.day = a.day AND b.v < 2)", False),
        ("EXISTS (SELECT 1 FROM {t} b WHERE b.day = a.day AND b.v < 2 LIMIT 0)", False),
        ("EXISTS (SELECT v FROM {t} b WHERE b.day = a.day AND b.v < 2 GROUP BY v)", False),
        ("EXISTS (SELECT explode(array()) FROM {t} b WHERE b.day = a.day AND b.v < 2)", False),
        ("EXISTS (SELECT 1 FROM {t} b WHERE (b.day = a.day OR b.v > 3) AND b.v < 2)", False),
        # The name is of the sub-query's own table.
        ("EXISTS (SELECT 1 FROM {t} b WHERE b.day = day AND b.v < 2)", False),
    ],
)
def test_values_of_a_row_that_must_exist_choose(days: Table, query: str, is_chosen: bool) -> None:
    whole = f"SELECT 1 FROM {{t}} a WHERE {query}".format(t="lake.db.days")
    found = conditions_of_days(whole, days=days)
    assert ("day = DATE '1970-01-01'" in found[0]) == is_chosen


def test_values_choose_a_common_table_that_is_read_once(days: Table) -> None:
    table = "WITH c AS (SELECT * FROM lake.db.days)"
    joined = "SELECT 1 FROM c JOIN lake.db.days b ON c.day = b.day AND b.v < 2"
    once = conditions_of_days(f"{table} {joined}", days=days)
    assert once == ["day = DATE '1970-01-01'", "v < 2"]
    twice = conditions_of_days(f"{table} {joined} UNION ALL SELECT v FROM c", days=days)
    assert twice == ["TRUE", "v < 2"]


def test_dates_that_python_does_not_have_choose_nothing(days: Table) -> None:
    query = "SELECT 1 FROM lake.db.days a JOIN lake.db.days b ON a.day = b.day AND b.v > 3"
    assert conditions_of_days(query, days=days) == ["TRUE", "v > 3"]


def test_a_name_of_the_right_side_of_a_semi_join_is_of_a_query_around(days: Table) -> None:
    inner = "SELECT 1 FROM lake.db.days a LEFT SEMI JOIN lake.db.days b ON b.v < 3"
    query = f"SELECT 1 FROM lake.db.days b WHERE EXISTS ({inner} WHERE a.day = b.day)"
    assert conditions_of_days(query, days=days) == ["TRUE", "TRUE", "v < 3"]


def test_statements_that_sqlglot_does_not_know_are_not_warned_of(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    assert conditions_of(table, f"CREATE MADE UP THING AS SELECT 1 FROM {T} WHERE v = 1") == [
        "TRUE"
    ]
    assert not caplog.records
