"""Runs DESCRIBE for tables, views and columns."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, types as spark

from icebergds.api.table import Table
from icebergds.api.view import View
from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.names import quote_name
from icebergds.scan.projection import metadata_columns
from icebergds.spark.types import spark_schema, spark_type
from icebergds.spec.labels import Labels
from icebergds.spec.reserved import (
    DELETED,
    FILE_PATH,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION,
    POS,
    ROW_ID,
    SPEC_ID,
)
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, VoidTransform
from icebergds.statements.commands.descriptions.ddl import (
    default_text,
    partition_terms,
    property_lines,
)
from icebergds.statements.commands.descriptions.details import (
    COMMENT,
    statistics_text,
    table_details,
    table_properties,
    view_properties,
)
from icebergds.statements.commands.descriptions.namespaces import describe_namespace
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name, shown_name
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.relations import source_schema, table_or_view
from icebergds.statements.queries.temporary_views import QUERY_COLUMNS
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor
from icebergds.suggestions import did_you_mean

_COLUMNS = "col_name string NOT NULL, data_type string NOT NULL, comment string"
_COLUMN = "info_name string NOT NULL, info_value string NOT NULL"
_OF_SPARK = ("FUNCTION", "QUERY", "SELECT", "WITH", "VALUES", "FROM", "MAP", "REDUCE")
_EMPTY = ("", "", "")

_Row = tuple[str, str, str | None]


def describe(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `DESCRIBE [TABLE] [EXTENDED|FORMATTED] name [column]`, and DESCRIBE NAMESPACE."""
    cursor.next()
    if any(map(cursor.is_at, _OF_SPARK)) and _is_alone(cursor):
        return None
    if cursor.is_at_sign("("):
        return None
    if any(map(cursor.is_at, ("NAMESPACE", "DATABASE", "SCHEMA"))) and _is_alone(cursor):
        return describe_namespace(scope, cursor, arguments)
    if cursor.is_at("HISTORY") and _is_alone(cursor):
        return _refuse_history(scope, cursor)
    if cursor.is_at("TABLE") and _is_alone(cursor):
        cursor.next()
    is_extended = (
        any(map(cursor.is_at, ("EXTENDED", "FORMATTED")))
        and _is_alone(cursor)
        and cursor.take_any("EXTENDED", "FORMATTED") is not None
    )
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    if cursor.is_at("PARTITION"):
        raise UnsupportedFeatureError(
            f"{name}: DESCRIBE ... PARTITION is not supported; query the metadata table "
            f"{name}.partitions"
        )
    if cursor.is_at("AS", "JSON"):
        raise UnsupportedFeatureError(
            f"{name}: DESCRIBE ... AS JSON is not supported; leave out AS JSON"
        )
    column = () if cursor.is_done else cursor.name("the name of a column")
    cursor.expect_end()
    source = table_or_view(scope, name)
    if column:
        return rows(
            scope.spark, _COLUMN, _column_rows(name, source_schema(scope.spark, source), column)
        )
    if isinstance(source, View):
        return rows(scope.spark, _COLUMNS, _view_rows(name, source, is_extended))
    return rows(scope.spark, _COLUMNS, _table_rows(scope, source, is_extended))


def _is_alone(cursor: Cursor) -> bool:
    """Whether a keyword comes next, not a name or the first part of one."""
    then = cursor.peek(1)
    return then is not None and not then.is_sign(".")


def _refuse_history(scope: NameScope, cursor: Cursor) -> DataFrame | None:
    """Rejects `DESCRIBE HISTORY name`, which Spark reads as a column of a table `history`."""
    cursor.expect("HISTORY")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    raise UnsupportedFeatureError(
        f"{name}: DESCRIBE HISTORY is not a statement of Iceberg's; query the metadata table "
        f"{name}.history or {name}.snapshots"
    )


def _column_rows(
    name: CatalogName, schema: spark.StructType, column: tuple[str, ...]
) -> list[tuple[str, str]]:
    if len(column) > 1:
        raise InvalidStatementError(
            f"{name}: DESCRIBE shows columns, not fields inside of them such as "
            f"{quote_name(column)}; describe {column[0]}"
        )
    wanted = column[0].lower()
    field = next((each for each in schema.fields if each.name.lower() == wanted), None)
    if field is None:
        near = did_you_mean(column[0], schema.names) or f"there are {', '.join(schema.names)}"
        raise InvalidStatementError(f"{name} has no column {column[0]}; {near}")
    return [
        # As written in the statement, like Spark.
        ("col_name", column[0]),
        ("data_type", field.dataType.simpleString()),
        ("comment", _comment(field) or "NULL"),
    ]


