"""Plans of Spark Connect over a load, whose rows are planned when a plan is sent."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.functions import lit
from pyspark.sql.connect.plan import Deduplicate, LogicalPlan, Sort

from icebergds.errors import InvalidFilterError
from icebergds.expr.names import split_name
from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.operations.conditions import Setting
from icebergds.operations.read.first_rows import FirstRows
from icebergds.spark.frames.answers import AggregateQuery, answered_frame
from icebergds.spark.frames.chosen_rows import may_answer
from icebergds.spark.frames.connect_conditions import ZONE, converted, exactly
from icebergds.spark.frames.connect_queries import aggregate_query, distinct_query, first_rows
from icebergds.spark.frames.table_load import PlannedLoad, TableLoad
from icebergds.spark.session import session_setting


@dataclass(frozen=True)
class Root:
    """What the frames of one load share."""

    spark: SparkSession
    load: TableLoad

    @cached_property
    def shape(self) -> Any:
        """An empty relation with the columns of the load."""
        empty: Any = self.spark.createDataFrame([], self.load.schema)
        empty._cached_schema = self.load.schema
        return empty

    def known_of(self, conditions: tuple[Any, ...]) -> tuple[Expr, ...]:
        """Each condition as a predicate on the table, by the current settings."""
        plan, setting = self.load.plan, cache(session_setting(self.spark))
        return tuple(
            converted(each, plan.table_schema, plan.columns.fields, setting) for each in conditions
        )

    def exactly(self, conditions: tuple[Any, ...], setting: Setting) -> Expr | None:
        """All conditions as an exact predicate, if there is one."""
        plan = self.load.plan
        whole: Expr = TRUE
        for each in conditions:
            exact = exactly(each, plan.table_schema, plan.columns.fields, setting)
            if exact is None:
                return None
            whole = and_(whole, exact)
        return whole

    def are_plain(self, columns: Any) -> bool:
        """Whether only whole columns are named; anything else makes new columns, of any name."""
        if len(columns) == 1 and isinstance(columns[0], list | tuple):
            columns = columns[0]
        names = {field.name for field in self.load.plan.columns.fields}
        return bool(columns) and all(_name_of(column) in names for column in columns)

    def with_rows(self, plan: Any, conditions: tuple[Any, ...]) -> Any:
        """Puts rows beneath a shape's plan, at least those that meet the conditions."""
        return _on(_Rows(self, conditions), plan)

    def rows(self, known: tuple[Expr, ...]) -> Any:
        """A plan with the load's columns, of at least the rows that meet the predicates."""
        return self.leaf(self.load.planned(self.spark, and_(*known)))

    def leaf(self, planned: PlannedLoad | None) -> Any:
        """A plan with the load's columns, of rows that are planned; None for no rows."""
        rows: Any = self.spark.createDataFrame([], self.load.schema)
        if planned is not None:
            rows = rows.union(planned.rows(self.spark))
        rows._plan._root_plan_id = self.shape._plan._root_plan_id
        return rows._plan


class _Rows(LogicalPlan):
    """Rows of a load, planned when sent; planned again if settings changed the conditions."""

    def __init__(self, root: Root, conditions: tuple[Any, ...]) -> None:
        super().__init__(None)
        self._root_plan_id = root.shape._plan._root_plan_id
        self._of, self._conditions = root, conditions
        self._planned: tuple[tuple[Expr, ...], Any] | None = None

    def plan(self, session: Any) -> Any:
        known, planned = self._of.known_of(self._conditions), self._planned
        if planned is None or planned[0] != known:
            self._planned = planned = known, self._of.rows(known)
        return planned[1].plan(session)


class _Planned(LogicalPlan):
    """A plan of Spark's, with other rows beneath it that are planned when it is sent.

    Args:
        of_spark: over `_Rows`, or what the conditions choose of them.
    """

    def __init__(self, root: Root, conditions: tuple[Any, ...], of_spark: Any) -> None:
        super().__init__(None)
        self._root_plan_id = of_spark._plan_id
        self._of, self._conditions, self._of_spark = root, conditions, of_spark
        self._planned: tuple[object, Any] | None = None

    def plan(self, session: Any) -> Any:
        setting = cache(session_setting(self._of.spark))
        condition = self._of.exactly(self._conditions, setting)
        asked = None if condition is None else self._asked(condition, setting)
        if asked is None:
            return self._of_spark.plan(session)
        if self._planned is None or self._planned[0] != asked:
            self._planned = asked, self._answer(asked)
        return self._planned[1].plan(session)

    def _asked(self, condition: Expr, setting: Setting) -> Any:
        """What is asked of the load; None if Spark reads its rows."""
        raise NotImplementedError

    def _answer(self, asked: Any) -> Any:
        """The plan that is sent instead."""
        raise NotImplementedError


class Answered(_Planned):
    """Aggregates or distinct rows that metadata answers, and of the rows that it leaves.

    Args:
        shape: of the rows that are aggregated.
    """

    def __init__(self, root: Root, conditions: tuple[Any, ...], of_spark: Any, shape: Any) -> None:
        super().__init__(root, conditions, of_spark)
        self._shape = shape

    def _asked(self, condition: Expr, setting: Setting) -> AggregateQuery | None:
        load, fields = self._of.load, self._of.load.fields
        if len({field.name.lower() for field in fields}) < len(fields):
            return None
        if not may_answer(self._of.spark, load.state, load.options):
            return None
        if isinstance(self._of_spark, Deduplicate):
            return distinct_query(self._shape.columns, condition, fields)
        return aggregate_query(self._of_spark, condition, fields, setting(ZONE))

    def _answer(self, asked: AggregateQuery) -> Any:
        root, spark, of_spark = self._of, self._of.spark, self._of_spark
        answered, left = root.load.answered(spark, asked.asked)
        if answered is None:
            return of_spark

        def unread() -> DataFrame:
            plan = _on(root.leaf(left), of_spark._child)
            return ConnectDataFrame(plan, spark)  # type: ignore[arg-type]

        rows = answered_frame(spark, asked, answered, None if left is None else unread)
        # It has no rows, unless it has no keys, but its columns have their names.
        empty = ConnectDataFrame(_on(root.leaf(None), of_spark), spark)  # type: ignore[arg-type]
        union: Any = empty.filter(lit(False)).union(rows)
        union._plan._root_plan_id = self._root_plan_id
        return union._plan


class First(_Planned):
    """A limit of rows, of which only those are read that may be among the first."""

    def _asked(self, condition: Expr, _: Setting) -> FirstRows | None:
        load, limit = self._of.load, self._of_spark
        if load.options.changes is not None:
            return None
        sort = limit._child if isinstance(limit._child, Sort) else None
        return first_rows(limit.limit, sort, condition, load.fields)

    def _answer(self, asked: FirstRows) -> Any:
        return _on(self._of.leaf(self._of.load.first(self._of.spark, asked)), self._of_spark)


def _on(leaf: Any, plan: Any) -> Any:
    """A copy of a plan with another leaf."""
    if plan._child is None:
        return leaf
    changed = copy.copy(plan)
    changed._child = _on(leaf, plan._child)
    return changed


def _name_of(column: Any) -> str | None:
    """The name of a column that is only a name; None for other columns."""
    expression = getattr(column, "_expr", None)
    if isinstance(expression, ColumnReference) and not expression._is_metadata_column:
        column = expression._unparsed_identifier
    try:
        parts = split_name(column) if isinstance(column, str) else ()
    except InvalidFilterError:
        return None
    return parts[0] if len(parts) == 1 else None
