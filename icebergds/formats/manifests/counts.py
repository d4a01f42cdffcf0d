"""Compares a manifest with its entry in the manifest list, and the list with its snapshot."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from icebergds.formats.manifests.inheritance import Int64s
from icebergds.formats.wrong_counts import WrongCounts, differences
from icebergds.spec.manifest import ManifestContent, ManifestEntryStatus, ManifestFile
from icebergds.spec.snapshot import Snapshot

_LOG = logging.getLogger(__name__)
_ADDED = {"total-data-files": "added-data-files", "total-delete-files": "added-delete-files"}


def check_manifest(
    manifest: ManifestFile,
    length: int,
    status: Int64s,
    record_count: Int64s,
    wrong_counts: WrongCounts,
) -> None:
    """Compares a manifest with what the manifest list says of it.

    Counts of deleted files are not compared: several writers get them wrong, and no row depends on
    them. The length is compared only if the list has no counts: Java's `rewrite_table_path` keeps
    the lengths of manifests that it rewrites.

    Args:
        length: of the manifest, in bytes.
        status, record_count: of all its entries.

    Raises:
        CorruptFileError: they differ, and `wrong_counts` is `FAIL`.
    """
    pairs: list[tuple[int, int, str]] = []
    for kind, files, rows in (
        (ManifestEntryStatus.ADDED, manifest.added_files_count, manifest.added_rows_count),
        (ManifestEntryStatus.EXISTING, manifest.existing_files_count, manifest.existing_rows_count),
    ):
        of_kind = status == kind.value
        if files is not None:
            pairs.append((files, int(of_kind.sum()), f"{kind.name.lower()} file"))
        if rows is not None:
            pairs.append((rows, int(record_count[of_kind].sum()), f"{kind.name.lower()} row"))
    differ = any(said != found for said, found, _ in pairs)
    has_counts = None not in (manifest.added_files_count, manifest.existing_files_count)
    if differ or (not has_counts and manifest.manifest_length != length):
        pairs.append((manifest.manifest_length, length, "byte"))
        wrong_counts.report(
            f"manifest {manifest.manifest_path!r}: the manifest list says {differences(pairs)}"
        )


def check_totals(
    snapshot: Snapshot, manifests: Sequence[ManifestFile], wrong_counts: WrongCounts
) -> WrongCounts:
    """Compares a manifest list with the totals in the summary of its snapshot.

    Totals are informative, and some writers get them wrong. So a difference is only a warning,
    unless the list has none of the files that the snapshot itself added, or has a manifest twice.

    Returns:
        What to do about manifests that differ from the list: only a warning if the totals
        contradict the list, which may then be what is wrong.

    Raises:
        CorruptFileError: the list lacks all files or repeats some, and `wrong_counts` is `FAIL`.
    """
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    listed = {
        "total-data-files": _live_files(data),
        "total-records": _live_rows(data),
        "total-delete-files": _live_files(deletes),
    }
    differing = {
        name: (total, number)
        for name, number in listed.items()
        if number is not None and (total := _number(snapshot, name)) is not None and number != total
    }
    if not differing:
        return wrong_counts
    said = ", ".join(f"{name} {total:,}" for name, (total, _) in differing.items())
    found = ", ".join(f"{number:,}" for _, number in differing.values())
    problem = (
        f"manifest list {snapshot.manifest_list!r}: the summary of snapshot "
        f"{snapshot.snapshot_id} says {said}; it has {found}"
    )
    if repeated := _repeated(manifests):
        wrong_counts.report(f"{problem}, for it lists {repeated!r} twice")
    elif any(_lacks_own_files(snapshot, name, number) for name, (_, number) in differing.items()):
        wrong_counts.report(problem)
    else:
        _LOG.warning("%s; one of the two is wrong", problem)
    return WrongCounts.WARN


def _repeated(manifests: Iterable[ManifestFile]) -> str | None:
    """The path of a manifest that is listed several times."""
    paths = Counter(manifest.manifest_path for manifest in manifests)
    return next((path for path, times in paths.items() if times > 1), None)


def _lacks_own_files(snapshot: Snapshot, total: str, number: int) -> bool:
    """Whether a list has none of the files that its own snapshot added."""
    added = _ADDED.get(total)
    return number == 0 and added is not None and bool(_number(snapshot, added))


def _live_files(manifests: Iterable[ManifestFile]) -> int | None:
    """The number of live files in manifests; None if a count is missing."""
    return _sum((m.added_files_count, m.existing_files_count) for m in manifests)


def _live_rows(manifests: Iterable[ManifestFile]) -> int | None:
    return _sum((m.added_rows_count, m.existing_rows_count) for m in manifests)


def _sum(counts: Iterable[tuple[int | None, int | None]]) -> int | None:
    total = 0
    for added, existing in counts:
        if added is None or existing is None:
            return None
        total += added + existing
    return total


def _number(snapshot: Snapshot, name: str) -> int | None:
    text = snapshot.summary.get(name, "")
    return int(text) if text.isdecimal() else None
