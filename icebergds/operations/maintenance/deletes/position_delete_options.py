"""Parses the options of rewriting position deletes; names and defaults are Java Iceberg's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import (
    boolean,
    not_negative,
    one_of,
    options_of,
    parse,
    positive,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import DELETE_TARGET_FILE_SIZE_BYTES

_TARGET_SIZE = "target-file-size-bytes"
_MIN_SIZE = "min-file-size-bytes"
_MAX_SIZE = "max-file-size-bytes"
_MIN_INPUT_FILES = "min-input-files"
_REWRITE_ALL = "rewrite-all"
_MAX_GROUP_SIZE = "max-file-group-size-bytes"
_MAX_GROUP_FILES = "max-file-group-input-files"
_MAX_CONCURRENT = "max-concurrent-file-group-rewrites"
_PARTIAL_PROGRESS = "partial-progress.enabled"
_MAX_COMMITS = "partial-progress.max-commits"
_JOB_ORDER = "rewrite-job-order"
OPTIONS = (
    _TARGET_SIZE,
    _MIN_SIZE,
    _MAX_SIZE,
    _MIN_INPUT_FILES,
    _REWRITE_ALL,
    _MAX_GROUP_SIZE,
    _MAX_GROUP_FILES,
    _MAX_CONCURRENT,
    _PARTIAL_PROGRESS,
    _MAX_COMMITS,
    _JOB_ORDER,
)

_MIN_SIZE_RATIO = 0.75
_MAX_SIZE_RATIO = 1.8
_UNLIMITED = 2**63 - 1
_ORDERS = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")


@dataclass(frozen=True, slots=True)
class PositionDeleteOptions:
    """Which position delete files are rewritten, and how; sizes are in bytes.

    Attributes:
        target_size: the size of new files.
        min_size, max_size: files of other sizes are rewritten.
        min_input_files: a group of as many files is rewritten, whatever its size.
        rewrite_all: rewrite all files.
        max_group_size, max_group_files: limits of the files that are rewritten as a unit.
        max_concurrent: how many groups are rewritten at the same time; None for as many as the
            cluster has room for.
        max_commits: in how many commits groups are committed; None for one commit of all groups,
            which fails if a group does.
        job_order: which groups come first.
    """

    target_size: int
    min_size: int
    max_size: int
    min_input_files: int
    rewrite_all: bool
    max_group_size: int
    max_group_files: int
    max_concurrent: int | None
    max_commits: int | None
    job_order: str

    @property
    def closed_at(self) -> int:
        """The size at which a new file is closed.

        It is above the target size, so that a task that writes a little more than expected does
        not leave a tiny second file.
        """
        return self.target_size + (self.max_size - self.target_size) // 2


def parse_position_delete_options(
    given: Mapping[str, str], metadata: TableMetadata
) -> PositionDeleteOptions:
    """Parses the options; those that are not given have defaults by the table's properties.

    Args:
        given: text by name; the case of names does not matter.

    Raises:
        InvalidOptionError: an option is unknown or malformed, or options contradict each other.
    """
    given = options_of("rewrite_position_delete_files", given, OPTIONS)
    target = parse(
        given, _TARGET_SIZE, positive, DELETE_TARGET_FILE_SIZE_BYTES.of(metadata.properties)
    )
    least = parse(given, _MIN_SIZE, not_negative, int(target * _MIN_SIZE_RATIO))
    most = parse(given, _MAX_SIZE, positive, int(target * _MAX_SIZE_RATIO))
    if not least < target < most:
        raise InvalidOptionError(
            f"{_MIN_SIZE!r} ({least}) must be below {_TARGET_SIZE!r} ({target}), and {_MAX_SIZE!r} "
            f"({most}) above it; otherwise new files would be rewritten again"
        )
    partial = parse(given, _PARTIAL_PROGRESS, boolean, False)
    max_commits = parse(given, _MAX_COMMITS, positive, 10)
    return PositionDeleteOptions(
        target_size=target,
        min_size=least,
        max_size=most,
        min_input_files=parse(given, _MIN_INPUT_FILES, positive, 5),
        rewrite_all=parse(given, _REWRITE_ALL, boolean, False),
        max_group_size=parse(given, _MAX_GROUP_SIZE, positive, 100 * 1024**3),
        max_group_files=parse(given, _MAX_GROUP_FILES, positive, _UNLIMITED),
        max_concurrent=parse(given, _MAX_CONCURRENT, positive, None),
        max_commits=max_commits if partial else None,
        job_order=parse(given, _JOB_ORDER, one_of(*_ORDERS), "none"),
    )
