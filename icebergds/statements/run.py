"""Runs a SQL statement (`sql`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.sql_tokens import Token, sql_tokens
from icebergds.operations.conditions import ESCAPED
from icebergds.spark.job_descriptions import describing
from icebergds.spark.session import acting_in, session_setting
from icebergds.spark.verbs import unknown_catalog
from icebergds.statements.commands import COMMANDS
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.queries.query import run_query
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.suffixes import spans_of_versions
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.syntax import knows_newest_words, syntax_error
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.parameters import with_literals, with_versions
from icebergds.statements.text.splice import with_backticks

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

    Examples:
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
            # Spark's own error, with positions in the text that the user wrote.
            is_of_spark = not cursor.is_extension and not kwargs and _is_known(spark, cursor)
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
            # It was configured after the last lookup.
            cursor.at = 0
            return _run(scope, cursor, arguments)
        except RecursionError:
            raise InvalidStatementError(
                f"{text[:_LONGEST_SHOWN]}...: parentheses are nested too deeply"
            ) from None


def _is_known(spark: SparkSession, cursor: Cursor) -> bool:
    """Whether Spark can parse the versions of tables in a statement."""
    whole = cursor.part(0)
    return knows_newest_words(spark) or not any(spans_of_versions(whole))


def _run(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame:
    if _is_script(cursor):
        _refuse_commands(scope, cursor)
    if cursor.is_at("EXECUTE", "IMMEDIATE"):
        immediate = _read_immediate(scope, _with_parameters(scope, cursor, arguments))
        if immediate is not None:
            return sql(scope.spark, immediate.text, immediate.parameters)
    for command in COMMANDS:
        if not command.is_of(cursor):
            continue
        given = _with_parameters(scope, cursor, arguments)
        try:
            # For example in its arguments; changes of a table are described on their own.
            with describing(cursor.tokens[0].text.upper()):
                found = command.run(scope, given, Arguments(named=arguments.named))
        finally:
            cursor.is_extension = given.is_extension
        if found is not None:
            return found
        break
    cursor.at = 0
    if arguments.parameters is not None:
        # Tables are read before Spark gets the parameters.
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
    """The tokens of a statement, without the final semicolon; None if it has none."""
    tokens = sql_tokens(text) if isinstance(text, str) else None
    if not tokens:
        return None
    assert isinstance(text, str)
    end = len(tokens)
    while end and tokens[end - 1].is_sign(";"):
        end -= 1
    return Cursor(text, tokens, 0, end) if end else None


# Words before a statement of a script.
_BEFORE = ("BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT")


def _is_script(cursor: Cursor) -> bool:
    """Whether a text is `[label:] BEGIN ... END`."""
    token = cursor.peek(1)
    if token is not None and token.is_sign(":"):
        return cursor.part(cursor.at + 2).is_at("BEGIN")
    return cursor.is_at("BEGIN")


def _refuse_commands(scope: NameScope, script: Cursor) -> None:
    """Raises UnsupportedFeatureError if a statement other than a query may use our catalogs.

    Spark runs a script as a whole: queries can name our tables, but other statements would go to
    Spark's own catalog.
    """
    for statement in _statements(script):
        is_command = any(command.is_of(statement) for command in COMMANDS)
        if (is_command or statement.is_at("EXECUTE")) and _may_be_ours(scope, statement):
            raise UnsupportedFeatureError(
                f"{statement.written[:200]}: in BEGIN ... END, only queries can name tables of "
                f"catalogs of ours ({', '.join(scope.catalogs())}); run the statement by itself"
            )


def _statements(script: Cursor) -> Iterator[Cursor]:
    tokens = script.tokens
    for at in range(script.at + 1, script.end):
        before = tokens[at - 1]
        if not before.is_sign(";") and not before.is_word(*_BEFORE):
            continue
        end = next((n for n in range(at, script.end) if tokens[n].is_sign(";")), script.end)
        if at < end:
            yield Cursor(script.statement, tokens, at, end)


def _may_be_ours(scope: NameScope, statement: Cursor) -> bool:
    if scope.current.catalog is not None:
        return True
    tokens = statement.tokens[statement.at : statement.end]
    return any(token.is_identifier and scope.is_catalog(token.identifier) for token in tokens)


@dataclass(frozen=True, slots=True)
class _Immediate:
    """The statement to run, and the values of its parameters, by name or in order."""

    text: str
    parameters: Any = None


def _read_immediate(scope: NameScope, cursor: Cursor) -> _Immediate | None:
    """Reads `EXECUTE IMMEDIATE text [INTO variable, ...] [USING value [AS name], ...]`.

    None if Spark has to run it: the text is not known, or the results go to variables.

    Raises:
        UnsupportedFeatureError: the results of a query on our tables go to variables.
    """
    cursor.expect("EXECUTE", "IMMEDIATE")
    expression = cursor.until("INTO", "USING")
    has_variables = cursor.take("INTO")
    if has_variables:
        cursor.until("USING")
    try:
        [row] = spark_sql(scope.spark, f"SELECT {expression.written}", Arguments()).collect()
        text = row[0]
        tokens = sql_tokens(text) if isinstance(text, str) else None
        if not tokens:
            return None
        if has_variables:
            _refuse_ours(scope, Cursor(text, tokens))
            return None
        return _Immediate(text, _parameters(scope, cursor, tokens))
    except PySparkException:
        # Spark reports what is wrong.
        return None


def _refuse_ours(scope: NameScope, query: Cursor) -> None:
    for name in _of_ours(scope, query):
        raise UnsupportedFeatureError(
            f"EXECUTE IMMEDIATE ... INTO of a query on {name} is not supported; use SET VAR "
            "variable = (query)"
        )


def _of_ours(scope: NameScope, query: Cursor) -> Iterator[CatalogName]:
    for reference in find_references(query):
        name = scope.table(reference.name)
        if name is not None:
            yield name


def _parameters(scope: NameScope, cursor: Cursor, tokens: tuple[Token, ...]) -> Any:
    if not cursor.take("USING"):
        return None
    given = cursor.rest()
    while given.is_at_sign("(") and (group := _copy(given).group()).end + 1 == given.end:
        given = group
    values = spark_sql(scope.spark, f"SELECT {given.written}", Arguments())
    [row] = values.collect()
    if any(token.is_sign("?") for token in tokens):
        return list(row)
    return dict(zip(values.columns, row, strict=True))


def _copy(cursor: Cursor) -> Cursor:
    return cursor.part()
