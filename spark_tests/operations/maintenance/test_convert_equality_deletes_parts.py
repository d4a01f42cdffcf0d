"""Conversions of equality deletes that go on in parts, since a run may only read so many bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from built.api_tables import new_table, rows as api_rows
from convert_tables import Meanwhile, RacingTable

from icebergds import MaintenancePolicy, Table, load_table
from icebergds.commit.conversion_progress import ConversionProgress, progress_of
from icebergds.errors import InvalidOptionError
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    ConvertedEqualityDeletes,
    ConvertedPart,
)
from icebergds.spec.manifest import FileContent
from icebergds.spec.snapshot import CONVERSION_PROGRESS, OWN_OPERATION, RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetSnapshotRef

_KEYS, _POSITIONS = FileContent.EQUALITY_DELETES, FileContent.POSITION_DELETES
_FILES = 6


@pytest.fixture(params=[2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> RacingTable:
    """Ten rows in each of six files; an equality delete has deleted one of each."""
    given = {"write.delete.granularity": "file"}
    found = RacingTable(tmp_path / "t", version=request.param, properties=given)
    for start in range(0, 10 * _FILES, 10):
        found.append(*((at, str(at)) for at in range(start, start + 10)))
    found.keyed("delete", [found.batch(*((start, None) for start in range(0, 10 * _FILES, 10)))])
    return found


def limit_of(table: RacingTable, files: int) -> int:
    """So many bytes that the keys of so many data files fit, and what deletes them."""
    deletes = sum(file.file_size_in_bytes for file in table.deletes(_KEYS))
    largest = max(file.file_size_in_bytes for file in table.data_files())
    return deletes * 2 + largest * files // len(table.schema.fields) + 10


def all_parts(table: RacingTable, max_bytes: int, most: int = 20) -> list[ConvertedPart]:
    """Converts until no equality delete is left; each part keeps the rows and the limit."""
    parts: list[ConvertedPart] = []
    rows = table.rows()
    while table.deletes(_KEYS):
        parts.append(table.convert_part(max_bytes))
        assert table.rows() == rows
        assert parts[-1].read_bytes <= max_bytes
        assert len(parts) <= most
    return parts


def compared_files(table: RacingTable, part: int) -> list[str]:
    """The data files that a part compares."""
    runner = Meanwhile(None)
    table.convert_part(part, runner)
    return [task.file_path for job in runner.jobs for group in job for task in group.tasks]


def test_a_conversion_goes_on_where_it_ended(table: RacingTable) -> None:
    before, files = table.rows(), {file.file_path for file in table.data_files()}
    compared = list[str]()
    while table.deletes(_KEYS):
        found = compared_files(table, limit_of(table, 2))
        assert 0 < len(found) < _FILES
        assert table.rows() == before
        compared += found
        assert len(table.deletes(_POSITIONS)) == len(compared)
    assert sorted(compared) == sorted(files)
    assert table.convert_part(1) == ConvertedPart(ConvertedEqualityDeletes(), 0, 0)


def test_a_limit_that_suffices_converts_all_at_once(table: RacingTable) -> None:
    (part,) = all_parts(table, limit_of(table, _FILES))
    assert part.done.converted_equality_delete_files_count == 1
    assert part.done.deleted_rows_count == _FILES
    assert part.left_bytes == 0
    assert CONVERSION_PROGRESS not in table.table.head.summary


def test_nothing_is_begun_that_exceeds_the_limit(table: RacingTable) -> None:
    before = table.table.head
    part = table.convert_part(10)
    assert (part.has_begun, part.read_bytes) == (False, 0)
    assert part.left_bytes > 10
    assert table.table.head == before


def test_a_conversion_without_limit_compares_the_rest_only(table: RacingTable) -> None:
    first = compared_files(table, limit_of(table, 2))
    runner = Meanwhile(None)
    done = table.convert(runner)
    rest = {task.file_path for job in runner.jobs for group in job for task in group.tasks}
    assert rest == {file.file_path for file in table.data_files()} - set(first)
    assert done.converted_equality_delete_files_count == 1
    assert len(table.rows()) == 9 * _FILES


def test_what_deletes_add_meanwhile_is_converted_afterwards(table: RacingTable) -> None:
    """New equality deletes do not make a conversion begin again."""
    (first,) = table.deletes(_KEYS)
    compared = list[str]()
    for number in range(20):
        if first not in table.deletes(_KEYS):
            break
        table.keyed("upsert", [table.batch((number, "new"), (1000 + number, "new"))])
        rows = table.rows()
        compared += compared_files(table, limit_of(table, 2))
        assert table.rows() == rows
    assert len(compared) == len(set(compared)) == _FILES
    assert table.deletes(_KEYS)
    all_parts(table, limit_of(table, 2))


def test_large_equality_deletes_are_converted_oldest_first(table: RacingTable) -> None:
    for number in range(1, 6):
        table.keyed("delete", [table.batch(*((at, None) for at in range(number, 60, 10)))])
    smallest = min(file.file_size_in_bytes for file in table.deletes(_KEYS))
    largest = max(file.file_size_in_bytes for file in table.data_files())
    parts = all_parts(table, smallest * 2 + largest * 2, most=40)
    counts = [part.done.converted_equality_delete_files_count for part in parts]
    assert sum(counts) == 6
    assert max(counts) < 6
    assert len(table.rows()) == 4 * _FILES


def test_deletes_that_no_file_needs_any_more_go_early(tmp_path: Path) -> None:
    """Those of the partitions whose files were compared."""
    given = {"write.upsert.mode": "equality-deletes"}
    table = new_table(tmp_path, partition_by="day", version=3, properties=given)
    for day in range(4):
        table.append(api_rows(*range(10), day=day))
    for day in range(4):
        table.delete_keys(api_rows(day, day=day), ["id", "day"])
    kept = _only_conversions(max_bytes=_share_of(table, 2))
    counts = []
    for _ in range(10):
        health = table.maintain(kept).after
        table = load_table(table.location())
        counts.append(health.deletes.equality_delete_files)
        assert table.scan().to_arrow().num_rows == 36
        if not counts[-1]:
            break
    assert counts[-1] == 0
    assert len(set(counts)) > 2


def _share_of(table: Table, files: int) -> int:
    advice = table.health().advice[0]
    return advice.read_bytes * files // 4


def _only_conversions(**more: Any) -> MaintenancePolicy:
    return MaintenancePolicy(
        rewrite_data_files=False,
        rewrite_position_delete_files=False,
        remove_dangling_deletes=False,
        rewrite_manifests=False,
        expire_snapshots=False,
        **more,
    )


def test_a_report_says_what_is_left(table: RacingTable) -> None:
    loaded = load_table(str(table.table.location))
    report = loaded.maintain(_only_conversions(max_bytes=limit_of(table, 2)))
    (step,) = report.steps
    assert (step.state, step.result.converted_equality_delete_files_count) == ("done", 0)
    assert step.result.remaining_equality_delete_files_count == 1
    assert step.note.endswith("left for the next time")
    assert 0 < step.size_in_bytes <= limit_of(table, 2)
    (step,) = loaded.refresh().maintain(_only_conversions(max_bytes=10)).steps
    assert step.state == "skipped"
    assert "max_bytes leaves 10" in step.note


# What the record relies on


def test_a_record_of_another_history_does_not_count(table: RacingTable) -> None:
    """Rows that a part had deleted by position are back after a rollback."""
    before, rows = table.table.head, table.rows()
    table.convert_part(limit_of(table, 4))
    table.table.change(SetSnapshotRef("main", SnapshotRef(before.snapshot_id, RefType.BRANCH)))
    assert table.rows() == rows
    assert sum(part.done.deleted_rows_count for part in all_parts(table, limit_of(table, 4))) == 6


def test_a_branch_has_the_record_that_it_began_with(table: RacingTable) -> None:
    first = compared_files(table, limit_of(table, 4))
    loaded = load_table(str(table.table.location))
    loaded.manage_snapshots().create_branch("b").commit()
    done = loaded.refresh().convert_equality_deletes(branch="b")
    assert done.deleted_rows_count == _FILES - len(first)
    assert done.remaining_equality_delete_files_count == 0
    assert loaded.refresh().scan(branch="b").to_arrow().num_rows == 9 * _FILES
    assert loaded.scan().to_arrow().num_rows == 9 * _FILES
    all_parts(table, limit_of(table, 4))


def test_files_of_a_compaction_that_began_before_are_compared(table: RacingTable) -> None:
    """Their rows are of files that were compared and of others, and older than the deletes."""
    rows = table.rows()
    compact = table.compact_parent()
    table.convert_part(limit_of(table, 2), Meanwhile(compact))
    assert table.rows() == rows
    all_parts(table, limit_of(table, 30))
    assert table.rows() == rows


def test_a_compaction_between_the_parts_keeps_the_rows(table: RacingTable) -> None:
    rows = table.rows()
    table.convert_part(limit_of(table, 2))
    table.compact()
    assert table.rows() == rows
    table.keyed("upsert", [table.batch((7, "new"))])
    all_parts(table, limit_of(table, 30))
    assert len(table.rows()) == len(rows)


def test_deletes_by_position_between_the_parts_are_kept(table: RacingTable) -> None:
    table.convert_part(limit_of(table, 2))
    table.change_where(lambda row: row["id"] % 10 == 3)
    all_parts(table, limit_of(table, 2))
    assert len(table.rows()) == 8 * _FILES


def test_deletes_by_position_during_a_part_are_kept(table: RacingTable) -> None:
    others = Meanwhile(lambda: table.change_where(lambda row: row["id"] % 10 == 3))
    part = table.convert_part(limit_of(table, 2), others)
    assert part.has_begun
    assert len(table.rows()) == 8 * _FILES
    all_parts(table, limit_of(table, 2))
    assert len(table.rows()) == 8 * _FILES


def test_a_conversion_by_others_during_a_part(table: RacingTable) -> None:
    rows = table.rows()
    table.convert_part(limit_of(table, 2), Meanwhile(lambda: table.convert_part(10_000_000)))
    assert table.rows() == rows
    assert not table.deletes(_KEYS)


def test_a_part_during_another(table: RacingTable) -> None:
    rows, limit = table.rows(), limit_of(table, 2)
    table.convert_part(limit, Meanwhile(lambda: table.convert_part(limit)))
    assert table.rows() == rows
    all_parts(table, limit)


def test_a_part_that_others_disturb_each_time_records_nothing(
    table: RacingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others change the vectors of files that were compared, which then are left."""
    module = "icebergds.operations.maintenance.deletes.convert_equality_deletes"
    monkeypatch.setattr(f"{module}._ROUNDS", 1)
    others = Meanwhile(lambda: table.change_where(lambda row: row["id"] % 10 == 3))
    table.convert_part(limit_of(table, 2), others)
    progress = progress_of(table.table.metadata, table.head)
    # Position delete files are added beside others.
    assert (progress is None) == (table.version == 3)
    monkeypatch.undo()
    all_parts(table, limit_of(table, 2))
    assert len(table.rows()) == 8 * _FILES


