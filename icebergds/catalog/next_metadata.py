"""The metadata that a commit writes, as every catalog makes it."""

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
    """The metadata that follows `base` now, with schemas that can be read again.

    Args:
        base: None for a new table.
        base_location: the metadata file of `base`, for the metadata log; None for a new table.

    Returns:
        The very same object if the updates change nothing: there is nothing to commit.

    Raises:
        InvalidMetadataError: an update, or what all of them lead to, breaks the specification, or
            could not be read from metadata again.
        InvalidOptionError: a property cannot be set so.
        UnsupportedFeatureError: a format version above 3.
        CommitConflictError: a snapshot was made for an older state of the table.
    """
    changed = apply_updates.next_metadata(base, base_location, updates, now_ms=now_ms())
    known = {} if base is None else base.schemas_by_id
    for schema in changed.schemas:
        if known.get(schema.schema_id) is not schema:
            check_storable(schema)
    return changed
