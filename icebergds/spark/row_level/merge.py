"""Merges a DataFrame into a table, in one Spark job (`MergeBuilder`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, functions as f

from icebergds.commit.snapshot_commit import Committed
from icebergds.display import printable
from icebergds.errors import InvalidDataError, InvalidFilterError, InvalidOptionError
from icebergds.expr.names import quote_name, resolve, split_name
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spark.dataframe_schema import iceberg_schema, optional_columns
from icebergds.spark.errors import own_errors, unlogged
from icebergds.spark.row_level.assignments import assigned_type, default_column, plan_assignments
from icebergds.spark.row_level.conditions import (
    Value,
    as_column,
    as_value,
    check_condition,
    first_line,
    named_columns,
)
from icebergds.spark.row_level.match_filter import Sides, equal_columns, match_filter, only_matching
from icebergds.spark.row_level.target import FILE, LAST_UPDATED, POS, ROW_ID, WRITE, Target
from icebergds.spark.types import spark_schema
from icebergds.spec.schema import Schema
from icebergds.write.deletes.deleted_rows import REPEATED

Condition: TypeAlias = str | Column
"""SQL text or a Spark column."""

MATCHED = "when matched"
NOT_MATCHED = "when not matched"
BY_SOURCE = "when not matched by source"
UPDATE, DELETE, INSERT = "update", "delete", "insert"

_OF_SOURCE = "__icebergds_of_source"
_ACTION = "__icebergds_action"
_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Clause:
    """One clause of a merge.

    Attributes:
        rows: `MATCHED`, `NOT_MATCHED` (rows of the source) or `BY_SOURCE` (rows of the table).
        action: `UPDATE`, `DELETE` or `INSERT`.
        condition: selects among these rows; None for all.
        values: new values by column; None with `is_all`.
        is_all: take all columns from the source's columns of the same names.
    """

    rows: str
    action: str
    condition: Condition | None = None
    values: Mapping[str, Value] | None = None
    is_all: bool = False

    def __str__(self) -> str:
        return f"{self.rows} {self.action}"


@dataclass(frozen=True)
class MergeBuilder:
    """Builds a merge: add clauses, then call `execute()`.

    For each row the first clause whose condition is true applies. Each method returns a new builder
    with the clause added. Conditions and values are Spark SQL or Spark columns; values
    may also be numbers, `bool`s, dates and `datetime`s.
    """

    _execute: Callable[[Callable[[Target], Committed | None], Schema | None], RowCounts]
    _source: DataFrame
    _on: Condition | Sequence[str]
    _source_alias: str
    _target_alias: str
    _clauses: tuple[Clause, ...] = ()
    _evolves: bool = False

    def with_schema_evolution(self) -> MergeBuilder:
        """Adds columns of the source that the table lacks, and widens types, in the same commit.

        Clauses for all columns then leave out columns that the source lacks: updated rows keep
        them, inserted rows get their write default.
        """
        return replace(self, _evolves=True)

    def when_matched_update(
        self, set: Mapping[str, Value], condition: Condition | None = None
    ) -> MergeBuilder:
        """Updates columns of matched rows, such as `{"name": "source.name"}`."""
        return self._with(Clause(MATCHED, UPDATE, condition, set))

    def when_matched_update_all(self, condition: Condition | None = None) -> MergeBuilder:
        """Updates all columns of matched rows from the source columns of the same names."""
        return self._with(Clause(MATCHED, UPDATE, condition, is_all=True))

    def when_matched_delete(self, condition: Condition | None = None) -> MergeBuilder:
        """Deletes matched rows."""
        return self._with(Clause(MATCHED, DELETE, condition))

    def when_not_matched_insert(
        self, values: Mapping[str, Value], condition: Condition | None = None
    ) -> MergeBuilder:
        """Inserts source rows that match no table row; other columns get their write default."""
        return self._with(Clause(NOT_MATCHED, INSERT, condition, values))

    def when_not_matched_insert_all(self, condition: Condition | None = None) -> MergeBuilder:
        """Inserts source rows that match no table row, matching all columns by name."""
        return self._with(Clause(NOT_MATCHED, INSERT, condition, is_all=True))

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Value], condition: Condition | None = None
    ) -> MergeBuilder:
        """Updates columns of table rows that no source row matches."""
        return self._with(Clause(BY_SOURCE, UPDATE, condition, set))

    def when_not_matched_by_source_delete(self, condition: Condition | None = None) -> MergeBuilder:
        """Deletes table rows that no source row matches."""
        return self._with(Clause(BY_SOURCE, DELETE, condition))

    def execute(self) -> RowCounts:
        """Runs the merge, in one commit; if no row changes, nothing is committed.

        Returns:
            The numbers of inserted, updated and deleted rows.

        Raises:
            InvalidOptionError: there is no clause, or one is malformed.
            InvalidFilterError: a condition does not fit the two sides, or is not deterministic.
            InvalidDataError: a column is unknown or set twice, a value does not fit its type, or
                more than one source row changes the same table row; the only clause of
                matched rows may delete them all however many source rows they match.
            ValidationError: concurrent commits changed the rows that were read
                (`write.merge.isolation-level`).
            CommitConflictError, CommitStateUnknownError: as for `Table.append`.
            PySparkException: the Spark job or the query failed for another reason.
        """
        if not self._clauses:
            raise InvalidOptionError("merge: add a clause, such as when_matched_update_all()")

        def run(target: Target) -> Committed | None:
            target.mode()
            aliases = self._source_alias, self._target_alias
            merge = _Merge(target, self._source, *aliases, self._clauses, self._evolves)
            return merge.run(self._on)

        columns = None
        if self._evolves:
            columns = optional_columns(iceberg_schema(self._source.schema))
        return self._execute(run, columns)

    def _with(self, clause: Clause) -> MergeBuilder:
        for earlier in self._clauses:
            if earlier.rows == clause.rows and earlier.condition is None:
                raise InvalidOptionError(
                    f"merge: {clause} never applies, because {earlier} before it has no condition; "
                    "put clauses without a condition last"
                )
        return replace(self, _clauses=(*self._clauses, clause))


@dataclass(frozen=True)
class _Merge:
    """Runs a merge.

    Joins the rows of the table and the source under their aliases. Each pair gets the number of the
    clause that applies to it; pairs without a clause are dropped.
    """

    target: Target
    source: DataFrame
    source_alias: str
    target_alias: str
    clauses: tuple[Clause, ...]
    evolves: bool

    def run(self, on: Condition | Sequence[str]) -> Committed | None:
        if self.source_alias.lower() == self.target_alias.lower():
            raise InvalidOptionError(
                f"merge: both sides are named {self.source_alias!r}; give them different aliases"
            )
        on = self._as_key(on)
        matching = self._matching(on)
        # All conditions and values are checked before any row is read.
        empty = self.target.spark.createDataFrame([], spark_schema(self.target.schema))
        checked = self._checked(empty, matching)
        for clause in self.clauses:
            self._check_side(clause, empty)
        conditions = [self._condition(checked, clause) for clause in self.clauses]
        written = self._written(checked)
        sides = Sides(self.target, self.source, self.source_alias, self.target_alias, checked)
        by_source = [clause.condition for clause in self.clauses if clause.rows == BY_SOURCE]
        with own_errors():
            row_filter, source = match_filter(sides, on, by_source)
        writes = [at for at, clause in enumerate(self.clauses) if clause.action != DELETE]
        rows = self.target.rows(self._needed(on), row_filter, with_ids=bool(writes))
        frame = rows.frame
        if self._join_type() == "right_outer":
            with own_errors():
                frame, source = only_matching(replace(sides, source=source), on, rows)
        merge = replace(self, source=source)
        joined = merge._joined(frame, matching, self._join_type())
        acted = joined.withColumn(_ACTION, self._action(conditions)).where(
            f.col(_ACTION).isNotNull()
        )
        if self._deletes_all_matched():
            acted = self._without_repeated(acted)
        changes = acted.select(
            f.col(self._of_target(FILE)).alias(FILE),
            f.col(self._of_target(POS)).alias(POS),
            f.col(_ACTION).isin(writes).alias(WRITE),
            *(self._chosen(written) if writes else []),
            *(self._lineage() if writes and self.target.has_lineage else []),
        )
        try:
            return self.target.save(changes, rows)
        except InvalidDataError as error:
            keys = [pair.of_target for pair in equal_columns(sides, on)]
            if REPEATED not in str(error) or not keys:
                raise
            raise InvalidDataError(f"{error}{self._repeated(acted, keys)}") from None

    def _repeated(self, acted: DataFrame, keys: Sequence[str]) -> str:
        """The key of a row that the merge changes twice, for a message."""
        place = [f.col(self._of_target(FILE)), f.col(self._of_target(POS))]
        # As Spark shows them.
        texts = [f.first(f.col(self._of_target(key)).cast("string")) for key in keys]
        try:
            found = (
                acted.where(place[0].isNotNull())
                .groupBy(*place)
                .agg(f.count(f.lit(1)).alias(_ACTION), *texts)
                .where(f.col(_ACTION) > 1)
                .first()
            )
        except PySparkException:
            # Only a detail of the message is lost: the merge has failed already.
            return ""
        if found is None:
            return ""
        shown = (
            f"{key} = {printable(value, _LONGEST_SHOWN)}"
            for key, value in zip(keys, found[3:], strict=True)
        )
        return f"; one such row has {', '.join(shown)}"

    def _deletes_all_matched(self) -> bool:
        """Whether it does not matter how many source rows a row matches."""
        matched = [clause for clause in self.clauses if clause.rows == MATCHED]
        return [(clause.action, clause.condition) for clause in matched] == [(DELETE, None)]

    def _without_repeated(self, acted: DataFrame) -> DataFrame:
        """Keeps each table row once, and all rows to be inserted."""
        file, pos = f.col(self._of_target(FILE)), f.col(self._of_target(POS))
        inserted = f.when(file.isNull(), f.monotonically_increasing_id())
        names = ["__icebergds_file", "__icebergds_pos", "__icebergds_inserted"]
        keyed = acted.withColumns(dict(zip(names, (file, pos, inserted), strict=True)))
        return keyed.dropDuplicates(names)

    def _as_key(self, on: Condition | Sequence[str]) -> Condition | Sequence[str]:
        """Wraps the condition in a list if it is the name of a column that both sides have.

        As a condition such a name would be ambiguous.
        """
        if not isinstance(on, str):
            return on
        try:
            parts = split_name(on.strip())
        except InvalidFilterError:
            return on
        sides = ([field.name for field in self.target.schema.fields], self.source.columns)
        name = parts[0].lower()
        is_key = len(parts) == 1 and all(name in map(str.lower, names) for names in sides)
        return [on.strip()] if is_key else on

    def _matching(self, on: Condition | Sequence[str]) -> Column:
        if not isinstance(on, list | tuple):
            return as_column(on, "merge: on")
        if not on or not all(isinstance(name, str) for name in on):
            raise InvalidOptionError(
                f"merge: on = {on!r}: expected a condition or a list of column names"
            )
        matching = f.lit(True)
        for at, name in enumerate(on):
            equal = f.col(self._of_target(name)) == f.col(self._of_source(name))
            matching = equal if at == 0 else matching & equal
        return matching

    def _checked(self, empty: DataFrame, matching: Column) -> DataFrame:
        """Empty pairs, after checking with Spark that the condition fits the two sides."""
        source = self.source.alias(self.source_alias)
        try:
            with unlogged():
                pairs = empty.alias(self.target_alias).join(source, matching, "inner")
                _ = pairs.schema
        except AnalysisException as error:
            raise InvalidFilterError(f"merge: on: {first_line(error)}") from None
        return pairs

    def _joined(self, rows: DataFrame, matching: Column, how: str) -> DataFrame:
        source = self.source.alias(self.source_alias)
        source = source.withColumn(_OF_SOURCE, f.lit(True))
        return rows.alias(self.target_alias).join(source, matching, how)

    def _check_side(self, clause: Clause, empty: DataFrame) -> None:
        """Refuses references to the side that has no row for the clause: they would be null."""
        if clause.rows == MATCHED:
            return
        lacking, side = "source", empty.alias(self.target_alias)
        if clause.rows == NOT_MATCHED:
            lacking, side = "table", self.source.alias(self.source_alias)
        what = f"merge: {clause}:"
        columns = [] if clause.condition is None else [as_column(clause.condition, what)]
        columns += [as_value(value, what) for value in (clause.values or {}).values()]
        for column in columns:
            try:
                with unlogged():
                    _ = side.select(column).schema
            except AnalysisException as error:
                raise InvalidFilterError(
                    f"merge: {clause}: {first_line(error)} (there is no row of the {lacking} in "
                    "this clause)"
                ) from None

    def _condition(self, joined: DataFrame, clause: Clause) -> Column | None:
        if clause.condition is None:
            return None
        what = f"merge: {clause}: condition"
        condition = as_column(clause.condition, what)
        check_condition(joined, condition, what)
        return condition

    def _written(self, joined: DataFrame) -> list[dict[str, Column]]:
        """The new values of each clause, by column name, without unchanged columns."""
        return [
            {} if clause.action == DELETE else self._values(joined, clause)
            for clause in self.clauses
        ]

    def _values(self, joined: DataFrame, clause: Clause) -> dict[str, Column]:
        statement = f"merge: {clause}"
        given = self._of_same_names(clause) if clause.is_all else clause.values
        if given is None:
            raise InvalidOptionError(
                f'{statement}: expected values by column, such as {{"name": "source.name"}}'
            )
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
        missing = [name for name in names if name.lower() not in found]
        if self.evolves:
            names = [name for name in names if name not in missing]
        elif missing:
            raise InvalidDataError(
                f"merge: {clause} all columns: the source has no column {', '.join(missing)}; "
                "give the values by column instead"
            )
        return {
            quote_name((name,)): f.col(self._of_source(quote_name((found[name.lower()],))))
            for name in names
        }

    def _needed(self, on: Condition | Sequence[str]) -> list[str]:
        """The columns of the table that the merge needs to read."""
        names = [field.name for field in self.target.schema.fields]
        texts: list[str] = [*on] if isinstance(on, list | tuple) else [str(on)]
        needed = {name for name in names if self._stays(name)}
        for clause in self.clauses:
            texts += [str(value) for value in (clause.values or {}).values()]
            texts += [] if clause.condition is None else [str(clause.condition)]
            # Setting a field of a struct keeps the other fields, so the struct is read.
            paths = map(split_name, clause.values or {})
            needed |= {self._own_name(path[0]) for path in paths if len(path) > 1}
        of_target = [_without_columns_of(text, self.source_alias) for text in texts]
        needed |= set(named_columns(of_target, names))
        return [name for name in names if name in needed]

    def _stays(self, name: str) -> bool:
        """Whether a column may keep its value in an updated row."""
        return any(
            clause.action == UPDATE and name not in self._set_whole(clause)
            for clause in self.clauses
        )

    def _set_whole(self, clause: Clause) -> set[str]:
        if clause.is_all:
            return {split_name(name)[0] for name in self._of_same_names(clause)}
        paths = map(split_name, clause.values or {})
        return {self._own_name(path[0]) for path in paths if len(path) == 1}

    def _own_name(self, name: str) -> str:
        """The name of a column as the table spells it."""
        return resolve(quote_name((name,)), self.target.schema, case_sensitive=False).name

    def _join_type(self) -> str:
        inserts = any(clause.rows == NOT_MATCHED for clause in self.clauses)
        by_source = any(clause.rows == BY_SOURCE for clause in self.clauses)
        if inserts:
            return "full_outer" if by_source else "right_outer"
        return "left_outer" if by_source else "inner"

    def _action(self, conditions: Sequence[Column | None]) -> Column:
        """The number of the clause that applies to a pair; null if none does."""
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
        """The columns of the rows to write, each chosen by the clause that applies."""
        return [
            self._choice(field.name, written)
            .cast(assigned_type(field.field_type))
            .alias(field.name)
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


def _without_columns_of(text: str, alias: str) -> str:
    """Removes the columns that are qualified with an alias from a text."""
    name = re.escape(alias)
    # Match a quoted name as a whole, because it may contain the alias and a dot.
    pattern = rf"(?<![.\w`])(?:{name}|`{name}`)\s*\.\s*(?:`[^`]*`|\w+)|(?P<other>`(?:[^`]|``)*`)"
    return re.sub(pattern, lambda match: match["other"] or " ", text, flags=re.IGNORECASE)
