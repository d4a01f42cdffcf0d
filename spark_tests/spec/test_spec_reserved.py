"""Metadata columns."""

from __future__ import annotations

import pytest

from icebergds.spec import reserved
from icebergds.spec.types import NestedField


@pytest.mark.parametrize(
    ("field", "field_id", "name", "type_name"),
    [
        (reserved.FILE_PATH, 2147483646, "_file", "string"),
        (reserved.POS, 2147483645, "_pos", "long"),
        (reserved.DELETED, 2147483644, "_deleted", "boolean"),
        (reserved.SPEC_ID, 2147483643, "_spec_id", "int"),
        (reserved.PARTITION, 2147483642, "_partition", "struct<>"),
        (reserved.DELETE_FILE_PATH, 2147483546, "file_path", "string"),
        (reserved.DELETE_POS, 2147483545, "pos", "long"),
        (reserved.DELETE_ROW, 2147483544, "row", "struct<>"),
        (reserved.CHANGE_TYPE, 2147483543, "_change_type", "string"),
        (reserved.CHANGE_ORDINAL, 2147483542, "_change_ordinal", "int"),
        (reserved.COMMIT_SNAPSHOT_ID, 2147483541, "_commit_snapshot_id", "long"),
        (reserved.ROW_ID, 2147483540, "_row_id", "long"),
        (
            reserved.LAST_UPDATED_SEQUENCE_NUMBER,
            2147483539,
            "_last_updated_sequence_number",
            "long",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_metadata_columns_are_those_of_the_spec(
    field: NestedField, field_id: int, name: str, type_name: str
) -> None:
    assert (field.field_id, field.name, str(field.field_type)) == (field_id, name, type_name)
    assert reserved.is_reserved(field_id)


def test_columns_of_sparks_change_data_have_ids_that_the_spec_leaves_free() -> None:
    own = (reserved.SPARK_CHANGE_TYPE, reserved.COMMIT_VERSION, reserved.COMMIT_TIMESTAMP)
    assert [str(field.field_type) for field in own] == ["string", "long", "timestamptz"]
    assert all(2147483447 < field.field_id < 2147483539 for field in own)


def test_columns_of_delete_files_are_not_for_queries() -> None:
    assert all(name.startswith("_") for name in reserved.RESERVED_BY_NAME)
    assert reserved.RESERVED_BY_NAME["_pos"] is reserved.POS


def test_tables_own_fields_end_below_the_reserved_range() -> None:
    assert not reserved.is_reserved(2147483447)
    assert reserved.is_reserved(2147483448)
