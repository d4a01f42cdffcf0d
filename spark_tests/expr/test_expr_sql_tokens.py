from __future__ import annotations

import pytest

from icebergds.expr.sql_tokens import TokenKind, sql_tokens


@pytest.mark.parametrize("word", ["EXECUTE", "SHOW", "CALL", "FETCH", "RENAME"])
@pytest.mark.parametrize("before", ["", "BEGIN ", "SELECT 1; "])
def test_no_word_swallows_what_follows_it(before: str, word: str) -> None:
    tokens = sql_tokens(f"{before}{word} a 'b c'; END")
    assert tokens is not None
    assert [each.text for each in tokens][-5:] == [word, "a", "'b c'", ";", "END"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a $$ it's; \" -- $$ b;", ["a", "$$ it's; \" -- $$", "b", ";"]),
        ("$y$ $$ ` $y$$$$$", ["$y$ $$ ` $y$", "$$$$"]),
        ("x = '$$', \"$$\", `$$` -- $$\n+ $$'$$", ["x", "=", "'$$'", ",", '"$$"', ",", "`$$`"]),
        ("r'\\', $$'$$", ["r'\\'", ",", "$$'$$"]),
    ],
)
def test_text_between_dollars_is_one_token(text: str, pieces: list[str]) -> None:
    tokens = sql_tokens(text)
    assert tokens is not None
    assert [each.text for each in tokens][: len(pieces)] == pieces
    assert all(text[each.start : each.end] == each.text for each in tokens)
    codes = [each for each in tokens if each.kind is TokenKind.CODE]
    assert codes
    assert not any(each.is_identifier or each.is_sign("$") for each in codes)


@pytest.mark.parametrize("text", ["SELECT ${a}, ${b}", "SELECT $ $", "$a 1$"])
def test_other_dollars_are_signs(text: str) -> None:
    tokens = sql_tokens(text)
    assert tokens is not None
    assert [each.text for each in tokens].count("$") == 2
