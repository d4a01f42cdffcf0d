"""Reads the PARTITION clause of INSERT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import types as spark

from icebergds.errors import InvalidDataError, InvalidStatementError
from icebergds.expr.names import in_backticks
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
