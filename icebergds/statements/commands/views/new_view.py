"""Reads the definition of a view, and creates or replaces it from the result of its query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from icebergds.errors import InvalidStatementError, NoSuchViewError, UnsupportedFeatureError
from icebergds.expr.names import split_name
from icebergds.statements.names.scope import CatalogName, CurrentNamespace, NameScope
from icebergds.statements.queries.query import run_query
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.temporary_views import QUERY_COLUMNS
from icebergds.statements.queries.view_columns import with_columns
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_properties

if TYPE_CHECKING:
    from icebergds.api.view import View


LOCATION = "location"
"""The property that sets the directory of a new view's metadata, as in Java."""

_NOT_KEPT = (LOCATION, "provider")
# The view has these in other places.
_RESERVED = frozenset(
    {
        "provider",
        LOCATION,
        "owner",
        "external",
        "is_managed_location",
        "format-version",
        QUERY_COLUMNS,
    }
)
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Definition:
    """What CREATE VIEW says after the view's name.

    Attributes:
        columns: names and comments; empty for those of the query.
        has_clauses: whether there are clauses other than a comment on the view.
    """

    query: Cursor
    columns: Sequence[tuple[str, str | None]] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    has_clauses: bool = False


def read_definition(cursor: Cursor) -> Definition:
    """Reads `[(columns)] [COMMENT ...] [TBLPROPERTIES ...] AS query`, to the end.

    Raises:
        InvalidStatementError: it is malformed, or has a clause of Hive's.
        UnsupportedFeatureError: it is a metric view.
    """
    columns = _columns(cursor.group()) if cursor.is_at_sign("(") else []
    comment: str | None = None
    properties: dict[str, str] | None = None
    binds_schema = False
    while not cursor.take("AS"):
        if comment is None and cursor.take("COMMENT"):
            comment = cursor.text("a comment")
        elif properties is None and cursor.take("TBLPROPERTIES"):
            properties = read_properties(cursor.group())
        elif not binds_schema and cursor.take("WITH", "SCHEMA"):
            # The columns of an Iceberg view never change by themselves.
            binds_schema = cursor.take_any("BINDING", "COMPENSATION", "EVOLUTION") is not None
            binds_schema = binds_schema or cursor.take("TYPE", "EVOLUTION")
            if not binds_schema:
                raise cursor.error("BINDING, COMPENSATION or [TYPE] EVOLUTION")
        elif cursor.is_at("WITH", "METRICS"):
            raise UnsupportedFeatureError(
                f"{cursor.statement.strip()[:_LONGEST_SHOWN]}: views of Iceberg are queries, and "
                "metric views are not supported in their catalogs; create a view AS SELECT with "
                "the measures as columns"
            )
        else:
            raise cursor.error("AS and a query")
    if cursor.is_done:
        raise cursor.error("a query")
    has_clauses = properties is not None or binds_schema
    return Definition(cursor.rest(), columns, comment, properties or {}, has_clauses)


def read_view_properties(cursor: Cursor) -> dict[str, str]:
    """Reads `('a' = 'b', ...)`.

    Raises:
        InvalidStatementError: it is malformed, or sets something that is not a property of views.
    """
    found = read_properties(cursor.group())
    refuse_reserved(cursor, found)
    return found


def refuse_reserved(cursor: Cursor, properties: Iterable[str]) -> None:
    """Raises InvalidStatementError if a statement changes something that is not a view property."""
    if reserved := sorted(_RESERVED.intersection(properties)):
        raise InvalidStatementError(
            f"{cursor.statement.strip()}: {reserved[0]} is reserved, and no property to be changed"
        )


def _columns(listed: Cursor) -> list[tuple[str, str | None]]:
    found = []
    for item in listed.items():
        name = item.identifier("the name of a column")
        comment = item.text("a comment") if item.take("COMMENT") else None
        item.expect_end()
        found.append((name, comment))
    if not found:
        raise listed.error("the name of a column")
    return found


