"""Reads the columns that statements define: names, types, defaults and other clauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.sql_tokens import TokenKind, sql_tokens
from icebergds.spark.types import spark_type
from icebergds.spec.types import TIME, IcebergType
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a column.

    Attributes:
        after: the name of a column of the same struct; None for the start.
    """

    after: str | None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column that a statement defines.

    Attributes:
        path: its name, after the names of the structs that contain it.
        type_text: as written.
        default: an expression, as written.
    """

    path: tuple[str, ...]
    type_text: str
    required: bool = False
    comment: str | None = None
    default: str | None = None
    place: Place | None = None


def read_columns(cursor: Cursor) -> list[ColumnDefinition]:
    """Reads all of a list of columns, separated by commas.

    Raises:
        InvalidStatementError: it is malformed.
        UnsupportedFeatureError: it has constraints, or generated columns.
    """
    found = [read_column(cursor)]
    while cursor.take_sign(","):
        found.append(read_column(cursor))
    cursor.expect_end()
    return found


def read_column(cursor: Cursor) -> ColumnDefinition:
    """Reads a name, a type and clauses. Errors are those of `read_columns`."""
    _refuse_constraint(cursor)
    path = cursor.name("the name of a column")
    cursor.take_sign(":")
    type_text = read_type(cursor)
    required, comment, default, place = False, None, None, None
    while True:
        if not required and cursor.take("NOT", "NULL"):
            required = True
        elif comment is None and cursor.take("COMMENT"):
            comment = cursor.text("the text of the comment in quotes")
        elif default is None and cursor.take("DEFAULT"):
            default = read_default(cursor)
        elif place is None and (found := read_place(cursor)) is not None:
            place = found
        else:
            _refuse_clause(cursor, ".".join(path))
            return ColumnDefinition(path, type_text, required, comment, default, place)


def read_place(cursor: Cursor) -> Place | None:
    """Reads FIRST or `AFTER column`, if it is next."""
    if cursor.take("FIRST"):
        return Place(None)
    if cursor.take("AFTER"):
        return Place(cursor.identifier("the name of a column"))
    return None


def read_type(cursor: Cursor) -> str:
    """Reads a type, and returns it as written."""
    start = cursor.at
    name = cursor.identifier("the type of the column")
    if cursor.is_at_sign("("):
        cursor.group()
    _read_angles(cursor)
    if cursor.take("COLLATE"):
        cursor.name("the name of a collation")
    elif name.upper() == "INTERVAL":
        while cursor.take_any(*_UNITS):
            pass
    return _written(cursor, start)


def read_default(cursor: Cursor) -> str:
    """Reads the expression of a default, and returns it as written."""
    start, depth = cursor.at, 0
    while (token := cursor.peek()) is not None:
        # NULL may be the value, and NOT may begin it.
        is_clause = token.is_word(*_CLAUSES) or cursor.is_at("NOT", "NULL")
        if depth == 0 and (token.is_sign(",") or is_clause):
            break
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        cursor.next()
    if cursor.at == start:
        raise cursor.error("the value of the default")
    return _written(cursor, start)


_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "TO")
_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "REFERENCES")
_CLAUSES = ("COMMENT", "DEFAULT", "GENERATED", "FIRST", "AFTER", *_CONSTRAINTS)


def _read_angles(cursor: Cursor) -> None:
    """Reads the types nested in a type, in angle brackets."""
    if not cursor.is_at_sign("<", "<>"):
        return
    depth = 0
    while True:
        token = cursor.next()
        if token.kind is TokenKind.SIGN:
            depth += token.text.count("<") - token.text.count(">")
        if depth == 0:
            return


def _written(cursor: Cursor, start: int) -> str:
    """The text of the tokens from a position to here."""
    return cursor.part(start, cursor.at).written


def _refuse_constraint(cursor: Cursor) -> None:
    """Rejects a constraint instead of a column."""
    is_constraint = (
        cursor.is_at("PRIMARY", "KEY")
        or cursor.is_at("FOREIGN", "KEY")
        or (cursor.is_at("CONSTRAINT") and _names_constraint(cursor))
        or any(
            cursor.is_at(word) and (then := cursor.peek(1)) is not None and then.is_sign("(")
            for word in ("UNIQUE", "CHECK")
        )
    )
    if is_constraint:
        raise refused_constraint(cursor)


def _names_constraint(cursor: Cursor) -> bool:
    kind = cursor.peek(2)
    return kind is not None and kind.is_word(*_CONSTRAINTS)


def _refuse_clause(cursor: Cursor, column: str) -> None:
    if cursor.is_at("GENERATED"):
        raise UnsupportedFeatureError(
            f"column {column}: GENERATED is not supported, because Iceberg's tables have no "
            "computed columns; partition by a transform such as days(ts), or fill it in queries"
        )
    if any(cursor.is_at(word) for word in _CONSTRAINTS):
        raise refused_constraint(cursor)


def refused_constraint(cursor: Cursor) -> UnsupportedFeatureError:
    """The error for a constraint, which comes next."""
    written = " ".join(token.text for token in (cursor.peek(), cursor.peek(1)) if token is not None)
    return UnsupportedFeatureError(
        f"{written}: constraints are not supported, because Iceberg's tables have none but NOT "
        "NULL; keys of rows are declared by ALTER TABLE ... SET IDENTIFIER FIELDS"
    )


# Functions whose value changes from call to call; and queries, whose rows change.
_CHANGING = frozenset(
    """
    CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA CURRENT_DATE CURDATE CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_TIMEZONE CURRENT_USER LOCALTIMESTAMP MONOTONICALLY_INCREASING_ID NOW
    RAND RANDN RANDOM RANDSTR SELECT SESSION_USER SHUFFLE SPARK_PARTITION_ID UNIFORM USER UUID
    """.split()  # noqa: SIM905
)


def evaluate_default(spark: SparkSession, column: str, field_type: IcebergType, text: str) -> Any:
    """The value of a default for a column; None for NULL.

    Args:
        text: an expression of Spark SQL.

    Raises:
        UnsupportedFeatureError: its value changes with time.
        InvalidStatementError: Spark cannot evaluate it, or its value is not of the column's type.
    """
    for token in sql_tokens(text) or ():
        if token.is_word(*_CHANGING):
            raise UnsupportedFeatureError(
                f"column {column}: the default {text} has another value each time, and Iceberg's "
                "tables keep defaults as values; give a literal, or fill the column in INSERT"
            )
    if text.strip().upper() == "NULL":
        return None
    # DataFrames hold times as whole numbers.
    wanted = "time(6)" if field_type == TIME else spark_type(field_type).simpleString()
    try:
        found = spark_sql(spark, f"SELECT CAST(({text}) AS {wanted}) FROM VALUES (0)", Arguments())
        return found.toArrow().column(0)[0].as_py()
    except PySparkException as error:
        reason = str(error).partition("\n")[0]
        raise InvalidStatementError(
            f"column {column}: the default {text} is no value of {field_type}: {reason}"
        ) from error
