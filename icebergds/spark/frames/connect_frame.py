"""Implements a Spark Connect DataFrame that prunes files by its own conditions.

As with classic Spark (`classic_frame`), Spark alone builds its `shape`, on an empty relation. The
scan is planned when the plan is sent, because Spark parses conditions only then, with the settings
of that time. Columns of a DataFrame name their plan by its id, so a plan with rows has the ids of
its shape's plan. Spark does not look for these ids beneath unions. An answer from metadata is one,
so actions use it, but frames that name columns of other frames are computed from the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.expressions import (
    ColumnAlias,
    ColumnReference,
    Expression,
    LiteralExpression,
    SortOrder,
    SQLExpression,
    UnresolvedFunction,
)
from pyspark.sql.connect.functions import count, lit
from pyspark.sql.connect.group import GroupedData
from pyspark.sql.connect.plan import Deduplicate, LogicalPlan, Sort
from pyspark.sql.types import StructType

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


def connect_frame(spark: SparkSession, load: TableLoad) -> DataFrame:
    """All rows of a load."""
    root = _Root(spark, load)
    return ConnectFrame(root, root.shape, (), is_whole=True)


class ConnectFrame(ConnectDataFrame):
    """Rows of a load that conditions choose, and plain columns of them.

    `where`, `filter` and `select` of plain columns return such a frame; all other methods return
    Spark's own DataFrames, of which aggregates and first rows read only what metadata leaves open.

    Args:
        conditions: those that all rows meet.
        is_whole: whether these are all rows of the load.
    """

    def __new__(cls, *_: object, **__: object) -> Self:
        # Spark's own `__new__` expects the arguments of its constructor.
        return object.__new__(cls)

    def __init__(
        self, root: _Root, shape: Any, conditions: tuple[Any, ...], *, is_whole: bool = False
    ) -> None:
        self._root, self._shape, self._conditions = root, shape, conditions
        self._is_whole, self._is_stored = is_whole, False
        super().__init__(root.with_rows(shape._plan, conditions), root.spark)  # type: ignore[arg-type]
        self._cached_schema = shape._cached_schema

    @property
    def schema(self) -> StructType:
        schema: StructType = self._shape.schema
        return schema

    @property
    def columns(self) -> list[str]:
        columns: list[str] = self._shape.columns
        return columns

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, Column):
            return self.filter(item)
        if isinstance(item, list | tuple):
            return self.select(*item)
        return self._shape[item]

    def __getattr__(self, name: str) -> Column:
        if name == "_shape":
            raise AttributeError(name)
        column: Column = getattr(self._shape, name)
        return column

    def filter(self, condition: Any) -> DataFrame:
        if self._is_stored:
            return self._plain().filter(condition)
        shape = self._shape.filter(condition)
        return ConnectFrame(self._root, shape, (*self._conditions, condition))

    def select(self, *cols: Any) -> DataFrame:
        if self._is_stored or not self._root.are_plain(cols):
            return self._plain().select(*cols)
        shape = self._shape.select(*cols)
        return ConnectFrame(self._root, shape, self._conditions, is_whole=self._is_whole)

    def groupBy(self, *cols: Any) -> Any:
        groups = super().groupBy(*cols)
        return groups if self._is_stored else _Groups(groups, self._answered)

    groupby = groupBy

    def distinct(self) -> DataFrame:
        rows = super().distinct()
        return rows if self._is_stored else self._answered(rows)

    def sort(self, *cols: Any, **named: Any) -> DataFrame:
        ordered = super().sort(*cols, **named)
        return ordered if self._is_stored else _Ordered(ordered, self._first_rows)

    def orderBy(self, *cols: Any, **named: Any) -> DataFrame:
        return self.sort(*cols, **named)

    def limit(self, num: int) -> DataFrame:
        limited = super().limit(num)
        return limited if self._is_stored else self._first_rows(limited)

    def _answered(self, aggregate: Any) -> DataFrame:
        plan = _Answered(self._root, self._conditions, aggregate._plan, self._shape)
        return _Aggregated(aggregate, _with_plan(aggregate, plan))

    def _first_rows(self, limited: Any) -> Any:
        return _with_plan(limited, _First(self._root, self._conditions, limited._plan))

    def count(self) -> int:
        counts = self._is_whole and not self._is_stored
        known = self._root.load.count(self._root.spark) if counts else None
        if known is None:
            ((known,),) = self.agg(count(lit(1))).collect()
        return known

    def cache(self) -> DataFrame:
        self._is_stored = True
        return super().cache()

    def persist(self, *level: Any, **named: Any) -> DataFrame:
        self._is_stored = True
        return super().persist(*level, **named)

    def _plain(self) -> DataFrame:
        return ConnectDataFrame(self._plan, self._root.spark)  # type: ignore[arg-type]


class _Groups(GroupedData):
    """What `groupBy` returns.

    Args:
        answered: makes a frame that metadata answers as far as it can, from one that aggregates.
    """

    def __init__(self, groups: Any, answered: Callable[[Any], DataFrame]) -> None:
        self.__dict__.update(groups.__dict__)
        self._answered = answered

    def agg(self, *exprs: Any) -> Any:
        return self._answered(super().agg(*exprs))

    def _numeric_agg(self, function: str, cols: Any) -> Any:
        return self._answered(super()._numeric_agg(function, cols))


class _Ordered(ConnectDataFrame):
    """Rows of a load in an order.

    Args:
        first_rows: makes a frame that reads only what its first rows need, from a limited one.
    """

    def __new__(cls, *_: object, **__: object) -> Self:
        return object.__new__(cls)

    def __init__(self, ordered: Any, first_rows: Callable[[Any], DataFrame]) -> None:
        super().__init__(ordered._plan, ordered._session)
        self._cached_schema = ordered._cached_schema
        self._first_rows, self._is_stored = first_rows, False

    def limit(self, num: int) -> DataFrame:
        limited = super().limit(num)
        return limited if self._is_stored else self._first_rows(limited)

    def cache(self) -> DataFrame:
        self._is_stored = True
        return super().cache()

    def persist(self, *level: Any, **named: Any) -> DataFrame:
        self._is_stored = True
        return super().persist(*level, **named)


class _Aggregated(ConnectDataFrame):
    """Aggregates of a load.

    Args:
        of_spark: computes them from all rows.
        answer: the same from what metadata answers.
    """

    def __new__(cls, *_: object, **__: object) -> Self:
        return object.__new__(cls)

    def __init__(self, of_spark: Any, answer: Any) -> None:
        super().__init__(of_spark._plan, of_spark._session)
        self._cached_schema = of_spark._cached_schema
        self._answer: Any = answer

    def collect(self) -> Any:
        return super().collect() if self._answer is None else self._answer.collect()

    def toArrow(self) -> Any:
        return super().toArrow() if self._answer is None else self._answer.toArrow()

    def toPandas(self) -> Any:
        return super().toPandas() if self._answer is None else self._answer.toPandas()

    def show(self, *given: Any, **named: Any) -> None:
        if self._answer is None:
            super().show(*given, **named)
        else:
            self._answer.show(*given, **named)

    def select(self, *cols: Any) -> Any:
        return self._with(super().select(*cols), "select", cols)

    def filter(self, condition: Any) -> Any:
        return self._with(super().filter(condition), "filter", (condition,))

    def where(self, condition: Any) -> Any:
        return self.filter(condition)

    def sort(self, *cols: Any, **named: Any) -> Any:
        return self._with(super().sort(*cols, **named), "sort", cols, **named)

    def orderBy(self, *cols: Any, **named: Any) -> Any:
        return self.sort(*cols, **named)

    def limit(self, num: int) -> Any:
        return self._with(super().limit(num), "limit", (num,))

    def cache(self) -> DataFrame:
        self._answer = None
        return super().cache()

    def persist(self, *level: Any, **named: Any) -> DataFrame:
        self._answer = None
        return super().persist(*level, **named)

    def _with(self, of_spark: Any, method: str, given: tuple[Any, ...], **named: Any) -> Any:
        if self._answer is None or not _names_none_but(self._plan._plan_id, given):
            return of_spark
        answer = getattr(self._answer, method)(*given, **named)
        answer._plan._root_plan_id = of_spark._plan._plan_id
        return _Aggregated(of_spark, answer)


@dataclass(frozen=True)
class _Root:
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

    def __init__(self, root: _Root, conditions: tuple[Any, ...]) -> None:
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

    def __init__(self, root: _Root, conditions: tuple[Any, ...], of_spark: Any) -> None:
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


class _Answered(_Planned):
    """Aggregates or distinct rows that metadata answers, and of the rows that it leaves.

    Args:
        shape: of the rows that are aggregated.
    """

    def __init__(self, root: _Root, conditions: tuple[Any, ...], of_spark: Any, shape: Any) -> None:
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


class _First(_Planned):
    """A limit of rows, of which only those are read that may be among the first."""

    def _asked(self, condition: Expr, _: Setting) -> FirstRows | None:
        load, limit = self._of.load, self._of_spark
        if load.options.changes is not None:
            return None
        sort = limit._child if isinstance(limit._child, Sort) else None
        return first_rows(limit.limit, sort, condition, load.fields)

    def _answer(self, asked: FirstRows) -> Any:
        return _on(self._of.leaf(self._of.load.first(self._of.spark, asked)), self._of_spark)


def _with_plan(of_spark: Any, plan: Any) -> Any:
    """A frame with another plan for the same rows."""
    frame = ConnectDataFrame(plan, of_spark._session)
    frame._cached_schema = of_spark._cached_schema
    return frame


def _names_none_but(plan_id: int, given: Any) -> bool:
    """Whether arguments of a method name columns of no other frame than one."""
    match given:
        case Column():
            return _names_none_but(plan_id, given._expr)
        case list() | tuple():
            return all(_names_none_but(plan_id, each) for each in given)
        case ColumnReference():
            return given._plan_id in (None, plan_id)
        case Expression():
            # Others may have sub-queries, or name columns where this does not look.
            return isinstance(given, _PLAIN) and _names_none_but(plan_id, list(given.children))
    return True


_PLAIN = (ColumnAlias, LiteralExpression, SortOrder, SQLExpression, UnresolvedFunction)


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
