"""Writes manifests of a commit from columns, without an object per entry."""

from __future__ import annotations

from icebergds.commit.base import CommitBase
from icebergds.commit.new_manifests import UNASSIGNED, column_summaries, manifest_compression
from icebergds.commit.workspace import Workspace
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.writer import ManifestForm
from icebergds.spec.manifest import ManifestEntryStatus, ManifestFile
from icebergds.spec.types import StructType


def manifest_form(
    base: CommitBase, manifest: ManifestFile, partition_type: StructType
) -> ManifestForm:
    """The form shared by the manifests that replace a manifest.

    Args:
        partition_type: the type of the manifest's partition values, as they were read.
    """
    codec, level = manifest_compression(base.metadata.properties)
    return ManifestForm(
        base.spec(manifest.partition_spec_id),
        base.metadata.schema(),
        partition_type,
        base.metadata.format_version,
        manifest.content,
        codec,
        level,
    )


def write_columns(
    work: Workspace, base: CommitBase, manifest: ManifestFile, columns: EntryColumns
) -> ManifestFile:
    """Writes a manifest that replaces another; its files are existing or removed ones."""
    form = manifest_form(base, manifest, columns.partition_type)
    data = form.manifest(form.blocks(form.encode(columns)))
    is_removed = columns.status == ManifestEntryStatus.DELETED.value
    live_numbers = columns.data_sequence_number[~is_removed]
    written = work.write_manifest(base.metadata, data)
    return ManifestFile(
        manifest_path=written.location,
        manifest_length=written.length,
        key_metadata=written.key_metadata,
        partition_spec_id=manifest.partition_spec_id,
        content=manifest.content,
        sequence_number=UNASSIGNED,
        min_sequence_number=int(live_numbers.min()) if len(live_numbers) else UNASSIGNED,
        added_snapshot_id=work.snapshot_id,
        added_files_count=0,
        existing_files_count=len(live_numbers),
        deleted_files_count=int(is_removed.sum()),
        added_rows_count=0,
        existing_rows_count=int(columns.record_count[~is_removed].sum()),
        deleted_rows_count=int(columns.record_count[is_removed].sum()),
        partitions=column_summaries(columns.partition_type, columns.partition),
    )
