"""Conditions of statements as text, without Spark."""

from __future__ import annotations

import pytest

from icebergds.operations.conditions import (
    default_setting,
    equal_names,
    named_by,
    plannable_condition,
    plannable_part,
)
from icebergds.spark.row_level.conditions import _without_queries
from icebergds.spark.row_level.merge import _without_columns_of
from icebergds.spec.schema import Schema
from icebergds.spec.types import BOOLEAN, INT, STRING, NestedField, StructType

_SCHEMA = Schema(
    (
        NestedField(1, "a", INT),
        NestedField(2, "b", INT),
        NestedField(3, "c", BOOLEAN),
        NestedField(4, "text", STRING),
        NestedField(5, "b AND c", INT),
        NestedField(6, "u", StructType((NestedField(7, "t", INT),))),
        NestedField(8, "t", StructType((NestedField(9, "a", INT),))),
    )
)


def known(text: str) -> str:
    """What is known of rows of `t` where they meet a condition with rows of `s`."""
    return str(plannable_part(text, _SCHEMA, "UTC", default_setting, named_by("t", "s")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", "a eq 1"),
        ("a = 1 AND b = 2 and c", "((a eq 1 and b eq 2) and c eq True)"),
        ("(a = 1 AND (b = s.b AND c))", "(a eq 1 and c eq True)"),
        ("a = 1 OR b = 2 AND s.c", "(a eq 1 or b eq 2)"),
        ("a = 1 OR s.b = 2 AND s.c", "None"),
        ("a BETWEEN 1 AND s.b AND c", "(a gt_eq 1 and c eq True)"),
        ("CASE WHEN a AND b THEN c END AND b = 1", "b eq 1"),
        ("text = ' AND ' AND `b AND c` = 1", "(text eq ' AND ' and b AND c eq 1)"),
        (r"text = 'it\'s AND ' AND c", '(text eq "it\'s AND " and c eq True)'),
        ("a IN (SELECT a FROM b WHERE c = 1) AND c", "c eq True"),
        ("NOT (a = 1 AND s.b = 2)", "None"),
        ("a = 1 -- AND b = 2", "None"),
        ("a = 1 /* AND c */ AND b = 2", "None"),
        ("a = 'open AND c", "None"),
    ],
)
def test_what_is_known_of_one_side(text: str, expected: str) -> None:
    assert known(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.a = 1 AND `T` . c", "(a eq 1 and c eq True)"),
        ("t.t.a = 1 OR t.u.t = 2", "(t.a eq 1 or u.t eq 2)"),
        ("`S`.a = 1", "None"),
        ("f(`S`.b) = 1 AND t.c", "c eq True"),
        ("u.t = 1", "u.t eq 1"),
    ],
)
def test_aliases(text: str, expected: str) -> None:
    assert known(text) == expected


def test_a_condition_is_the_same_only_if_all_of_it_is_known() -> None:
    for text, is_known in (("t.a = 1 OR t.c", True), ("t.a = 1 AND f(t.c)", False)):
        found = plannable_condition(text, _SCHEMA, "UTC", default_setting, named_by("t"))
        assert (found is not None) == is_known


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
        ("t.a = s.b is not distinct from true", None),
        ("t.a = s.b::int", None),
        ("t.a = s.b | 0", None),
        ("t.a = s.b || '1'", None),
        ("t.a = s.b OR t.c", None),
    ],
)
def test_equal_names(text: str, expected: object) -> None:
    assert list(equal_names(text)) == ([] if expected is None else [expected])


def test_equal_names_are_those_of_all_rows() -> None:
    pairs = equal_names("t.a = s.a AND (t.b = s.b AND t.c) AND (t.u.t = s.u OR c)")
    assert list(pairs) == [(("t", "a"), ("s", "a")), (("t", "b"), ("s", "b"))]
    assert not list(equal_names("t.a = current_user AND s.a = user"))


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
    assert _without_columns_of(text, "source") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a IN (SELECT count(*) FROM u WHERE (x = 1)) AND f(b)", "a IN () AND f(b)"),
        ("f((a), (select max(b) from (select * from c)))", "f((a), ())"),
        ("a = ' (SELECT ' OR (b)", "a = ' (SELECT ' OR (b)"),
        (" ", " "),
        ("a = 'open", "a = 'open"),
    ],
)
def test_sub_queries_are_left_empty(text: str, expected: str) -> None:
    assert _without_queries(text) == expected
