from __future__ import annotations

import pytest

from icebergds.errors import InvalidOptionError, InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.queries.references import Reference, find_references
from icebergds.statements.queries.suffixes import spans_of_versions
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.parameters import with_versions


def _found(query: str) -> list[Reference]:
    tokens = sql_tokens(query)
    assert tokens is not None
    return find_references(Cursor(query, tokens))


def _names(query: str) -> list[str]:
    return [".".join(each.name) for each in _found(query)]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM lake.db.t", ["lake.db.t"]),
        ("FROM lake.db.t SELECT *", ["lake.db.t"]),
        ("TABLE lake.db.t", ["lake.db.t"]),
        ("INSERT INTO s TABLE t", ["t"]),
        ("SELECT * FROM a, b x, (SELECT * FROM c) y, d", ["a", "b", "c", "d"]),
        ("SELECT * FROM (a JOIN b ON a.x = b.x) LEFT JOIN c USING (x)", ["a", "b", "c"]),
        ("SELECT * FROM a LATERAL VIEW explode(m) e AS k, v JOIN b", ["a", "b"]),
        ("SELECT x FROM a WHERE y IN (SELECT z FROM b) UNION SELECT x FROM c", ["a", "b", "c"]),
        ("SELECT * FROM f(TABLE(a), TABLE b)", ["a", "b"]),
        ("SELECT * FROM range(10), a", ["a"]),
        ("SELECT * FROM VALUES (1), (2) AS v(x) JOIN a", ["a"]),
        ("SELECT * FROM `a b`.`c.d`", ["a b.c.d"]),
        ("SELECT 'FROM x' FROM a -- FROM b\n, c /* , d */", ["a", "c"]),
        ("SELECT * FROM a, UNNEST(a.x, a.y) WITH ORDINALITY AS u(x, y, at), b", ["a", "b"]),
        ("SELECT * FROM UNNEST(a) WITH ORDINALITY u JOIN b", ["b"]),
        ("INSERT INTO s (x) WITH ordinality AS (TABLE a) TABLE ordinality", ["a"]),
        ("SELECT * FROM a JOIN b EXACT NEAREST 2 BY DISTANCE abs(a.x - b.x), c", ["a", "b", "c"]),
        ("SELECT * FROM a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) USING (k), c", ["a", "b", "c"]),
        ("FROM a | WHERE x > (SELECT 1 FROM b) | JOIN c USING (x) | UNION (TABLE d)", [*"abcd"]),
        ("SELECT x | y FROM a PIVOT (sum(x) FOR y IN (1, 2)) AS p, b", ["a", "b"]),
        ("SELECT * FROM JSON_TABLE(j, '$' COLUMNS (x INT PATH '$.x')), a", ["a"]),
    ],
)
def test_names_of_relations_are_found(query: str, names: list[str]) -> None:
    assert _names(query) == names


@pytest.mark.parametrize(
    "query",
    [
        "SELECT extract(YEAR FROM a), trim(BOTH 'x' FROM b), substring(c FROM 2)",
        "SELECT a IS NOT DISTINCT FROM b",
        "SELECT a.from, b.table, c.join FROM VALUES (1)",
        "SELECT * FROM range(10)",
        "SELECT a, b",
        "DROP TABLE IF EXISTS a.b",
        "CREATE TABLE IF NOT EXISTS a.b (id int)",
        "DESCRIBE TABLE EXTENDED a.b",
        "SHOW COLUMNS FROM a FROM b",
        "UNCACHE TABLE IF EXISTS a",
    ],
)
def test_what_is_no_relation_is_left(query: str) -> None:
    assert _names(query) == []


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("WITH c AS (SELECT * FROM a) SELECT * FROM c, b", ["a", "b"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t", []),
        ("WITH c(x) AS (SELECT 1), d AS (SELECT * FROM c) SELECT * FROM D", []),
        ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c", ["c"]),
        ("WITH c AS (SELECT 1) SELECT * FROM db.c", ["db.c"]),
    ],
)
def test_common_table_expressions_hide_tables_where_they_are_visible(
    query: str, names: list[str]
) -> None:
    assert _names(query) == names


