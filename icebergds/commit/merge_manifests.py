"""Merges small manifests, so that their number does not grow with every commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from icebergds.commit.base import CommitBase
from icebergds.commit.new_manifests import UNASSIGNED, write_entries
from icebergds.commit.workspace import Workspace
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.io.near import start_reading
from icebergds.spec.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile
from icebergds.spec.table_properties import (
    MANIFEST_MERGE_ENABLED,
    MANIFEST_MIN_MERGE_COUNT,
    MANIFEST_TARGET_SIZE_BYTES,
)


def merge_manifests(
    work: Workspace, base: CommitBase, manifests: Sequence[ManifestFile]
) -> list[ManifestFile]:
    """Merges manifests as the properties `commit.manifest.*` say.

    Args:
        manifests: manifests of one kind of content, newest first.
    """
    return [
        packed[0] if len(packed) == 1 else _merged(work, base, packed)
        for packed in _bins(base.metadata.properties, manifests)
    ]


def can_merge(properties: Mapping[str, str], manifests: Sequence[ManifestFile]) -> bool:
    """Whether manifests of one kind of content, newest first, would be merged."""
    return any(len(packed) > 1 for packed in _bins(properties, manifests))


def _bins(
    properties: Mapping[str, str], manifests: Sequence[ManifestFile]
) -> list[list[ManifestFile]]:
    """The groups of manifests to merge, in order; a manifest that stays is a group of its own."""
    if not manifests or not MANIFEST_MERGE_ENABLED.of(properties):
        return [[manifest] for manifest in manifests]
    least = MANIFEST_MIN_MERGE_COUNT.of(properties)
    bins: list[list[ManifestFile]] = []
    for spec_id in sorted({m.partition_spec_id for m in manifests}, reverse=True):
        group = [m for m in manifests if m.partition_spec_id == spec_id]
        for packed in _packed_from_end(group, MANIFEST_TARGET_SIZE_BYTES.of(properties)):
            # The bin with the newest manifest is merged only once it holds enough manifests.
            waits = packed[0] is manifests[0] and len(packed) < least
            bins += [[manifest] for manifest in packed] if waits else [packed]
    return bins


def _packed_from_end(manifests: Sequence[ManifestFile], target: int) -> list[list[ManifestFile]]:
    """Packs adjacent manifests into bins up to a size, from the end: the first bin may be small."""
    bins: list[list[ManifestFile]] = []
    size = 0
    for manifest in reversed(manifests):
        if not bins or size + manifest.manifest_length > target:
            bins.append([])
            size = 0
        bins[-1].append(manifest)
        size += manifest.manifest_length
    return [packed[::-1] for packed in reversed(bins)]


def _merged(work: Workspace, base: CommitBase, manifests: Sequence[ManifestFile]) -> ManifestFile:
    # The first row id is in the key: a concurrent commit may have assigned it meanwhile.
    parts = ((m.manifest_path, m.first_row_id) for m in manifests)
    key = ("merged", base.metadata.format_version, *parts)
    return work.once(key, lambda: _merge(work, base, manifests))


def _merge(work: Workspace, base: CommitBase, manifests: Sequence[ManifestFile]) -> ManifestFile:
    # Some of them may still be being written by this commit.
    work.settle()
    # Together they are no larger than one manifest should be.
    io = base.io.keeping_reads()
    for manifest in manifests:
        start_reading(io, manifest.manifest_path)
    base = replace(base, state=replace(base.state, io=io))
    entries = [entry for m in manifests for entry in _entries(work, base, m)]
    return write_entries(work, base, entries, manifests[0].partition_spec_id, manifests[0].content)


def _entries(work: Workspace, base: CommitBase, manifest: ManifestFile) -> Iterable[ManifestEntry]:
    """Live entries, and entries of the files that this commit removes."""
    entries = read_manifest(
        base.io,
        manifest,
        base.metadata.specs_by_id,
        base.metadata.schema(),
        history=base.metadata.schema_history,
        wrong_counts=base.wrong_counts,
    )
    for entry in entries:
        is_own = entry.snapshot_id == work.snapshot_id
        if entry.status is ManifestEntryStatus.DELETED:
            if is_own:
                yield entry
        elif entry.status is ManifestEntryStatus.ADDED and is_own:
            yield replace(entry, file_sequence_number=UNASSIGNED)
        else:
            yield replace(entry, status=ManifestEntryStatus.EXISTING)