def _table_rows(scope: NameScope, named: NamedTable, is_extended: bool) -> Iterator[_Row]:
    for field in source_schema(scope.spark, named).fields:
        yield field.name, field.dataType.simpleString(), _comment(field)
    if named.has_other_rows:
        return
    table = named.table
    yield from _partition_rows(table)
    if is_extended:
        yield from _metadata_column_rows(table)
        yield from _detail_rows(named.name, table)


def _partition_rows(table: Table) -> Iterator[_Row]:
    schema = table.schema()
    fields = [each for each in table.spec().fields if not isinstance(each.transform, VoidTransform)]
    if not fields:
        return
    terms = partition_terms(schema, fields)
    if not all(isinstance(field.transform, IdentityTransform) for field in fields):
        yield _EMPTY
        yield "# Partitioning", "", ""
        for number, term in enumerate(terms):
            yield f"Part {number}", term, ""
        return
    yield "# Partition Information", "", ""
    yield "# col_name", "data_type", "comment"
    for field, term in zip(fields, terms, strict=True):
        source = schema.fields_by_id[field.source_id]
        yield term, spark_type(source.field_type).simpleString(), source.doc


# In the order in which Spark shows them.
_METADATA_COLUMNS = (SPEC_ID, PARTITION, FILE_PATH, POS, DELETED, ROW_ID)
_METADATA_NAMES = [field.name for field in (*_METADATA_COLUMNS, LAST_UPDATED_SEQUENCE_NUMBER)]


def _metadata_column_rows(table: Table) -> Iterator[_Row]:
    yield _EMPTY
    yield "# Metadata Columns", "", ""
    found = {field.name: field for field in metadata_columns(table.metadata)}
    for name in _METADATA_NAMES:
        if name in found:
            yield name, spark_type(found[name].field_type).simpleString(), ""


def _detail_rows(name: CatalogName, table: Table) -> Iterator[_Row]:
    yield _EMPTY
    yield "# Detailed Table Information", "", ""
    yield "Name", str(name), ""
    for key, value in table_details(table):
        yield key, value, ""
    properties = ",".join(f"{k}={v}" for k, v in table_properties(table.metadata).items())
    yield "Table Properties", f"[{properties}]", ""
    yield from _default_rows(table.schema())
    if not table.io.rows_refused:
        yield "Statistics", statistics_text(table.metadata), None
    yield from _label_rows(table.labels, table.schema())


def _label_rows(labels: Labels, schema: Schema) -> Iterator[_Row]:
    """What the catalog says of a table or view and of its columns."""
    if not labels:
        return
    yield _EMPTY
    yield "# Labels", "", ""
    for key, value in labels.object_labels.items():
        yield key, value, ""
    for field_id, given in labels.field_labels.items():
        column = schema.find_name(field_id) or f"#{field_id}"
        for key, value in given.items():
            yield f"{column}: {key}", value, ""


def _default_rows(schema: Schema) -> Iterator[_Row]:
    defaults = [(each, default_text(each)) for each in schema.fields]
    given = [(each, text) for each, text in defaults if text is not None]
    if given:
        yield _EMPTY
        yield "# Column Default Values", "", ""
    for field, text in given:
        yield field.name, spark_type(field.field_type).simpleString(), text


def _view_rows(name: CatalogName, view: View, is_extended: bool) -> Iterator[_Row]:
    for field in spark_schema(view.schema()).fields:
        yield field.name, field.dataType.simpleString(), _comment(field) or ""
    if not is_extended:
        return
    names = view.properties.get(QUERY_COLUMNS, "").split(",")
    properties = ", ".join(property_lines(view_properties(view).items()))
    yield _EMPTY
    yield "# Detailed View Information", "", ""
    yield "Comment", view.properties.get(COMMENT, ""), ""
    # For a nested namespace, only its first part, like Java Iceberg.
    yield "View Catalog and Namespace", shown_name((name.catalog, *name.parts[:-1])[:2]), ""
    yield "View Query Output Columns", f"[{', '.join(names)}]", ""
    yield "View Properties", f"[{properties}]", ""
    yield "Created By", view.properties.get("create_engine_version", ""), ""
    yield from _label_rows(view.labels, view.schema())


def _comment(field: spark.StructField) -> str | None:
    found: str | None = (field.metadata or {}).get("comment")
    return found