@pytest.mark.parametrize(
    ("relation", "options", "time", "alias"),
    [
        ("t VERSION AS OF 12", {"versionAsOf": "12"}, None, None),
        ("t FOR SYSTEM_VERSION AS OF 'b' AS x", {"versionAsOf": "b"}, None, "x"),
        ("t TIMESTAMP AS OF '2026-01-01' x", {}, "'2026-01-01'", "x"),
        ("t FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY x", {}, "now() - INTERVAL 1 DAY", "x"),
        ("t WITH ('split-size' = 5) AS x", {"split-size": "5"}, None, "x"),
        ("t@v12", {"versionAsOf": "12"}, None, None),
        ("t @V12 AS x", {"versionAsOf": "12"}, None, "x"),
        ("t@20260131120000250 x", {"timestampAsOf": "2026-01-31 12:00:00.250"}, None, "x"),
        ("`a b`@v1 WITH ('split-size' = 5)", {"versionAsOf": "1", "split-size": "5"}, None, None),
        ("t TABLESAMPLE (5 PERCENT) x", {}, None, "x"),
        ("t TABLESAMPLE SYSTEM (5 PERCENT) REPEATABLE (1) x", {}, None, "x"),
        ("t TABLESAMPLE BERNOULLI (5 ROWS)", {}, None, None),
        ("(SELECT 1 FROM t GROUP) AS x", {}, None, "GROUP"),
        ("t JOIN LATERAL (SELECT 1)", {}, None, None),
        ("t QUALIFY rank() OVER w = 1 OR", {}, None, None),
        ("t qualify", {}, None, "qualify"),
        ("t approx NEAREST 1 BY SIMILARITY x", {}, None, None),
        ("t approx JOIN LATERAL (SELECT 1)", {}, None, "approx"),
        ("t MATCH_CONDITION (t.a >= b)", {}, None, None),
        ("t match_condition (a, b)", {}, None, "match_condition"),
        ("t asof JOIN LATERAL (SELECT 1)", {}, None, "asof"),
    ],
)
def test_what_follows_a_name_is_read(
    relation: str, options: dict[str, str], time: str | None, alias: str | None
) -> None:
    query = f"SELECT * FROM {relation} WHERE y"
    [found] = _found(query)
    times = {option: span.of(query) for option, span in found.suffix.times.items()}
    assert (found.suffix.options, found.suffix.alias) == (options, alias)
    assert times == ({} if time is None else {"as-of-timestamp": time})


FROM_1 = {"changes": "true", "startingVersion": "1"}


@pytest.mark.parametrize(
    ("clause", "options", "times", "alias"),
    [
        ("FROM VERSION 1", FROM_1, {}, None),
        ("FROM SYSTEM_VERSION '1' AS x", FROM_1, {}, "x"),
        ("FROM VERSION 1 EXCLUSIVE x", FROM_1 | {"startingBoundInclusive": "false"}, {}, "x"),
        (
            "FROM VERSION 1 INCLUSIVE TO VERSION 'v' EXCLUSIVE",
            FROM_1
            | {
                "startingBoundInclusive": "true",
                "endingVersion": "v",
                "endingBoundInclusive": "false",
            },
            {},
            None,
        ),
        (
            "FROM TIMESTAMP '2026-01-01' TO SYSTEM_TIME now() - INTERVAL 1 DAY x",
            {"changes": "true"},
            {"startingTimestamp": "'2026-01-01'", "endingTimestamp": "now() - INTERVAL 1 DAY"},
            "x",
        ),
        (
            "FROM TIMESTAMP TIMESTAMP '2026-01-01' EXCLUSIVE",
            {"changes": "true", "startingBoundInclusive": "false"},
            {"startingTimestamp": "TIMESTAMP '2026-01-01'"},
            None,
        ),
        (
            "FROM VERSION 1 WITH ('computeUpdates' = true, deduplicationMode = 'none') AS x",
            FROM_1 | {"computeUpdates": "true", "deduplicationMode": "none"},
            {},
            "x",
        ),
    ],
)
def test_changes_of_a_table_are_read(
    clause: str, options: dict[str, str], times: dict[str, str], alias: str | None
) -> None:
    query = f"SELECT * FROM a, t CHANGES {clause} WHERE y"
    [_, found] = _found(query)
    assert found.name == ("t",)
    assert found.span.of(query) == f"t CHANGES {clause}".removesuffix(" AS x").removesuffix(" x")
    assert (found.suffix.options, found.suffix.alias) == (options, alias)
    assert {option: span.of(query) for option, span in found.suffix.times.items()} == times


