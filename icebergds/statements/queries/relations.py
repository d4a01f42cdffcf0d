"""Creates the DataFrames that replace the tables and views that a query names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.api.view import View
from icebergds.errors import (
    IcebergError,
    InvalidStatementError,
    NoSuchTableError,
    NoSuchViewError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import TRUE, relaxed
from icebergds.expr.sql_text import sql_text
from icebergds.operations.metadata_tables.schemas import metadata_table_schema
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.read_plan import PLAIN_TYPES
from icebergds.spark.frames.chosen_rows import (
    AnsweredRows,
    answered_rows,
    chosen_rows,
    chosen_rows_summary,
    may_answer,
    query_options,
    schema_of_read,
)
from icebergds.spark.metadata_tables import metadata_table_frame
from icebergds.spark.session import is_connect
from icebergds.spark.types import spark_schema
from icebergds.spec.schema import Schema
from icebergds.statements.names.scope import CatalogName, NameScope, audited_branch
from icebergds.statements.names.tables import NamedTable, find_table
from icebergds.statements.queries.cached import cached_rows
from icebergds.statements.queries.needed import Needed
from icebergds.statements.queries.references import Reference
from icebergds.statements.queries.streams import check_stream, stream_frame
from icebergds.statements.queries.suffixes import AS_OF
from icebergds.statements.queries.temporary_views import TemporaryView
from icebergds.statements.spark_sql import Arguments, spark_sql


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view of ours, or a temporary view over them, where a query names it.

    Attributes:
        given: the options of the read.
        schema: of what is read; None for changes and streams.
    """

    reference: Reference
    name: CatalogName
    source: NamedTable | View | TemporaryView
    options: ReadOptions = field(default_factory=ReadOptions)
    given: Mapping[str, str] = field(default_factory=dict)
    schema: Schema | None = None


def open_relations(
    scope: NameScope, text: str, references: Sequence[tuple[Reference, CatalogName]]
) -> list[Relation]:
    """Loads the tables and views of references, each once.

    Raises:
        NoSuchTableError: one does not exist.
        InvalidOptionError, NoSuchSnapshotError: the version to read does not exist.
        InvalidStatementError: a version is given twice, or for a view.
    """
    loaded: dict[CatalogName, NamedTable | View] = {}
    found = []
    for reference, name in references:
        if name not in loaded:
            loaded[name] = table_or_view(scope, name)
        source = loaded[name]
        if isinstance(source, View):
            found.append(_view(reference, name, source))
            continue
        behind = {**reference.suffix.options, **_times(scope, text, reference)}
        if source.options.keys() & behind.keys():
            raise InvalidStatementError(
                f"{name}: its last part and what follows the name both say what is read; give one"
            )
        given = {**source.options, **behind}
        if reference.is_stream:
            check_stream(source, given)
            found.append(Relation(reference, name, source, given=given))
            continue
        if source.metadata_table is not None:
            kind, metadata = source.metadata_table, source.table._state.metadata
            whole = metadata_table_schema(kind, metadata).schema
            found.append(Relation(reference, name, source, given=given, schema=whole))
            continue
        options = query_options(scope.spark, given)
        if options.time_travel == TimeTravel() and options.changes is None:
            branch = audited_branch(scope.spark, source.table)
            if branch is not None:
                given = {**given, "branch": branch}
                options = query_options(scope.spark, given)
        # Rounded timestamps meet conditions that the stored ones do not, and answers from metadata
        # have the plain types.
        is_other = options.changes or options.shown != PLAIN_TYPES
        schema = None if is_other else schema_of_read(source.table._state, options)
        found.append(Relation(reference, name, source, options, given, schema))
    return found


def table_or_view(scope: NameScope, name: CatalogName) -> NamedTable | View:
    """The table of a name, or the part of a table that it selects, or else the view.

    Raises:
        NoSuchTableError: there is neither.
    """
    try:
        return find_table(scope, name)
    except NoSuchTableError as error:
        try:
            return scope.catalog(name.catalog).load_view(name.parts)
        except (NoSuchViewError, UnsupportedFeatureError):
            raise _with_namespace(scope, name, error) from None


def _with_namespace(
    scope: NameScope, name: CatalogName, error: NoSuchTableError
) -> NoSuchTableError:
    """The error that there is no table, which suggests the name that the user may have meant."""
    current = scope.current
    if current.catalog != name.catalog or not current.namespace or len(name.parts) < 2:
        return error
    meant = CatalogName(name.catalog, (*current.namespace, *name.parts))
    try:
        find_table(scope, meant)
    except IcebergError:
        return error
    return NoSuchTableError(
        f"{error}; a name of several parts has its namespace in it: did you mean {meant}?"
    )


def source_schema(spark: SparkSession, source: NamedTable | View) -> StructType:
    """The Spark columns of a table, of what a name selects from it, or of a view.

    Raises:
        NoSuchSnapshotError: the branch, tag or snapshot does not exist.
    """
    if isinstance(source, View):
        return spark_schema(source.schema())
    state = source.table._state
    if source.metadata_table is not None:
        return spark_schema(metadata_table_schema(source.metadata_table, state.metadata).schema)
    if not source.options:
        return spark_schema(source.table.schema())
    options = query_options(spark, source.options)
    if options.changes is not None:
        return chosen_rows(spark, state, options, TRUE, None).schema
    return spark_schema(schema_of_read(state, options), options.shown)


