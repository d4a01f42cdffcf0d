"""Implements a Spark Connect DataFrame that prunes files by its own conditions.

As with classic Spark (`classic_frame`), Spark alone builds its `shape`, on an empty relation. The
scan is planned when the plan is sent, because Spark parses conditions only then, with the settings
of that time. Columns of a DataFrame name their plan by its id, so a plan with rows has the ids of
its shape's plan.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.types import StructType

from icebergds.errors import InvalidFilterError
from icebergds.expr.names import split_name
from icebergds.expr.nodes import Expr, and_
from icebergds.spark.frames.connect_conditions import converted
from icebergds.spark.frames.table_load import TableLoad
from icebergds.spark.session import session_setting


def connect_frame(spark: SparkSession, load: TableLoad) -> DataFrame:
    """All rows of a load."""
    root = _Root(spark, load)
    return ConnectFrame(root, root.shape, (), is_whole=True)


class ConnectFrame(ConnectDataFrame):
    """Rows of a load that conditions choose, and plain columns of them.

    `where`, `filter` and `select` of plain columns return such a frame; all other methods return
    Spark's own DataFrames.

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

    def count(self) -> int:
        counts = self._is_whole and not self._is_stored
        known = self._root.load.count(self._root.spark) if counts else None
        return super().count() if known is None else known

    def cache(self) -> DataFrame:
        self._is_stored = True
        return super().cache()

    def persist(self, *level: Any, **named: Any) -> DataFrame:
        self._is_stored = True
        return super().persist(*level, **named)

    def _plain(self) -> DataFrame:
        return ConnectDataFrame(self._plan, self._root.spark)  # type: ignore[arg-type]


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

    def are_plain(self, columns: Any) -> bool:
        """Whether only whole columns are named; anything else makes new columns, of any name."""
        if len(columns) == 1 and isinstance(columns[0], list | tuple):
            columns = columns[0]
        names = {field.name for field in self.load.plan.columns.fields}
        return bool(columns) and all(_name_of(column) in names for column in columns)

    def with_rows(self, plan: Any, conditions: tuple[Any, ...]) -> Any:
        """Puts rows beneath a shape's plan, at least those that meet the conditions."""
        if plan is self.shape._plan:
            return _Rows(self, conditions)
        changed = copy.copy(plan)
        changed._child = self.with_rows(plan._child, conditions)
        return changed

    def rows(self, known: tuple[Expr, ...]) -> Any:
        """A plan with the load's columns, of at least the rows that meet the predicates."""
        empty: Any = self.spark.createDataFrame([], self.load.schema)
        planned = self.load.planned(self.spark, and_(*known))
        union: Any = empty.union(planned.rows(self.spark)[0])
        union._plan._root_plan_id = self.shape._plan._root_plan_id
        return union._plan


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