@pytest.mark.parametrize(
    "query",
    [
        "SELECT qualify, changes FROM t changes",
        "SELECT changes FROM t AS changes JOIN u",
        "SELECT changes.a FROM t changes WHERE a",
        "SELECT 1 FROM (SELECT 1 FROM t changes) u",
    ],
)
def test_changes_is_a_clause_only_before_from(query: str) -> None:
    found, *_ = _found(query)
    assert (found.suffix.options, found.suffix.alias) == ({}, "changes")


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("FROM 5", "expected VERSION or TIMESTAMP at '5'"),
        ("FROM VERSION 1 TO 5", "expected VERSION or TIMESTAMP at '5'"),
        ("FROM VERSION 1 TO TIMESTAMP '2026-01-01'", "CHANGES FROM VERSION ends TO VERSION"),
        ("FROM VERSION 1 WITH (startingversion = 2)", "option 'startingversion' says what CHANGES"),
    ],
)
def test_malformed_changes_are_refused(clause: str, message: str) -> None:
    with pytest.raises((InvalidOptionError, InvalidStatementError), match=message):
        _found(f"SELECT * FROM t CHANGES {clause}")


def test_changes_are_found_for_parsers_that_do_not_know_them() -> None:
    clause = "CHANGES FROM VERSION 1\n EXCLUSIVE TO VERSION 'b'"
    text = f"INSERT INTO u SELECT * FROM t {clause} WITH (a = 1) AS x WHERE y"
    for query, spans in ((text, [clause]), ("SELECT changes FROM version v", [])):
        tokens = sql_tokens(query)
        assert tokens is not None
        assert [span.of(query) for span in spans_of_versions(Cursor(query, tokens))] == spans


@pytest.mark.parametrize(
    ("relation", "name", "is_stream"),
    [
        ("STREAM t CHANGES FROM VERSION 1", "t", True),
        ("STREAM t CHANGES", "t", True),
        ("STREAM a.b.t", "a.b.t", True),
        ("STREAM (a.b.t)", "a.b.t", True),
        ("stream t", "t", True),
        ("stream t AS x", "t", True),
        ("stream AS t", "stream", False),
        ("`stream` t", "stream", False),
        ("stream", "stream", False),
        ("stream.t", "stream.t", False),
        ("stream JOIN stream", "stream", False),
        ("stream VERSION AS OF 1", "stream", False),
        ("stream CHANGES FROM VERSION 1", "stream", False),
        ("stream WITH ('a' = 1)", "stream", False),
        ("stream WATERMARK c DELAY OF INTERVAL 1 DAY", "stream", False),
    ],
)
def test_a_stream_is_named_after_the_word(relation: str, name: str, is_stream: bool) -> None:
    text = f"SELECT * FROM {relation} WHERE x"
    for found in _found(text):
        assert (".".join(found.name), found.is_stream) == (name, is_stream)
        assert (found.span.start < found.start) is is_stream
        assert not is_stream or found.span.of(text).lower().startswith("stream ")
        assert not found.span.of(text).endswith("x")


@pytest.mark.parametrize(
    "relation", ["stream(1)", "stream()", "stream(a.b, 1)", "stream((SELECT 1))"]
)
def test_a_function_of_that_name_is_no_stream(relation: str) -> None:
    assert _found(f"SELECT * FROM {relation}") == []


def test_what_follows_a_stream_is_read() -> None:
    text = (
        "SELECT * FROM STREAM t CHANGES WITH (computeUpdates = true) IDENTIFIED BY n "
        "WATERMARK a + b AS c DELAY OF INTERVAL '1' MINUTE AS x, u WATERMARK, "
        "v WATERMARK c DELAY OF INTERVAL 1 HOUR 2 MINUTES WHERE d"
    )
    stream, named, plain = _found(text)
    suffix = stream.suffix
    assert dict(suffix.options) == {"changes": "true", "computeUpdates": "true"}
    assert (suffix.source_name, suffix.alias) == ("n", "x")
    assert stream.span.of(text).endswith("IDENTIFIED BY n")
    assert text[: suffix.alias_at].endswith("'1' MINUTE")
    assert named.suffix.alias == "WATERMARK"
    assert plain.suffix.alias is None
    assert text[: plain.suffix.alias_at].endswith("2 MINUTES")


