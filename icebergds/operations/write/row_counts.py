"""Counts the rows that a change inserted, updated and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icebergds.commit.snapshot_commit import Committed
from icebergds.display import html_table

KEYS_DELETED_BY = "icebergds.keys-deleted-by"
"""The entry of a snapshot's summary that says how a change by key deletes rows, and why."""

COUNTS_KEYS = "icebergds.counts-keys"
"""The entry of a snapshot's summary if a change by key found rows, but counts keys, since deletes
of others may have deleted some of the rows before."""

_PREFIX = "icebergds.rows-"
_MERGE_PREFIX = "spark.merge-into.num-target-rows-"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows of a table a change affected.

    Attributes:
        inserted: new rows; in a change by key with equality deletes, those of `+I` alone.
        updated: rows with new values.
        deleted: removed rows; an upper bound if whole files were removed (`Table.delete` and
            `Table.overwrite`), of which rows may have been deleted before.
        is_exact: whether `deleted` is known to be the number, not only an upper bound.
        upserted: rows written by key; it is not known which of them replaced a row.
        snapshot_id: the snapshot that the change committed; None if there was nothing to change.
            Two results with the same counts are equal.
        keys_deleted_by: of a change by key, how it deleted older rows and why: `positions: ...` or
            `equality-deletes: ...`, as the snapshot's summary says it; else None.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    upserted: int = 0
    snapshot_id: int | None = field(default=None, compare=False)
    is_exact: bool = field(default=True, compare=False)
    keys_deleted_by: str | None = field(default=None, compare=False)

    def _repr_html_(self) -> str:
        names = ("inserted", "updated", "deleted", "upserted")
        counts = [f"{getattr(self, name):,}" for name in names]
        snapshot = "none" if self.snapshot_id is None else str(self.snapshot_id)
        return html_table("Changed rows", (*names, "snapshot_id"), [(*counts, snapshot)])


def summary_of_counts(counts: Mapping[str, int], statement: str | None) -> dict[str, str]:
    """Counts as snapshot summary entries; for a merge also under Java Iceberg's names."""
    prefixes = (_PREFIX, _MERGE_PREFIX) if statement == "merge" else (_PREFIX,)
    return {
        f"{prefix}{name}": str(number) for prefix in prefixes for name, number in counts.items()
    }


def counts_of(committed: Committed | None) -> RowCounts:
    """Reads the counts of a change from its snapshot's summary; missing ones are 0."""
    if committed is None:
        return RowCounts()
    summary = committed.snapshot.summary

    def count(name: str) -> int:
        return int(summary.get(f"{_PREFIX}{name}", 0))

    return RowCounts(
        count("inserted"),
        count("updated"),
        count("deleted"),
        count("upserted"),
        committed.snapshot.snapshot_id,
        # A deleted key may match any number of rows.
        is_exact="added-equality-deletes" not in summary and COUNTS_KEYS not in summary,
        keys_deleted_by=summary.get(KEYS_DELETED_BY),
    )


def counts_of_write(committed: Committed | None) -> RowCounts:
    """The counts of an append or overwrite, whose summary may count only its files."""
    counts = counts_of(committed)
    if committed is None or counts != RowCounts():
        return counts
    summary = committed.snapshot.summary
    deleted = int(summary.get("deleted-records", 0))
    return replace(
        counts,
        inserted=int(summary.get("added-records", 0)),
        deleted=deleted,
        is_exact=not deleted or _has_no_deletes(summary),
    )


def _has_no_deletes(summary: Mapping[str, str]) -> bool:
    """Whether a commit removed no delete files, and there are none after it."""
    return "removed-delete-files" not in summary and summary.get("total-delete-files") == "0"