def test_a_data_file_that_is_listed_twice_is_never_passed_over(tmp_path: Path) -> None:
    given = {"write.upsert.mode": "equality-deletes"}
    table = new_table(tmp_path, version=2, properties=given)
    for start in range(0, 30, 10):
        table.append(api_rows(*range(start, start + 10)))
    file = table.scan().plan_files()[0].file.file_path.removeprefix("file://")
    table.add_files([file], check_duplicate_files=False)
    table.delete_keys(api_rows(5, 15, 25), "id")
    before = sorted(load_table(table.location()).scan().to_arrow()["id"].to_pylist())
    report = load_table(table.location()).maintain(_only_conversions(max_bytes=_share_of(table, 2)))
    assert [step.state for step in report.steps] == ["skipped"]
    assert sorted(load_table(table.location()).scan().to_arrow()["id"].to_pylist()) == before


def test_data_files_have_an_order_in_copied_tables_too() -> None:
    progress = ConversionProgress(9, 9, 3, "b")

    def covered(path: str, data: int, file: int) -> bool:
        numbers = np.array([data]), np.array([file])
        return bool(progress.covers(*numbers, pa.array([path], pa.large_string()))[0])

    for home in ("s3://warehouse/db/t/data/", "/x/day=z/", ""):
        assert [covered(f"{home}{name}", 3, 3) for name in "abc"] == [True, True, False]
    assert covered("z", 2, 9)
    assert not covered("a", 2, 10)
    assert not covered("a", 4, 4)


@pytest.mark.parametrize("text", ["", "1", "1 2 3", "1 2 x a", "-1 2 3 a", None])
def test_a_record_that_cannot_be_read_counts_as_none(table: RacingTable, text: str | None) -> None:
    table.convert_part(limit_of(table, 2))
    metadata = table.table.metadata
    assert progress_of(metadata, metadata.current_snapshot()) is not None
    *others, last = metadata.snapshots
    summary = {**last.summary, CONVERSION_PROGRESS: "1 1 1 a" if text is None else text}
    if text is None:
        del summary[OWN_OPERATION]
    metadata = replace(metadata, snapshots=(*others, replace(last, summary=summary)))
    assert progress_of(metadata, metadata.current_snapshot()) is None


def test_the_entry_of_the_summary_is_reserved(table: RacingTable) -> None:
    with pytest.raises(InvalidOptionError, match="conversions of equality deletes rely on it"):
        table.convert(snapshot_properties={CONVERSION_PROGRESS: "9 9 9 z"})
