"""Chooses the data files that `rewrite_data_files` rewrites, and groups them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.packed_entries import Int64s
from icebergds.operations.maintenance.rewrite.options import JobOrder, RewriteOptions
from icebergds.operations.maintenance.rewrite.shared_deletes import SharedDeletes
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.packed_files import Mask, PackedFiles

# New files differ a little in size from the rows' share of the old ones.
_SPLIT_OVERHEAD = 5 * 1024
_EVENLY_LARGER = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class FileGroup:
    """Data files of one partition that are rewritten, and committed, together.

    Attributes:
        output_spec_id: the partition spec of the new files.
        split_size: how many bytes a task reads, to write about one file.
        shared: the delete files that the files share with others.
    """

    files: PackedFiles
    output_spec_id: int
    split_size: int
    shared: SharedDeletes

    @property
    def nbytes(self) -> int:
        """The size of the files, in bytes."""
        return self.files.nbytes

    @property
    def keeps_order(self) -> bool:
        """Whether a task writes rows in the order in which it reads them.

        Rows of other partition specs may belong to several partitions of the new one.
        """
        return bool((self.files.entries.spec_ids == self.output_spec_id).all())


def plan_groups(
    files: PackedFiles, options: RewriteOptions, output_spec_id: int, shared: SharedDeletes
) -> list[FileGroup]:
    """Groups the files that are worth a rewrite by their partition.

    Files of other partition specs than the output's form one group of partitions, since their rows
    may belong to any partition of it. The oldest files of a group come first.

    Args:
        shared: has the delete files that apply to several of the table's data files.
    """
    chosen = files.filter(candidates(files, options, shared))
    chosen = chosen.take(np.argsort(chosen.entries.data_sequence_number, kind="stable"))
    groups = [
        FileGroup(group, output_spec_id, split_size(group.nbytes, options), shared)
        for rows in _by_partition(chosen, output_spec_id)
        for group in _packed(chosen.take(rows), options)
        if _is_worth_it(group, options, shared)
    ]
    return list(_limited(_in_order(groups, options.job_order), options))


def split_size(nbytes: int, options: RewriteOptions) -> int:
    """How many bytes of a group of `nbytes` bytes a task reads, so that it writes one file."""
    count = new_file_count(nbytes, options)
    size = max(nbytes // count + _SPLIT_OVERHEAD, options.target_file_size)
    return min(size, options.max_new_file_size)


def new_file_count(nbytes: int, options: RewriteOptions) -> int:
    """How many files a group of `nbytes` bytes becomes.

    A remainder below the minimum size is spread over the other files if these then stay near the
    target size.
    """
    target = options.target_file_size
    if nbytes < target:
        return 1
    without = nbytes // target
    if nbytes % target > options.min_file_size:
        return without + 1
    limit = min(_EVENLY_LARGER * target, options.max_new_file_size)
    return without if nbytes // without < limit else ceil(nbytes / target)


def possible_candidates(files: PackedFiles, options: RewriteOptions, shared: SharedDeletes) -> Mask:
    """Marks the files that `candidates` may mark, while not all files are known yet."""
    mask: Mask = candidates(files, options, shared) | shared.any_of(files)
    return mask


def candidates(files: PackedFiles, options: RewriteOptions, shared: SharedDeletes) -> Mask:
    """Marks the files that are to be rewritten, if others of their group make that worth it."""
    if options.rewrite_all:
        return np.ones(len(files), np.bool_)
    sizes = files.entries.file_size_in_bytes
    mask: Mask = (sizes < options.min_file_size) | (sizes > options.max_file_size)
    mask |= _have_many_deletes(files, options, shared)
    return mask


def delete_count(deletes: AppliedDeletes) -> int:
    """How many delete files apply to a data file."""
    return len(deletes.position_deletes) + len(deletes.equality_deletes)


def _have_many_deletes(files: PackedFiles, options: RewriteOptions, shared: SharedDeletes) -> Mask:
    rows = files.entries.record_count
    own = np.minimum(files.by_deletes(_deleted_rows), rows) / np.maximum(rows, 1)
    deleted = np.minimum(own + shared.shares(files), 1)
    mask: Mask = files.by_deletes(delete_count) >= options.delete_file_threshold
    mask |= (rows > 0) & (deleted >= options.delete_ratio_threshold)
    return mask


def _deleted_rows(deletes: AppliedDeletes) -> int:
    return sum(
        entry.data_file.record_count
        for entry in deletes.position_deletes
        if only_data_path(entry.data_file) is not None
    )


def _by_partition(files: PackedFiles, output_spec_id: int) -> Iterator[Int64s]:
    """The numbers of the files of each partition, in the order of their first files."""
    entries = files.entries
    same_spec = entries.spec_ids == output_spec_id
    partitions = np.where(same_spec, entries.partition_numbers(), -1)
    _, first, at, counts = np.unique(
        partitions, return_index=True, return_inverse=True, return_counts=True
    )
    rows = np.split(np.argsort(at, kind="stable"), np.cumsum(counts)[:-1])
    for number in np.argsort(first):
        yield rows[number]


def _packed(files: PackedFiles, options: RewriteOptions) -> Iterator[PackedFiles]:
    start = size = 0
    for at, added in enumerate(files.entries.file_size_in_bytes.tolist()):
        is_full = size + added > options.max_group_size or at - start >= options.max_group_files
        if at > start and is_full:
            yield files.take(np.arange(start, at))
            start, size = at, 0
        size += added
    if len(files) > start:
        yield files.take(np.arange(start, len(files)))


def _is_worth_it(group: PackedFiles, options: RewriteOptions, shared: SharedDeletes) -> bool:
    size = group.nbytes
    return (
        options.rewrite_all
        or (len(group) > 1 and len(group) >= options.min_input_files)
        or (len(group) > 1 and size > options.target_file_size)
        or size > options.max_file_size
        or bool(_have_many_deletes(group, options, shared).any())
    )


def _in_order(groups: list[FileGroup], order: JobOrder) -> list[FileGroup]:
    def key(group: FileGroup) -> Any:
        by_bytes = order in (JobOrder.BYTES_ASC, JobOrder.BYTES_DESC)
        return group.nbytes if by_bytes else len(group.files)

    if order is JobOrder.NONE:
        return groups
    descending = order in (JobOrder.BYTES_DESC, JobOrder.FILES_DESC)
    return sorted(groups, key=key, reverse=descending)


def _limited(groups: Iterable[FileGroup], options: RewriteOptions) -> Iterator[FileGroup]:
    """The first groups, with at most as many files as the options allow; the last may be cut."""
    left = options.max_files
    for group in groups:
        files = group.files.take(np.arange(min(left, len(group.files))))
        left -= len(files)
        if len(files) == len(group.files):
            yield group
        elif len(files) > 1 or (files and _is_worth_it(files, options, group.shared)):
            yield replace(group, files=files, split_size=split_size(files.nbytes, options))
