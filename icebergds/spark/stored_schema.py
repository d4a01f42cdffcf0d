"""Makes the schema by which Spark's Parquet reader finds the columns of data files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as spark_types

from icebergds.scan.plan.native_columns import NATIVE_PREFIX
from icebergds.spark.sql_constants import constant_text
from icebergds.spark.types import spark_type
from icebergds.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """How columns are found in files.

    Attributes:
        names: under which fields are read, by id; others under names that no file has.
        by_id: whether Spark finds columns by their ids in files, else by these names.
    """

    names: Mapping[int, str]
    by_id: bool

    def struct(self, fields: Iterable[NestedField]) -> spark_types.StructType:
        """The Spark type of fields; the initial default of a field is told to Spark."""
        return spark_types.StructType([self._field(field) for field in fields])

    def name_of(self, field: NestedField) -> str:
        """The name that Spark reads a field under."""
        return self.names.get(field.field_id, f"{NATIVE_PREFIX}{field.field_id}")

    def _field(self, field: NestedField) -> spark_types.StructField:
        metadata: dict[str, Any] = {"parquet.field.id": field.field_id} if self.by_id else {}
        if field.initial_default is not None and is_scalar(field.field_type):
            metadata["EXISTS_DEFAULT"] = constant_text(field.field_type, field.initial_default)
        return spark_types.StructField(
            self.name_of(field), self._type(field.field_type), True, metadata
        )

    def _type(self, field_type: IcebergType) -> spark_types.DataType:
        match field_type:
            case StructType(fields=fields):
                return self.struct(fields)
            case ListType():
                return spark_types.ArrayType(self._type(field_type.element_type))
            case MapType():
                return spark_types.MapType(
                    self._type(field_type.key_type), self._type(field_type.value_type)
                )
            case _:
                return spark_type(field_type)
