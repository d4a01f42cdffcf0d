"""Groups of a DataFrame of ours, whose aggregates read the columns that they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.group import GroupedData


class NarrowGroups(GroupedData):
    """What `groupBy` returns.

    Args:
        frame: whose rows are grouped.
        of_shape: the same groups of the frame's shape.
        of_rows: makes Spark's own groups, for what is not an aggregate.
        with_rows: gives a DataFrame on the shape its rows.
    """

    def __init__(
        self,
        frame: DataFrame,
        of_shape: GroupedData,
        of_rows: Callable[[], GroupedData],
        with_rows: Callable[[DataFrame], DataFrame],
    ) -> None:
        self._df, self.session = frame, frame.sparkSession
        self._of_shape, self._of_rows, self._with_rows = of_shape, of_rows, with_rows

    @property
    def _jgd(self) -> Any:
        return self._of_rows()._jgd

    def agg(self, *exprs: Any) -> DataFrame:
        return self._with_rows(self._of_shape.agg(*exprs))

    def count(self) -> DataFrame:
        return self._with_rows(self._of_shape.count())

    def avg(self, *cols: str) -> DataFrame:
        return self._with_rows(self._of_shape.avg(*cols))

    def mean(self, *cols: str) -> DataFrame:
        return self._with_rows(self._of_shape.mean(*cols))

    def max(self, *cols: str) -> DataFrame:
        return self._with_rows(self._of_shape.max(*cols))

    def min(self, *cols: str) -> DataFrame:
        return self._with_rows(self._of_shape.min(*cols))

    def sum(self, *cols: str) -> DataFrame:
        return self._with_rows(self._of_shape.sum(*cols))
