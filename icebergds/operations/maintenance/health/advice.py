"""Advises which maintenance actions would make reads of a table cheaper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from icebergds.commit.file_selection import FileKey
from icebergds.commit.retention import ExpiryRequest
from icebergds.display import counted, size_text, time_text
from icebergds.operations.maintenance.deletes.conversion_plan import key_share
from icebergds.operations.maintenance.health.figures import (
    MetadataHealth,
    equality_deletes,
    nbytes,
    position_deletes,
    with_equality_deletes,
    with_position_deletes,
)
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup, new_file_count
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.scan.plan.partition_filters import has_live_files
from icebergds.spec.manifest import ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import DELETE_GRANULARITY, MANIFEST_TARGET_SIZE_BYTES

_NONE = np.empty(0, np.int64)
_SPARED_MANIFESTS = 8
"""Sparing fewer hardly makes planning faster."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What an action gains.

    Attributes:
        files, size_in_bytes: about how many files and bytes fewer a full read opens.
        besides: what else is gained.
    """

    files: int = 0
    size_in_bytes: int = 0
    besides: str = ""

    def __str__(self) -> str:
        size = f" ({size_text(self.size_in_bytes)})" if self.size_in_bytes else ""
        files = f"a full read opens {counted(self.files, 'file')}{size} fewer" if self.files else ""
        return "; ".join(filter(None, (files, self.besides)))


@dataclass(frozen=True, slots=True)
class Advice:
    """An action that would make reads of a table cheaper.

    Attributes:
        action: the name of the method of the table.
        arguments: its arguments, by name.
        reason: why, with figures.
        gain: what is gained.
        read_bytes: about how many bytes of data and delete files the action reads.
    """

    action: str
    reason: str
    gain: Gain
    arguments: Mapping[str, Any] = field(default_factory=dict)
    read_bytes: int = 0

    @property
    def call(self) -> str:
        """The call to make, as Python."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"table.{self.action}({given})"

    def __str__(self) -> str:
        return f"{self.call}: {self.reason}; {self.gain}"


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known about a branch.

    Attributes:
        files: the data files, with the deletes that apply to them.
        groups: the groups that `rewrite_data_files` would replace.
        dangling: how many delete files apply to no data file.
        suspected: the delete files that hardly do, without the dangling ones.
        branch: arguments that name the branch.
        expiry: which snapshots may expire.
        purges: whether manifests are not to list removed files.
    """

    metadata: TableMetadata
    options: RewriteOptions
    files: PackedFiles
    groups: Sequence[FileGroup]
    dangling: int
    suspected: Mapping[FileKey, ManifestEntry]
    manifests: Sequence[ManifestFile]
    branch: Mapping[str, Any]
    expiry: ExpiryRequest
    purges: bool = False


def advise(found: Findings, snapshots: MetadataHealth) -> tuple[Advice, ...]:
    """The actions that are worth it, in the order in which to run them."""
    return (
        *_convert_equality_deletes(found),
        *_rewrite_data_files(found),
        *_rewrite_position_delete_files(found),
        *_remove_dangling_deletes(found),
        *(_drop_removed_files(found) if found.purges else _rewrite_manifests(found)),
        *_expire_snapshots(found.expiry, snapshots),
    )


def _convert_equality_deletes(found: Findings) -> Iterator[Advice]:
    deletes = equality_deletes(found.files).values()
    if not deletes:
        return
    keys = sum(max(entry.data_file.record_count, 0) for entry in deletes)
    applied = with_equality_deletes(found.files)
    # Only key columns are read.
    share = key_share((entry.data_file for entry in deletes), found.metadata.schema())
    read = round(applied.nbytes * share)
    yield Advice(
        "convert_equality_deletes",
        f"{counted(keys, 'key')} in {counted(len(deletes), 'equality delete file')} may apply to "
        f"{counted(len(applied), 'data file')}",
        Gain(
            len(deletes),
            nbytes(deletes),
            "positions that replace them are read instead, and no keys are compared",
        ),
        found.branch,
        read + nbytes(deletes),
    )


def _rewrite_data_files(found: Findings) -> Iterator[Advice]:
    files = _rewritten(found)
    sizes = files.entries.file_size_in_bytes
    # The largest file slows down reads by parallel tasks.
    large = int((sizes > found.options.max_file_size).sum())
    # Equality deletes are converted before.
    deletes = position_deletes(files)
    added = sum(new_file_count(group.nbytes, found.options) for group in found.groups)
    # Files that become as many others of their size would be rewritten again and again.
    if len(files) <= added and not large and not deletes:
        return
    spared = deletes.keys() - position_deletes(_outside(found)).keys()
    small = int((sizes < found.options.min_file_size).sum())
    deleted = len(with_position_deletes(files))
    kinds = [(small, "small"), (large, "large"), (deleted, "with deleted rows")]
    shown = ", ".join(f"{number:,} {kind}" for number, kind in kinds if number)
    nbytes_of_files = sum(group.nbytes for group in found.groups)
    yield Advice(
        "rewrite_data_files",
        f"{counted(len(files), 'data file')} of {len(found.files):,} "
        f"({size_text(nbytes_of_files)}) should be rewritten: {shown}",
        Gain(
            max(len(files) - added, 0) + len(spared),
            nbytes(deletes[key] for key in spared),
            "large files are split" if large else "",
        ),
        found.branch,
        nbytes_of_files,
    )


def _rewrite_position_delete_files(found: Findings) -> Iterator[Advice]:
    least = found.options.min_input_files
    many = with_position_deletes(_outside(found), least)
    if not many:
        return
    deletes = position_deletes(many).values()
    most = max(len(applied.position_deletes) for applied in many.applied())
    by_partition = DELETE_GRANULARITY.of(found.metadata.properties) == "partition"
    units = many.entries.partitions()
    left = len(units) if by_partition and found.metadata.format_version < 3 else len(many)
    yield Advice(
        "rewrite_position_delete_files",
        f"{counted(len(many), 'data file')} have {least} to {most:,} position delete files each",
        Gain(max(len(deletes) - left, 0), 0, "each data file needs one"),
        found.branch,
        # Those of other data files may be rewritten too.
        nbytes(position_deletes(found.files).values()),
    )


def _remove_dangling_deletes(found: Findings) -> Iterator[Advice]:
    suspected = found.suspected.values()
    if count := found.dangling + len(suspected):
        does = "applies" if count == 1 else "apply"
        yield Advice(
            "remove_dangling_deletes",
            f"{counted(count, 'delete file')} {does} to no data file",
            Gain(
                len(suspected),
                nbytes(suspected),
                f"planning looks at {counted(count, 'file')} fewer",
            ),
            found.branch,
            nbytes(suspected),
        )


def _rewrite_manifests(found: Findings) -> Iterator[Advice]:
    """Advises it for the partition spec that can spare the most manifests."""
    target = MANIFEST_TARGET_SIZE_BYTES.of(found.metadata.properties)
    counts, sizes = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for manifest in filter(has_live_files, found.manifests):
        kind = manifest.partition_spec_id, int(manifest.content)
        counts[kind] += 1
        sizes[kind] += manifest.manifest_length
    by_spec = Counter[int]()
    for kind, count in counts.items():
        by_spec[kind[0]] += count - max(1, ceil(sizes[kind] / target))
    for spec_id, spared in by_spec.most_common(1):
        if spared < _SPARED_MANIFESTS:
            return
        chosen = {kind for kind in counts if kind[0] == spec_id}
        count, size = sum(counts[kind] for kind in chosen), sum(sizes[kind] for kind in chosen)
        is_current = spec_id == found.metadata.default_spec_id
        of_spec = "" if is_current else f" of partition spec {spec_id}"
        yield Advice(
            "rewrite_manifests",
            f"{counted(count, 'manifest')}{of_spec} of {size_text(size // count)} on average; the "
            f"target is {size_text(target)}",
            Gain(spared, 0, "planning skips more of them"),
            {**({} if is_current else {"spec_id": spec_id}), **found.branch},
        )


def _drop_removed_files(found: Findings) -> Iterator[Advice]:
    """Advises it for the partition specs of manifests that list removed files."""
    listing = Counter(
        manifest.partition_spec_id
        for manifest in found.manifests
        if manifest.deleted_files_count != 0
    )
    for spec_id, count in sorted(listing.items()):
        yield Advice(
            "rewrite_manifests",
            f"{counted(count, 'manifest')} may list removed files with the bounds of their columns",
            Gain(besides="the values of removed rows are in no manifest"),
            {"spec_id": spec_id, **found.branch},
        )


def expiry_arguments(expiry: ExpiryRequest) -> Mapping[str, Any]:
    """The equivalent arguments of `expire_snapshots`; times are text if they can be."""
    older_than, retain_last = expiry.older_than_ms, expiry.retain_last
    return {
        **({} if older_than is None else {"older_than": _readable(older_than)}),
        **({} if retain_last is None else {"retain_last": retain_last}),
    }


def _readable(timestamp_ms: int) -> str | int:
    text = time_text(timestamp_ms)
    # After the year 9999, times are only numbers.
    return text if text.endswith("Z") else timestamp_ms


def _expire_snapshots(expiry: ExpiryRequest, found: MetadataHealth) -> Iterator[Advice]:
    if not found.expirable_snapshots and not found.expirable_refs:
        return
    old = f"{found.expirable_snapshots:,} of {counted(found.snapshots, 'snapshot')}"
    if found.expirable_refs:
        old += f", and {found.expirable_refs:,} branches or tags,"
    arguments = expiry_arguments(expiry)
    bound = "is to be kept" if arguments else "the table keeps them"
    yield Advice(
        "expire_snapshots",
        f"{old} are older than {bound}",
        Gain(besides="the metadata file shrinks, and files that only they use are deleted"),
        arguments,
    )


def _rewritten(found: Findings) -> PackedFiles:
    """The data files that `rewrite_data_files` would replace."""
    return PackedFiles.concat([group.files for group in found.groups])


def _outside(found: Findings) -> PackedFiles:
    """The data files that `rewrite_data_files` leaves as they are."""
    # All of them are rows of the same columns.
    replaced = [group.files.entries.rows for group in found.groups]
    mask = np.isin(found.files.entries.rows, np.concatenate([_NONE, *replaced]), invert=True)
    return found.files.filter(mask)
