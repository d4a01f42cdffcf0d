"""Writes values as constants of Spark's SQL, whose meaning depends on no setting of a session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icebergds.formats.arrow.types import repeat
from icebergds.spark.types import spark_type
from icebergds.spec.types import ScalarType, TypeId


def constant_text(field_type: ScalarType, value: Any) -> str:
    """The SQL text of a value.

    Args:
        field_type: one that Spark has, too, but not binary.
        value: as in memory (`spec.values`), not null.
    """
    wanted = spark_type(field_type).simpleString()
    array: pa.Array = repeat(field_type, value, 1)
    match field_type.type_id:
        case TypeId.STRING:
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case TypeId.TIMESTAMPTZ:
            # With its offset, so that the session's time zone does not matter.
            return f"CAST('{array[0].as_py().isoformat()}' AS TIMESTAMP)"
        case TypeId.DATE | TypeId.TIMESTAMP:
            return f"CAST('{array[0].as_py().isoformat()}' AS {wanted})"
        case _:
            return f"CAST('{array[0].as_py()}' AS {wanted})"
