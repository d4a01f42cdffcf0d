"""Builds snapshot summaries (spec: Appendix F, optional snapshot summary fields)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from icebergds.commit.base import CommitBase
from icebergds.spec.manifest import DataFile, FileContent, PartitionKey, partition_of
from icebergds.spec.partition import partition_path
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID, SUMMARY_PARTITION_LIMIT

_TOTALS = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def changes_summary(
    base: CommitBase, added: Iterable[DataFile], removed: Iterable[DataFile]
) -> dict[str, str]:
    """Summary entries for the files that a commit adds and removes; zeros are left out."""
    counts: Counter[str] = Counter()
    by_partition: dict[PartitionKey, tuple[DataFile, Counter[str]]] = {}
    for files, change in ((added, "added"), (removed, "removed")):
        for file in files:
            key = partition_of(file)
            _, of_partition = by_partition.setdefault(key, (file, Counter()))
            for name, number in _counts(file, change):
                counts[name] += number
                of_partition[name] += number
    summary = _texts(counts)
    summary["changed-partition-count"] = str(len(by_partition))
    properties = base.metadata.properties
    limit = SUMMARY_PARTITION_LIMIT.of(properties)
    # Summaries are in clear.
    is_encrypted = ENCRYPTION_KEY_ID.of(properties) is not None
    if by_partition and len(by_partition) <= limit and not is_encrypted:
        summary["partition-summaries-included"] = "true"
        for file, of_partition in by_partition.values():
            pairs = ",".join(f"{k}={v}" for k, v in _texts(of_partition).items())
            summary[f"partitions.{_path(base, file)}"] = pairs
    return summary


def complete_summary(
    operation: str,
    changes: Mapping[str, str],
    properties: Mapping[str, str],
    parent: Snapshot | None,
) -> dict[str, str]:
    """The whole summary of a snapshot that follows `parent`.

    A total that is missing in the parent's summary is left out, unless it is among the changes.
    """
    known = dict.fromkeys(_TOTALS, "0") if parent is None else parent.summary
    totals: dict[str, str] = {}
    for name, (plus, minus) in _TOTALS.items():
        before = known.get(name)
        if name in changes or before is None or not before.isdecimal():
            continue
        total = int(before) + int(changes.get(plus, 0)) - int(changes.get(minus, 0))
        if total >= 0:
            totals[name] = str(total)
    return {
        "engine-name": "icebergds",
        **properties,
        "operation": operation,
        **changes,
        **totals,
    }


def _counts(file: DataFile, change: str) -> Iterator[tuple[str, int]]:
    """What a file that is `added` or `removed` counts for."""
    yield f"{change}-files-size", file.stored_size
    match file.content:
        case FileContent.DATA:
            of_data = "added" if change == "added" else "deleted"
            yield f"{of_data}-data-files", 1
            yield f"{of_data}-records", file.record_count
        case FileContent.POSITION_DELETES:
            yield f"{change}-delete-files", 1
            kind = "dvs" if file.is_deletion_vector else "position-delete-files"
            yield f"{change}-{kind}", 1
            yield f"{change}-position-deletes", file.record_count
        case FileContent.EQUALITY_DELETES:
            yield f"{change}-delete-files", 1
            yield f"{change}-equality-delete-files", 1
            yield f"{change}-equality-deletes", file.record_count


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(number) for name, number in sorted(counts.items()) if number}


def _path(base: CommitBase, file: DataFile) -> str:
    metadata = base.metadata
    return partition_path(
        base.spec(file.spec_id), metadata.schema(), file.partition, metadata.schema_history
    )
