"""Corrects what manifests say of files, in one commit that changes no row and no file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.column_manifests import write_columns
from icebergds.commit.file_selection import FileKey, file_key, file_keys
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.workspace import Workspace
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.manifest import entry_columns
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.updates.table_updates import TableUpdate

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ColumnCorrection:
    """The metrics of a column as they should be; None for those that are to be left out."""

    value_count: int | None = None
    null_count: int | None = None
    nan_count: int | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class FileCorrection:
    """What a manifest should say of a file; None for what is right.

    Attributes:
        columns: by field id; metrics of other columns stay as they are.
        column_sizes: by field id; None for those that are to be left out.
    """

    record_count: int | None = None
    file_size_in_bytes: int | None = None
    split_offsets: tuple[int, ...] | None = None
    columns: Mapping[int, ColumnCorrection] = field(default_factory=dict)
    column_sizes: Mapping[int, int | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        numbers = (self.record_count, self.file_size_in_bytes, self.split_offsets)
        of_columns = self.columns or self.column_sizes
        return bool(of_columns) or any(number is not None for number in numbers)

    def and_(self, other: FileCorrection) -> FileCorrection:
        """Both corrections, of what two manifests say of one file."""
        return FileCorrection(
            _first(self.record_count, other.record_count),
            _first(self.file_size_in_bytes, other.file_size_in_bytes),
            _first(self.split_offsets, other.split_offsets),
            {**other.columns, **self.columns},
            {**other.column_sizes, **self.column_sizes},
        )


@dataclass(frozen=True, slots=True)
class RepairFiles:
    """Rewrites the manifests that list some files, and others that their list describes wrongly.

    Live files, their sequence numbers and their row ids stay as they are.

    Attributes:
        corrections: by path and content offset of the file.
        manifests: paths of manifests that are rewritten even if no file is corrected.
        updates: other changes of the table in the same commit.
    """

    corrections: Mapping[FileKey, FileCorrection]
    manifests: frozenset[str]
    updates: Sequence[TableUpdate] = ()

    # Concurrent commits keep the files or remove them; a repair says nothing about their rows.
    depends_on_rows = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Writes the corrected manifests.

        Raises:
            ValidationError: the branch was dropped.
            MissingFileError, CorruptFileError: a manifest cannot be read.
        """
        require_branch(base)
        manifests: list[ManifestFile] = []
        parts: list[EntryColumns] = []
        for manifest in base.manifests:
            source = (manifest.manifest_path, manifest.first_row_id, base.metadata.format_version)
            kept, columns = work.once(
                ("repaired", *source),
                partial(self._repaired, work, base, manifest),
            )
            parts.append(columns)
            if kept is not None:
                manifests.append(kept)
        return NewSnapshot("replace", manifests, live_totals(file_counts(parts)), self.updates)

    def _repaired(
        self, work: Workspace, base: CommitBase, manifest: ManifestFile
    ) -> tuple[ManifestFile | None, EntryColumns]:
        """The manifest or the one that replaces it, None without live files; and its live files."""
        columns = _live(base, manifest)
        if not len(columns):
            return None, columns
        wrong = any(key in self.corrections for key in file_keys(columns))
        if not wrong and manifest.manifest_path not in self.manifests:
            return manifest, columns
        entries = [self._corrected(entry) for entry in columns.entries()]
        columns = entry_columns(entries, columns.spec_id, columns.partition_type)
        return write_columns(work, base, manifest, columns), columns

    def _corrected(self, entry: ManifestEntry) -> ManifestEntry:
        file = entry.data_file
        correction = self.corrections.get(file_key(file))
        if correction is not None:
            file = corrected(file, correction)
        return replace(entry, status=ManifestEntryStatus.EXISTING, data_file=file)


def corrected(file: DataFile, correction: FileCorrection) -> DataFile:
    """The file with what a manifest should say of it."""
    changes: dict[str, object] = {}
    for name in ("record_count", "file_size_in_bytes", "split_offsets"):
        if (value := getattr(correction, name)) is not None:
            changes[name] = value
    columns = correction.columns
    if columns:
        for name, values in (
            ("value_counts", {i: column.value_count for i, column in columns.items()}),
            ("null_value_counts", {i: column.null_count for i, column in columns.items()}),
            ("nan_value_counts", {i: column.nan_count for i, column in columns.items()}),
        ):
            changes[name] = _merged(getattr(file, name), values)
        lower = {i: column.lower_bound for i, column in columns.items()}
        upper = {i: column.upper_bound for i, column in columns.items()}
        changes["lower_bounds"] = _merged(file.lower_bounds, lower)
        changes["upper_bounds"] = _merged(file.upper_bounds, upper)
    if correction.column_sizes:
        changes["column_sizes"] = _merged(file.column_sizes, correction.column_sizes)
    return replace(file, **changes)  # type: ignore[arg-type]


def live_totals(counts: Mapping[str, int]) -> dict[str, str]:
    """The totals in a snapshot's summary, by the counts of its live files."""
    return {f"total-{name}": str(counts[name]) for name in TOTALS}


TOTALS = (
    "data-files",
    "delete-files",
    "records",
    "position-deletes",
    "equality-deletes",
    "files-size",
)
"""The counts of `file_counts` that summaries have totals of."""

WHOLE_SIZE = "files-size-of-whole-files"
"""The count of bytes with the whole file for each deletion vector, which some engines record."""


def file_counts(parts: Iterable[EntryColumns]) -> Counter[str]:
    """What summaries count of some entries, by their names without `added-` or the like."""
    counts = Counter[str]()
    for columns in parts:
        rows, size = columns.record_count.clip(min=0), columns.file_size_in_bytes
        is_data = columns.content == FileContent.DATA.value
        by_position = columns.content == FileContent.POSITION_DELETES.value
        by_key = columns.content == FileContent.EQUALITY_DELETES.value
        own = columns.content_size_in_bytes.fill_null(-1).to_numpy()
        is_vector = by_position & columns.is_vector
        counts.update(
            {
                "data-files": int(is_data.sum()),
                "records": int(rows[is_data].sum()),
                "delete-files": int((~is_data).sum()),
                "position-deletes": int(rows[by_position].sum()),
                "equality-deletes": int(rows[by_key].sum()),
                "position-delete-files": int((by_position & ~is_vector).sum()),
                "equality-delete-files": int(by_key.sum()),
                "dvs": int(is_vector.sum()),
                "files-size": int(np.where(is_vector & (own >= 0), own, size).sum()),
                WHOLE_SIZE: int(size.sum()),
            }
        )
    return counts


def _live(base: CommitBase, manifest: ManifestFile) -> EntryColumns:
    return read_manifest_columns(
        base.io,
        manifest,
        base.metadata.specs_by_id,
        base.metadata.schema(),
        history=base.metadata.schema_history,
        # Wrong counts may be what is repaired.
        wrong_counts=WrongCounts.WARN,
    )


def _first(one: _Value | None, other: _Value | None) -> _Value | None:
    return other if one is None else one


def _merged(known: Mapping[int, _Value], changes: Mapping[int, _Value | None]) -> dict[int, _Value]:
    merged = {key: value for key, value in known.items() if key not in changes}
    merged.update((key, value) for key, value in changes.items() if value is not None)
    return merged
