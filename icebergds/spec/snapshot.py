"""Models snapshots, references to them and the logs of table metadata (spec: Snapshots).

`unknown` keeps JSON members that the spec does not define, so that they are written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MAIN_BRANCH = "main"


class RefType(StrEnum):
    """The type of a reference: a branch moves with commits, a tag does not."""

    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a table at one time.

    `timestamp_ms` is in milliseconds since the epoch. Old version 1 snapshots list their
    `manifests` and have no `manifest_list`. `schema_id`, `first_row_id` and `added_rows` are None
    if the writer did not record them.
    """

    snapshot_id: int
    timestamp_ms: int
    sequence_number: int = 0
    parent_snapshot_id: int | None = None
    manifest_list: str | None = None
    manifests: tuple[str, ...] = ()
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def operation(self) -> str | None:
        """What the commit did: `append`, `replace`, `overwrite`, `delete`, or a future operation.

        None without a summary. If the summary lacks it, `overwrite`, which promises the least.
        """
        return self.summary.get("operation", "overwrite" if self.summary else None)


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or tag. Ages are in milliseconds; None means the table's default."""

    snapshot_id: int
    ref_type: RefType
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """When a snapshot became current, in milliseconds since the epoch."""

    timestamp_ms: int
    snapshot_id: int
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A previous metadata file and when it was written, in milliseconds since the epoch."""

    timestamp_ms: int
    metadata_file: str
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
