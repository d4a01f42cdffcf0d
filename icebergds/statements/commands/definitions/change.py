"""Defines what an ALTER TABLE statement changes (`Change`)."""

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
    """A table, just loaded, that a statement changes."""

    spark: SparkSession
    table: Table

    @property
    def is_case_sensitive(self) -> bool:
        """Whether the session distinguishes names by case."""
        return self.spark.conf.get("spark.sql.caseSensitive", "false") == "true"

    def update_schema(self) -> UpdateSchema:
        """An update of the columns that matches names as the session does."""
        return self.table.update_schema(case_sensitive=self.is_case_sensitive)

    def find_field(self, schema: Schema, path: tuple[str, ...]) -> NestedField | None:
        """The field at a path; None if there is none, or more than one."""
        found = find_column_ids(schema, path, case_sensitive=self.is_case_sensitive)
        return schema.fields_by_id[found[0]] if len(found) == 1 else None


Change: TypeAlias = Callable[[AlteredTable], None]
"""Changes a table in one commit; called after the whole statement has been read."""
