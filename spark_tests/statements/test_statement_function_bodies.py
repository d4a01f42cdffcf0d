"""Which bodies of catalogs' functions are written into queries."""

from __future__ import annotations

from typing import Any

import pytest
from sql_functions import definition, function

from icebergds.errors import IcebergError, InvalidStatementError, UnsupportedFeatureError
from icebergds.spec.json.functions import function_metadata_from_json
from icebergds.statements.queries.function_bodies import body_of, signatures


def _result(metadata: dict[str, Any], count: int) -> str:
    return body_of("lake.db.f", function_metadata_from_json(metadata, "f"), count).result


def _written(sql: str, **parameters: Any) -> str:
    """The body without the cast of the result."""
    given = parameters or {"x": "int", "y": "string"}
    found = _result(function(definition(given, "long", sql)), len(given))
    assert found.startswith("CAST((")
    assert found.endswith(") AS bigint)")
    return found.removeprefix("CAST((").removesuffix(") AS bigint)")


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("x + 1", "_p.p0 + 1"),
        ("X + `x`", "_p.p0 + _p.p0"),
        ("x -- a comment\n + 1", "_p.p0 + 1"),
        ("concat(y, 'x', \"y\")", "concat(_p.p1, 'x', \"y\")"),
        ("CASE WHEN x IS NOT NULL THEN upper(y) ELSE y END",
         "CASE WHEN _p.p0 IS NOT NULL THEN upper(_p.p1) ELSE _p.p1 END"),
        ("CAST(x AS DECIMAL(9, 2)) / 2", "CAST(_p.p0 AS DECIMAL(9, 2)) / 2"),
        ("y::date + INTERVAL 1 DAY", "_p.p1::date + INTERVAL 1 DAY"),
        ("EXTRACT(year FROM DATE '2020-01-01') + x",
         "EXTRACT(year FROM DATE '2020-01-01') + _p.p0"),
        ("transform(array(x), y -> y + x)[0]", "transform(array(_p.p0), y -> y + _p.p0)[0]"),
        ("aggregate(array(1), x, (acc, e) -> acc + e)",
         "aggregate(array(1), _p.p0, (acc, e) -> acc + e)"),
        ("x + transform(array(1), _p -> _p)[0]", "__p.p0 + transform(array(1), _p -> _p)[0]"),
    ],
)  # fmt: skip
def test_parameters_are_replaced_and_nothing_else(sql: str, written: str) -> None:
    assert _written(sql) == written


def test_fields_of_a_parameter_are_not_taken_for_parameters() -> None:
    point = {"type": "struct", "fields": [{"name": "y", "type": "int"}]}
    assert _written("x.y + y", x=point, y="int") == "_p.p0.y + _p.p1"


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("x + z", "names z, which"),
        ("t.x", "names t, which"),
        ("date_trunc(month, x)", "names month, which"),
        ("trunc(x, year)", "names year, which"),
        ("x + day", "names day, which"),
        ("(SELECT 1)", "a sub-query"),
        ("x IN (SELECT 1)", "a sub-query"),
        ("sum(x)", "an aggregate function"),
        ("max(x) OVER ()", "a window function"),
        ("explode(array(x))", "a function that gives rows"),
        ("count(*)", "an aggregate function"),
        ("x + ?", "a star or a placeholder"),
        (":x", "a star or a placeholder"),
        ("db.g(x)", "names "),
        ("x AS y", "as an expression"),
        ("x; DROP TABLE t", "as an expression"),
        ("x) + (x", "as an expression"),
        ("SELECT x", "a sub-query"),
        ("'", "cannot be read"),
        ("", "cannot be read"),
        ("-- nothing", "cannot be read"),
    ],
)
def test_bodies_that_may_mean_something_else_are_refused(sql: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"lake\.db\.f cannot be called") as raised:
        _written(sql)
    assert named in str(raised.value)


_PLAIN = definition({"x": "int"}, "int", "x")


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        (function(_PLAIN, secure=True), "secure"),
        (function(definition({"x": "int"}, "int", {"trino": "x", "snowflake": "x"})),
         "only in trino, snowflake"),
        (function(_PLAIN, definition({"x": "string"}, "int", "1")), r"(int); (string)"),
        (function(definition({"x": "int"}, "int", "x", kind="udtf")), "gives rows"),
        (function(definition({"x": "int", "y": "int"}, "int", "x")), "no definition for 1"),
        (function(), "it takes none"),
    ],
)  # fmt: skip
def test_functions_of_other_kinds_are_refused(metadata: dict[str, Any], named: str) -> None:
    with pytest.raises((UnsupportedFeatureError, InvalidStatementError)) as raised:
        _result(metadata, 1)
    assert "lake.db.f" in str(raised.value)
    assert named in str(raised.value)


def test_parameters_that_differ_by_case_alone_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="x, X differ by case"):
        _result(function(definition({"x": "int", "X": "int"}, "int", "x")), 2)


@pytest.mark.parametrize(
    "broken",
    [
        {"format-version": 2},
        {"definitions": {}},
        {"definitions": [{**_PLAIN, "current-version-id": 7}]},
        {"definitions": [{**_PLAIN, "return-type": {"type": "set"}}]},
        {"definitions": [{**_PLAIN, "return-type": "nothing"}]},
        {"definitions": [definition({"x": "int"}, "int", "x", on_null="maybe")]},
    ],
)
def test_malformed_metadata_is_named(broken: dict[str, Any]) -> None:
    with pytest.raises(IcebergError):
        function_metadata_from_json({**function(_PLAIN), **broken}, "the function f")


def test_definitions_are_shown_with_their_dialects() -> None:
    nested = {"type": "list", "element": {"type": "map", "key": "string", "value": "double"}}
    metadata = function(
        {**_PLAIN, "doc": "the same"},
        definition({"a": nested, "b": "date"}, nested, {"trino": "a"}),
    )
    assert list(signatures(function_metadata_from_json(metadata, "f"))) == [
        "(x int) int: the same (dialects: spark)",
        "(a array<map<string,double>>, b date) array<map<string,double>> (dialects: trino)",
    ]
