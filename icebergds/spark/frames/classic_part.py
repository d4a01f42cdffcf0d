"""The rows of a load that classic DataFrames are made of, planned when a job needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.operations.read.aggregates import Answered
from icebergds.operations.read.first_rows import FirstRows
from icebergds.spark.frames.answers import answered_frame
from icebergds.spark.frames.chosen_rows import may_answer
from icebergds.spark.frames.classic_aggregates import (
    AggregatePlan,
    aggregate_in,
    first_rows_in,
)
from icebergds.spark.frames.classic_conditions import converted
from icebergds.spark.frames.table_load import MetadataLoad, PlannedLoad, TableLoad
from icebergds.spark.frames.used_fields import evaluates_unread, used_fields
from icebergds.spark.jvm import (
    NONE,
    Private,
    empty_relation,
    in_jvm,
    plan_dataset,
    relation_with_attributes,
    resolved_dataset,
    with_private,
)
from icebergds.spark.session import session_zone
from icebergds.spec.types import NestedField


@dataclass(frozen=True)
class Root:
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
            rows = load.planned(self.spark, TRUE).rows(self.spark)
        else:
            rows = load.rows(self.spark, TRUE, None)
        # The attributes of a union are those of its first side.
        return self.shape.union(rows)

    @cached_property
    def columns(self) -> Mapping[int, NestedField]:
        """The fields of the load by the expression ids of its attributes."""
        output = plan_of(self.shape).output()
        fields = self.load.fields
        return {output.apply(i).exprId().id(): field for i, field in enumerate(fields)}


class Part:
    """At least the rows of a load that meet a condition.

    Args:
        condition: bound to the schema of the table.
        first: the only rows that are needed; None if others are, too.
    """

    def __init__(self, root: Root, condition: Expr, first: FirstRows | None = None) -> None:
        self.root, self._condition, self._first = root, condition, first
        self._planned: PlannedLoad | None = None

    def where(self, filtered: DataFrame) -> Part:
        """Restricts the part further by the topmost filter of a shape."""
        known = with_private(Private.FRAMES, lambda: self._known(filtered), lambda: TRUE)
        return Part(self.root, and_(self._condition, known))

    def _known(self, filtered: DataFrame) -> Expr:
        plan = plan_of(filtered)
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

    @property
    def may_have_first_rows(self) -> bool:
        """Whether its first rows may be read from some files only."""
        load = self.root.load
        return isinstance(load, TableLoad) and load.options.changes is None

    def asked(self, shape: DataFrame) -> tuple[Any, Part]:
        """What metadata answers of a shape, and the rows to read for it.

        Returns:
            The plan with what is answered in the place of the shape's aggregate, or None if nothing
            is; and the part to read if so.
        """
        root = self.root
        spark, load, plan = root.spark, root.load, plan_of(shape)
        if not isinstance(load, TableLoad) or not self.may_have_first_rows:
            return None, self
        first = first_rows_in(plan, load.table_schema, root.columns)
        if first is not None:
            return None, Part(root, self._condition, first)
        found = None
        if self.may_be_answered:
            found = aggregate_in(plan, load.table_schema, root.columns, session_zone(spark))
        if found is None:
            return None, self
        answered, left = load.answered(spark, found.query.asked)
        if answered is not None:
            return self._with_answer(plan, found, answered, left), self
        part = Part(root, self._condition)
        part._planned = left
        return None, part

    def _with_answer(
        self, plan: Any, found: AggregatePlan, answered: Answered, left: PlannedLoad | None
    ) -> Any:
        spark = self.root.spark

        def unread() -> DataFrame:
            assert left is not None, "it is asked for what is left"
            used = used_fields(found.node, self.root.columns) if left.narrows else None
            leaf = self._union(left.rows(spark, used), used)
            beneath = self._on(leaf, found.node.children().head())
            return DataFrame(plan_dataset(spark, spark._jsparkSession, beneath), spark)

        rows = answered_frame(spark, found.query, answered, None if left is None else unread)
        local = in_jvm(spark, "org.apache.spark.sql.catalyst.plans.logical.LocalRelation")
        no_rows = in_jvm(spark, "scala.collection.immutable.Nil$.MODULE$")
        # A union has the attributes of its first side.
        empty = local(found.node.output(), no_rows, False, in_jvm(spark, NONE))
        union = in_jvm(spark, "org.apache.spark.sql.catalyst.plans.logical.Union")
        leaf = union(self._seq(empty, plan_of(rows)), False, False)
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
        return self._planned.narrows

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
        return plan_dataset(spark, session, self._on(leaf, plan_of(shape)))

    def with_used_rows(self, shape: DataFrame) -> Any:
        """Puts rows of the fields that a shape names beneath it; None if it needs all fields."""
        used = used_fields(plan_of(shape), self.root.columns)
        if used is None:
            return None
        rows = self.with_rows(shape, used)
        return None if evaluates_unread(rows.queryExecution().optimizedPlan()) else rows

    def _relation(self, used: frozenset[int] | None) -> Any:
        """A relation of the rows with the load's attributes; the rows if there is not one."""
        spark, load, shape = self.root.spark, self.root.load, plan_of(self.root.shape)
        if isinstance(load, TableLoad):
            planned, self._planned = self._planned or self._plan_now(load), None
            rows = planned.rows(spark, used)
        else:
            rows = load.rows(spark, self._condition, used)
        return relation_with_attributes(spark, plan_of(rows), shape) or rows

    def _plan_now(self, load: TableLoad) -> PlannedLoad:
        if self._first is not None:
            return load.first(self.root.spark, self._first)
        return load.planned(self.root.spark, self._condition)

    def _union(self, rows: DataFrame, used: frozenset[int] | None) -> Any:
        """The rows with the attributes of the load."""
        empty = self.root.shape
        if used is not None:
            empty = empty.selectExpr(*(in_backticks((name,)) for name in rows.columns))
        union = in_jvm(self.root.spark, "org.apache.spark.sql.catalyst.plans.logical.Union")
        return union(self._seq(plan_of(empty), plan_of(rows)), False, False)

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


def plan_of(frame: DataFrame) -> Any:
    """The analyzed plan of a classic DataFrame, a JVM object."""
    classic: Any = frame._jdf
    return classic.logicalPlan()
