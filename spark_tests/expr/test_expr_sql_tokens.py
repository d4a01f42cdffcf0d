from __future__ import annotations

import pytest

from icebergds.expr.sql_tokens import sql_tokens


@pytest.mark.parametrize("word", ["EXECUTE", "SHOW", "CALL", "FETCH", "RENAME"])
@pytest.mark.parametrize("before", ["", "BEGIN ", "SELECT 1; "])
def test_no_word_swallows_what_follows_it(before: str, word: str) -> None:
    tokens = sql_tokens(f"{before}{word} a 'b c'; END")
    assert tokens is not None
    assert [each.text for each in tokens][-5:] == [word, "a", "'b c'", ";", "END"]
