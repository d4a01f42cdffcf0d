"""Models snapshots, references to them and the logs of table metadata (spec: Snapshots).

`unknown` keeps JSON members that the spec does not define, so that they are written back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
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

CONVERSION_PROGRESS = "icebergds.converted-so-far"
"""The summary entry of such a commit that says what it has done of a conversion in parts."""


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


SNAPSHOT_HEADER = (
    "snapshot_id",
    "committed (UTC)",
    "timestamp_ms",
    "operation",
    "added",
    "deleted",
    "rows",
)
"""The columns of `Snapshots.rows`."""

SNAPSHOT_NUMBERS = (0, 2, 4, 5, 6)
"""The places of those that are numbers."""


class Snapshots(tuple[Snapshot, ...]):
    """Snapshots of a table, which show as a table of text or HTML."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = self[-_MOST_SNAPSHOTS:]
        lines = [counted(len(self), "snapshot")]
        if older := len(self) - len(shown):
            lines.append(f"… {counted(older, 'earlier snapshot')}")
        if shown:
            lines.append(text_table(SNAPSHOT_HEADER, self.rows(shown), SNAPSHOT_NUMBERS))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = counted(len(self), "snapshot")
        # The newest are the last, and the first that one looks for.
        return html_table(title, SNAPSHOT_HEADER, self.rows(reversed(self)), "snapshot")

    def rows(self, shown: Iterable[Snapshot]) -> list[tuple[str, ...]]:
        """What people see of some of these snapshots, below `SNAPSHOT_HEADER`."""
        counted_exactly = _with_vectors_only(self)
        return [_row(snapshot, counted_exactly) for snapshot in shown]


_MOST_SNAPSHOTS = 10


def _row(snapshot: Snapshot, vectors_only: Set[int]) -> tuple[str, ...]:
    return (
        str(snapshot.snapshot_id),
        time_text(snapshot.timestamp_ms),
        str(snapshot.timestamp_ms),
        printable(snapshot.operation or "", 12),
        _number(summary_count(snapshot, "added-records")),
        _deleted_rows(snapshot, vectors_only),
        _live_rows(snapshot, vectors_only),
    )


def _live_rows(snapshot: Snapshot, vectors_only: Set[int]) -> str:
    """The rows that are not deleted; the most that there can be, if the summary tells no more."""
    in_files = summary_count(snapshot, "total-records")
    if in_files is None:
        return ""
    is_exact = snapshot.snapshot_id in vectors_only
    return f"{in_files - (_positions(snapshot) or 0):,}" if is_exact else f"≤ {in_files:,}"


def _deleted_rows(snapshot: Snapshot, vectors_only: Set[int]) -> str:
    """The rows that a commit deleted, those that it wrote again included, or the most there are."""
    in_files = summary_count(snapshot, "deleted-records") or 0
    added = summary_count(snapshot, "added-position-deletes") or 0
    parent = snapshot.parent_snapshot_id
    if snapshot.snapshot_id in vectors_only and (parent is None or parent in vectors_only):
        removed = summary_count(snapshot, "removed-position-deletes") or 0
        return _number(in_files + added - removed or None)
    if not in_files and (own := _own_changes(snapshot)) is not None:
        return _number(own)
    is_known = not summary_count(snapshot, "added-equality-deletes") and in_files + added
    return f"≤ {in_files + added:,}" if is_known else ""


def _own_changes(snapshot: Snapshot) -> int | None:
    """The rows that a statement of ours deleted or wrote again; None if it was none."""
    deleted = summary_count(snapshot, "icebergds.rows-deleted")
    updated = summary_count(snapshot, "icebergds.rows-updated")
    return None if deleted is None or updated is None else deleted + updated


def _with_vectors_only(snapshots: Iterable[Snapshot]) -> set[int]:
    """The ids of the snapshots all of whose deletes are known to be deletion vectors.

    These name each row once, and go with their data files. Position delete files may name a row
    twice, or rows of files that are gone; equality deletes may delete any number of rows.
    """
    found: set[int] = set()
    # A parent has a lower sequence number; those of version 1 have no deletes.
    for snapshot in sorted(snapshots, key=lambda each: each.sequence_number):
        has_none = summary_count(snapshot, "total-delete-files") == 0
        is_added = bool(summary_count(snapshot, "added-position-deletes"))
        are_vectors = not is_added or bool(summary_count(snapshot, "added-dvs"))
        if has_none or (
            (snapshot.parent_snapshot_id is None or snapshot.parent_snapshot_id in found)
            and are_vectors
            and not summary_count(snapshot, "added-position-delete-files")
            and summary_count(snapshot, "total-equality-deletes") == 0
            and _positions(snapshot) is not None
        ):
            found.add(snapshot.snapshot_id)
    return found


def _positions(snapshot: Snapshot) -> int | None:
    return summary_count(snapshot, "total-position-deletes")


def summary_count(snapshot: Snapshot, name: str) -> int | None:
    """A number in a snapshot's summary; None if there is none, or it is malformed."""
    text = snapshot.summary.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


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
