"""Runs CREATE TABLE, CREATE OR REPLACE TABLE and REPLACE TABLE, with or without a query."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count

from pyspark.sql import DataFrame, SparkSession

from icebergds.api.table_definition import default_value, type_argument
from icebergds.api.view import View
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import in_backticks
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.options import Creation, WriteOptions
from icebergds.operations.write.replace import replace_definition
from icebergds.spark.dataframe_schema import iceberg_schema, optional_columns
from icebergds.spark.patches import own
from icebergds.spark.writers.table_writes import (
    create_from,
    create_or_replace,
    replace_by,
    table_to_write,
)
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import FORMAT_VERSION
from icebergds.spec.types import NestedField
from icebergds.statements.commands.definitions.columns import ColumnDefinition, evaluate_default
from icebergds.statements.commands.definitions.new_table import (
    TableDefinition,
    create_once,
    read_definition,
    read_like_clause,
    with_owner,
)
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.query import run_query
from icebergds.statements.queries.relations import table_or_view
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def create_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CREATE [EXTERNAL] TABLE [IF NOT EXISTS]`."""
    cursor.expect("CREATE")
    external = cursor.take("EXTERNAL")
    cursor.expect("TABLE")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = scope.table(read_name(scope, cursor))
    if cursor.take("LIKE"):
        return _create_like(scope, name, cursor, if_not_exists=if_not_exists)
    if name is None:
        return None
    definition = read_definition(cursor, external=external)
    create = partial(_create, scope, name, definition, arguments)
    create_once(scope, name, create, if_not_exists=if_not_exists)
    return nothing(scope.spark)


