"""Implements groups of our DataFrames, whose aggregates are our frames, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.group import GroupedData

from icebergds.spark.jvm import is_resolved


class NarrowGroups(GroupedData):
    """What `groupBy` returns.

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
