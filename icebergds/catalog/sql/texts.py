"""Compares texts exactly, in every database.

Databases compare by the collation of a column, which an administrator may have chosen: in MySQL and
MariaDB, most ignore case and accents, and blanks at the end.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, ColumnElement, String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def same(column: ColumnElement[str], value: str) -> ColumnElement[bool]:
    """A condition: a column has exactly this value."""
    return _Same(column, value)


def exactly(column: ColumnElement[str]) -> ColumnElement[str]:
    """A column, for grouping by its exact value."""
    return _Exactly(column)


class _Same(FunctionElement[bool]):
    name = "same"
    type = Boolean()
    inherit_cache = True


class _Exactly(FunctionElement[str]):
    name = "exactly"
    type = String()
    inherit_cache = True


@compiles(_Same)
def _plain_same(element: _Same, compiler: SQLCompiler, **options: Any) -> str:
    one, other = _sides(element, compiler, options)
    return f"{one} = {other}"


@compiles(_Same, "mysql", "mariadb")
def _mysql_same(element: _Same, compiler: SQLCompiler, **options: Any) -> str:
    one, other = _sides(element, compiler, options)
    # By the first, an index is used.
    return f"({one} = {other} AND {_bytes(one)} = {_bytes(other)})"


@compiles(_Exactly)
def _plain_exactly(element: _Exactly, compiler: SQLCompiler, **options: Any) -> str:
    return _sides(element, compiler, options)[0]


@compiles(_Exactly, "mysql", "mariadb")
def _mysql_exactly(element: _Exactly, compiler: SQLCompiler, **options: Any) -> str:
    return _bytes(_sides(element, compiler, options)[0])


def _sides(
    element: FunctionElement[Any], compiler: SQLCompiler, options: dict[str, Any]
) -> list[str]:
    return [compiler.process(clause, **options) for clause in element.clauses]


def _bytes(text: str) -> str:
    return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY)"
