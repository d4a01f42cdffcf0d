"""Defines what all tasks of a scan share (columns, filter, specs); sent with the reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from icebergds.errors import InvalidMetadataError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

DEFAULT_BATCH_SIZE = 65_536
DEFAULT_DELETE_CACHE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ShownTypes:
    """What Spark gets in the place of whole numbers.

    Attributes:
        times: TIME for times of day, which Spark refuses in most queries by default.
        micros: timestamps for those of nanoseconds, rounded down to microseconds.
    """

    times: bool = False
    micros: bool = False


PLAIN_TYPES = ShownTypes()


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The part of a scan that is the same for all of its files.

    Attributes:
        columns: the output columns in order; those with reserved ids are metadata columns.
        table_schema: the full schema that is read.
        row_filter: bound to `table_schema`; all returned rows match it.
        delete_cache_bytes: limit for cached deletes in a worker process, in bytes.
        for_changes: the scan feeds a row-level operation: `_file` may be a `file_token` or Spark's
            name of the file, and rows that do not match the filter may be returned.
        wrong_counts: what to do if a file's row count differs from its manifest.
        shown: the types that Spark gets.
    """

    io: FileIO
    columns: Schema
    table_schema: Schema
    specs: Mapping[int, PartitionSpec]
    row_filter: Expr = TRUE
    name_mapping: NameMapping | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    delete_cache_bytes: int = DEFAULT_DELETE_CACHE_BYTES
    for_changes: bool = False
    wrong_counts: WrongCounts = WrongCounts.FAIL
    shown: ShownTypes = PLAIN_TYPES


def key_schema(schemas: Iterable[Schema], equality_ids: Iterable[int]) -> Schema:
    """The schema of equality keys: each column as in the newest schema that has it.

    All columns are optional: files may lack a dropped key column, and deleting a null key that no
    row has deletes nothing.

    Args:
        schemas: from the newest to the oldest.
        equality_ids: ids of key columns, including nested ones.

    Raises:
        InvalidMetadataError: a column is in no schema.
    """
    missing = set(equality_ids)
    fields: list[NestedField] = []
    for schema in schemas:
        here = {field_id for field_id in missing if schema.find_field(field_id) is not None}
        if here:
            fields.extend(map(as_optional, schema.select(here).fields))
            missing -= here
        if not missing:
            return Schema(tuple(fields))
    raise InvalidMetadataError(
        f"equality deletes use the columns with field ids {sorted(missing)}, which are in none of "
        "the table's schemas; the deleted rows cannot be identified"
    )


def as_optional(field: NestedField) -> NestedField:
    """A field without required values in it, as delete files may have nulls in any column."""
    field_type = field.field_type
    if isinstance(field_type, StructType):
        field_type = StructType(tuple(map(as_optional, field_type.fields)))
    return replace(field, field_type=field_type, required=False)