def replace_table(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `[CREATE OR] REPLACE TABLE` in one commit that keeps the history."""
    or_create = cursor.take("CREATE", "OR")
    cursor.expect("REPLACE", "TABLE")
    name = scope.table(read_name(scope, cursor))
    if name is None:
        return None
    definition = read_definition(cursor)
    if definition.query is not None:
        options = _options(scope, name, definition)
        rows = run_query(scope, definition.query, arguments)
        if or_create:
            create_or_replace(rows, options)
        elif (table := table_to_write(options)) is not None:
            replace_by(rows, table, options)
        else:
            _require(scope, name)
        return nothing(scope.spark)
    if _replace(scope, name, definition):
        return nothing(scope.spark)
    if not or_create:
        _require(scope, name)
    try:
        _create(scope, name, definition, arguments)
    except AlreadyExistsError:
        # Another writer has created it in the meantime, or something else has the name.
        if not _replace(scope, name, definition):
            raise
    return nothing(scope.spark)


def _create(
    scope: NameScope, name: CatalogName, definition: TableDefinition, arguments: Arguments
) -> None:
    catalog = scope.catalog(name.catalog)
    if definition.query is not None:
        options = _options(scope, name, definition)
        if table_to_write(options) is not None:
            raise AlreadyExistsError(
                f"table {name} exists; use INSERT INTO, or CREATE OR REPLACE TABLE"
            )
        create_from(run_query(scope, definition.query, arguments), options)
        return
    catalog.create_table(
        name.parts,
        _schema(scope.spark, definition.columns),
        definition.location,
        ", ".join(definition.partition_by),
        properties=with_owner(scope.spark, definition.properties),
    )


def _replace(scope: NameScope, name: CatalogName, definition: TableDefinition) -> bool:
    """Replaces a table with its definition; returns False if there is no such table."""
    options = _options(scope, name, definition)
    table = table_to_write(options)
    if table is None:
        return False
    assert options.creation is not None
    with nothing_committed(table.name):
        replace_definition(table, options.creation, _schema(scope.spark, definition.columns))
    return True


def _require(scope: NameScope, name: CatalogName) -> None:
    """Raises NoSuchTableError if there is no such table, with the most similar name."""
    scope.catalog(name.catalog).load_table(name.parts)


def _options(scope: NameScope, name: CatalogName, definition: TableDefinition) -> WriteOptions:
    """The options of a write that creates or replaces the table."""
    properties = with_owner(scope.spark, definition.properties)
    version = properties.pop(FORMAT_VERSION, None)
    if version is not None and version not in ("1", "2", "3"):
        raise InvalidOptionError(f"property {FORMAT_VERSION} = {version!r}: expected 1, 2 or 3")
    creation = Creation(
        ", ".join(definition.partition_by),
        location=definition.location,
        format_version=None if version is None else int(version),
        properties=properties,
    )
    address = scope.catalog(name.catalog).address(name.parts)
    return WriteOptions(address, creation=creation)


def _schema(spark: SparkSession, columns: list[ColumnDefinition]) -> Schema:
    fields = tuple(_field(spark, column) for column in columns)
    return Schema(with_fresh_ids(fields, count(1)))


def _field(spark: SparkSession, column: ColumnDefinition) -> NestedField:
    (name,) = column.path
    found = NestedField(
        0, name, type_argument(name, column.type_text), column.required, column.comment
    )
    if column.default is None:
        return found
    value = evaluate_default(spark, name, found.field_type, column.default)
    if value is None:
        return found
    stored = default_value(name, found.field_type, value)
    return replace(found, initial_default=stored, write_default=stored)


def _create_like(
    scope: NameScope, name: CatalogName | None, cursor: Cursor, *, if_not_exists: bool
) -> DataFrame | None:
    """Runs what follows LIKE: the new table has the columns and layout of another, or of a view.

    It gets neither rows nor properties, except the format version of an Iceberg table.
    """
    given = read_name(scope, cursor)
    source = scope.table(given)
    if name is None:
        if source is None:
            return None
        raise UnsupportedFeatureError(
            f"CREATE TABLE ... LIKE {source}: a table of Spark's own cannot be created like one of "
            "Iceberg; use CREATE TABLE ... AS SELECT * FROM ... LIMIT 0"
        )
    clauses = TableDefinition()
    while read_like_clause(cursor, clauses):
        pass
    cursor.expect_end()
    create = (
        partial(_create_like_spark, scope, name, clauses, given)
        if source is None
        else partial(_create_like_ours, scope, name, clauses, source)
    )
    create_once(scope, name, create, if_not_exists=if_not_exists)
    return nothing(scope.spark)


def _create_like_ours(
    scope: NameScope, name: CatalogName, clauses: TableDefinition, source: CatalogName
) -> None:
    found = table_or_view(scope, source)
    if isinstance(found, View):
        scope.catalog(name.catalog).create_table(
            name.parts,
            optional_columns(found.schema()),
            clauses.location,
            properties=with_owner(scope.spark, clauses.properties),
        )
        return
    if found.metadata_table is not None or found.options:
        raise InvalidStatementError(
            f"CREATE TABLE ... LIKE {source}: expected the name of a table alone, without a "
            "branch, a version or a metadata table"
        )
    table = found.table
    version = {FORMAT_VERSION: str(table.metadata.format_version)}
    scope.catalog(name.catalog).create_table(
        name.parts,
        table.schema(),
        clauses.location,
        table.spec(),
        table.sort_order(),
        with_owner(scope.spark, {**version, **clauses.properties}),
    )


def _create_like_spark(
    scope: NameScope, name: CatalogName, clauses: TableDefinition, source: tuple[str, ...]
) -> None:
    quoted = in_backticks(source)
    partitioned = [c.name for c in own(scope.spark, "catalog").listColumns(quoted) if c.isPartition]
    scope.catalog(name.catalog).create_table(
        name.parts,
        optional_columns(iceberg_schema(scope.spark.table(quoted).schema)),
        clauses.location,
        [in_backticks((column,)) for column in partitioned],
        properties=with_owner(scope.spark, clauses.properties),
    )
