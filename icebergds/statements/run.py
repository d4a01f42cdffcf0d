"""Runs a statement of SQL (`sql`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.operations.conditions import ESCAPED
from icebergds.spark.job_descriptions import describing
from icebergds.spark.session import acting_in, session_setting
from icebergds.spark.verbs import unknown_catalog
from icebergds.statements.commands import COMMANDS
from icebergds.statements.immediate import read_immediate
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.query import run_query
from icebergds.statements.scripts import is_script, refuse_commands
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.syntax import syntax_error
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.double_quotes import with_backticks
from icebergds.statements.text.parameters import with_literals, with_versions

_LONGEST_SHOWN = 200
_SESSION_CATALOG = "spark_catalog"


def sql(spark: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
    """Runs a statement of Spark SQL, or of Iceberg's extensions of it, on tables of our catalogs.

    Text that names nothing of ours goes to Spark as it is.

    Args:
        sqlQuery: one statement.
        args: values of the parameters `:name` and `?`, as of `SparkSession.sql`.
        kwargs: what `{name}` in the text stands for, as of `SparkSession.sql`.

    Returns:
        The result; of statements that change rows how many they changed, of others without a
        result an empty DataFrame.

    Raises:
        InvalidStatementError: the statement is malformed, or asks for what is not supported; or a
            name begins with no catalog that is configured.
        IcebergError: what it asks for does not exist, or failed.
        PySparkException: Spark refused it.

    >>> icebergds.sql(spark, "SELECT * FROM lake.db.events")  # doctest: +SKIP
    """
    arguments = Arguments(args, kwargs)
    is_text = isinstance(sqlQuery, str)
    text = with_backticks(sqlQuery, session_setting(spark)) if is_text else sqlQuery
    cursor = _read(text)
    if cursor is None:
        return spark_sql(spark, sqlQuery, arguments)
    with acting_in(spark):
        try:
            return _run(NameScope(spark), cursor, arguments)
        except (InvalidStatementError, ParseException):
            # Spark's own words and places, of the text that the user wrote.
            is_of_spark = not cursor.is_extension and not kwargs
            error = syntax_error(spark, sqlQuery) if is_of_spark else None
            if error is None:
                raise
            raise error from None
        except AnalysisException as error:
            catalog = unknown_catalog(error)
            if catalog is None or _SESSION_CATALOG in text.lower():
                raise
            scope = NameScope(spark)
            scope.require_catalog(catalog)
            # It was configured since it was last looked for.
            cursor.at = 0
            return _run(scope, cursor, arguments)
        except RecursionError:
            raise InvalidStatementError(
                f"{text[:_LONGEST_SHOWN]}...: parentheses are nested too deeply"
            ) from None


def _run(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame:
    if is_script(cursor):
        refuse_commands(scope, cursor)
    if cursor.is_at("EXECUTE", "IMMEDIATE"):
        immediate = read_immediate(scope, _with_parameters(scope, cursor, arguments))
        if immediate is not None:
            return sql(scope.spark, immediate.text, immediate.parameters)
    for command in COMMANDS:
        if not command.is_of(cursor):
            continue
        given = _with_parameters(scope, cursor, arguments)
        try:
            # Such as for its arguments; what it does to a table has a description of its own.
            with describing(cursor.tokens[0].text.upper()):
                found = command.run(scope, given, Arguments(named=arguments.named))
        finally:
            cursor.is_extension = given.is_extension
        if found is not None:
            return found
        break
    cursor.at = 0
    if arguments.parameters is not None:
        # Tables are read before Spark sees the parameters.
        text, others = with_versions(
            cursor.statement,
            cursor.tokens,
            arguments.parameters,
            has_escapes=_has_escapes(scope),
        )
        if text != cursor.statement:
            cursor, arguments = _read(text) or cursor, replace(arguments, parameters=others)
    return run_query(scope, cursor, arguments)


def _with_parameters(scope: NameScope, cursor: Cursor, arguments: Arguments) -> Cursor:
    """The statement with the values of its parameters as literals."""
    if arguments.parameters is None:
        return cursor
    text = with_literals(
        cursor.statement,
        cursor.tokens,
        arguments.parameters,
        has_escapes=_has_escapes(scope),
    )
    return _read(text) or cursor


def _has_escapes(scope: NameScope) -> bool:
    return session_setting(scope.spark)(ESCAPED) != "true"


def _read(text: object) -> Cursor | None:
    """The tokens of a statement, without the semicolon at its end; None if it has none."""
    tokens = sql_tokens(text) if isinstance(text, str) else None
    if not tokens:
        return None
    assert isinstance(text, str)
    end = len(tokens)
    while end and tokens[end - 1].is_sign(";"):
        end -= 1
    return Cursor(text, tokens, 0, end) if end else None
