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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, functions as f
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.group import GroupedData
from pyspark.sql.types import StructType

from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.spark.frames.aggregates import aggregate_in, answered_frame
from icebergds.spark.frames.chosen_rows import may_answer
from icebergds.spark.frames.classic_conditions import converted
from icebergds.spark.frames.groups import NarrowGroups
from icebergds.spark.frames.kept_relations import KeptRelation, keep_relation, kept_relation
from icebergds.spark.frames.table_load import MetadataLoad, PlannedLoad, TableLoad
from icebergds.spark.frames.used_fields import evaluates_unread, used_fields
from icebergds.spark.jvm import (
    NONE,
    Private,
    empty_relation,
    in_jvm,
    is_relation,
    is_resolved,
    new_attributes,
    plan_dataset,
    relation_plan,
    relation_with_attributes,
    resolved_dataset,
    with_private,
)
from icebergds.spark.session import session_zone
from icebergds.spec.types import NestedField


def classic_frame(
    spark: SparkSession, load: TableLoad | MetadataLoad, by_source: Callable[[], DataFrame]
) -> DataFrame:
    """All rows of a load.

    Args:
        by_source: makes the same DataFrame with Spark's public methods only.
    """
    root = _Root(spark, load)

    def whole() -> DataFrame:
        return ClassicFrame(_Part(root, TRUE), root.shape, root.planned_frame, is_whole=True)

    return with_private(Private.FRAMES, whole, by_source)


class ClassicFrame(ClassicDataFrame):
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
        part: _Part,
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
        self._answers: Any = None
        self._is_asked = False
        super().__init__(shape._jdf, part.root.spark)

    @property
    def _jdf(self) -> Any:
        """The plan that all of Spark's methods use, with its rows; plans them now."""
        if self._rows is None:
            self._rows = self._answered() or with_private(
                Private.FRAMES,
                lambda: self._part.with_rows(self._shape),
                lambda: self._by_source()._jdf,
            )
        return self._rows

    @_jdf.setter
    def _jdf(self, jdf: Any) -> None:
        """Ignored: Spark's own constructor sets what the shape has already."""

    def _answered(self) -> Any:
        """The plan with what metadata answers of aggregates; None if it answers nothing."""
        if not self._is_query or self._is_asked:
            return self._answers
        self._is_asked = True
        self._answers = with_private(
            Private.FRAMES, lambda: self._part.with_answers(self._shape), lambda: None
        )
        return self._answers

    @property
    def schema(self) -> StructType:
        return self._shape.schema

    @property
    def columns(self) -> list[str]:
        return self._shape.columns

    def printSchema(self, level: int | None = None) -> None:
        self._shape.printSchema(level)

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
        if not self._keeps_shape or not is_resolved(shape):
            return by_source()
        return self._query(shape, by_source)

    def groupBy(self, *cols: Any) -> GroupedData:
        if not self._may_be_answered and not self._keeps_shape:
            return super().groupBy(*cols)
        of_shape = self._shape.groupBy(*cols)
        return NarrowGroups(self, of_shape, lambda: self._plain().groupBy(*cols), self._query)

    groupby = groupBy

    def sort(self, *cols: Any, **named: Any) -> DataFrame:
        if not self._keeps_shape:
            return super().sort(*cols, **named)
        shape = self._shape.sort(*cols, **named)
        return self._query(shape, self._later("sort", *cols, **named))

    def orderBy(self, *cols: Any, **named: Any) -> DataFrame:
        return self.sort(*cols, **named)

    def limit(self, num: int) -> DataFrame:
        if not self._keeps_shape:
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

    def _query(self, shape: DataFrame, by_source: Callable[[], DataFrame]) -> DataFrame:
        return ClassicFrame(self._part, shape, by_source, is_query=True)

    def _narrow(self) -> DataFrame:
        """The frame for actions; frames derived from it would lack columns."""
        if self._used_rows is None:
            used = self._answered() or with_private(
                Private.FRAMES, lambda: self._part.with_used_rows(self._shape), lambda: None
            )
            self._used_rows = used or self._jdf
        return DataFrame(self._used_rows, self._part.root.spark)

    def _later(self, method: str, *given: Any, **named: Any) -> Callable[[], DataFrame]:
        """Calls a method of Spark's own DataFrame when it is needed."""
        return lambda: getattr(self._plain(), method)(*given, **named)

    def _plain(self) -> DataFrame:
        return DataFrame(self._jdf, self._part.root.spark)


