"""Removes parts from a commit that the table or view already has.

A list of updates may add a schema that equals one of the table's, and then set the last added
schema as current. Java Iceberg's servers then add nothing, and refuse the second update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    TableUpdate,
)
from icebergds.spec.views.metadata import ViewMetadata
from icebergds.spec.views.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate


def without_known_parts(
    updates: Sequence[TableUpdate], base: TableMetadata, changed: TableMetadata
) -> list[TableUpdate]:
    """The updates of a table without schemas, specs and sort orders that it already has.

    The remaining ones get their final ids: Nessie refuses ids that are in use, and Java Iceberg's
    servers refuse specs in which only some fields have ids.

    Args:
        base: the table that the updates are applied to.
        changed: the table with the updates.
    """
    result: list[TableUpdate] = []
    # For the last update that adds one: its id if the table already has it.
    schema_id: int | None = None
    spec_id: int | None = None
    order_id: int | None = None
    for update in updates:
        match update:
            case AddSchema(schema=schema):
                same = (s.schema_id for s in base.schemas if s.has_same_columns(schema))
                schema_id = next(same, None)
                numbered = (s for s in changed.schemas if s.has_same_columns(schema))
                added: TableUpdate = AddSchema(next(numbered, schema))
                kept: TableUpdate | None = added if schema_id is None else None
            case AddPartitionSpec(spec=spec):
                same = (s.spec_id for s in base.partition_specs if s.has_same_fields(spec))
                spec_id = next(same, None)
                with_ids = (s for s in changed.partition_specs if s.has_same_fields(spec))
                kept = AddPartitionSpec(next(with_ids, spec)) if spec_id is None else None
            case AddSortOrder(sort_order=order):
                same = (o.order_id for o in base.sort_orders if o.fields == order.fields)
                order_id = next(same, None)
                with_id = (o for o in changed.sort_orders if o.fields == order.fields)
                kept = AddSortOrder(next(with_id, order)) if order_id is None else None
            case SetCurrentSchema(schema_id=requested) if requested == LAST_ADDED:
                kept = update if schema_id is None else SetCurrentSchema(schema_id)
            case SetDefaultSpec(spec_id=requested) if requested == LAST_ADDED:
                kept = update if spec_id is None else SetDefaultSpec(spec_id)
            case SetDefaultSortOrder(sort_order_id=requested) if requested == LAST_ADDED:
                kept = update if order_id is None else SetDefaultSortOrder(order_id)
            case _:
                kept = update
        if kept is not None:
            result.append(kept)
    return result


def without_known_view_parts(
    updates: Sequence[ViewUpdate], base: ViewMetadata, changed: ViewMetadata
) -> list[ViewUpdate]:
    """The updates of a view without schemas and versions that it already has.

    Args:
        base: the view that the updates are applied to.
        changed: the view with the updates.
    """
    result: list[ViewUpdate] = []
    schema_id: int | None = None
    is_known = changed.current_version_id in base.versions_by_id
    for update in updates:
        match update:
            case AddSchema(schema=schema):
                same = (s.schema_id for s in base.schemas if s.has_same_columns(schema))
                schema_id = next(same, None)
                if schema_id is None:
                    result.append(update)
            case AddViewVersion(view_version=version):
                if version.schema_id == LAST_ADDED and schema_id is not None:
                    version = replace(version, schema_id=schema_id)
                if not is_known:
                    result.append(AddViewVersion(version))
            case SetCurrentViewVersion() if is_known:
                result.append(SetCurrentViewVersion(changed.current_version_id))
            case _:
                result.append(update)
    return result
