"""Chooses the data files that `rewrite_data_files` rewrites, and groups them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.operations.maintenance.rewrite.options import JobOrder, RewriteOptions
from icebergds.scan.plan.files import PlannedFile
from icebergds.spec.partition_keys import PartitionKey, partition_of

# New files differ a little in size from the rows' share of the old ones.
_SPLIT_OVERHEAD = 5 * 1024
_EVENLY_LARGER = 1.1


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Data files of one partition that are rewritten, and committed, together.

    Attributes:
        output_spec_id: the partition spec of the new files.
        split_size: how many bytes a task reads, to write about one file.
    """

    files: tuple[PlannedFile, ...]
    output_spec_id: int
    split_size: int

    @property
    def nbytes(self) -> int:
        """The size of the files, in bytes."""
        return _nbytes(self.files)

    @property
    def keeps_order(self) -> bool:
        """Whether a task writes rows in the order in which it reads them.

        Rows of other partition specs may be of several partitions of the new one.
        """
        specs = {file.entry.data_file.spec_id for file in self.files}
        return specs == {self.output_spec_id}


def plan_groups(
    files: Iterable[PlannedFile], options: RewriteOptions, output_spec_id: int
) -> list[FileGroup]:
    """Groups the files that are worth a rewrite by their partition.

    Files of other partition specs than the output's form one group of partitions, since their rows
    may be of any partition of it. The oldest files of a group come first.
    """
    partitions: dict[PartitionKey | None, list[PlannedFile]] = {}
    candidates = [file for file in files if is_candidate(file, options)]
    candidates.sort(key=lambda file: file.entry.data_sequence_number)
    for file in candidates:
        data_file = file.entry.data_file
        same_spec = data_file.spec_id == output_spec_id
        partitions.setdefault(partition_of(data_file) if same_spec else None, []).append(file)
    groups = [
        FileGroup(tuple(group), output_spec_id, split_size(_nbytes(group), options))
        for partition in partitions.values()
        for group in _packed(partition, options)
        if _is_worth_it(group, options)
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


def is_candidate(file: PlannedFile, options: RewriteOptions) -> bool:
    """Whether a file is to be rewritten, if others of its group make that worth it."""
    return options.rewrite_all or _has_wrong_size(file, options) or _has_many_deletes(file, options)


def _has_wrong_size(file: PlannedFile, options: RewriteOptions) -> bool:
    size = file.entry.data_file.file_size_in_bytes
    return not options.min_file_size <= size <= options.max_file_size


def _has_many_deletes(file: PlannedFile, options: RewriteOptions) -> bool:
    positions, keys = file.deletes.position_deletes, file.deletes.equality_deletes
    if len(positions) + len(keys) >= options.delete_file_threshold:
        return True
    rows = file.entry.data_file.record_count
    # Those of other delete files may be of other data files.
    deleted = sum(
        entry.data_file.record_count
        for entry in positions
        if only_data_path(entry.data_file) is not None
    )
    return rows > 0 and min(deleted, rows) / rows >= options.delete_ratio_threshold


def _packed(files: Iterable[PlannedFile], options: RewriteOptions) -> Iterator[list[PlannedFile]]:
    group: list[PlannedFile] = []
    size = 0
    for file in files:
        added = file.entry.data_file.file_size_in_bytes
        is_full = size + added > options.max_group_size or len(group) >= options.max_group_files
        if group and is_full:
            yield group
            group, size = [], 0
        group.append(file)
        size += added
    if group:
        yield group


def _is_worth_it(group: Sequence[PlannedFile], options: RewriteOptions) -> bool:
    size = _nbytes(group)
    return (
        options.rewrite_all
        or (len(group) > 1 and len(group) >= options.min_input_files)
        or (len(group) > 1 and size > options.target_file_size)
        or size > options.max_file_size
        or any(_has_many_deletes(file, options) for file in group)
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
    """The first groups, with at most so many files as the options say; the last one may be cut."""
    left = options.max_files
    for group in groups:
        files = group.files[:left]
        left -= len(files)
        if len(files) == len(group.files):
            yield group
        elif len(files) > 1 or (files and _is_worth_it(files, options)):
            yield replace(group, files=files, split_size=split_size(_nbytes(files), options))


def _nbytes(files: Iterable[PlannedFile]) -> int:
    return sum(file.entry.data_file.file_size_in_bytes for file in files)
