from __future__ import annotations

from types import SimpleNamespace

import pytest

from icebergds.statements.syntax import without_explain
from icebergds.statements.text.splice import with_backticks
from icebergds.statements.user_text import Piece, Splicing

_NAME = "_pyspark_" + "0123456789abcdef" * 2


def _restored(original: str, pieces: tuple[Piece, ...], message: str) -> str:
    error = SimpleNamespace(_desc=message)
    Splicing(original, pieces).restore(error)
    return str(error._desc)


@pytest.mark.parametrize(
    ("line", "position", "user_line", "user_position"),
    [(1, 7, 1, 7), (1, 60, 1, 14), (1, 63, 1, 24), (2, 4, 2, 4), (9, 4, 9, 4)],
)
def test_places_are_those_of_the_users_text(
    line: int, position: int, user_line: int, user_position: int
) -> None:
    original = "SELECT * FROM lake.db.t, x\nWHERE a = 1"
    pieces = (
        Piece("SELECT * FROM ", 0),
        Piece(None, 14, is_users=False),
        Piece(" AS `t`", 14, is_users=False),
        Piece(", x\nWHERE a = 1", 23),
    )
    assert _restored(original, pieces, f"oops; line {line} pos {position};") == (
        f"oops; line {user_line} pos {user_position};"
    )


def test_generated_names_are_not_shown() -> None:
    message = f"near {_NAME} AS `t` WHERE, View (`{_NAME}`)"
    assert _restored("", (), message) == "near `t` WHERE, View (`table`)"


def test_errors_without_such_a_text_stay() -> None:
    Splicing("", ()).restore(ValueError("x"))


def test_syntax_errors_through_explain_are_those_of_the_text_alone() -> None:
    message = "[X] near 'b'. (line 3, pos 2)\n\n== SQL ==\nEXPLAIN\nDELETE\na b\n--^^^\n"
    expected = "[X] near 'b'. (line 2, pos 2)\n\n== SQL ==\nDELETE\na b\n--^^^\n"
    assert without_explain(message) == expected


def test_double_quotes_become_backticks_where_they_quote_names() -> None:
    text = """SELECT "a""b`c", '"d"' -- "e"\nFROM t"""
    settings = {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}
    changed = """SELECT `a"b``c`, '"d"' -- "e"\nFROM t"""
    assert with_backticks(text, settings.get) == changed
    assert with_backticks(text, lambda name: None) == text
    assert with_backticks(text, {**settings, "spark.sql.ansi.enabled": "false"}.get) == text
