"""Counts what a planned scan reads: its delete files by kind, Java Iceberg's scan metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from icebergds.scan.plan.counts import ManifestCounts
from icebergds.scan.plan.files import PlannedFile, PlannedFiles
from icebergds.spec.manifest import DataFile, FileContent


@dataclass(frozen=True, slots=True)
class DeletesByKind:
    """The delete files of a scan, each once."""

    positions: list[DataFile] = field(default_factory=list)
    vectors: list[DataFile] = field(default_factory=list)
    keys: list[DataFile] = field(default_factory=list)


def deletes_by_kind(files: Iterable[PlannedFile]) -> DeletesByKind:
    """The delete files that apply to some of the files."""
    # Many files share one tuple of deletes.
    groups = {
        id(group): group
        for file in files
        for group in (file.deletes.position_deletes, file.deletes.equality_deletes)
    }
    deletes = {
        (entry.data_file.file_path, entry.data_file.content_offset): entry.data_file
        for group in groups.values()
        for entry in group
    }
    found = DeletesByKind()
    for file in deletes.values():
        by_keys = file.content is FileContent.EQUALITY_DELETES
        kind = found.keys if by_keys else found.positions
        (found.vectors if file.is_deletion_vector else kind).append(file)
    return found


def scan_metrics(found: PlannedFiles) -> Mapping[str, int]:
    """The metrics of a scan: counts, and sizes in bytes, whose names end in `-in-bytes`."""
    deletes = deletes_by_kind(found.files)
    every = [*deletes.positions, *deletes.vectors, *deletes.keys]
    files = found.counts.files
    return {
        "result-data-files": len(found.files),
        "result-delete-files": len(every),
        "total-file-size-in-bytes": sum(
            each.entry.data_file.file_size_in_bytes for each in found.files
        ),
        "total-delete-file-size-in-bytes": sum(map(_size, every)),
        "skipped-data-files": files.skipped,
        "equality-delete-files": len(deletes.keys),
        "positional-delete-files": len(deletes.positions),
        "dvs": len(deletes.vectors),
        **_manifests("data", found.counts.data_manifests),
        **_manifests("delete", found.counts.delete_manifests),
    }


def _size(file: DataFile) -> int:
    """The bytes of a delete file that are read: of a deletion vector, those of its blob."""
    of_blob = file.content_size_in_bytes
    return file.file_size_in_bytes if of_blob is None else of_blob


def _manifests(kind: str, counts: ManifestCounts) -> dict[str, int]:
    return {
        f"total-{kind}-manifests": counts.listed,
        f"scanned-{kind}-manifests": counts.read,
        f"skipped-{kind}-manifests": counts.skipped,
    }