def table_frame(scope: NameScope, relation: Relation, needed: Needed) -> DataFrame:
    """The rows of a table that a query may need.

    Errors are those of `chosen_rows`, `metadata_table_frame` and `stream_frame`.
    """
    source, spark = relation.source, scope.spark
    assert isinstance(source, NamedTable), "views are queries of their own"
    if relation.reference.is_stream:
        return stream_frame(spark, source, relation.given, relation.reference.suffix.source_name)
    state = source.table._state
    if source.metadata_table is not None:
        given = _needed_options(relation, needed)
        return metadata_table_frame(spark, state, source.metadata_table, given)
    if not relation.given and (cached := cached_rows(spark, source, needed.columns)) is not None:
        return cached
    return chosen_rows(
        spark,
        state,
        relation.options,
        needed.condition,
        needed.columns,
        first=needed.first,
        as_one=needed.as_one,
        may_be_local=needed.may_be_local and not is_connect(spark),
    )


def may_be_answered(scope: NameScope, relation: Relation, needed: Needed) -> bool:
    """Whether aggregates of a table may be answered from metadata."""
    source, spark = relation.source, scope.spark
    assert isinstance(source, NamedTable), "views are queries of their own"
    if not relation.given and cached_rows(spark, source, needed.columns) is not None:
        return False
    return may_answer(spark, source.table._state, relation.options)


def rows_beside_answers(scope: NameScope, relation: Relation, needed: Needed) -> AnsweredRows:
    """What metadata answers of a table, and the rows that are left. Errors: see `answered_rows`."""
    source = relation.source
    assert isinstance(source, NamedTable), "views are queries of their own"
    assert needed.aggregates is not None, "only aggregates are answered"
    return answered_rows(
        scope.spark,
        source.table._state,
        relation.options,
        needed.condition,
        needed.columns,
        needed.aggregates.asked,
        as_one=needed.as_one,
    )


def scan_text(scope: NameScope, relation: Relation, needed: Needed) -> str:
    """Describes what the scan of a table reads and skips. Errors are those of `table_frame`."""
    source, spark = relation.source, scope.spark
    assert isinstance(source, NamedTable), "views are queries of their own"
    kind = source.metadata_table
    if relation.reference.is_stream:
        return f"{_SCAN}\nstream of {source.name}\n"
    if kind is not None or relation.options.changes is not None:
        what = "changes" if kind is None else f"metadata table {kind.value}"
        return f"{_SCAN}\n{what} of {source.name}\n"
    if not relation.given and cached_rows(spark, source, needed.columns) is not None:
        return f"{_SCAN}\n{source.name}: its rows are cached by CACHE TABLE\n"
    state = source.table._state
    aggregates = needed.aggregates
    answers = aggregates is not None and may_answer(spark, state, relation.options)
    summary = chosen_rows_summary(
        spark,
        state,
        relation.options,
        needed.condition,
        needed.columns,
        aggregates.asked if aggregates is not None and answers else None,
        first=needed.first,
        as_one=needed.as_one,
    )
    return f"{summary}\n"


_SCAN = "== Iceberg Scan =="


def _needed_options(relation: Relation, needed: Needed) -> dict[str, str]:
    """The options of the read of a metadata table."""
    assert relation.schema is not None, "it is read by its schema"
    options: dict[str, str] = {}
    if needed.columns is not None:
        options["columns"] = ", ".join(map(quote_name, needed.columns))
    condition = relaxed(needed.condition)
    if condition != TRUE:
        options["filter"] = sql_text(condition, relation.schema)
    return {**options, **relation.given}


def refuse_version(reference: Reference, view: CatalogName | str) -> None:
    """Raises InvalidStatementError if a version, changes or options follow the name of a view."""
    if reference.suffix.options or reference.suffix.times:
        raise InvalidStatementError(
            f"{view} is a view: it has no versions, no changes and no options of reads"
        )


def _view(reference: Reference, name: CatalogName, view: View) -> Relation:
    refuse_version(reference, name)
    return Relation(reference, name, view, schema=view.schema())


def _times(scope: NameScope, text: str, reference: Reference) -> dict[str, str]:
    """The read options whose values are times; Spark evaluates the expressions of these."""
    times = reference.suffix.times
    if not times:
        return {}
    for option, span in times.items():
        if option != AS_OF and _HAS_QUERY.search(span.of(text)):
            raise InvalidStatementError(
                "[INVALID_CDC_OPTION.INVALID_TIMESTAMP_EXPR] Invalid Change Data Capture (CDC) "
                "option. The timestamp expression for CDC queries must not contain subqueries."
            )
    values = ", ".join(
        f"unix_micros(CAST({span.of(text)} AS TIMESTAMP)) AS `{option}`"
        for option, span in times.items()
    )
    [row] = spark_sql(scope.spark, f"SELECT {values}", Arguments()).collect()
    return {option: _moment(row[option], option, times[option].of(text)) for option in times}


_HAS_QUERY = re.compile(r"\(\s*(SELECT|WITH|VALUES|TABLE|FROM)\b", re.IGNORECASE)


def _moment(micros: int | None, option: str, written: str) -> str:
    """A time of Spark as the value of an option."""
    if option == AS_OF:
        return str(None if micros is None else micros // 1000)
    if micros is None:
        raise InvalidStatementError(
            "[INVALID_CDC_OPTION.INVALID_TIMESTAMP] Invalid Change Data Capture (CDC) option. The "
            f"timestamp '{written}' cannot be cast to TIMESTAMP type for CDC queries."
        )
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
