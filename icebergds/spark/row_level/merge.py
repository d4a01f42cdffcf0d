"""MERGE: rows of a table changed by those of a DataFrame that match them, in one job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidDataError, InvalidFilterError, InvalidOptionError
from icebergds.expr.names import quote_name, resolve, split_name
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spark.errors import own_errors
from icebergds.spark.row_level.assignments import plan_assignments
from icebergds.spark.row_level.conditions import (
    as_column,
    check_condition,
    first_line,
    named_columns,
)
from icebergds.spark.row_level.defaults import default_column
from icebergds.spark.row_level.match_filter import Sides, match_filter
from icebergds.spark.row_level.target import FILE, LAST_UPDATED, POS, ROW_ID, WRITE, Target
from icebergds.spark.types import spark_schema, spark_type

Value: TypeAlias = str | Column
"""SQL, or a column of Spark."""

MATCHED = "when matched"
NOT_MATCHED = "when not matched"
BY_SOURCE = "when not matched by source"
UPDATE, DELETE, INSERT = "update", "delete", "insert"

_ALL: Mapping[str, Value] = {"*": "*"}
_OF_SOURCE = "__icebergds_of_source"
_ACTION = "__icebergds_action"


@dataclass(frozen=True)
class Clause:
    """What is done with rows.

    Attributes:
        rows: `MATCHED`, `NOT_MATCHED` (rows of the source) or `BY_SOURCE` (rows of the table).
        action: `UPDATE`, `DELETE` or `INSERT`.
        condition: which of them; None for all.
        values: of columns; those of the source's columns of the same names if `is_all`.
    """

    rows: str
    action: str
    condition: Value | None = None
    values: Mapping[str, Value] | None = None
    is_all: bool = False

    def __str__(self) -> str:
        return f"{self.rows} {self.action}"


@dataclass(frozen=True)
class MergeBuilder:
    """A merge in the making: clauses are added, then it is executed.

    Of the clauses for a row, the first one whose condition holds is taken. Each method returns a
    builder with the clause added.
    """

    _execute: Callable[[Callable[[Target], Committed | None]], RowCounts]
    _source: DataFrame
    _on: Value | Sequence[str]
    _source_alias: str
    _target_alias: str
    _clauses: tuple[Clause, ...] = ()

    def when_matched_update(
        self, set: Mapping[str, Value], condition: Value | None = None
    ) -> MergeBuilder:
        """Gives columns of a matched row new values, such as `{"name": "source.name"}`."""
        return self._with(Clause(MATCHED, UPDATE, condition, set))

    def when_matched_update_all(self, condition: Value | None = None) -> MergeBuilder:
        """Gives all columns of a matched row the values of the source's columns of their names."""
        return self._with(Clause(MATCHED, UPDATE, condition, is_all=True))

    def when_matched_delete(self, condition: Value | None = None) -> MergeBuilder:
        """Deletes a matched row."""
        return self._with(Clause(MATCHED, DELETE, condition))

    def when_not_matched_insert(
        self, values: Mapping[str, Value], condition: Value | None = None
    ) -> MergeBuilder:
        """Adds a row for a row of the source; columns that are not given have their default."""
        return self._with(Clause(NOT_MATCHED, INSERT, condition, values))

    def when_not_matched_insert_all(self, condition: Value | None = None) -> MergeBuilder:
        """Adds a row of the source, by the names of its columns."""
        return self._with(Clause(NOT_MATCHED, INSERT, condition, is_all=True))

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Value], condition: Value | None = None
    ) -> MergeBuilder:
        """Gives columns of a row new values that no row of the source matches."""
        return self._with(Clause(BY_SOURCE, UPDATE, condition, set))

    def when_not_matched_by_source_delete(self, condition: Value | None = None) -> MergeBuilder:
        """Deletes a row that no row of the source matches."""
        return self._with(Clause(BY_SOURCE, DELETE, condition))

    def execute(self) -> RowCounts:
        """Changes the table, in one commit; nothing is committed where no row changes.

        Raises:
            InvalidOptionError: there is no clause, or one is malformed.
            InvalidFilterError: a condition does not fit, or is not deterministic.
            InvalidDataError: a column is unknown or set twice, or a value does not fit it.
            InvalidDataError: a row of the table is changed by more than one row of the source.
            PySparkException: the job failed for a reason of Spark's or of the query's.
        """
        if not self._clauses:
            raise InvalidOptionError("merge: add a clause, such as when_matched_update_all()")

        def run(target: Target) -> Committed | None:
            target.mode()
            aliases = self._source_alias, self._target_alias
            return _Merge(target, self._source, *aliases, self._clauses).run(self._on)

        return self._execute(run)

    def _with(self, clause: Clause) -> MergeBuilder:
        for earlier in self._clauses:
            if earlier.rows == clause.rows and earlier.condition is None:
                raise InvalidOptionError(
                    f"merge: {clause} comes after {earlier}, which has no condition and so leaves "
                    "it no row; put clauses without a condition last"
                )
        return replace(self, _clauses=(*self._clauses, clause))