@pytest.mark.parametrize("relation", ["t@x1", "t@v", "t@ v1", "t@20260131", "t@20261331120000000"])
def test_what_is_no_version_is_refused_after_the_sign_of_one(relation: str) -> None:
    with pytest.raises(InvalidStatementError, match=r"expected a version \(t@v12\) or a time"):
        _found(f"SELECT * FROM {relation}")


@pytest.mark.parametrize(
    "relation",
    [
        "t@v1 VERSION AS OF 2",
        "t@v1 FOR SYSTEM_TIME AS OF now()",
        "t@v1 WITH ('versionasof' = 2)",
        "t VERSION AS OF 1 WITH ('versionAsOf' = 2)",
    ],
)
def test_two_versions_are_refused(relation: str) -> None:
    with pytest.raises(InvalidOptionError, match="MULTIPLE_TIME_TRAVEL_SPEC"):
        _found(f"SELECT * FROM {relation}")


def test_a_version_in_a_quoted_name_belongs_to_the_name() -> None:
    assert _names("SELECT * FROM `t@v1`, db.`u@v2` x") == ["t@v1", "db.u@v2"]


def test_a_version_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidStatementError, match=r"expected a snapshot id or a name at 'x'"):
        _found("SELECT * FROM t VERSION AS OF x")


def _known(expression: Cursor) -> tuple[str, ...] | None:
    return tuple(expression.text().split(".")) if expression.is_at_text() else None


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM IDENTIFIER('db.t') AS x, u", ["db.t", "u"]),
        ("TABLE IDENTIFIER('db.t')", ["db.t"]),
        ("SELECT * FROM IDENTIFIER(:t)", []),
        ("SELECT * FROM IDENTIFIER('range')(10)", []),
        ("WITH c AS (SELECT 1) SELECT * FROM IDENTIFIER('c')", []),
    ],
)
def test_names_that_expressions_give_are_found(query: str, names: list[str]) -> None:
    tokens = sql_tokens(query)
    assert tokens is not None
    found = find_references(Cursor(query, tokens), name_of=_known)
    assert [".".join(each.name) for each in found] == names


def test_places_know_their_from_clause() -> None:
    query = "SELECT * FROM a JOIN (SELECT * FROM b, c) JOIN (d JOIN e) UNION SELECT * FROM f"
    assert [each.clause for each in _found(query)] == [1, 2, 2, 1, 1, 3]


def test_versions_are_given_by_parameters() -> None:
    query = (
        "SELECT :v FROM t VERSION AS OF :v JOIN u TIMESTAMP AS OF :at - INTERVAL 1 DAY ON a = :v"
    )
    tokens = sql_tokens(query)
    assert tokens is not None
    given = {"v": 12, "at": "2026-01-01"}
    assert with_versions(query, tokens, given) == (
        "SELECT :v FROM t VERSION AS OF 12 JOIN u TIMESTAMP AS OF '2026-01-01' - INTERVAL 1 DAY "
        "ON a = :v",
        given,
    )
    with pytest.raises(InvalidStatementError, match="parameter :at has no value"):
        with_versions(query, tokens, {"v": 12})


def test_versions_take_their_parameters_from_those_in_order() -> None:
    query = (
        "SELECT ? FROM t VERSION AS OF ? JOIN u TIMESTAMP AS OF to_timestamp(concat(?, ?)) + ? "
        "WHERE a = ?"
    )
    tokens = sql_tokens(query)
    assert tokens is not None
    assert with_versions(query, tokens, [1, 2, "2026-01-01 ", "12:00", 3, 4]) == (
        "SELECT ? FROM t VERSION AS OF 2 JOIN u TIMESTAMP AS OF "
        "to_timestamp(concat('2026-01-01 ', '12:00')) + ? WHERE a = ?",
        [1, 3, 4],
    )
    with pytest.raises(InvalidStatementError, match=r"parameter \? number 2 has no value"):
        with_versions(query, tokens, [1])
