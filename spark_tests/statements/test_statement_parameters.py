"""Values of parameters stand in statements as literals that cannot become anything else."""

from __future__ import annotations

from typing import Any

import pytest

from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.text.parameters import with_literals


def _written(text: str, parameters: Any, *, has_escapes: bool = True) -> str:
    tokens = sql_tokens(text)
    assert tokens is not None
    return with_literals(text, tokens, parameters, has_escapes=has_escapes)


@pytest.mark.parametrize("text", ["id > 10 -:n AND v", "id > 10 -? AND v"])
def test_negative_numbers_behind_a_minus_begin_no_comment(text: str) -> None:
    given = {"n": -5} if ":n" in text else [-5]
    assert _written(text, given) == "id > 10 -(-5) AND v"


def test_values_do_not_run_into_words() -> None:
    assert _written("id BETWEEN?AND?", [1, 2]) == "id BETWEEN 1 AND 2"


def test_texts_name_no_settings_and_no_variables_of_the_environment() -> None:
    assert _written("s = :s", {"s": "${env:HOME} $1"}) == r"s = '\u0024{env:HOME} $1'"


@pytest.mark.parametrize("text", ["it's", "a\\b", "${env:HOME}"])
def test_texts_are_the_same_where_backslashes_escape_nothing(text: str) -> None:
    found = _written("s = ?", [text], has_escapes=False)
    assert found == f"s = CAST(X'{text.encode().hex()}' AS STRING)"
