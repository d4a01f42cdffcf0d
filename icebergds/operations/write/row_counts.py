"""How many rows a change inserted, updated and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.commit.snapshot_commit import Committed

_PREFIX = "icebergds.rows-"
_MERGE_PREFIX = "spark.merge-into.num-target-rows-"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What a change did to the rows of a table.

    Attributes:
        inserted: rows that were added.
        updated: rows that were replaced by others.
        deleted: rows that are gone.
        upserted: rows that were written by key, of which nobody knows whether they replaced one.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    upserted: int = 0


def summary_of_counts(counts: Mapping[str, int], statement: str | None) -> dict[str, str]:
    """Counts as entries of a snapshot's summary, for a merge by the names that Java has, too."""
    prefixes = (_PREFIX, _MERGE_PREFIX) if statement == "merge" else (_PREFIX,)
    return {
        f"{prefix}{name}": str(number) for prefix in prefixes for name, number in counts.items()
    }


def counts_of(committed: Committed | None) -> RowCounts:
    """The counts of a change, by its snapshot's summary; 0 for those that it lacks."""
    summary = {} if committed is None else committed.snapshot.summary
    names = ("inserted", "updated", "deleted", "upserted")
    return RowCounts(*(int(summary.get(f"{_PREFIX}{name}", 0)) for name in names))


def counts_of_deleted_files(committed: Committed | None) -> RowCounts:
    """The counts of a delete that removed whole files."""
    summary = {} if committed is None else committed.snapshot.summary
    return RowCounts(deleted=int(summary.get("deleted-records", 0)))
