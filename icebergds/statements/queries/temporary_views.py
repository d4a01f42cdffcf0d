"""Keeps the queries of temporary views over our tables, so that they read the current rows.

Spark's own view has the rows at the time of its creation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from icebergds.api.view import View
from icebergds.errors import InvalidDataError, InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spark.dataframe_schema import iceberg_schema
from icebergds.spark.registered import session_of
from icebergds.spec.schema import Schema
from icebergds.spec.views.metadata import ViewVersion
from icebergds.statements.names.scope import CatalogName, CurrentNamespace, NameScope
from icebergds.statements.queries.references import Reference, find_references
from icebergds.statements.spark_sql import Arguments, Replacement, spark_sql
from icebergds.statements.text.cursor import Cursor, Span

_KEPT = "temporary views"
_Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A temporary view.

    Attributes:
        query: its tokens.
        arguments: those of the statement that created the view.
        current: where its names are looked for.
        schema: of the query, at the creation of the view.
        columns: other names for the query's columns, and comments.
        reads: the temporary views that it may read, directly or through others.
        mark: shows whether Spark's view is still the one of the query.
    """

    query: Cursor
    arguments: Arguments
    current: CurrentNamespace
    schema: StructType
    columns: tuple[tuple[str, str | None], ...]
    reads: frozenset[_Name] = frozenset()
    mark: int = 0

    def whole_query(self) -> Cursor:
        """The query, from its beginning."""
        query = self.query
        return query.part()

    def columns_schema(self) -> Schema | None:
        """The columns of the view; None if Iceberg lacks the type of one."""
        names = [name for name, _ in self.columns] or self.schema.names
        fields = zip(names, self.schema.fields, strict=True)
        try:
            return iceberg_schema(StructType([StructField(n, f.dataType) for n, f in fields]))
        except InvalidDataError:
            return None


def temporary_view(spark: SparkSession, parts: tuple[str, ...]) -> TemporaryView | None:
    """The view of a name; None if Spark has another view of that name, or none."""
    name = _key(parts)
    kept = _views(spark)
    view = kept.get(name)
    if view is not None and _mark(spark, name) != view.mark:
        del kept[name]
        return None
    return view


def keep_temporary_view(spark: SparkSession, parts: tuple[str, ...], view: TemporaryView) -> None:
    """Keeps a view just created in Spark, unless it reads a view of its own name."""
    kept, name = _views(spark), _key(parts)
    named = {_key(reference.name) for reference in find_references(view.query)}
    reads = frozenset(named.union(*(kept[each].reads for each in named if each in kept)))
    kept.pop(name, None)
    mark = _mark(spark, name)
    if name not in reads and mark is not None:
        kept[name] = replace(view, reads=reads, mark=mark)


def _mark(spark: SparkSession, name: _Name) -> int | None:
    """A hash of the plan of Spark's view; None if there is none."""
    try:
        return spark_sql(spark, f"TABLE {in_backticks(name)}", Arguments()).semanticHash()
    except PySparkException:
        return None


def _key(parts: tuple[str, ...]) -> _Name:
    return tuple(part.lower() for part in parts)


def _views(spark: SparkSession) -> dict[_Name, TemporaryView]:
    return cast(dict[_Name, TemporaryView], session_of(spark).kept.setdefault(_KEPT, {}))


QUERY_COLUMNS = "spark.query-column-names"
"""The view property with the names of the query's columns, as Java writes it."""


def definition_of(scope: NameScope, name: CatalogName, view: View) -> tuple[NameScope, Cursor]:
    """The query of a view for Spark, and the scope of its names.

    Raises:
        InvalidOptionError: the view has no query for Spark.
        InvalidStatementError: the query cannot be parsed, or reads the view itself, or its default
            catalog is not configured.
    """
    if name in scope.views:
        path = " -> ".join(map(str, (*scope.views[scope.views.index(name) :], name)))
        raise InvalidStatementError(f"view {name} reads itself: {path}")
    text = view.sql_for()
    tokens = sql_tokens(text)
    if tokens is None:
        raise InvalidStatementError(f"view {name}: its query cannot be read: {text}")
    current = _namespace(scope, name, view.current_version())
    return scope.within(name, current), Cursor(text, tokens)


def spark_qualifiers(scope: NameScope, references: Iterable[Reference]) -> Iterator[Replacement]:
    """Qualifies the names of Spark's tables in a view's query.

    The session may have another current namespace, or a temporary view of that name.
    """
    home = scope.current.namespace
    if not scope.views or scope.current.catalog is not None:
        return
    for reference in references:
        name, start = reference.name, reference.start
        if len(name) > 1 and scope.is_of_spark(name[0]):
            continue
        before = home if len(name) == 1 else home[:1]
        yield Replacement(Span(start, start), f"{in_backticks(before)}.")


def _namespace(scope: NameScope, name: CatalogName, version: ViewVersion) -> CurrentNamespace:
    catalog = version.default_catalog or name.catalog
    if scope.is_catalog(catalog):
        return CurrentNamespace(catalog, version.default_namespace)
    if not scope.is_of_spark(catalog):
        raise InvalidStatementError(
            f"view {name}: its query looks for names in the catalog {catalog}, which is not "
            f"configured (there are {', '.join(scope.catalogs())})"
        )
    return CurrentNamespace(None, (catalog, *version.default_namespace))
