"""Maps the rows of an INSERT to the columns of the table (`InsertedColumns`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, functions as f, types as spark

from icebergds.errors import InvalidDataError
from icebergds.expr.names import in_backticks, quote_name
from icebergds.spark.types import spark_type
from icebergds.spec.types import NestedField
from icebergds.statements.commands.rows.partition_values import PartitionValues
from icebergds.statements.commands.rows.target import StatementTarget
from icebergds.statements.text.cursor import Cursor


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
