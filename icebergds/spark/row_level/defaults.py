"""Fills in columns that an inserted row leaves out (spec: Default values)."""

from __future__ import annotations

from pyspark.sql import Column, functions as f

from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.spark.sql_constants import constant_text
from icebergds.spark.types import spark_type
from icebergds.spec.types import NestedField, is_scalar


def default_column(field: NestedField, what: str) -> Column:
    """A column's write default, or null.

    Raises:
        InvalidDataError: the column is required and has no default.
        UnsupportedFeatureError: a nested column has a default.
    """
    wanted = spark_type(field.field_type)
    if field.write_default is None:
        if field.required:
            raise InvalidDataError(
                f"{what}: column {field.name!r} is required and has no write default; give it a "
                "value"
            )
        return f.lit(None).cast(wanted)
    if not is_scalar(field.field_type):
        raise UnsupportedFeatureError(
            f"{what}: write defaults of nested columns are not supported, and column "
            f"{field.name!r} has one; give it a value"
        )
    return f.expr(constant_text(field.field_type, field.write_default))
