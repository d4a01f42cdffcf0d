"""Implements a classic Spark DataFrame that prunes files by its own conditions and columns.

Spark alone builds its `shape`, on an empty relation, so that it resolves columns and checks
conditions at once, and no scan is planned. The scan is planned when a job first needs rows: Spark's
plan is kept, and the rows that may meet the conditions so far are put beneath it. There the empty
relation stays as the first side of a union, because all DataFrames of one load use its attributes;
Spark's optimizer drops it.

If Spark does not prune columns itself, an action reads only the columns that the shape names.
Frames derived from this one start from the shape or from all rows, so they never lack a column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession, functions as f
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.group import GroupedData

from icebergds.expr.nodes import TRUE
from icebergds.spark.frames.classic_part import Part, Root, plan_of
from icebergds.spark.frames.table_load import MetadataLoad, ShapedFrame, TableLoad
from icebergds.spark.jvm import (
    Private,
    is_resolved,
    with_private,
)


def classic_frame(
    spark: SparkSession, load: TableLoad | MetadataLoad, by_source: Callable[[], DataFrame]
) -> DataFrame:
    """All rows of a load.

    Args:
        by_source: makes the same DataFrame with Spark's public methods only.
    """
    root = Root(spark, load)

    def whole() -> DataFrame:
        return ClassicFrame(Part(root, TRUE), root.shape, root.planned_frame, is_whole=True)

    return with_private(Private.FRAMES, whole, by_source)


class ClassicFrame(ShapedFrame, ClassicDataFrame):
    """Rows of a load that conditions choose, and plain columns of them.

    `where`, `filter` and `select` of plain columns return such a frame; all other methods return
    Spark's own DataFrames. If the load narrows, some of these methods return such a frame, too.

    Args:
        part: the rows of the load that the frame has, or is computed from.
        by_source: makes the same DataFrame with Spark's public methods only.
        is_whole: whether these are all rows of the load.
        is_query: whether these are not rows of the load but computed from them, such as aggregates.
    """

    def __new__(cls, *_: object, **__: object) -> Self:
        # Spark's own `__new__` expects the arguments of its constructor.
        return object.__new__(cls)

    def __init__(
        self,
        part: Part,
        shape: DataFrame,
        by_source: Callable[[], DataFrame],
        *,
        is_whole: bool = False,
        is_query: bool = False,
    ) -> None:
        self._part, self._shape, self._by_source = part, shape, by_source
        self._is_whole, self._is_query = is_whole, is_query
        self._rows: Any = None
        self._used_rows: Any = None
        super().__init__(shape._jdf, part.root.spark)

    @property
    def _jdf(self) -> Any:
        """The plan that all of Spark's methods use, with its rows; plans them now."""
        if self._rows is None:
            self._rows = self._answers or with_private(
                Private.FRAMES,
                lambda: self._read_part.with_rows(self._shape),
                lambda: self._by_source()._jdf,
            )
        return self._rows

    @_jdf.setter
    def _jdf(self, jdf: Any) -> None:
        """Ignored: Spark's own constructor sets what the shape has already."""

    def printSchema(self, level: int | None = None) -> None:
        self._shape.printSchema(level)

    def filter(self, condition: Any) -> DataFrame:
        if self.is_cached:
            return self._plain().filter(condition)
        shape, by_source = self._shape.filter(condition), self._later("filter", condition)
        if not is_resolved(shape):
            # It names columns of an outer query.
            return by_source()
        if self._is_query:
            return self._query(shape, by_source)
        return ClassicFrame(self._part.where(shape), shape, by_source)

    def where(self, condition: Any) -> DataFrame:
        return self.filter(condition)

    def select(self, *cols: Any) -> DataFrame:
        if self.is_cached:
            return self._plain().select(*cols)
        shape, by_source = self._shape.select(*cols), self._later("select", *cols)
        if not self._is_query and _selects_attributes(shape):
            return ClassicFrame(self._part, shape, by_source, is_whole=self._is_whole)
        keeps = self._keeps_shape or self._may_have_first_rows
        if not keeps or not is_resolved(shape):
            return by_source()
        return self._query(shape, by_source)

    def groupBy(self, *cols: Any) -> GroupedData:
        if not self._may_be_answered and not self._keeps_shape:
            return super().groupBy(*cols)
        of_shape = self._shape.groupBy(*cols)
        return NarrowGroups(self, of_shape, lambda: self._plain().groupBy(*cols), self._query)

    groupby = groupBy

    def distinct(self) -> DataFrame:
        if not self._may_be_answered and not self._keeps_shape:
            return super().distinct()
        return self._query(self._shape.distinct(), self._later("distinct"))

    def sort(self, *cols: Any, **named: Any) -> DataFrame:
        if not self._keeps_shape and not self._may_have_first_rows:
            return super().sort(*cols, **named)
        shape = self._shape.sort(*cols, **named)
        return self._query(shape, self._later("sort", *cols, **named))

    def orderBy(self, *cols: Any, **named: Any) -> DataFrame:
        return self.sort(*cols, **named)

    def limit(self, num: int) -> DataFrame:
        if not self._keeps_shape and not self._may_have_first_rows:
            return super().limit(num)
        return self._query(self._shape.limit(num), self._later("limit", num))

    def count(self) -> int:
        counts = self._is_whole and not self.is_cached
        root = self._part.root
        known = root.load.count(root.spark) if counts else None
        if known is None and (self._may_be_answered or self._narrows):
            ((known,),) = self.agg(f.count(f.lit(1))).collect()
        return super().count() if known is None else known

    def collect(self) -> list[Row]:
        return self._narrow().collect() if self._narrows else super().collect()

    def show(self, *given: Any, **named: Any) -> None:
        if self._narrows:
            self._narrow().show(*given, **named)
        else:
            super().show(*given, **named)

    def toArrow(self) -> pa.Table:
        return self._narrow().toArrow() if self._narrows else super().toArrow()

    def toPandas(self) -> Any:
        return self._narrow().toPandas() if self._narrows else super().toPandas()

    @property
    def _narrows(self) -> bool:
        return not self.is_cached and self._part.narrows

    @property
    def _keeps_shape(self) -> bool:
        """Whether frames that are computed from this one are computed from its shape."""
        return not self.is_cached and (self._is_query or self._part.narrows)

    @property
    def _may_be_answered(self) -> bool:
        """Whether metadata may answer aggregates of this frame."""
        return not self.is_cached and not self._is_query and self._part.may_be_answered

    @property
    def _may_have_first_rows(self) -> bool:
        """Whether the first rows of this frame may be read from some files only."""
        return not self.is_cached and self._part.may_have_first_rows

    @cached_property
    def _asked(self) -> tuple[Any, Part]:
        """What `Part.asked` returns for this frame."""
        part = self._part
        if not self._is_query:
            return None, part
        return with_private(Private.FRAMES, lambda: part.asked(self._shape), lambda: (None, part))

    @property
    def _answers(self) -> Any:
        """The plan with what metadata answers of aggregates; None if it answers nothing."""
        return self._asked[0]

    @property
    def _read_part(self) -> Part:
        """The part of the load that is read for this frame."""
        return self._asked[1]

    def _query(self, shape: DataFrame, by_source: Callable[[], DataFrame]) -> DataFrame:
        return ClassicFrame(self._part, shape, by_source, is_query=True)

    def _narrow(self) -> DataFrame:
        """The frame for actions; frames derived from it would lack columns."""
        if self._used_rows is None:
            used = self._answers or with_private(
                Private.FRAMES, lambda: self._read_part.with_used_rows(self._shape), lambda: None
            )
            self._used_rows = used or self._jdf
        return DataFrame(self._used_rows, self._part.root.spark)

    def _later(self, method: str, *given: Any, **named: Any) -> Callable[[], DataFrame]:
        """Calls a method of Spark's own DataFrame when it is needed."""
        return lambda: getattr(self._plain(), method)(*given, **named)

    def _plain(self) -> DataFrame:
        return DataFrame(self._jdf, self._part.root.spark)


