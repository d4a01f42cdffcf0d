"""Finds partition specs and schemas that no snapshot needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.spec.manifest import ManifestContent
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.updates.table_updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    TableUpdate,
)


def remove_unused(
    io: FileIO, metadata: TableMetadata, snapshots: Collection[Snapshot]
) -> list[TableUpdate]:
    """The updates that remove specs and schemas which none of the snapshots needs.

    A schema is also needed if no other one has a dropped column whose type is still used, by a
    partition field or perhaps by equality deletes.

    Args:
        snapshots: the snapshots that the table keeps.

    Raises:
        MissingFileError: a manifest list does not exist.
        CorruptFileError: one is damaged.
    """
    # The last one too: without it, readers could not tell that schemas were removed.
    last = max(schema.schema_id for schema in metadata.schemas)
    own = {metadata.current_schema_id, last, *(snapshot.schema_id for snapshot in snapshots)}
    schemas = [s for s in metadata.schema_history if s.schema_id not in own]
    if not schemas and len(metadata.partition_specs) == 1:
        return []
    spec_ids, has_deletes = _used(io, snapshots)
    spec_ids.add(metadata.default_spec_id)
    kept = [schema for schema in metadata.schemas if schema.schema_id in own]
    columns = {
        source_id
        for spec_id in spec_ids & metadata.specs_by_id.keys()
        for part in metadata.specs_by_id[spec_id].fields
        for source_id in part.source_ids
    }
    needed = _needed(schemas, kept, None if has_deletes else columns)
    unused = tuple(sorted(s.schema_id for s in schemas if s.schema_id not in needed))
    # The spec without fields is that of global deletes, which may be in progress.
    removable = {spec.spec_id for spec in metadata.partition_specs if spec.fields}
    specs = tuple(sorted(removable - spec_ids))
    return [
        *([RemovePartitionSpecs(specs)] if specs else ()),
        *([RemoveSchemas(unused)] if unused else ()),
    ]


def _used(io: FileIO, snapshots: Collection[Snapshot]) -> tuple[set[int], bool]:
    """The partition specs of the manifests of snapshots, and whether there are delete files."""

    def read(snapshot: Snapshot) -> tuple[set[int], bool]:
        manifests = read_snapshot_manifests(io, snapshot)
        return (
            {manifest.partition_spec_id for manifest in manifests},
            any(manifest.content is ManifestContent.DELETES for manifest in manifests),
        )

    with ThreadPoolExecutor(readers_of(io, (each.manifest_list for each in snapshots))) as pool:
        found = list(pool.map(read, snapshots))
    return set().union(*(spec_ids for spec_ids, _ in found)), any(deletes for _, deletes in found)


def _needed(
    schemas: Iterable[Schema], kept: Iterable[Schema], columns: Collection[int] | None
) -> set[int]:
    """The ids of the schemas that are the newest ones to have some columns.

    Args:
        schemas: newest first.
        kept: schemas that are kept in any case.
        columns: ids of the columns that are asked for; None for all.
    """
    known = {field_id for schema in kept for field_id in schema.fields_by_id}
    needed: set[int] = set()
    for schema in schemas:
        found = schema.fields_by_id.keys() - known
        if found if columns is None else found & set(columns):
            needed.add(schema.schema_id)
            known |= schema.fields_by_id.keys()
    return needed