@dataclass(frozen=True)
class _Root:
    """What the frames of one load share."""

    spark: SparkSession
    load: TableLoad | MetadataLoad

    @cached_property
    def shape(self) -> DataFrame:
        """An empty relation with the columns of the load."""
        spark = self.spark
        plan = empty_relation(spark, self.load.schema.json())
        return DataFrame(resolved_dataset(spark, spark._jsparkSession, plan), spark)

    def planned_frame(self) -> DataFrame:
        """All rows, with Spark's public methods only."""
        load = self.load
        if isinstance(load, TableLoad):
            rows, _ = load.planned(self.spark, TRUE).rows(self.spark)
        else:
            rows = load.rows(self.spark, TRUE, None)
        # The attributes of a union are those of its first side.
        return self.shape.union(rows)

    @cached_property
    def columns(self) -> Mapping[int, NestedField]:
        """The fields of the load by the expression ids of its attributes."""
        output = _plan(self.shape).output()
        fields = self.load.fields
        return {output.apply(i).exprId().id(): field for i, field in enumerate(fields)}


class _Part:
    """At least the rows of a load that meet a condition.

    Args:
        condition: bound to the schema of the table.
    """

    def __init__(self, root: _Root, condition: Expr) -> None:
        self.root, self._condition = root, condition
        self._planned: KeptRelation | PlannedLoad | None = None

    def where(self, filtered: DataFrame) -> _Part:
        """Restricts the part further by the topmost filter of a shape."""
        known = with_private(Private.FRAMES, lambda: self._known(filtered), lambda: TRUE)
        return _Part(self.root, and_(self._condition, known))

    def _known(self, filtered: DataFrame) -> Expr:
        plan = _plan(filtered)
        while plan.getClass().getSimpleName() == "Project":
            plan = plan.child()
        if plan.getClass().getSimpleName() != "Filter":
            return TRUE
        return converted(plan.condition(), self.root.load.table_schema, self.root.columns)

    @cached_property
    def may_be_answered(self) -> bool:
        """Whether metadata may answer aggregates of it."""
        load = self.root.load
        return isinstance(load, TableLoad) and may_answer(self.root.spark, load.state, load.options)

    def with_answers(self, shape: DataFrame) -> Any:
        """A shape with what metadata answers in the place of its aggregate.

        Returns:
            None if it answers nothing.
        """
        root = self.root
        spark, load, plan = root.spark, root.load, _plan(shape)
        if not isinstance(load, TableLoad):
            return None
        found = aggregate_in(plan, load.table_schema, root.columns, session_zone(spark))
        answers = None if found is None else load.answered(spark, found.asked)
        if found is None or answers is None:
            return None
        answered, left = answers

        def unread() -> DataFrame:
            assert left is not None, "it is asked for what is left"
            rows, _ = left.rows(spark)
            leaf = self._union(rows, None)
            beneath = self._on(leaf, found.node.children().head())
            return DataFrame(plan_dataset(spark, spark._jsparkSession, beneath), spark)

        rows = answered_frame(spark, found, answered, None if left is None else unread)
        local = in_jvm(spark, "org.apache.spark.sql.catalyst.plans.logical.LocalRelation")
        no_rows = in_jvm(spark, "scala.collection.immutable.Nil$.MODULE$")
        # A union has the attributes of its first side.
        empty = local(found.node.output(), no_rows, False, in_jvm(spark, NONE))
        union = in_jvm(spark, "org.apache.spark.sql.catalyst.plans.logical.Union")
        leaf = union(self._seq(empty, _plan(rows)), False, False)
        whole = self._on(leaf, plan, found.depth)
        return plan_dataset(spark, spark._jsparkSession, whole)

    @cached_property
    def narrows(self) -> bool:
        """Whether it reads only the fields that it is asked for; plans it to find out."""
        load = self.root.load
        if not isinstance(load, TableLoad):
            return True
        if load.narrows is not None:
            return load.narrows
        self._planned = self._plan_now(load)
        return isinstance(self._planned, PlannedLoad) and self._planned.narrows

    def with_rows(self, shape: DataFrame, used: frozenset[int] | None = None) -> Any:
        """Puts rows beneath a shape.

        Args:
            used: ids of the fields that are read; None for all.
        """
        spark = self.root.spark
        session, leaf = spark._jsparkSession, self._relation(used)
        if isinstance(leaf, DataFrame):
            leaf = self._union(leaf, used)
        elif shape is self.root.shape:
            return resolved_dataset(spark, session, leaf)
        return plan_dataset(spark, session, self._on(leaf, _plan(shape)))

    def with_used_rows(self, shape: DataFrame) -> Any:
        """Puts rows of the fields that a shape names beneath it; None if it needs all fields."""
        used = used_fields(_plan(shape), self.root.columns)
        if used is None:
            return None
        rows = self.with_rows(shape, used)
        return None if evaluates_unread(rows.queryExecution().optimizedPlan()) else rows

    def _relation(self, used: frozenset[int] | None) -> Any:
        """A relation of the rows with the load's attributes; the rows if there is not one."""
        spark, load, shape = self.root.spark, self.root.load, _plan(self.root.shape)
        if not isinstance(load, TableLoad):
            rows = load.rows(spark, self._condition, used)
            return relation_with_attributes(spark, _plan(rows), shape) or rows
        planned, self._planned = self._planned or self._plan_now(load), None
        if isinstance(planned, PlannedLoad):
            return self._planned_relation(planned, used)
        if planned.has_names:
            return relation_plan(spark, planned.relation, shape.output())
        attributes = new_attributes(spark, planned.relation.schema())
        plan = relation_plan(spark, planned.relation, attributes)
        return DataFrame(resolved_dataset(spark, spark._jsparkSession, plan), spark)

    def _plan_now(self, load: TableLoad) -> KeptRelation | PlannedLoad:
        spark = self.root.spark
        kept = None
        if self._condition == TRUE:
            kept = with_private(Private.SCANS, lambda: kept_relation(spark, load), lambda: None)
        return kept or load.planned(spark, self._condition)

    def _planned_relation(self, planned: PlannedLoad, used: frozenset[int] | None) -> Any:
        spark, shape = self.root.spark, _plan(self.root.shape)
        rows, files = planned.rows(spark, used)
        plan = _plan(rows)
        relation = relation_with_attributes(spark, plan, shape)
        is_all = self._condition == TRUE and used is None
        if is_all and (relation is not None or is_relation(plan)):
            kept = KeptRelation(plan.relation(), has_names=relation is not None)
            with_private(
                Private.SCANS,
                lambda: keep_relation(spark, planned.load, files, kept),
                lambda: None,
            )
        return rows if relation is None else relation

    def _union(self, rows: DataFrame, used: frozenset[int] | None) -> Any:
        """The rows with the attributes of the load."""
        empty = self.root.shape
        if used is not None:
            empty = empty.selectExpr(*(in_backticks((name,)) for name in rows.columns))
        union = in_jvm(self.root.spark, "org.apache.spark.sql.catalyst.plans.logical.Union")
        return union(self._seq(_plan(empty), _plan(rows)), False, False)

    def _on(self, leaf: Any, plan: Any, depth: int | None = None) -> Any:
        """A copy of a plan with another leaf.

        Args:
            depth: of the node that the leaf replaces; None for the plan's own leaf.
        """
        children = plan.children()
        if children.isEmpty() or depth == 0:
            return leaf
        deeper = None if depth is None else depth - 1
        return plan.withNewChildren(self._seq(self._on(leaf, children.head(), deeper)))

    def _seq(self, *items: Any) -> Any:
        return in_jvm(self.root.spark, "PythonUtils.toSeq")(list(items))


def _selects_attributes(shape: DataFrame) -> bool:
    """Whether a selection computes no new columns."""

    def selects() -> bool:
        plan = _plan(shape)
        return bool(plan.resolved() and plan.outputSet().subsetOf(plan.inputSet()))

    return with_private(Private.FRAMES, selects, lambda: False)


def _plan(frame: DataFrame) -> Any:
    classic: Any = frame._jdf
    return classic.logicalPlan()
