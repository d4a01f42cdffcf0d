"""What an ALTER TABLE statement changes (`Change`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import SparkSession

from icebergds.api.table import Table
from icebergds.api.update_schema import UpdateSchema
from icebergds.spec.evolution.column_names import find_column_ids
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField


@dataclass(frozen=True, slots=True)
class AlteredTable:
    """A table that a statement changes, as it was just loaded."""

    spark: SparkSession
    table: Table

    @property
    def is_case_sensitive(self) -> bool:
        """Whether the session tells names apart by case alone."""
        return self.spark.conf.get("spark.sql.caseSensitive", "false") == "true"

    def update_schema(self) -> UpdateSchema:
        """An update of its columns, whose names are found as the session finds names."""
        return self.table.update_schema(case_sensitive=self.is_case_sensitive)

    def find_field(self, schema: Schema, path: tuple[str, ...]) -> NestedField | None:
        """The field that a path names; None if there is none, or more than one."""
        found = find_column_ids(schema, path, case_sensitive=self.is_case_sensitive)
        return schema.fields_by_id[found[0]] if len(found) == 1 else None


Change: TypeAlias = Callable[[AlteredTable], None]
"""Changes a table in one commit; it is made when the whole statement has been read."""
