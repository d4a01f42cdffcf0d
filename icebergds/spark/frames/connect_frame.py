"""Implements a Spark Connect DataFrame that prunes files by its own conditions.

As with classic Spark (`classic_frame`), Spark alone builds its `shape`, on an empty relation. The
scan is planned when the plan is sent, because Spark parses conditions only then, with the settings
of that time. Columns of a DataFrame name their plan by its id, so a plan with rows has the ids of
its shape's plan. Spark does not look for these ids beneath unions. An answer from metadata is one,
so actions use it, but frames that name columns of other frames are computed from the rows.
"""

from __future__ import annotations

from collections.abc import Callable
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

from icebergds.spark.frames.connect_plans import Answered, First, Root
from icebergds.spark.frames.table_load import ShapedFrame, TableLoad


def connect_frame(spark: SparkSession, load: TableLoad) -> DataFrame:
    """All rows of a load."""
    root = Root(spark, load)
    return ConnectFrame(root, root.shape, (), is_whole=True)


class _OwnFrame(ConnectDataFrame):
    """A frame of ours; once it is stored, its methods are those of Spark's own."""

    _is_stored = False

    def __new__(cls, *_: object, **__: object) -> Self:
        # Spark's own `__new__` expects the arguments of its constructor.
        return object.__new__(cls)

    def orderBy(self, *cols: Any, **named: Any) -> DataFrame:
        return self.sort(*cols, **named)

    def cache(self) -> DataFrame:
        self._is_stored = True
        return super().cache()

    def persist(self, *level: Any, **named: Any) -> DataFrame:
        self._is_stored = True
        return super().persist(*level, **named)


class ConnectFrame(ShapedFrame, _OwnFrame):
    """Rows of a load that conditions choose, and plain columns of them.

    `where`, `filter` and `select` of plain columns return such a frame; all other methods return
    Spark's own DataFrames, of which aggregates and first rows read only what metadata leaves open.

    Args:
        conditions: those that all rows meet.
        is_whole: whether these are all rows of the load.
    """

    def __init__(
        self, root: Root, shape: Any, conditions: tuple[Any, ...], *, is_whole: bool = False
    ) -> None:
        self._root, self._shape, self._conditions = root, shape, conditions
        self._is_whole = is_whole
        super().__init__(root.with_rows(shape._plan, conditions), root.spark)  # type: ignore[arg-type]
        self._cached_schema = shape._cached_schema

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

    def limit(self, num: int) -> DataFrame:
        limited = super().limit(num)
        return limited if self._is_stored else self._first_rows(limited)

    def _answered(self, aggregate: Any) -> DataFrame:
        plan = Answered(self._root, self._conditions, aggregate._plan, self._shape)
        return _Aggregated(aggregate, _with_plan(aggregate, plan))

    def _first_rows(self, limited: Any) -> Any:
        return _with_plan(limited, First(self._root, self._conditions, limited._plan))

    def count(self) -> int:
        counts = self._is_whole and not self._is_stored
        known = self._root.load.count(self._root.spark) if counts else None
        if known is None:
            ((known,),) = self.agg(count(lit(1))).collect()
        return known

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


class _Ordered(_OwnFrame):
    """Rows of a load in an order.

    Args:
        first_rows: makes a frame that reads only what its first rows need, from a limited one.
    """

    def __init__(self, ordered: Any, first_rows: Callable[[Any], DataFrame]) -> None:
        super().__init__(ordered._plan, ordered._session)
        self._cached_schema = ordered._cached_schema
        self._first_rows = first_rows

    def limit(self, num: int) -> DataFrame:
        limited = super().limit(num)
        return limited if self._is_stored else self._first_rows(limited)


class _Aggregated(_OwnFrame):
    """Aggregates of a load.

    Args:
        of_spark: computes them from all rows.
        answer: the same from what metadata answers.
    """

    def __init__(self, of_spark: Any, answer: Any) -> None:
        super().__init__(of_spark._plan, of_spark._session)
        self._cached_schema = of_spark._cached_schema
        self._answer: Any = answer

    def collect(self) -> Any:
        return super().collect() if self._is_stored else self._answer.collect()

    def toArrow(self) -> Any:
        return super().toArrow() if self._is_stored else self._answer.toArrow()

    def toPandas(self) -> Any:
        return super().toPandas() if self._is_stored else self._answer.toPandas()

    def show(self, *given: Any, **named: Any) -> None:
        if self._is_stored:
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

    def limit(self, num: int) -> Any:
        return self._with(super().limit(num), "limit", (num,))

    def _with(self, of_spark: Any, method: str, given: tuple[Any, ...], **named: Any) -> Any:
        if self._is_stored or not _names_none_but(self._plan._plan_id, given):
            return of_spark
        answer = getattr(self._answer, method)(*given, **named)
        answer._plan._root_plan_id = of_spark._plan._plan_id
        return _Aggregated(of_spark, answer)


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
