"""Conditions taken apart as text, without Spark."""

from __future__ import annotations

import pytest

from icebergds.spark.row_level.condition_text import (
    conjuncts_of,
    equal_names,
    has_alias,
    unqualified,
    without_alias,
    without_columns_of,
    without_queries,
)


def parts(text: str) -> list[str]:
    return ["".join(token.text for token in part).strip() for part in conjuncts_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1 AND b = 2 and c", ["a = 1", "b = 2", "c"]),
        ("(a = 1 AND (b = 2 AND c))", ["a = 1", "(b = 2 AND c)"]),
        ("(a) AND (b)", ["(a)", "(b)"]),
        ("a = 1 OR b = 2 AND c", ["a = 1 OR b = 2 AND c"]),
        ("a BETWEEN 1 AND 2 AND b", ["a BETWEEN 1 AND 2", "b"]),
        ("CASE WHEN a AND b THEN c END AND d", ["CASE WHEN a AND b THEN c END", "d"]),
        ("a = ' AND ' AND `b AND c` = 1", ["a = ' AND '", "`b AND c` = 1"]),
        (r"a = 'it\'s AND ' AND b", [r"a = 'it\'s AND '", "b"]),
        ("call = 1 AND show = 2", ["call = 1", "show = 2"]),
        ("a BETWEEN .1 AND .5 AND b", ["a BETWEEN .1 AND .5", "b"]),
        ("a -- AND b", []),
        ("a /* AND c */ AND b", []),
        ("a = 'open AND b", []),
    ],
)
def test_conjuncts(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.a = 1 AND T . b", "a = 1 AND b"),
        ("`t`.`a.b` = 't.c'", "`a.b` = 't.c'"),
        ("s.t.a = tt.a", "s.t.a = tt.a"),
        ("t = 1.5", "t = 1.5"),
    ],
)
def test_alias_is_taken_away(text: str, expected: str) -> None:
    (tokens,) = conjuncts_of(f"({text}) OR x")
    assert without_alias(tokens, "t") == f"({expected}) OR x"


def test_alias_is_found() -> None:
    (tokens,) = conjuncts_of("s.a = 1 OR f(`S`.b)")
    assert has_alias(tokens, "s")
    assert not has_alias(tokens, "a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.a = s.b", (("t", "a"), ("s", "b"))),
        ("((t.a == `s`.`b.c`))", (("t", "a"), ("s", "b.c"))),
        ("t.a <=> s.b", None),
        ("t.a != s.b", None),
        ("t.a >= s.b", None),
        ("t.a = s.b + 1", None),
        ("t.a = 1", None),
        ("t.a = 'b'", None),
        ("f(t.a) = s.b", None),
        ("t.a = s.b = c", None),
    ],
)
def test_equal_names(text: str, expected: object) -> None:
    (tokens,) = conjuncts_of(text)
    assert equal_names(tokens) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("target.id = source.id", "target.id =  "),
        ("target.id = `SOURCE` . `a b` + 1", "target.id =   + 1"),
        ("target.source.a = 1", "target.source.a = 1"),
        ("target.`the source.id` = source.id", "target.`the source.id` =  "),
        ("`a`` source.b` = source.c", "`a`` source.b` =  "),
        ("resource.id = 1", "resource.id = 1"),
    ],
)
def test_columns_of_an_alias_are_removed(text: str, expected: str) -> None:
    assert without_columns_of(text, "source") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a IN (SELECT count(*) FROM u WHERE (x = 1)) AND f(b)", "a IN () AND f(b)"),
        ("f((a), (select max(b) from (select * from c)))", "f((a), ())"),
        ("a = ' (SELECT ' OR (b)", "a = ' (SELECT ' OR (b)"),
    ],
)
def test_sub_queries_are_left_empty(text: str, expected: str) -> None:
    assert without_queries(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.a = 1 AND `t`.b.t = 2", "(a = 1) AND (b.t = 2)"),
        ("t.a = 1 OR s.t.a = 't.a'", "(a = 1 OR s.t.a = 't.a')"),
        ("t.a = 1 -- and", "t.a = 1 -- and"),
    ],
)
def test_conditions_are_read_without_an_alias(text: str, expected: str) -> None:
    assert unqualified(text, "t") == expected
