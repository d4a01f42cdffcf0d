"""Models snapshots, references to them and the logs of table metadata (spec: Snapshots).

`unknown` keeps JSON members that the spec does not define, so that they are written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from icebergds.display import counted, html_result, html_table, printable, text_table, time_text
from icebergds.spec.read_only import ReadOnlyDict, set_read_only

MAIN_BRANCH = "main"

OWN_OPERATION = "icebergds.operation"
"""The summary entry of a commit whose `operation` does not say all of what it did."""

CONVERT_EQUALITY_DELETES = "convert-equality-deletes"
"""The own operation of a commit that replaced equality deletes with position deletes."""


class RefType(StrEnum):
    """The type of a reference: a branch moves with commits, a tag does not."""

    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True, weakref_slot=True)
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
    summary: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_read_only(self, "summary")

    @property
    def operation(self) -> str | None:
        """What the commit did: `append`, `replace`, `overwrite`, `delete`, or a future operation.

        None without a summary. If the summary lacks it, `overwrite`, which promises the least.
        """
        return self.summary.get("operation", "overwrite" if self.summary else None)

    @property
    def may_change_rows(self) -> bool:
        """Whether the commit may have changed rows, and not only how they are stored."""
        is_conversion = self.summary.get(OWN_OPERATION) == CONVERT_EQUALITY_DELETES
        return self.operation != "replace" and not is_conversion

    def __repr__(self) -> str:
        return (
            f"Snapshot({self.snapshot_id}, {printable(self.operation or 'no operation', 20)}, "
            f"{time_text(self.timestamp_ms)}, timestamp_ms={self.timestamp_ms})"
        )

    def _repr_html_(self) -> str:
        parent = self.parent_snapshot_id
        rows = [
            ("committed", time_text(self.timestamp_ms)),
            ("timestamp_ms", str(self.timestamp_ms)),
            ("sequence number", str(self.sequence_number)),
            ("parent", "none" if parent is None else str(parent)),
            ("schema", "not known" if self.schema_id is None else str(self.schema_id)),
            ("manifest list", self.manifest_list or "none"),
            *self.summary.items(),
        ]
        return html_table(f"Snapshot {self.snapshot_id}", (), rows, "property")


class Snapshots(tuple[Snapshot, ...]):
    """Snapshots of a table, which show as a table of text or HTML."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = self[-_MOST_SNAPSHOTS:]
        lines = [counted(len(self), "snapshot")]
        if older := len(self) - len(shown):
            lines.append(f"… {counted(older, 'earlier snapshot')}")
        if shown:
            lines.append(text_table(_HEADER, map(_row, shown), right=(0, 2, 4, 5, 6)))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = counted(len(self), "snapshot")
        # The newest are the last, and the first that one looks for.
        return html_table(title, _HEADER, [_row(s) for s in reversed(self)], "snapshot")


_MOST_SNAPSHOTS = 10
_HEADER = (
    "snapshot_id",
    "committed (UTC)",
    "timestamp_ms",
    "operation",
    "added",
    "deleted",
    "rows",
)


def _row(snapshot: Snapshot) -> tuple[str, ...]:
    summary = snapshot.summary
    return (
        str(snapshot.snapshot_id),
        time_text(snapshot.timestamp_ms),
        str(snapshot.timestamp_ms),
        printable(snapshot.operation or "", 12),
        *(_number(summary.get(f"{name}-records", "")) for name in ("added", "deleted", "total")),
    )


def _number(text: str) -> str:
    return f"{int(text):,}" if text.isascii() and text.isdigit() and len(text) < 20 else ""


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or tag. Ages are in milliseconds; None means the table's default."""

    snapshot_id: int
    ref_type: RefType
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __repr__(self) -> str:
        limits = "".join(
            f", {name}={value}"
            for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
            if (value := getattr(self, name)) is not None
        )
        return f"SnapshotRef({self.ref_type}, snapshot_id={self.snapshot_id}{limits})"

    def _repr_html_(self) -> str:
        return html_result("Reference", self)


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """When a snapshot became current, in milliseconds since the epoch."""

    timestamp_ms: int
    snapshot_id: int
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __repr__(self) -> str:
        return (
            f"SnapshotLogEntry({time_text(self.timestamp_ms)}, timestamp_ms={self.timestamp_ms}, "
            f"snapshot_id={self.snapshot_id})"
        )


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A previous metadata file and when it was written, in milliseconds since the epoch."""

    timestamp_ms: int
    metadata_file: str
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __repr__(self) -> str:
        return (
            f"MetadataLogEntry({time_text(self.timestamp_ms)}, timestamp_ms={self.timestamp_ms}, "
            f"metadata_file={self.metadata_file!r})"
        )
