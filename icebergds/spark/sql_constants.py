"""Writes values as Spark SQL constants that mean the same under all session settings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from icebergds.formats.arrow.types import repeat
from icebergds.spark.types import spark_type
from icebergds.spec.types import ScalarType, TypeId
from icebergds.spec.values import dates


def constant_text(field_type: ScalarType, value: Any) -> str:
    """The SQL text of a value.

    Args:
        field_type: of the column; Spark's type may differ, such as string for a uuid.
        value: as in memory (`spec.values`), not null.
    """
    wanted = spark_type(field_type).simpleString()
    match field_type.type_id:
        case TypeId.STRING:
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case TypeId.BINARY | TypeId.FIXED:
            return f"X'{value.hex()}'"
        case TypeId.UUID:
            text = str(UUID(bytes=value))
        case TypeId.TIME | TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS:
            # Spark has them as integers.
            text = str(value)
        case TypeId.DATE:
            text = dates.format_date(value)
        case TypeId.TIMESTAMP:
            text = dates.format_timestamp(value)
        case TypeId.TIMESTAMPTZ:
            # With its offset, so that the session's time zone does not matter.
            text = f"{dates.format_timestamp(value)}+00:00"
        case _:
            text = str(repeat(field_type, value, 1)[0].as_py())
    return f"CAST('{text}' AS {wanted})"
