"""Implements the merges of registered sessions for tables by name: `df.mergeInto`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidFilterError, InvalidOptionError, NoSuchTableError
from icebergds.expr.names import quote_name, split_name
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.append_overwrite import in_commit_with_columns
from icebergds.operations.write.commit_options import refuse_ignored_audit
from icebergds.operations.write.options import WriteOptions, parse_write_options
from icebergds.operations.write.row_counts import RowCounts, counts_of
from icebergds.spark.job_descriptions import describing
from icebergds.spark.jvm import Private, with_private
from icebergds.spark.row_level.merge import MergeBuilder
from icebergds.spark.row_level.target import Target, make_target
from icebergds.spark.session import acting_in, is_connect, session_setting
from icebergds.spark.verbs import WRITER, is_on, named_table, our_name
from icebergds.spark.writers.table_writes import table_to_write
from icebergds.spec.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icebergds.spark.row_level.conditions import Value

_UNNAMED = ("source", "icebergds_source")


def merge_into(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrame.mergeInto`: our merge for tables in our catalogs.

    The replacement raises NoSuchTableError if there is no such table.
    """

    @wraps(of_spark)
    def merge_into(self: Any, table: str, condition: Column) -> Any:
        session = self.sparkSession
        name = our_name(session, table) if is_on(session, WRITER) else None
        if name is None:
            return of_spark(self, table, condition)
        with acting_in(session):
            return MergeWriter(self, name, condition)

    return merge_into


class MergeWriter:
    """Merges a DataFrame into a table by name: what `df.mergeInto` returns.

    Conditions and values name the table's columns by the last part of its name (`t.id`), and those
    of the DataFrame by its alias, or as they are.
    """

    def __init__(self, df: DataFrame, name: str, condition: Column) -> None:
        self._df, self._name = df, name
        options = parse_write_options(named_table({}, name))
        table = _existing(options, name)
        self._columns = {field.name.lower() for field in table.metadata.schema().fields}
        self._alias = split_name(name)[-1]
        self._builder = MergeBuilder(
            _executing(df, options, name), df, condition, _alias_of(df, self._alias), self._alias
        )

    def whenMatched(self, condition: Column | None = None) -> _WhenMatched:
        """Begins the clause for rows of the table that a row of the DataFrame matches."""
        return _WhenMatched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> _WhenNotMatched:
        """Begins the clause for rows of the DataFrame that match none of the table."""
        return _WhenNotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> _WhenNotMatchedBySource:
        """Begins the clause for rows of the table that no row of the DataFrame matches."""
        return _WhenNotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> MergeWriter:
        """Adds columns of the DataFrame that the table lacks."""
        return self._with(self._builder.with_schema_evolution())

    def merge(self) -> None:
        """Runs the merge, in one commit. Errors are those of `MergeBuilder.execute`."""
        with acting_in(self._df.sparkSession):
            self._builder.execute()

    def _with(self, builder: MergeBuilder) -> MergeWriter:
        self._builder = builder
        return self

    def _assigned(self, assignments: Mapping[str, Value]) -> dict[str, Value]:
        """Values by column, without the name of the table in front of it."""
        found: dict[str, Value] = {}
        for name, value in assignments.items():
            try:
                parts = split_name(name)
            except InvalidFilterError as error:
                raise InvalidOptionError(f"mergeInto({self._name!r}): {error}") from None
            is_qualified = len(parts) > 1 and parts[0].lower() == self._alias.lower()
            if is_qualified and parts[0].lower() not in self._columns:
                parts = parts[1:]
            found[quote_name(parts)] = value
        return found


