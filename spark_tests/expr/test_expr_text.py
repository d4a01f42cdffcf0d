"""Filters in messages."""

from __future__ import annotations

import pytest

from icebergds.expr.sql import parse_filter
from icebergds.expr.sql_text import filter_text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("id < 3", "id < 3"),
        ("id <= 3 and not (a = 'x')", "(id <= 3 and a != 'x')"),
        ("a is null or b is not null", "(a is null or b is not null)"),
        ("isnan(f)", "f is nan"),
        ("d >= date'2026-03-02'", "d >= '2026-03-02'"),
        ("price > 1.50", "price > 1.50"),
        ("a like 'x%'", "a starts with 'x'"),
        ("id in (3, 1)", "id in (3, 1)"),
        ("true", "true"),
    ],
)
def test_filters_are_shown_as_people_write_them(written: str, shown: str) -> None:
    assert filter_text(parse_filter(written)) == shown


def test_long_lists_are_cut() -> None:
    listed = ", ".join(map(str, range(12)))
    assert filter_text(parse_filter(f"id in ({listed})")).endswith("8, 9, ...)")
