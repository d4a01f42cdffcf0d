"""Lists the properties and details that Spark SQL shows of a table or view, beside columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import types as spark

from icebergds.api.table import Table
from icebergds.api.view import View
from icebergds.spark.types import spark_schema
from icebergds.spec.metadata import TableMetadata
from icebergds.statements.commands.descriptions.ddl import sort_term
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.table_names import shown_name
from icebergds.statements.queries.temporary_views import QUERY_COLUMNS

COMMENT = "comment"
_OWNER = "owner"
# These have rows and clauses of their own; SHOW TBLPROPERTIES does not list them.
_RESERVED = frozenset(
    {
        COMMENT,
        "location",
        "provider",
        _OWNER,
        "external",
        "is_managed_location",
        "table_type",
        "collation",
    }
)
# Set from the metadata, even if a property has the name.
_OF_METADATA = (
    "current-snapshot-id",
    "format",
    "format-version",
    "identifier-fields",
    "sort-order",
)
_OF_VIEWS = frozenset({COMMENT, _OWNER, "create_engine_version", "engine_version"})


def table_properties(metadata: TableMetadata) -> dict[str, str]:
    """The properties of a table as Spark shows them, with some derived from metadata, sorted."""
    schema, snapshot = metadata.schema(), metadata.current_snapshot()
    found = {
        key: value
        for key, value in metadata.properties.items()
        if key not in _RESERVED and key not in _OF_METADATA
    }
    found["current-snapshot-id"] = "none" if snapshot is None else str(snapshot.snapshot_id)
    found["format"] = f"iceberg/{metadata.properties.get('write.format.default', 'parquet')}"
    found["format-version"] = str(metadata.format_version)
    if names := [schema.find_name(each) or "?" for each in schema.identifier_field_ids]:
        found["identifier-fields"] = f"[{','.join(names)}]"
    if keys := metadata.sort_order().fields:
        found["sort-order"] = ", ".join(sort_term(schema, key) for key in keys)
    return dict(sorted(found.items()))


def view_properties(view: View) -> dict[str, str]:
    """The properties of a view as Spark shows them, sorted."""
    found = {
        key: value
        for key, value in view.properties.items()
        if key not in _OF_VIEWS and key != QUERY_COLUMNS
    }
    found |= {
        "provider": "iceberg",
        "location": view.location,
        "format-version": str(view.metadata.format_version),
    }
    return dict(sorted(found.items()))


def table_details(table: Table) -> Iterator[tuple[str, str]]:
    """The rows `# Detailed Table Information` from the type on, except the properties."""
    yield "Type", "MANAGED"
    if COMMENT in table.properties:
        yield "Comment", table.properties[COMMENT]
    yield "Location", table.location()
    yield "Provider", "iceberg"
    if _OWNER in table.properties:
        yield "Owner", table.properties[_OWNER]
    yield "Table_type", "EXTERNAL"


def table_information(name: CatalogName, table: Table) -> str:
    """The information about a table in SHOW TABLE EXTENDED."""
    properties = ", ".join(f"{k}={v}" for k, v in table_properties(table.metadata).items())
    tree = spark_schema(table.schema()).treeString()
    lines = {
        "Catalog": name.catalog,
        "Namespace": shown_name(name.parts[:-1]),
        "Table": name.parts[-1],
        **dict(table_details(table)),
        "Table Properties": f"[{properties}]",
        "Schema": tree,
    }
    return "".join(f"{key}: {value}\n" if value else f"{key}\n" for key, value in lines.items())


def statistics_text(metadata: TableMetadata) -> str:
    """The size of a table as Spark estimates it, and its number of rows without deletes."""
    snapshot = metadata.current_snapshot()
    summary: Mapping[str, str] = {} if snapshot is None else snapshot.summary or {}
    count = 0 if snapshot is None else int(summary.get("total-records", 0))
    return f"{count * _size(spark_schema(metadata.schema()))} bytes, {count} rows"


_SIZES: dict[type[spark.DataType], int] = {
    spark.BooleanType: 1,
    spark.IntegerType: 4,
    spark.FloatType: 4,
    spark.DateType: 4,
    spark.StringType: 20,
    spark.BinaryType: 100,
    spark.NullType: 1,
    spark.VariantType: 2048,
}
_OTHERS = 8


def _size(kind: spark.DataType) -> int:
    """The bytes that Spark assumes for a value."""
    match kind:
        case spark.StructType(fields=fields):
            return sum(_size(field.dataType) for field in fields)
        case spark.ArrayType():
            return _size(kind.elementType)
        case spark.MapType():
            return _size(kind.keyType) + _size(kind.valueType)
        case spark.DecimalType():
            return 8 if kind.precision <= 18 else 16
    return _SIZES.get(type(kind), _OTHERS)