class _WhenMatched:
    def __init__(self, writer: MergeWriter, condition: Column | None) -> None:
        self._writer, self._condition = writer, condition

    def updateAll(self) -> MergeWriter:
        builder = self._writer._builder.when_matched_update_all(self._condition)
        return self._writer._with(builder)

    def update(self, assignments: Mapping[str, Value]) -> MergeWriter:
        values = self._writer._assigned(assignments)
        return self._writer._with(
            self._writer._builder.when_matched_update(values, self._condition)
        )

    def delete(self) -> MergeWriter:
        return self._writer._with(self._writer._builder.when_matched_delete(self._condition))


class _WhenNotMatched:
    def __init__(self, writer: MergeWriter, condition: Column | None) -> None:
        self._writer, self._condition = writer, condition

    def insertAll(self) -> MergeWriter:
        builder = self._writer._builder.when_not_matched_insert_all(self._condition)
        return self._writer._with(builder)

    def insert(self, assignments: Mapping[str, Value]) -> MergeWriter:
        values = self._writer._assigned(assignments)
        return self._writer._with(
            self._writer._builder.when_not_matched_insert(values, self._condition)
        )


class _WhenNotMatchedBySource:
    def __init__(self, writer: MergeWriter, condition: Column | None) -> None:
        self._writer, self._condition = writer, condition

    def updateAll(self) -> MergeWriter:
        raise InvalidOptionError(
            f"mergeInto({self._writer._name!r}): whenNotMatchedBySource().updateAll(): these rows "
            "have no row of the DataFrame to take values from; use update({...})"
        )

    def update(self, assignments: Mapping[str, Value]) -> MergeWriter:
        values = self._writer._assigned(assignments)
        return self._writer._with(
            self._writer._builder.when_not_matched_by_source_update(values, self._condition)
        )

    def delete(self) -> MergeWriter:
        builder = self._writer._builder.when_not_matched_by_source_delete(self._condition)
        return self._writer._with(builder)


def _existing(options: WriteOptions, name: str) -> LoadedTable:
    table = table_to_write(options)
    if table is None:
        missing = f"table {name} does not exist"
        raise NoSuchTableError(options.address.with_catalog_hint(missing))
    return table


def _executing(
    df: DataFrame, options: WriteOptions, name: str
) -> Callable[[Callable[[Target], Committed | None], Schema | None], RowCounts]:
    """What a builder runs its merge with: on the table as it is then."""

    def execute(
        run: Callable[[Target], Committed | None], columns: Schema | None = None
    ) -> RowCounts:
        spark = df.sparkSession

        def changed(given: LoadedTable) -> RowCounts:
            return counts_of(run(make_target(spark, given, "merge", options)))

        table = _existing(options, name)
        refuse_ignored_audit(session_setting(spark), table, options)
        with nothing_committed(table.name), describing(f"MERGE {table.name}"):
            if columns is None:
                return changed(table)
            return in_commit_with_columns(table, columns, changed)[0]

    return execute


def _alias_of(df: DataFrame, taken: str) -> str:
    """The name of a DataFrame in conditions: its own, or else one that nothing has.

    Args:
        taken: the name of the table.
    """
    if is_connect(df.sparkSession):
        found = _connect_alias(getattr(df, "_plan", None))
    else:
        found = with_private(Private.MERGES, lambda: _classic_alias(df), lambda: None)
    return found or next(name for name in _UNNAMED if name != taken.lower())


def _classic_alias(df: DataFrame) -> str | None:
    """The qualifier that all columns of a DataFrame have."""
    classic: Any = df._jdf
    output = classic.queryExecution().analyzed().output()
    found = set()
    for at in range(output.size()):
        qualifier = output.apply(at).qualifier()
        found.add(None if qualifier.isEmpty() else str(qualifier.last()))
    return found.pop() if len(found) == 1 else None


def _connect_alias(plan: Any) -> str | None:
    """The alias of the relation whose rows a plan passes on."""
    while plan is not None:
        match type(plan).__name__:
            case "SubqueryAlias":
                return str(plan._alias)
            case "Filter" | "Limit" | "Offset" | "Sort" | "Deduplicate":
                plan = plan._child
            case _:
                return None
    return None
