"""Commits edits of a table's schema (spec: Schema Evolution)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.errors import InvalidOptionError
from icebergds.operations.evolution.commit import commit_update
from icebergds.spec.evolution.deletion_rules import check_deletions
from icebergds.spec.evolution.schema_edits import SchemaDraft
from icebergds.spec.json.name_mapping import (
    NAME_MAPPING_PROPERTY,
    name_mapping_to_json,
    table_name_mapping,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.name_mapping import updated_mapping
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform, Transform, VoidTransform
from icebergds.spec.types import DATE
from icebergds.spec.updates.requirements import AssertCurrentSchemaId, AssertLastAssignedFieldId
from icebergds.spec.updates.schema_rules import check_schema
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    TableUpdate,
)

SchemaEdit: TypeAlias = Callable[[SchemaDraft], SchemaDraft]


def schema_draft(
    metadata: TableMetadata, *, allow_incompatible: bool, case_sensitive: bool
) -> SchemaDraft:
    """The current schema of a table, to be edited."""
    return SchemaDraft(
        metadata.schema(),
        metadata.last_column_id,
        metadata.format_version,
        allow_incompatible,
        case_sensitive,
    )


def update_schema(
    table: LoadedTable,
    edits: Sequence[SchemaEdit],
    *,
    allow_incompatible: bool = False,
    case_sensitive: bool = True,
) -> TableState:
    """Edits a table's schema in one commit; repeats the edits after a conflict.

    The name mapping and properties of single columns follow the columns.

    Raises:
        InvalidOptionError, InvalidDataError: an edit does not fit the schema as it is now, or a
            column is needed.
        InvalidMetadataError: the schema would break the specification.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the schema was changed is not known.
    """
    planned: list[Schema] = []

    def edited(metadata: TableMetadata) -> Schema:
        draft = schema_draft(
            metadata, allow_incompatible=allow_incompatible, case_sensitive=case_sensitive
        )
        for edit in edits:
            draft = edit(draft)
        check_deletions(metadata.schema(), draft.schema)
        check_schema(draft.schema, metadata.format_version)
        _check_column_uses(metadata, draft.schema)
        return draft.schema

    def produce(state: TableState) -> Change:
        schema = edited(state.metadata)
        planned.append(schema)
        return _change(state.metadata, schema)

    def is_updated(state: TableState) -> bool:
        return bool(planned) and planned[-1].has_same_columns(state.metadata.schema())

    return commit_update(table, produce, is_updated)


def _change(metadata: TableMetadata, schema: Schema) -> Change:
    if schema.has_same_columns(metadata.schema()):
        return Change([], [])
    return Change(
        [
            AssertCurrentSchemaId(metadata.current_schema_id),
            AssertLastAssignedFieldId(metadata.last_column_id),
        ],
        [AddSchema(schema), SetCurrentSchema(LAST_ADDED), *_property_updates(metadata, schema)],
    )


def _property_updates(metadata: TableMetadata, schema: Schema) -> list[TableUpdate]:
    """Updates of the properties that name columns."""
    added, gone = _renamed_properties(metadata.properties, metadata.schema(), schema)
    mapping = table_name_mapping(metadata)
    if mapping is not None:
        updated = updated_mapping(mapping, schema)
        if updated != mapping:
            added[NAME_MAPPING_PROPERTY] = json.dumps(name_mapping_to_json(updated))
    updates: list[TableUpdate] = []
    if gone:
        updates.append(RemoveProperties(tuple(gone)))
    if added:
        updates.append(SetProperties(added))
    return updates


# As in write.metadata.metrics.column.<name>.
_OF_COLUMN = re.compile(r"(write\..+?\.column\.)(.+)", re.DOTALL)


def _renamed_properties(
    properties: Mapping[str, str], before: Schema, after: Schema
) -> tuple[dict[str, str], list[str]]:
    """Properties of columns under their new names, and those to remove."""
    added: dict[str, str] = {}
    gone: list[str] = []
    for name, value in properties.items():
        match = _OF_COLUMN.fullmatch(name)
        field_id = None if match is None else before.find_id(match[2])
        if match is None or field_id is None:
            continue
        now = after.find_name(field_id)
        if now != match[2]:
            gone.append(name)
            if now is not None:
                added[f"{match[1]}{now}"] = value
    return added, [name for name in gone if name not in added]


def _check_column_uses(metadata: TableMetadata, schema: Schema) -> None:
    """Raises InvalidOptionError if a new schema lacks what the table's layout needs.

    Columns of the current partition spec and sort order stay. Columns that any spec of the table
    partitions by are not promoted if partition values would change.
    """
    before, now = metadata.schema(), schema.fields_by_id
    uses = [
        (f"partition field {part.name!r}", "update_spec", part.source_ids, part.transform)
        for part in metadata.spec().fields
    ]
    uses += [
        ("the table's sort order", "update_sort_order", part.source_ids, part.transform)
        for part in metadata.sort_order().fields
    ]
    for what, verb, source_ids, transform in uses:
        gone = [i for i in source_ids if i not in now and i in before.fields_by_id]
        if gone and not isinstance(transform, VoidTransform):
            raise InvalidOptionError(
                f"column {before.find_name(gone[0])!r} cannot be deleted: {what} needs it; change "
                f"that first, by {verb}"
            )
    for part in [part for spec in metadata.partition_specs for part in spec.fields]:
        for source_id in part.source_ids:
            _check_promotion(before, schema, source_id, part.transform, part.name)


def _check_promotion(
    before: Schema, after: Schema, source_id: int, transform: Transform, name: str
) -> None:
    old, new = before.find_field(source_id), after.find_field(source_id)
    if old is None or new is None or old.field_type == new.field_type:
        return
    # The others give the same partition values.
    if old.field_type == DATE and isinstance(transform, IdentityTransform | BucketTransform):
        raise InvalidOptionError(
            f"column {before.find_name(source_id)!r} cannot change from {old.field_type} to "
            f"{new.field_type}: the values of partition field {name!r}, {transform} of it, would "
            "be others; add a column of the other type instead"
        )