@dataclass(frozen=True, slots=True)
class NewView:
    """A definition of a view, analysed by Spark.

    Attributes:
        text: the query, as the user wrote it.
        location: the directory of its metadata; None for the catalog's default.
        default_catalog: for names in the query; None for the view's own catalog.
    """

    name: CatalogName
    text: str
    schema: StructType
    properties: Mapping[str, str]
    location: str | None
    default_catalog: str | None
    default_namespace: tuple[str, ...]

    def create(self, scope: NameScope) -> None:
        """Creates the view. Errors are those of `Catalog.create_view`."""
        scope.catalog(self.name.catalog).create_view(
            self.name.parts,
            self.schema,
            self.text,
            location=self.location,
            properties=self.properties,
            default_catalog=self.default_catalog,
            default_namespace=self.default_namespace,
        )

    def create_or_replace(self, scope: NameScope) -> None:
        """Creates the view, or replaces its definition. Errors are those of both."""
        try:
            self.replace(scope.catalog(self.name.catalog).load_view(self.name.parts))
        except NoSuchViewError:
            self.create(scope)

    def replace(self, view: View) -> None:
        """Replaces the definition of a view. Errors are those of `View.replace_version`."""
        view.replace_version(
            self.text,
            self.schema,
            default_catalog=self.default_catalog,
            default_namespace=self.default_namespace,
            properties=self.properties,
            location=self.location,
        )


def analysed_view(
    scope: NameScope, name: CatalogName, definition: Definition, arguments: Arguments
) -> NewView:
    """Has Spark analyse the query of a view before its creation.

    Raises:
        InvalidStatementError: the query reads something that only this session has, or the view
            itself, or its columns do not fit.
        UnsupportedFeatureError: the query reads DataFrames.
        IcebergError: a table that it reads does not exist.
        PySparkException: Spark refused it.
    """
    query = definition.query
    if arguments.named:
        raise UnsupportedFeatureError(
            f"view {name} cannot read DataFrames, which other sessions do not have; name tables"
        )
    _refuse_temporary(scope, name, query)
    current = _current(scope)
    # A copy, since reading the cursor advances it to its end.
    read = query.part()
    frame = run_query(scope.within(name, current), read, Arguments())
    names = [field.name for field in frame.schema.fields]
    version = f"Spark {scope.spark.version}"
    is_of_spark = current.catalog is None
    catalog, namespace = (
        (current.namespace[0], current.namespace[1:])
        if is_of_spark
        else (current.catalog, current.namespace)
    )
    return NewView(
        name,
        query.written,
        with_columns(frame, name, definition.columns).schema,
        {
            **{k: v for k, v in definition.properties.items() if k not in _NOT_KEPT},
            **({} if definition.comment is None else {"comment": definition.comment}),
            "create_engine_version": version,
            "engine_version": version,
            QUERY_COLUMNS: ",".join(names),
        },
        definition.properties.get(LOCATION),
        None if catalog == name.catalog else catalog,
        namespace,
    )


def _current(scope: NameScope) -> CurrentNamespace:
    """Where the session looks for names without a catalog, with Spark's own catalogs named."""
    current = scope.current
    if current.catalog is not None:
        return current
    [row] = spark_sql(scope.spark, "SHOW CURRENT NAMESPACE", Arguments()).collect()
    return CurrentNamespace(None, (row["catalog"], *split_name(row["namespace"])))


def _refuse_temporary(scope: NameScope, name: CatalogName, query: Cursor) -> None:
    references = find_references(query)
    views = [
        ".".join(each.name)
        for each in references
        if scope.is_temporary_view(each.name) or each.name[0].lower() == "global_temp"
    ]
    functions = _called(query) & _temporary_functions(scope) if _called(query) else set()
    for what, found in (("view", views), ("function", sorted(functions))):
        if found:
            raise InvalidStatementError(
                f"view {name} cannot use the temporary {what} {found[0]}, which other sessions do "
                f"not have; name a table or a view of a catalog, or create a TEMPORARY VIEW"
            )


def _called(query: Cursor) -> set[str]:
    """The unqualified names of the functions that a query calls, in lower case."""
    tokens = query.tokens[query.at : query.end]
    return {
        token.identifier.lower()
        for before, token, then in zip([None, *tokens], tokens, tokens[1:], strict=False)
        if token.is_identifier
        and then.is_sign("(")
        and not (before is not None and before.is_sign("."))
    }


def _temporary_functions(scope: NameScope) -> set[str]:
    found = spark_sql(scope.spark, "SHOW USER FUNCTIONS", Arguments()).collect()
    return {row[0].lower() for row in found if "." not in row[0]}
