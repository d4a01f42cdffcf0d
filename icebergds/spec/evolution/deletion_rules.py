"""Checks what deletions of columns have left after all edits of a schema.

Not after each edit: another one of the same update may add a column or set identifier fields.
"""

from __future__ import annotations

from icebergds.errors import InvalidOptionError
from icebergds.spec.schema import Schema
from icebergds.spec.types import StructType


def check_deletions(before: Schema, after: Schema) -> None:
    """Raises InvalidOptionError if a schema lacks an identifier field, or a struct all its fields.

    Structs that were empty before may stay so.
    """
    for field_id in after.identifier_field_ids:
        if after.find_field(field_id) is None:
            name = before.find_name(field_id)
            raise InvalidOptionError(
                f"column {name or field_id!r} cannot be deleted: it is an identifier field; set "
                "other ones in the same update, with set_identifier_fields"
            )
    if before.fields and not after.fields:
        raise InvalidOptionError(
            "the last column of the table cannot be deleted: add another one in the same update"
        )
    for field_id, field in after.fields_by_id.items():
        known = before.find_field(field_id)
        if known is not None and _is_empty(field.field_type) and not _is_empty(known.field_type):
            name = after.find_name(field_id)
            raise InvalidOptionError(
                f"the last field of column {name!r} cannot be deleted: nothing would be left in "
                "its struct; add another field in the same update, or delete the column"
            )


def _is_empty(field_type: object) -> bool:
    return isinstance(field_type, StructType) and not field_type.fields
