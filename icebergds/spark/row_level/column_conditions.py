"""Translates conditions given as Columns to filters for planning statements.

Spark checks such a condition and resolves its names before it is translated. What cannot be
translated is left to Spark, as is SQL text that cannot be used for planning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icebergds.expr.comparisons import compares_exactly
from icebergds.expr.nodes import TRUE, Expr
from icebergds.spark.errors import unlogged
from icebergds.spark.jvm import Private, with_private
from icebergds.spark.session import is_connect, session_setting
from icebergds.spark.types import spark_schema
from icebergds.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """What is known about a condition on a table.

    Attributes:
        exact: the same condition, not bound; None if only Spark can evaluate it.
        at_least: a filter that is true for every row for which the condition is; not bound.
    """

    exact: Expr | None = None
    at_least: Expr = TRUE


@dataclass(frozen=True, slots=True)
class JoinFilter:
    """What is known about a condition on the rows of a table and a source.

    Attributes:
        of_target: a filter that is true for every table row that matches any source row; not bound.
        equal: pairs of names of equal columns, qualified by the aliases of their sides.
    """

    of_target: Expr = TRUE
    equal: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()


def column_filter(
    spark: SparkSession, condition: Any, schema: Schema, alias: str | None = None
) -> ColumnFilter:
    """Translates a condition on the rows of a table.

    Args:
        condition: a Column.
        schema: the table's schema.
        alias: the table's alias in the condition.
    """
    if not _is_of(spark, condition):
        return ColumnFilter()
    rows = spark.createDataFrame([], spark_schema(schema))
    rows = rows if alias is None else rows.alias(alias)
    try:
        with unlogged():
            filtered = rows.where(condition)
            _ = filtered.schema
        if is_connect(spark):
            exact, at_least = _of_connect(spark, condition, schema, alias)
        else:
            exact, at_least = with_private(
                Private.CONDITIONS,
                lambda: _of_classic(filtered, rows, schema),
                lambda: (None, TRUE),
            )
    except (PySparkException, Py4JError):
        # The statement itself raises the error.
        return ColumnFilter()
    if exact is not None and not compares_exactly(exact, schema):
        return ColumnFilter()
    return ColumnFilter(exact, at_least)


def as_text(spark: SparkSession, condition: Any) -> Any:
    """The SQL of a Connect Column that is only SQL text; other conditions as they are."""
    expression = getattr(condition, "_expr", None) if is_connect(spark) else None
    is_text = type(expression).__name__ == "SQLExpression"
    return expression._expr if is_text else condition  # type: ignore[union-attr]


def join_filter(
    spark: SparkSession, condition: Any, schema: Schema, joined: DataFrame, aliases: tuple[str, str]
) -> JoinFilter:
    """Translates the condition of a join of a table, on the left, and a source.

    Args:
        condition: a Column.
        schema: the table's schema.
        joined: their inner join by the condition.
        aliases: of the table and of the source.
    """
    if not _is_of(spark, condition):
        return JoinFilter()
    if is_connect(spark):
        from icebergds.spark.frames.connect_conditions import Names, converted_exactly, equal_names

        names = Names(*aliases)
        found = converted_exactly(condition._expr, schema, session_setting(spark), names)
        return JoinFilter(found[1], tuple(equal_names(condition._expr, names)))
    return with_private(
        Private.CONDITIONS, lambda: _of_classic_join(joined, schema, aliases), JoinFilter
    )


def _is_of(spark: SparkSession, condition: Any) -> bool:
    """Whether a value is a Column of the session's kind."""
    return hasattr(condition, "_expr" if is_connect(spark) else "_jc")


def _of_connect(
    spark: SparkSession, condition: Any, schema: Schema, alias: str | None
) -> tuple[Expr | None, Expr]:
    from icebergds.spark.frames.connect_conditions import Names, converted_exactly

    return converted_exactly(condition._expr, schema, session_setting(spark), Names(alias))


def _of_classic(filtered: DataFrame, rows: DataFrame, schema: Schema) -> tuple[Expr | None, Expr]:
    from icebergds.spark.frames.classic_conditions import converted_exactly

    plan = _plan(filtered)
    if _kind(plan) != "Filter":
        return None, TRUE
    return converted_exactly(plan.condition(), schema, _columns(_plan(rows), schema))


def _of_classic_join(joined: DataFrame, schema: Schema, aliases: tuple[str, str]) -> JoinFilter:
    from icebergds.spark.frames.classic_conditions import converted_exactly, equal_names

    plan = _plan(joined)
    if _kind(plan) != "Join" or plan.condition().isEmpty():
        return JoinFilter()
    condition, columns = plan.condition().get(), _columns(plan.left(), schema)
    output = plan.right().output()
    sources = {output.apply(at).exprId().id() for at in range(output.size())}
    _, of_target = converted_exactly(condition, schema, columns)
    target, source = aliases
    equal = equal_names(condition, schema, columns, sources)
    return JoinFilter(of_target, tuple(((target, *one), (source, *other)) for one, other in equal))


def _columns(plan: Any, schema: Schema) -> Mapping[int, Any]:
    """The columns of a table by the expression ids of a plan that returns them."""
    output = plan.output()
    return {output.apply(at).exprId().id(): field for at, field in enumerate(schema.fields)}


def _plan(frame: DataFrame) -> Any:
    classic: Any = frame._jdf
    return classic.queryExecution().analyzed()


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
