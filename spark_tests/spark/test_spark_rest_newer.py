"""Statements on a REST catalog whose server has functions, labels, and rights by views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import icebergds
from icebergds import register
from icebergds.errors import (
    InvalidStatementError,
    NoSuchFunctionError,
    StorageError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rest_newer import NewerServer
    from rest_server import RestServer

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture(scope="module")
def server(rest: RestServer) -> Iterator[NewerServer]:
    from rest_newer import newer_server

    with newer_server(rest) as server:
        yield server


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, server: NewerServer, tmp_path_factory: pytest.TempPathFactory
) -> SparkSession:
    """A session with the table `lake.db.t`, and a catalog `other` beside."""
    directory: Path = tmp_path_factory.mktemp("other")
    session = spark.newSession()
    conf = {
        "lake.type": "rest",
        "lake.uri": server.uri,
        "lake.rest-metrics-reporting-enabled": "false",
        "other.uri": f"sqlite:///{directory}/catalog.db",
        "other.schema_version": "v1",
        "other.warehouse": str(directory / "warehouse"),
    }
    for key, value in conf.items():
        session.conf.set(f"spark.icebergpy.catalog.{key}", value)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    register(session, sql=True)
    catalog = icebergds.load_catalog("lake", uri=server.uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id int, name string, month int")
    table.append(
        pa.table(
            {
                "id": pa.array([1, 2, None], pa.int32()),
                "name": ["a", "b", "c"],
                "month": pa.array([7, 8, 9], pa.int32()),
            }
        )
    )
    return session


@pytest.fixture(autouse=True)
def _plain(server: NewerServer) -> Iterator[None]:
    yield
    server.readable_by, server.functions, server.labels = {}, {}, {}


def rows(session: SparkSession, statement: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in session.sql(statement).collect()]


# Views.


def test_a_table_is_read_through_the_views_that_may(
    lake: SparkSession, server: NewerServer
) -> None:
    lake.sql("CREATE VIEW lake.db.inner AS SELECT id, name FROM lake.db.t")
    lake.sql("CREATE VIEW lake.db.outer AS SELECT name FROM lake.db.inner WHERE id > 1")
    lake.sql("CREATE NAMESPACE other.db")
    lake.sql("CREATE VIEW other.db.foreign AS SELECT name FROM lake.db.t")
    lake.sql("CREATE VIEW lake.db.around AS SELECT name FROM other.db.foreign")
    server.readable_by = {"t": ["db", "inner"]}
    server.chains.clear()
    assert rows(lake, "SELECT * FROM lake.db.outer") == [("b",)]
    chain = [["db", "outer"], ["db", "inner"]]
    # What may be a table or a view is looked for as both.
    assert {str(each) for each in server.chains} == {
        str(("inner", chain[:1])),
        str(("t", chain)),
    }
    assert rows(lake, "SELECT count(*) FROM lake.db.inner") == [(3,)]
    # A view of another catalog is not told, nor what is around it.
    server.chains.clear()
    for name in ("lake.db.t", "other.db.foreign", "lake.db.around"):
        with pytest.raises(StorageError, match="403"):
            lake.sql(f"SELECT name FROM {name}")
    assert server.chains == []


# Labels.


def test_labels_are_described(lake: SparkSession, server: NewerServer) -> None:
    assert "# Labels" not in [row[0] for row in rows(lake, "DESCRIBE EXTENDED lake.db.t")]
    catalog = icebergds.load_catalog("lake", uri=server.uri)
    catalog.create_table("db.labelled", "id int, name string")
    server.labels["labelled"] = {
        "object-labels": {"owner": "sales"},
        "fields": [
            {"field-id": 2, "labels": {"pii": "yes"}},
            {"field-id": 9, "labels": {"a": "b"}},
        ],
    }
    # Another commit, so that the server does not answer that nothing has changed.
    catalog.load_table("db.labelled").set_properties({"k": "v"})
    lake.sql("CREATE VIEW lake.db.labels AS SELECT 1 AS id")
    server.labels["labels"] = {"object-labels": {"tier": "gold"}}
    described = rows(lake, "DESCRIBE EXTENDED lake.db.labelled")
    assert described[-4:] == [
        ("# Labels", "", ""),
        ("owner", "sales", ""),
        ("name: pii", "yes", ""),
        ("#9: a", "b", ""),
    ]
    assert rows(lake, "DESCRIBE EXTENDED lake.db.labels")[-1] == ("tier", "gold", "")
    assert ("owner", "sales") not in rows(lake, "SHOW TBLPROPERTIES lake.db.labelled")


# Functions.


@pytest.fixture
def functions(server: NewerServer) -> NewerServer:
    from sql_functions import definition, function

    point = {"type": "struct", "fields": [{"name": "a b", "type": "int"}]}
    server.functions |= {
        ("db", "add"): function(
            definition({"x": "int"}, "long", "x + 1"),
            definition({"x": "int", "y": "long"}, "long", "x + y"),
            doc="adds",
        ),
        ("db", "shout"): function(definition({"name": "string"}, "string", "upper(name) || '!'")),
        ("db", "or_none"): function(
            definition({"x": "int"}, "int", "coalesce(x, -1)", on_null="return-null")
        ),
        ("db", "or_one"): function(definition({"x": "int"}, "int", "coalesce(x, -1)")),
        ("db", "answer"): function(definition({}, "int", "42 -- the answer")),
        ("db", "twice"): function(definition({"x": "double"}, "boolean", "x = x")),
        ("db", "shadow"): function(
            definition({"e": "int"}, "int", "transform(array(10), name -> name + e)[0]")
        ),
        ("db", "field"): function(definition({"p": point}, "int", "p.`a b`")),
        ("db", "taken"): function(definition({"x": "int"}, "date", "date_trunc(month, x)")),
        ("db", "total"): function(definition({"x": "int"}, "int", "made_up_aggregate(x)")),
    }
    return server


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("lake.db.add(id)", [2, 3, None]),
        ("lake.db.add(id, month)", [8, 10, None]),
        ("`lake`.db.add ( id )", [2, 3, None]),
        ("lake.db.add(lake.db.or_one(id))", [2, 3, 0]),
        ("lake.db.shout(name)", ["A!", "B!", "C!"]),
        ("lake.db.shout(name /* , */ || ', ')", ["A, !", "B, !", "C, !"]),
        ("lake.db.or_one(id)", [1, 2, -1]),
        ("lake.db.or_none(id)", [1, 2, None]),
        ("lake.db.answer()", [42, 42, 42]),
        ("lake.db.shadow(month)", [17, 18, 19]),
        ("lake.db.field(named_struct('a b', id))", [1, 2, None]),
        ("lake.db.twice(rand())", [True, True, True]),
        ("lake.db.twice(id)", [True, True, None]),
        ("lake.system.years(DATE '1971-02-03') + lake.db.answer()", [43, 43, 43]),
    ],
)
def test_functions_are_called(
    lake: SparkSession, functions: NewerServer, expression: str, found: list[object]
) -> None:
    statement = f"SELECT {expression} FROM lake.db.t AS t ORDER BY t.month"
    assert [row[0] for row in rows(lake, statement)] == found


def test_calls_have_the_declared_type_and_their_text_as_name(
    lake: SparkSession, functions: NewerServer
) -> None:
    frame = lake.sql("SELECT lake.db.add(id), lake.db.add(id) AS more FROM lake.db.t")
    assert frame.dtypes == [("lake.db.add(id)", "bigint"), ("more", "bigint")]
    assert rows(lake, "SELECT lake.db.answer() AS a") == [(42,)]


def test_functions_are_called_everywhere_in_queries(
    lake: SparkSession, functions: NewerServer
) -> None:
    assert rows(lake, "SELECT name FROM lake.db.t WHERE lake.db.add(id) = 3") == [("b",)]
    assert rows(lake, "SELECT max(lake.db.add(id)), min(lake.db.or_one(id)) FROM lake.db.t") == [
        (3, -1)
    ]
    grouped = "SELECT lake.db.or_one(id) AS k, count(*) FROM lake.db.t GROUP BY lake.db.or_one(id)"
    assert sorted(rows(lake, grouped)) == [(-1, 1), (1, 1), (2, 1)]
    assert rows(lake, "SELECT lake.db.add(max(id)) FROM lake.db.t") == [(3,)]
    ordered = "SELECT name FROM lake.db.t ORDER BY lake.db.or_one(-id) LIMIT 1"
    assert rows(lake, ordered) == [("b",)]
    nested = "SELECT name FROM (SELECT name, lake.db.add(id) AS id FROM lake.db.t) WHERE id = 2"
    assert rows(lake, nested) == [("a",)]
    lake.sql("CREATE VIEW lake.db.added AS SELECT lake.db.add(id) AS more FROM lake.db.t")
    assert rows(lake, "SELECT more FROM lake.db.added WHERE more = 3") == [(3,)]
    lake.sql("CREATE TABLE lake.db.u AS SELECT lake.db.add(id) AS id FROM lake.db.t")
    lake.sql("DELETE FROM lake.db.u WHERE id = lake.db.answer() - 40")
    assert sorted(rows(lake, "SELECT id FROM lake.db.u WHERE id > 0")) == [(3,)]
    lake.sql("INSERT INTO lake.db.u (id) VALUES (lake.db.answer())")
    lake.sql(
        "MERGE INTO lake.db.u AS t USING (SELECT lake.db.add(41) AS k) AS s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET id = lake.db.add(t.id::int)"
    )
    assert sorted(rows(lake, "SELECT id FROM lake.db.u WHERE id > 0")) == [(3,), (43,)]
    lake.sql("INSERT OVERWRITE lake.db.u (id) SELECT lake.db.answer()")
    assert rows(lake, "SELECT id FROM lake.db.u") == [(42,)]
    lake.sql("USE lake.db")
    try:
        assert rows(lake, "SELECT db.add(month) FROM t WHERE id = 1") == [(8,)]
    finally:
        lake.sql("USE spark_catalog.default")


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        ("lake.db.add('1')", UnsupportedFeatureError, None),
        ("lake.db.add(1L)", UnsupportedFeatureError, None),
        ("lake.db.add(1.5)", UnsupportedFeatureError, None),
        ("lake.db.add(1, 2, 3)", InvalidStatementError, "no definition for 3 arguments"),
        ("lake.db.add(x => 1)", UnsupportedFeatureError, "named arguments"),
        ("lake.db.add((SELECT 1))", InvalidStatementError, "sub-query"),
        ("lake.db.taken(month)", UnsupportedFeatureError, "names month"),
    ],
)
def test_calls_that_may_go_wrong_are_refused(
    lake: SparkSession, functions: NewerServer, call: str, error: type[Exception], named: str | None
) -> None:
    statement = f"SELECT {call} FROM lake.db.t"
    if named is not None:
        with pytest.raises(error, match=named):
            lake.sql(statement)
        return
    # Only Spark knows the types of arguments.
    with pytest.raises(Exception, match=r"lake\.db\.add: argument x is of type .*expected int"):
        lake.sql(statement).collect()


def test_functions_that_do_not_exist_are_named(lake: SparkSession, functions: NewerServer) -> None:
    with pytest.raises(NoSuchFunctionError, match=r"lake\.db\.ad .* did you mean add\?"):
        lake.sql("SELECT lake.db.ad(id) FROM lake.db.t")
    with pytest.raises(AnalysisException, match="made_up_aggregate"):
        lake.sql("SELECT lake.db.total(id) FROM lake.db.t").collect()
    with pytest.raises(AnalysisException, match="nowhere"):
        lake.sql("SELECT nowhere.total(id) FROM lake.db.t").collect()


def test_functions_are_shown_and_described(lake: SparkSession, functions: NewerServer) -> None:
    shown = [name for (name,) in rows(lake, "SHOW USER FUNCTIONS IN lake.db LIKE 'a*'")]
    assert [name for name in shown if name.startswith("lake.")] == ["lake.db.add", "lake.db.answer"]
    assert rows(lake, "DESCRIBE FUNCTION lake.db.add") == [
        ("Function: lake.db.add",),
        ("Usage: lake.db.add(x int) bigint: adds (dialects: spark)",),
        ("Usage: lake.db.add(x int, y bigint) bigint: adds (dialects: spark)",),
    ]
