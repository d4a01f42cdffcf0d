"""Parses the options of `rewrite_data_files`, which have Java Iceberg's names."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf, nan
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import (
    boolean,
    not_negative,
    one_of,
    options_of,
    parse,
    positive,
)
from icebergds.spec.table_properties import TARGET_FILE_SIZE_BYTES
from icebergds.suggestions import did_you_mean
from icebergds.write.rows.curve_keys import CurveName

_MIN_SHARE, _MAX_SHARE = 0.75, 1.8
_KNOWN = (
    "target-file-size-bytes",
    "min-file-size-bytes",
    "max-file-size-bytes",
    "min-input-files",
    "rewrite-all",
    "max-file-group-size-bytes",
    "max-file-group-input-files",
    "delete-file-threshold",
    "delete-ratio-threshold",
    "output-spec-id",
    "use-starting-sequence-number",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "partial-progress.max-failed-commits",
    "max-concurrent-file-group-rewrites",
    "rewrite-job-order",
    "max-files-to-rewrite",
    "remove-dangling-deletes",
    "compression-factor",
    "shuffle-partitions-per-file",
)


class JobOrder(StrEnum):
    """Which groups of files are rewritten first."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Which data files are rewritten, and how; sizes are in bytes.

    Attributes:
        target_file_size: the size of new files.
        min_file_size, max_file_size: smaller and larger files are rewritten.
        min_input_files: so many files of a group are rewritten even if they are smaller than one
            new file.
        rewrite_all: rewrite all files.
        max_group_size, max_group_files: limits of a group, which is rewritten and committed whole.
        delete_file_threshold: files with so many delete files are rewritten.
        delete_ratio_threshold: files of which this share of rows is deleted are rewritten.
        output_spec_id: the partition spec of new files; the table's default spec if None.
        use_starting_sequence_number: new files keep the sequence number of the snapshot that was
            read, so that concurrent equality deletes apply to them.
        partial_progress: commit groups as they are done, and go on if one fails.
        max_commits, max_failed_commits: limits of partial progress.
        max_concurrent_groups: how many groups are rewritten at the same time.
        max_files: how many files are rewritten at most.
        remove_dangling_deletes: afterwards, in a commit of its own.
        compression_factor: size of the new files of a sort by the size of the old ones.
        shuffle_partitions_per_file: into how many ranges a sort splits the rows of a new file, at
            least.
    """

    target_file_size: int
    min_file_size: int
    max_file_size: int
    min_input_files: int
    rewrite_all: bool
    max_group_size: int
    max_group_files: int
    delete_file_threshold: int
    delete_ratio_threshold: float
    output_spec_id: int | None
    use_starting_sequence_number: bool
    partial_progress: bool
    max_commits: int
    max_failed_commits: int
    max_concurrent_groups: int
    job_order: JobOrder
    max_files: int
    remove_dangling_deletes: bool
    compression_factor: float
    shuffle_partitions_per_file: int

    @classmethod
    def of(cls, options: Mapping[str, str], properties: Mapping[str, str]) -> RewriteOptions:
        """Parses options.

        Args:
            options: as text by name, in any case.
            properties: the properties of the table.

        Raises:
            InvalidOptionError: a name is unknown, a value is malformed, or two contradict.
        """
        given = options_of("rewrite_data_files", options, _KNOWN)
        target = parse(
            given, "target-file-size-bytes", positive, TARGET_FILE_SIZE_BYTES.of(properties)
        )
        max_commits = parse(given, "partial-progress.max-commits", positive, 10)
        found = cls(
            target_file_size=target,
            min_file_size=parse(
                given, "min-file-size-bytes", not_negative, int(target * _MIN_SHARE)
            ),
            max_file_size=parse(given, "max-file-size-bytes", positive, int(target * _MAX_SHARE)),
            min_input_files=parse(given, "min-input-files", positive, 5),
            rewrite_all=parse(given, "rewrite-all", boolean, False),
            max_group_size=parse(given, "max-file-group-size-bytes", positive, 100 << 30),
            max_group_files=parse(given, "max-file-group-input-files", positive, sys.maxsize),
            delete_file_threshold=parse(given, "delete-file-threshold", not_negative, 2**31 - 1),
            delete_ratio_threshold=parse(given, "delete-ratio-threshold", _ratio, 0.3),
            output_spec_id=parse(given, "output-spec-id", not_negative, None),
            use_starting_sequence_number=parse(
                given, "use-starting-sequence-number", boolean, True
            ),
            partial_progress=parse(given, "partial-progress.enabled", boolean, False),
            max_commits=max_commits,
            max_failed_commits=parse(
                given, "partial-progress.max-failed-commits", not_negative, max_commits
            ),
            max_concurrent_groups=parse(given, "max-concurrent-file-group-rewrites", positive, 5),
            job_order=JobOrder(parse(given, "rewrite-job-order", one_of(*JobOrder), "none")),
            max_files=parse(given, "max-files-to-rewrite", positive, sys.maxsize),
            remove_dangling_deletes=parse(given, "remove-dangling-deletes", boolean, False),
            compression_factor=parse(given, "compression-factor", _above_zero, 1.0),
            shuffle_partitions_per_file=parse(given, "shuffle-partitions-per-file", positive, 1),
        )
        found._refuse_contradictions()
        return found

    @property
    def max_new_file_size(self) -> int:
        """The size at which a new file ends: above the target, so last rows need no extra file."""
        return self.target_file_size + (self.max_file_size - self.target_file_size) // 2

    def _refuse_contradictions(self) -> None:
        if not self.min_file_size < self.target_file_size < self.max_file_size:
            raise InvalidOptionError(
                f"option 'target-file-size-bytes' = {self.target_file_size}: expected more than "
                f"'min-file-size-bytes' ({self.min_file_size}) and less than "
                f"'max-file-size-bytes' ({self.max_file_size})"
            )


def _ratio(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 1:
        raise ValueError("expected a number above 0, at most 1")
    return value


def _above_zero(text: str) -> float:
    value = _number(text)
    if not 0 < value < inf:
        raise ValueError("expected a number above 0")
    return value


def _number(text: str) -> float:
    """A number; NaN if the text is not one."""
    try:
        return float(text)
    except ValueError:
        return nan


BINPACK = "binpack"
SORT = "sort"
CURVES: tuple[CurveName, ...] = ("zorder", "hilbert")
_STRATEGIES = (BINPACK, SORT, *CURVES)

# Matches most conditions and no name of a strategy.
_OF_CONDITIONS = re.compile(r"[<>=!]|\s(in|is|not|like|between)\b", re.IGNORECASE)


def check_strategy(strategy: Any) -> None:
    """Checks the name of a strategy.

    Raises:
        InvalidOptionError: there is no such strategy; the error names the nearest one.
    """
    if strategy in _STRATEGIES:
        return
    if isinstance(strategy, str) and _OF_CONDITIONS.search(strategy):
        hint = f"; to rewrite only files that match a condition, give it as where={strategy!r}"
    else:
        near = did_you_mean(str(strategy), _STRATEGIES, shown=repr)
        hint = f"; {near}" if near else ""
    raise InvalidOptionError(
        f"strategy = {strategy!r}: expected one of {', '.join(map(repr, _STRATEGIES))}{hint}"
    )
