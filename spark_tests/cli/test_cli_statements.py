"""Scripts of SQL are split into statements."""

from __future__ import annotations

import pytest

from icebergds.cli.statements import statements_of


@pytest.mark.parametrize(
    ("text", "whole", "rest"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT 1; -- one\nSELECT 2", ["SELECT 1"], "-- one\nSELECT 2"),
        ("SELECT 1;\n-- the end; of it\n", ["SELECT 1"], ""),
        (";;\n;", [], ""),
        (
            "SELECT ';', \"a;\", `b;`, r'\\' /* ; */;",
            ["SELECT ';', \"a;\", `b;`, r'\\' /* ; */"],
            "",
        ),
        ("SELECT 1; SELECT 'a; ", [], "SELECT 1; SELECT 'a; "),
        ("SELECT 1; /* a;", [], "SELECT 1; /* a;"),
        (
            "BEGIN SELECT CASE WHEN a THEN 1 END; IF a THEN SELECT 2; END IF; END; SELECT 3",
            ["BEGIN SELECT CASE WHEN a THEN 1 END; IF a THEN SELECT 2; END IF; END"],
            "SELECT 3",
        ),
        ("BEGIN BEGIN SELECT 1; END; ", [], "BEGIN BEGIN SELECT 1; END;"),
        ("BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; END name; x", None, "x"),
    ],
)
def test_semicolons_end_statements(text: str, whole: list[str] | None, rest: str) -> None:
    found, left = statements_of(text)
    assert left == rest
    assert whole is None or found == whole
    assert whole is not None or len(found) == 1