def _selects_attributes(shape: DataFrame) -> bool:
    """Whether a selection computes no new columns."""

    def selects() -> bool:
        plan = plan_of(shape)
        return bool(plan.resolved() and plan.outputSet().subsetOf(plan.inputSet()))

    return with_private(Private.FRAMES, selects, lambda: False)


class NarrowGroups(GroupedData):
    """What `groupBy` returns, whose aggregates are our frames, too.

    Args:
        frame: the frame whose rows are grouped.
        of_shape: the same groups of the frame's shape.
        of_rows: makes Spark's own groups, for methods that do not aggregate.
        query: makes a frame from a shape and from a function that makes the same DataFrame with
            Spark's public methods only.
    """

    def __init__(
        self,
        frame: DataFrame,
        of_shape: GroupedData,
        of_rows: Callable[[], GroupedData],
        query: Callable[[DataFrame, Callable[[], DataFrame]], DataFrame],
    ) -> None:
        self._df, self.session = frame, frame.sparkSession
        self._of_shape, self._of_rows, self._query = of_shape, of_rows, query

    @property
    def _jgd(self) -> Any:
        return self._of_rows()._jgd

    def agg(self, *exprs: Any) -> DataFrame:
        return self._asked(lambda groups: groups.agg(*exprs))

    def count(self) -> DataFrame:
        return self._asked(lambda groups: groups.count())

    def avg(self, *cols: str) -> DataFrame:
        return self._asked(lambda groups: groups.avg(*cols))

    def mean(self, *cols: str) -> DataFrame:
        return self._asked(lambda groups: groups.mean(*cols))

    def max(self, *cols: str) -> DataFrame:
        return self._asked(lambda groups: groups.max(*cols))

    def min(self, *cols: str) -> DataFrame:
        return self._asked(lambda groups: groups.min(*cols))

    def sum(self, *cols: str) -> DataFrame:
        return self._asked(lambda groups: groups.sum(*cols))

    def _asked(self, ask: Callable[[GroupedData], DataFrame]) -> DataFrame:
        shape = ask(self._of_shape)
        # Unresolved columns belong to an outer query.
        if not is_resolved(shape):
            return ask(self._of_rows())
        return self._query(shape, lambda: ask(self._of_rows()))