@dataclass(frozen=True)
class _Merge:
    """A merge that is carried out.

    The table's rows and the source's are joined under their aliases; what is done with a pair is
    the number of a clause; what nothing is done with is dropped.
    """

    target: Target
    source: DataFrame
    source_alias: str
    target_alias: str
    clauses: tuple[Clause, ...]

    def run(self, on: Value | Sequence[str]) -> Committed | None:
        if self.source_alias.lower() == self.target_alias.lower():
            raise InvalidOptionError(
                f"merge: both sides are named {self.source_alias!r}; give them two aliases"
            )
        matching = self._matching(on)
        # Every value is looked at before a row is read.
        empty = self.target.spark.createDataFrame([], spark_schema(self.target.schema))
        checked = self._joined(empty, matching, "inner")
        for clause in self.clauses:
            self._check_side(clause, empty)
        conditions = [self._condition(checked, clause) for clause in self.clauses]
        written = self._written(checked)
        sides = Sides(self.target, self.source, self.source_alias, self.target_alias)
        by_source = [clause.condition for clause in self.clauses if clause.rows == BY_SOURCE]
        with own_errors():
            row_filter, source = match_filter(sides, on, by_source)
        writes = [at for at, clause in enumerate(self.clauses) if clause.action != DELETE]
        rows = self.target.rows(self._needed(on), row_filter, with_ids=bool(writes))
        merge = replace(self, source=source)
        joined = merge._joined(rows.frame, matching, self._join_type())
        acted = joined.withColumn(_ACTION, self._action(conditions)).where(
            f.col(_ACTION).isNotNull()
        )
        changes = acted.select(
            f.col(self._of_target(FILE)).alias(FILE),
            f.col(self._of_target(POS)).alias(POS),
            f.col(_ACTION).isin(writes).alias(WRITE),
            *(self._chosen(written) if writes else []),
            *(self._lineage() if writes and self.target.has_lineage else []),
        )
        return self.target.save(changes, rows)

    def _matching(self, on: Value | Sequence[str]) -> Column:
        if not isinstance(on, list | tuple):
            return as_column(on, "merge: on")
        if not on or not all(isinstance(name, str) for name in on):
            raise InvalidOptionError(f"merge: on = {on!r}: expected names of columns")
        matching = f.lit(True)
        for at, name in enumerate(on):
            equal = f.col(self._of_target(name)) == f.col(self._of_source(name))
            matching = equal if at == 0 else matching & equal
        return matching

    def _joined(self, rows: DataFrame, matching: Column, how: str) -> DataFrame:
        source = self.source.alias(self.source_alias)
        source = source.withColumn(_OF_SOURCE, f.lit(True))
        try:
            return rows.alias(self.target_alias).join(source, matching, how)
        except AnalysisException as error:
            raise InvalidFilterError(f"merge: on: {first_line(error)}") from None

    def _check_side(self, clause: Clause, empty: DataFrame) -> None:
        """Refuses what names a row that the clause has none of: it would be null."""
        if clause.rows == MATCHED:
            return
        lacking, side = "source", empty.alias(self.target_alias)
        if clause.rows == NOT_MATCHED:
            lacking, side = "table", self.source.alias(self.source_alias)
        for value in (clause.condition, *(clause.values or {}).values()):
            if value is None:
                continue
            try:
                _ = side.select(as_column(value, f"merge: {clause}:")).schema
            except AnalysisException as error:
                raise InvalidFilterError(
                    f"merge: {clause}: {first_line(error)} (such rows have none of the {lacking})"
                ) from None

    def _condition(self, joined: DataFrame, clause: Clause) -> Column | None:
        if clause.condition is None:
            return None
        what = f"merge: {clause}: condition"
        condition = as_column(clause.condition, what)
        check_condition(joined, condition, what)
        return condition

    def _written(self, joined: DataFrame) -> list[dict[str, Column]]:
        """Of each clause, the values of columns by name; columns that stay are left out."""
        return [
            {} if clause.action == DELETE else self._values(joined, clause)
            for clause in self.clauses
        ]

    def _values(self, joined: DataFrame, clause: Clause) -> dict[str, Column]:
        statement = f"merge: {clause}"
        given = self._of_same_names(clause) if clause.is_all else clause.values
        if given is None:
            raise InvalidOptionError(f"{statement}: expected columns and their values")
        planned = plan_assignments(
            self.target, given, joined, statement, lambda parts: self._of_target(*parts)
        )
        if clause.action == UPDATE:
            return planned
        missing = [field for field in self.target.schema.fields if field.name not in planned]
        return planned | {
            field.name: default_column(field, f"{statement}: table {self.target.state.name}")
            for field in missing
        }

    def _of_same_names(self, clause: Clause) -> dict[str, Value]:
        found = {name.lower(): name for name in self.source.columns}
        names = [field.name for field in self.target.schema.fields]
        if missing := [name for name in names if name.lower() not in found]:
            raise InvalidDataError(
                f"merge: {clause} all columns: the source has no {', '.join(missing)}; name the "
                "columns and their values"
            )
        return {
            quote_name((name,)): f.col(self._of_source(quote_name((found[name.lower()],))))
            for name in names
        }

    def _needed(self, on: Value | Sequence[str]) -> list[str]:
        """The columns of the table that are read: of matched rows, often few."""
        names = [field.name for field in self.target.schema.fields]
        texts: list[str] = [*on] if isinstance(on, list | tuple) else [str(on)]
        needed = {name for name in names if self._stays(name)}
        for clause in self.clauses:
            texts += [str(value) for value in (clause.values or {}).values()]
            texts += [] if clause.condition is None else [str(clause.condition)]
            # What is set in a struct leaves its other fields as they were.
            paths = map(split_name, clause.values or {})
            needed |= {self._own_name(path[0]) for path in paths if len(path) > 1}
        alias = re.escape(self.source_alias)
        of_source = re.compile(
            rf"(?<![.\w`])(?:{alias}|`{alias}`)\s*\.\s*(?:`[^`]*`|\w+)", re.IGNORECASE
        )
        needed |= set(named_columns([of_source.sub(" ", text) for text in texts], names))
        return [name for name in names if name in needed]

    def _stays(self, name: str) -> bool:
        """Whether an updated row may keep the value of a column."""
        return any(
            clause.action == UPDATE and not clause.is_all and name not in self._set_whole(clause)
            for clause in self.clauses
        )

    def _set_whole(self, clause: Clause) -> set[str]:
        paths = map(split_name, clause.values or {})
        return {self._own_name(path[0]) for path in paths if len(path) == 1}

    def _own_name(self, name: str) -> str:
        """The table's own name of a column."""
        return resolve(quote_name((name,)), self.target.schema, case_sensitive=False).name

    def _join_type(self) -> str:
        inserts = any(clause.rows == NOT_MATCHED for clause in self.clauses)
        by_source = any(clause.rows == BY_SOURCE for clause in self.clauses)
        if inserts:
            return "full_outer" if by_source else "right_outer"
        return "left_outer" if by_source else "inner"

    def _action(self, conditions: Sequence[Column | None]) -> Column:
        """The number of the clause that a pair is for; null for none."""
        of_table = f.col(self._of_target(FILE)).isNotNull()
        of_source = f.col(_OF_SOURCE).isNotNull()
        pairs = {
            MATCHED: of_table & of_source,
            NOT_MATCHED: ~of_table,
            BY_SOURCE: ~of_source,
        }
        action: Column | None = None
        for at, (clause, condition) in enumerate(zip(self.clauses, conditions, strict=True)):
            rows = pairs[clause.rows]
            holds = rows if condition is None else rows & condition
            action = f.when(holds, f.lit(at)) if action is None else action.when(holds, f.lit(at))
        assert action is not None, "there are clauses"
        return action

    def _chosen(self, written: Sequence[Mapping[str, Column]]) -> list[Column]:
        """The columns of the rows to write, by what is done with them."""
        return [
            self._choice(field.name, written).cast(spark_type(field.field_type)).alias(field.name)
            for field in self.target.schema.fields
        ]

    def _choice(self, name: str, written: Sequence[Mapping[str, Column]]) -> Column:
        chosen: Column | None = None
        for at, values in enumerate(written):
            if name in values:
                holds = f.col(_ACTION) == at
                value = values[name]
                chosen = f.when(holds, value) if chosen is None else chosen.when(holds, value)
        if not self._stays(name):
            return f.lit(None) if chosen is None else chosen
        stays = f.col(self._of_target(quote_name((name,))))
        return stays if chosen is None else chosen.otherwise(stays)

    def _lineage(self) -> Iterable[Column]:
        return [
            f.col(self._of_target(ROW_ID)).alias(ROW_ID),
            f.lit(None).cast("bigint").alias(LAST_UPDATED),
        ]

    def _of_target(self, *parts: str) -> str:
        return ".".join([quote_name((self.target_alias,)), *parts])

    def _of_source(self, name: str) -> str:
        return f"{quote_name((self.source_alias,))}.{name}"
