"""Builds the metadata that a commit writes, for every catalog."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.spec.json.schema import check_storable
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates import apply_updates
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.spec.values.dates import now_ms


def next_metadata(
    base: TableMetadata | None, base_location: str | None, updates: Sequence[TableUpdate]
) -> TableMetadata:
    """The metadata of a commit on `base` at the current time, with schemas that can be read back.

    Args:
        base: None for a new table.
        base_location: the metadata file of `base`, for the metadata log; None for a new table.

    Returns:
        The new metadata; the same object if nothing changes, so there is nothing to commit.

    Raises:
        InvalidMetadataError: an update, or the result of all, breaks the specification, or a schema
            could not be read back.
        InvalidOptionError: a property has a reserved name or a wrong value.
        UnsupportedFeatureError: a format version above 3.
        CommitConflictError: a snapshot was created on an older state of the table.
    """
    changed = apply_updates.next_metadata(base, base_location, updates, now_ms=now_ms())
    known = {} if base is None else base.schemas_by_id
    for schema in changed.schemas:
        if known.get(schema.schema_id) is not schema:
            check_storable(schema)
    return changed
