"""Planned files of a stream's snapshots, kept between calls."""

from __future__ import annotations

from icebergds.operations.read.stream_files import SnapshotPart, StreamFiles
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import PlannedFile
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)

WHOLE: SnapshotPart = (1, True)
CHANGES: SnapshotPart = (1, False)
NEXT: SnapshotPart = (2, False)


def files(count: int) -> list[PlannedFile]:
    file = DataFile(FileContent.DATA, "/t/f.parquet", FileFormat.PARQUET, 0, (), 1, 1)
    entry = ManifestEntry(ManifestEntryStatus.ADDED, 1, 1, 1, file)
    return [PlannedFile(entry, AppliedDeletes()) for _ in range(count)]


class Plans:
    """Asks for the files of snapshots, and counts how often each is planned."""

    def __init__(self, known: StreamFiles) -> None:
        self.known = known
        self.made: list[SnapshotPart] = []

    def get(self, part: SnapshotPart, count: int = 1) -> list[PlannedFile]:
        def plan() -> list[PlannedFile]:
            self.made.append(part)
            return files(count)

        return self.known.get(part, plan)


def test_a_snapshot_is_planned_once() -> None:
    plans = Plans(StreamFiles())
    assert plans.get(WHOLE) is plans.get(WHOLE)
    assert plans.made == [WHOLE]


def test_all_files_of_a_snapshot_and_its_changes_are_planned_apart() -> None:
    plans = Plans(StreamFiles())
    assert len(plans.get(WHOLE, 2)) == 2
    assert len(plans.get(CHANGES, 1)) == 1
    assert plans.made == [WHOLE, CHANGES]


def test_a_snapshot_without_files_is_planned_once() -> None:
    plans = Plans(StreamFiles())
    assert plans.get(WHOLE, 0) == plans.get(WHOLE, 0) == []
    assert plans.made == [WHOLE]


def test_snapshots_beyond_the_limit_are_planned_each_time() -> None:
    plans = Plans(StreamFiles(max_files=2))
    for _ in range(2):
        assert len(plans.get(WHOLE, 2)) == 2
        assert len(plans.get(NEXT, 1)) == 1
    assert plans.made == [WHOLE, NEXT, NEXT]


def test_forgotten_snapshots_are_planned_again() -> None:
    plans = Plans(StreamFiles())
    plans.get(WHOLE)
    plans.get(NEXT)
    plans.known.keep_only([NEXT])
    plans.get(WHOLE)
    plans.get(NEXT)
    assert plans.made == [WHOLE, NEXT, WHOLE]


def test_forgotten_snapshots_make_room_for_others() -> None:
    plans = Plans(StreamFiles(max_files=2))
    plans.get(WHOLE, 2)
    plans.known.keep_only([NEXT])
    plans.get(NEXT, 2)
    plans.get(NEXT, 2)
    assert plans.made == [WHOLE, NEXT]
