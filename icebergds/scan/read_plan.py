"""What every task of a scan shares: columns, filter, table facts; travels with the reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from icebergds.errors import InvalidMetadataError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.io.fileio import FileIO
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

DEFAULT_BATCH_SIZE = 65_536
DEFAULT_DELETE_CACHE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The part of a scan that is the same for all of its files.

    Attributes:
        columns: the output, in order; columns of reserved ids are metadata columns.
        table_schema: the schema that is read, whole.
        row_filter: bound to `table_schema`; rows that come out satisfy it.
        delete_cache_bytes: bound of the memory that deletes may keep in a worker process.
        for_changes: the rows are to be changed: `_file` may be a `file_token`, or Spark's name of
            the file, and rows that the filter rejects may come.
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


def key_schema(schemas: Iterable[Schema], equality_ids: Iterable[int]) -> Schema:
    """The columns that hold equality keys, each in the newest schema that has it.

    All are optional: files may lack a key that was dropped, and a delete of a null that no row can
    hold deletes nothing.

    Args:
        schemas: from the newest to the oldest.
        equality_ids: ids of key columns, nested ones too.

    Raises:
        InvalidMetadataError: no schema has one of the columns.
    """
    missing = set(equality_ids)
    fields: list[NestedField] = []
    for schema in schemas:
        here = {field_id for field_id in missing if schema.find_field(field_id) is not None}
        if here:
            fields.extend(map(_optional, schema.select(here).fields))
            missing -= here
        if not missing:
            return Schema(tuple(fields))
    raise InvalidMetadataError(
        f"equality deletes compare the columns of field ids {sorted(missing)}, which none of the "
        "table's schemas has; their rows cannot be told apart from others"
    )


def _optional(field: NestedField) -> NestedField:
    field_type = field.field_type
    if isinstance(field_type, StructType):
        field_type = StructType(tuple(map(_optional, field_type.fields)))
    return replace(field, field_type=field_type, required=False)
