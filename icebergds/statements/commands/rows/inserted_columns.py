"""Maps the rows of an INSERT, and its PARTITION clause, to the columns of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, functions as f, types as spark

from icebergds.errors import InvalidDataError, InvalidStatementError
from icebergds.expr.names import in_backticks, quote_name
from icebergds.spark.types import spark_type
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import NestedField
from icebergds.statements.commands.rows.target import StatementTarget
from icebergds.statements.names.scope import NameScope
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.parameters import literal
from icebergds.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class InsertedColumns:
    """The table columns that the columns of a query go to.

    Attributes:
        names: the columns that the statement lists; None for all of the table's.
        is_by_name: whether columns are matched by the names of the query's columns.
        evolves: whether the query may have further columns, which are added to the table.
    """

    target: StatementTarget
    partition: PartitionValues
    names: tuple[str, ...] | None = None
    is_by_name: bool = False
    evolves: bool = False

    def by_name(self) -> InsertedColumns:
        return replace(self, is_by_name=True)

    def listed(self, names: Sequence[str]) -> InsertedColumns:
        """Those that the statement lists.

        Raises:
            InvalidStatementError: the table has no such column.
            InvalidDataError: a column is listed twice, or has a value of PARTITION.
        """
        found = [self.target.column((name,), "insert").name for name in names]
        for name in found:
            if found.count(name) > 1 or name in self.partition.texts:
                raise InvalidDataError(
                    f"table {self.target.named.name}: column {name} is given twice; give it once"
                )
        return replace(self, names=tuple(found))

    def fields(self) -> list[NestedField]:
        """The table's columns for the query's columns, in order."""
        fields = self.target.table.schema().fields
        if self.names is None:
            return [each for each in fields if each.name not in self.partition.texts]
        by_name = {each.name: each for each in fields}
        return [by_name[name] for name in self.names]


def read_column_list(cursor: Cursor) -> list[str] | None:
    """Reads `(column, ...)`, if that comes next, not a query in parentheses."""
    if not cursor.is_at_sign("("):
        return None
    start = cursor.at
    items = cursor.group().items()
    if all(each.at + 1 == each.end and each.tokens[each.at].is_identifier for each in items):
        return [each.identifier() for each in items]
    cursor.at = start
    return None


def with_columns(rows: DataFrame, columns: InsertedColumns) -> DataFrame:
    """The rows of the query, with the table's column names and the values of PARTITION.

    Raises:
        InvalidDataError: the number of columns differs from that of the table or of the statement's
            list.
    """
    if not columns.is_by_name:
        rows = _by_position(rows, columns)
    values = [f.expr(text).alias(name) for name, text in columns.partition.texts.items()]
    return rows.select("*", *values) if values else rows


def _by_position(rows: DataFrame, columns: InsertedColumns) -> DataFrame:
    fields, given = columns.fields(), rows.schema.fields
    more = given[len(fields) :]
    if len(given) < len(fields) or (more and not (columns.evolves and columns.names is None)):
        reason = "not enough data columns" if len(given) < len(fields) else "too many data columns"
        wanted = ", ".join(each.name for each in fields)
        raise InvalidDataError(
            f"Cannot write to table {columns.target.named.name}, the reason is {reason}: table "
            f"columns: {wanted}; data columns: {', '.join(each.name for each in given)}"
        )
    names = [each.name for each in fields] + [each.name for each in more]
    named = rows.toDF(*names)
    chosen = [_renamed(each, field) for each, field in zip(given, fields, strict=False)]
    if all(each is None for each in chosen):
        return named
    return named.select(
        *(
            f.col(in_backticks([name])) if each is None else each
            for name, each in zip(names, [*chosen, *(None for _ in more)], strict=True)
        )
    )


def _renamed(given: spark.StructField, field: NestedField) -> Column | None:
    """A column with its fields renamed as in the table; None if they have those names."""
    wanted = _with_names(given.dataType, spark_type(field.field_type), field.name)
    if wanted == given.dataType:
        return None
    return f.col(in_backticks([field.name])).cast(wanted).alias(field.name)


def _with_names(given: spark.DataType, wanted: spark.DataType, path: str) -> spark.DataType:
    """A type with the names of another; fields, like columns, are matched by position."""
    match given, wanted:
        case spark.StructType(), spark.StructType():
            if len(given.fields) != len(wanted.fields):
                raise InvalidDataError(
                    f"column {path}: the struct to write has {len(given.fields)} fields, expected "
                    f"{len(wanted.fields)}: {', '.join(wanted.names)}"
                )
            return spark.StructType(
                [
                    spark.StructField(
                        one.name,
                        _with_names(each.dataType, one.dataType, quote_name((path, one.name))),
                        each.nullable,
                    )
                    for each, one in zip(given.fields, wanted.fields, strict=True)
                ]
            )
        case spark.ArrayType(), spark.ArrayType():
            element = _with_names(given.elementType, wanted.elementType, f"{path}.element")
            return spark.ArrayType(element, given.containsNull)
        case spark.MapType(), spark.MapType():
            return spark.MapType(
                _with_names(given.keyType, wanted.keyType, f"{path}.key"),
                _with_names(given.valueType, wanted.valueType, f"{path}.value"),
                given.valueContainsNull,
            )
    return given


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """The values that all inserted rows have in partition columns.

    Attributes:
        texts: the value of each column, as SQL of the column's type.
    """

    texts: Mapping[str, str] = field(default_factory=dict)

    def condition(self) -> str | None:
        """The condition for rows with these values; None for all rows."""
        if not self.texts:
            return None
        return " AND ".join(
            f"{in_backticks([name])} {'IS NULL' if text == 'NULL' else f'= {text}'}"
            for name, text in self.texts.items()
        )


def read_partition_values(
    scope: NameScope, cursor: Cursor, target: StatementTarget
) -> PartitionValues:
    """Reads `PARTITION (column = literal, column, ...)`, if it comes next.

    A column without a value gets the query's. As in Spark, a literal of any type is cast to the
    column's type.

    Raises:
        InvalidStatementError: the table has no identity partition field for a column.
        InvalidDataError: a value does not fit its column.
    """
    if not cursor.take("PARTITION"):
        return PartitionValues()
    written: dict[str, str] = {}
    known = _partition_columns(target)
    fields: list[NestedField] = []
    for item in cursor.group().items():
        name = item.identifier("a column")
        found = known.get(name.lower())
        if found is None:
            raise InvalidStatementError(_unknown(target, name, known))
        if item.take_sign("=") or item.take_sign("=="):
            written[found.name] = item.rest().written
            fields.append(found)
    return PartitionValues(_cast(scope, target, fields, written))


def _partition_columns(target: StatementTarget) -> dict[str, NestedField]:
    """The columns with identity partition fields, by name in lower case."""
    schema = target.table.schema()
    by_id = {each.field_id: each for each in schema.fields}
    return {
        by_id[source].name.lower(): by_id[source]
        for each in target.table.spec().fields
        if isinstance(each.transform, IdentityTransform)
        for source in each.source_ids
        if source in by_id
    }


def _unknown(target: StatementTarget, name: str, known: Mapping[str, NestedField]) -> str:
    names = [each.name for each in known.values()]
    hint = did_you_mean(name, names) or (
        f"there are {', '.join(names)}" if names else "leave PARTITION out"
    )
    return (
        f"PARTITION clause cannot contain the non-partition column: {name}: table "
        f"{target.named.name} is not partitioned by its values; {hint}"
    )


def _cast(
    scope: NameScope, target: StatementTarget, fields: list[NestedField], written: Mapping[str, str]
) -> dict[str, str]:
    if not fields:
        return {}
    types = [spark_type(each.field_type) for each in fields]
    values = ", ".join(
        f"CAST(CAST({written[each.name]} AS STRING) AS {wanted.simpleString()})"
        for each, wanted in zip(fields, types, strict=True)
    )
    given = ", ".join(f"{written[each.name]} IS NULL" for each in fields)
    [row] = spark_sql(scope.spark, f"SELECT {values}, {given}", Arguments()).collect()
    texts = {}
    for at, (each, wanted) in enumerate(zip(fields, types, strict=True)):
        value = row[at]
        if value is None and not row[len(fields) + at]:
            raise InvalidDataError(
                f"table {target.named.name}: PARTITION gives column {each.name} the value "
                f"{written[each.name]}, which is not a {wanted.simpleString()}"
            )
        texts[each.name] = _text(value, wanted)
    return texts


def _text(value: Any, wanted: spark.DataType) -> str:
    if isinstance(value, datetime) and isinstance(wanted, spark.TimestampNTZType):
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    return literal(value)
