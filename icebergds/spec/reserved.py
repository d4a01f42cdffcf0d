"""Defines the metadata columns and their reserved field ids (spec: Reserved Field IDs)."""

from __future__ import annotations

from icebergds.spec.types import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    NestedField,
    StructType,
)

MAX_TABLE_FIELD_ID = 2147483447
"""The greatest id that a table's own fields may have."""

FILE_PATH = NestedField(2147483646, "_file", STRING, required=True)
POS = NestedField(2147483645, "_pos", LONG, required=True)
DELETED = NestedField(2147483644, "_deleted", BOOLEAN, required=True)
SPEC_ID = NestedField(2147483643, "_spec_id", INT, required=True)
PARTITION = NestedField(2147483642, "_partition", StructType(()))
"""Its type depends on the table's partition specs: replace `field_type`."""

DELETE_FILE_PATH = NestedField(2147483546, "file_path", STRING, required=True)
DELETE_POS = NestedField(2147483545, "pos", LONG, required=True)
DELETE_ROW = NestedField(2147483544, "row", StructType(()))
"""Its type depends on the table's schema: replace `field_type`."""

CHANGE_TYPE = NestedField(2147483543, "_change_type", STRING, required=True)
CHANGE_ORDINAL = NestedField(2147483542, "_change_ordinal", INT)
COMMIT_SNAPSHOT_ID = NestedField(2147483541, "_commit_snapshot_id", LONG)
ROW_ID = NestedField(2147483540, "_row_id", LONG)
LAST_UPDATED_SEQUENCE_NUMBER = NestedField(2147483539, "_last_updated_sequence_number", LONG)

# The columns of Spark's change data are not in the spec; the ids are the lowest reserved ones.
SPARK_CHANGE_TYPE = NestedField(2147483448, "_change_type", STRING, required=True)
COMMIT_VERSION = NestedField(2147483449, "_commit_version", LONG, required=True)
COMMIT_TIMESTAMP = NestedField(2147483450, "_commit_timestamp", TIMESTAMPTZ, required=True)

RESERVED_BY_NAME = {
    field.name: field
    for field in (
        FILE_PATH,
        POS,
        DELETED,
        SPEC_ID,
        PARTITION,
        CHANGE_TYPE,
        CHANGE_ORDINAL,
        COMMIT_SNAPSHOT_ID,
        COMMIT_VERSION,
        COMMIT_TIMESTAMP,
        ROW_ID,
        LAST_UPDATED_SEQUENCE_NUMBER,
    )
}
"""The metadata columns that a query may read, without those of position delete files."""


def is_reserved(field_id: int) -> bool:
    """Whether an id is in the reserved range, which a table's own fields must not use."""
    return field_id > MAX_TABLE_FIELD_ID
