"""What a verification finds in damaged tables, that it finds nothing in sound ones, and repairs."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import ids_of, new_table, rows
from built.damage import into_small_blocks, swap_files
from built.schemas import optional
from built.tables import TableBuilder
from pyiceberg.table import StaticTable

import icebergds
from icebergds import Finding, Table, TableVerification
from icebergds.errors import InvalidOptionError
from icebergds.formats.manifests.manifest_list import read_manifest_list, write_manifest_list
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.verify.findings import FindingKind, Severity
from icebergds.spec.manifest import DataFile, FileFormat, ManifestFile
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    GeographyType,
    GeometryType,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    (
        optional(1, "id", LONG),
        optional(2, "ts", TIMESTAMP),
        optional(3, "name", STRING),
        optional(4, "x", DOUBLE),
    )
)
BY_ID = PartitionSpec(0, (PartitionField((1,), 1000, IdentityTransform(), "id"),))
FORMATS = [FileFormat.PARQUET, FileFormat.AVRO, FileFormat.ORC]
DEPTHS = ["metadata", "footers", "rows"]
NEWEST = 1_714_979_289_123_000


def a_row(number: int) -> tuple[Any, ...]:
    return number, NEWEST + number, f"name {number} " + "x" * 20, number / 4


def a_builder(tmp_path: Path, version: int = 2, **options: Any) -> TableBuilder:
    return TableBuilder(tmp_path / "t", SCHEMA, format_version=version, **options)


def a_file(builder: TableBuilder, *numbers: int, **options: Any) -> DataFile:
    return builder.data_file([a_row(number) for number in numbers], **options)


def load(builder: TableBuilder) -> Table:
    return icebergds.load_table(str(builder.location))


def verified(builder: TableBuilder, depth: str = "rows") -> TableVerification:
    return load(builder).verify(depth)


def only(result: TableVerification, kind: FindingKind) -> Finding:
    """The only finding; it is of this kind."""
    assert [finding.kind for finding in result.findings] == [kind], result
    return result.findings[0]


def head(builder: TableBuilder) -> Snapshot:
    snapshot = builder.metadata.current_snapshot()
    assert snapshot is not None
    return snapshot


def change_summary(builder: TableBuilder, **entries: str) -> None:
    """Adds entries to the summary of the current snapshot."""
    snapshot = head(builder)
    changed = replace(snapshot, summary={**snapshot.summary, **entries})
    builder.set_snapshots([changed if s == snapshot else s for s in builder.metadata.snapshots])


def write_list(builder: TableBuilder, manifests: Sequence[ManifestFile]) -> None:
    """Replaces the manifest list of the current snapshot."""
    snapshot = head(builder)
    data = write_manifest_list(
        manifests,
        format_version=builder.metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )
    Path(snapshot.manifest_list or "").write_bytes(data)


def change_list(
    builder: TableBuilder, change: Callable[[ManifestFile], ManifestFile], at: int | None = None
) -> None:
    """Changes manifests in the manifest list of the current snapshot."""
    listed = read_manifest_list(FileIO(), head(builder).manifest_list or "")
    write_list(
        builder, [change(m) if at in (None, number) else m for number, m in enumerate(listed)]
    )


def bounds(lower: int, upper: int) -> dict[str, Any]:
    """Bounds of the column `ts`."""
    return {
        "lower_bounds": {2: struct.pack("<q", lower)},
        "upper_bounds": {2: struct.pack("<q", upper)},
    }


# Sound tables


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_sound_table_has_no_findings(tmp_path: Path, version: int, kind: FileFormat) -> None:
    builder = a_builder(tmp_path, version)
    files = [a_file(builder, *range(start, start + 5), file_format=kind) for start in (0, 10, 20)]
    builder.commit(*files[:2])
    if version == 2:
        deletes = {files[0].file_path: [0, 4], files[1].file_path: [2]}
        builder.commit(builder.position_deletes(deletes, file_format=kind))
    if version == 3:
        builder.commit(*builder.deletion_vectors([(files[0], [0, 4]), (files[1], [2])]))
    if version > 1:
        builder.commit(builder.equality_deletes(["id"], [(11,)], file_format=kind))
    wider = Schema((*SCHEMA.fields, optional(5, "more", INT)), 1)
    builder.evolve(schema=wider)
    builder.commit(files[2])
    builder.commit(removed=[files[1]] if version == 1 else [])
    builder.branch("audit", builder.metadata.snapshots[0].snapshot_id)
    for depth in DEPTHS:
        result = verified(builder, depth)
        assert result.findings == (), result
        assert result.is_sound
    assert result.looked.snapshots == len(builder.metadata.snapshots)
    # Two deletion vectors are in one file.
    assert result.looked.files_opened == result.looked.files + (version == 3)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_of_this_library_has_no_findings(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, partition_by="day", version=version)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, day=1))
    table.update_schema().add_column("more", "double").commit()
    table.append(rows(6, day=1))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.rewrite_manifests()
    table.compute_partition_stats()
    table.expire_snapshots(int(dt.datetime.now().timestamp() * 1000) + 1000, retain_last=2)
    result = icebergds.load_table(table.location()).verify("rows")
    assert result.findings == (), result


def test_a_table_without_rows_is_sound(tmp_path: Path) -> None:
    result = new_table(tmp_path).verify("rows")
    assert (result.findings, result.is_sound, result.orphans.count) == ((), True, 0)


def test_bounds_that_are_wider_or_truncated_are_sound(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    truncated = {"lower_bounds": {3: b"name"}, "upper_bounds": {3: b"namf"}}
    builder.commit(replace(a_file(builder, 1, 2), **truncated), a_file(builder, 3))
    assert verified(builder).findings == ()


def test_bounds_of_values_with_null_structs_may_leave_out_their_nulls(tmp_path: Path) -> None:
    schema = Schema(
        (optional(1, "id", LONG), optional(2, "s", StructType((optional(3, "x", LONG),))))
    )
    builder = TableBuilder(tmp_path / "t", schema)
    file = builder.data_file([(1, (7,)), (2, None)], file_format=FileFormat.ORC)
    of_orc = replace(file, value_counts={3: 1}, null_value_counts={3: 0})
    builder.commit(of_orc)
    assert verified(builder).findings == ()


# Files


def test_a_missing_data_file_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file, other = a_file(builder, 1), a_file(builder, 2)
    builder.commit(file, other)
    os.remove(file.file_path)
    for depth in DEPTHS:
        finding = only(verified(builder, depth), FindingKind.MISSING_FILE)
        assert (finding.file, finding.is_repairable) == (file.file_path, False)
        assert "restore it" in finding.remedy


def test_a_missing_file_of_an_earlier_snapshot_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1)
    builder.commit(file)
    builder.commit(a_file(builder, 2), removed=[file])
    os.remove(file.file_path)
    finding = only(verified(builder), FindingKind.MISSING_FILE)
    assert "earlier snapshots fail" in finding.effect


def test_a_file_of_an_earlier_snapshot_that_was_cut_off_is_a_fault(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1)
    builder.commit(file)
    builder.commit(a_file(builder, 2), removed=[file])
    os.truncate(file.file_path, file.file_size_in_bytes - 100)
    result = verified(builder)
    finding = only(result, FindingKind.FILE_SIZE)
    assert (finding.severity, finding.is_repairable) == (Severity.FAULT, False)
    assert "earlier snapshots" in finding.effect
    assert not result.is_sound


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_file_of_another_size_is_found(tmp_path: Path, depth: str) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1)
    builder.commit(replace(file, file_size_in_bytes=file.file_size_in_bytes + 100))
    finding = only(verified(builder, depth), FindingKind.FILE_SIZE)
    assert finding.recorded == f"{file.file_size_in_bytes + 100:,} bytes"
    assert finding.found == f"{file.file_size_in_bytes:,} bytes"
    # That the file is whole, only its footer shows.
    assert finding.is_repairable is (depth != "metadata")


def test_a_truncated_data_file_is_found_and_the_others_are_verified(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file, wrong = a_file(builder, 1), replace(a_file(builder, 2), record_count=9)
    builder.commit(file, wrong)
    path = Path(file.file_path)
    path.write_bytes(path.read_bytes()[:-30])
    found = {finding.kind: finding for finding in verified(builder, "footers").findings}
    assert found[FindingKind.DAMAGED_FILE].file == file.file_path
    assert not found[FindingKind.FILE_SIZE].is_repairable
    assert found[FindingKind.RECORD_COUNT].file == wrong.file_path


def test_swapped_files_are_not_taken_for_the_right_ones(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    one, other = a_file(builder, 1), a_file(builder, 2, 3, 4, 5)
    builder.commit(one, other)
    swap_files(one.file_path, other.file_path)
    result = load(builder).verify("footers", repair=True)
    counts = [f for f in result.findings if f.kind is FindingKind.RECORD_COUNT]
    assert {finding.file for finding in counts} == {one.file_path, other.file_path}
    assert not any(finding.is_repairable for finding in counts)


def test_a_damaged_manifest_is_found_and_the_others_are_verified(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    builder.commit(replace(a_file(builder, 2), record_count=7))
    manifests = read_manifest_list(FileIO(), head(builder).manifest_list or "")
    damaged = next(m.manifest_path for m in manifests if m.added_rows_count == 1)
    Path(damaged).write_bytes(b"Obj\x01 nothing else")
    found = {finding.kind: finding.file for finding in verified(builder).findings}
    assert found.pop(FindingKind.DAMAGED_FILE) == damaged
    assert set(found) == {FindingKind.RECORD_COUNT}


def test_a_table_with_a_file_that_is_not_read_is_not_called_sound(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    (manifest,) = read_manifest_list(FileIO(), head(builder).manifest_list or "")
    path = Path(manifest.manifest_path)
    content = path.read_bytes()
    assert content.count(b"deflate") == 1
    path.write_bytes(content.replace(b"deflate", b"deflat9"))
    found = verified(builder)
    assert [(each.kind, each.severity) for each in found.findings] == [
        (FindingKind.UNVERIFIED_FILE, Severity.NOTE)
    ]
    assert "0 faults and 1 note; what was verified is sound: unverified-file 1" in str(found)


def test_a_missing_manifest_list_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    lost = head(builder).manifest_list or ""
    builder.commit(a_file(builder, 2))
    os.remove(lost)
    assert only(verified(builder), FindingKind.MISSING_FILE).file == lost


# Manifests and snapshots


@pytest.mark.parametrize("field", ["added_files_count", "added_rows_count"])
def test_wrong_counts_of_a_manifest_are_found_and_repaired(tmp_path: Path, field: str) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1, 2))
    change_list(builder, lambda m: replace(m, **{field: 0}))
    finding = only(verified(builder, "metadata"), FindingKind.MANIFEST_COUNTS)
    assert (finding.field, finding.recorded) == (field, "0")
    assert load(builder).verify(repair=True).repaired == 1
    table = load(builder)
    assert table.verify("rows").is_sound
    assert ids_of(table) == [1, 2]


def test_wrong_counts_of_removed_files_harm_no_reader(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1, 2))
    change_list(builder, lambda m: replace(m, deleted_files_count=62))
    result = verified(builder)
    assert only(result, FindingKind.MANIFEST_COUNTS).severity is Severity.NOTE
    assert result.is_sound


def test_a_partition_summary_that_prunes_rows_is_found_and_repaired(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, spec=BY_ID)
    builder.commit(
        a_file(builder, 1, partition=(1,)), a_file(builder, 2, partition=(2,)), with_summaries=True
    )
    narrow = struct.pack("<q", 1)
    change_list(
        builder,
        lambda m: replace(m, partitions=(replace(m.partitions[0], upper_bound=narrow),)),
    )
    assert ids_of(load(builder), filter="id = 2") == []
    finding = only(verified(builder, "metadata"), FindingKind.PARTITION_SUMMARY)
    assert (finding.field, finding.recorded, finding.found) == ("id", "to 1", "to 2")
    load(builder).verify(repair=True)
    assert ids_of(load(builder), filter="id = 2") == [2]


def test_a_minimum_sequence_number_that_is_too_high_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    change_list(builder, lambda m: replace(m, min_sequence_number=5))
    finding = only(verified(builder, "metadata"), FindingKind.SEQUENCE_NUMBERS)
    assert (finding.field, finding.recorded, finding.found) == ("min_sequence_number", "5", "1")


def test_a_manifest_from_the_future_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    change_list(builder, lambda m: replace(m, sequence_number=9, min_sequence_number=1))
    finding = only(verified(builder, "metadata"), FindingKind.SEQUENCE_NUMBERS)
    assert (finding.recorded, finding.found) == ("9", "1 of snapshot 1001")


def test_snapshots_out_of_order_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    builder.commit(a_file(builder, 2))
    first, second = builder.metadata.snapshots
    builder.set_snapshots([replace(first, sequence_number=2), second])
    finding = only(verified(builder, "metadata"), FindingKind.SEQUENCE_NUMBERS)
    assert (finding.recorded, finding.found) == ("2", "2 of its parent")


def test_wrong_totals_are_found_and_repaired(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1, 2))
    wrong = replace(head(builder), summary={"operation": "append", "total-records": "77"})
    builder.set_snapshots([wrong])
    result = verified(builder, "metadata")
    finding = only(result, FindingKind.SNAPSHOT_TOTALS)
    assert (finding.recorded, finding.found, result.is_sound) == ("77", "2", True)
    load(builder).verify(repair=True)
    snapshot = load(builder).current_snapshot()
    assert snapshot is not None
    assert (snapshot.operation, snapshot.summary["total-records"]) == ("replace", "2")


def test_a_wrong_total_size_is_found_and_repaired(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    files = [a_file(builder, 1, 2), a_file(builder, 3)]
    builder.commit(*files)
    change_summary(builder, **{"total-files-size": "5"})
    finding = only(verified(builder, "metadata"), FindingKind.SNAPSHOT_TOTALS)
    size = sum(file.file_size_in_bytes for file in files)
    assert (finding.recorded, finding.found) == ("5", str(size))
    load(builder).verify(repair=True)
    snapshot = load(builder).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["total-files-size"] == str(size)
    assert load(builder).verify().repairable == 0


@pytest.mark.parametrize("counts_blobs", [True, False])
def test_sizes_may_count_the_blob_or_the_file_of_a_deletion_vector(
    tmp_path: Path, counts_blobs: bool
) -> None:
    builder = a_builder(tmp_path, 3)
    files = [a_file(builder, 1, 2), a_file(builder, 3, 4)]
    builder.commit(*files)
    vectors = builder.deletion_vectors([(file, [0]) for file in files])
    builder.commit(*vectors)
    sizes = [(v.content_size_in_bytes or 0, v.file_size_in_bytes) for v in vectors]
    added = sum(blob if counts_blobs else whole for blob, whole in sizes)
    total = added + sum(file.file_size_in_bytes for file in files)
    change_summary(builder, **{"total-files-size": str(total), "added-files-size": str(added)})
    assert verified(builder, "metadata").findings == ()
    wrong = str(sum(whole for _, whole in sizes) + 1)
    change_summary(builder, **{"added-files-size": wrong})
    assert only(verified(builder, "metadata"), FindingKind.SNAPSHOT_CHANGES).recorded == wrong


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("added-data-files", 1),
        ("added-records", 2),
        ("added-delete-files", 0),
        ("deleted-data-files", 1),
        ("deleted-records", 3),
        ("removed-delete-files", 0),
    ],
)
def test_what_a_snapshot_says_wrongly_of_its_changes_is_found(
    tmp_path: Path, name: str, is_so: int
) -> None:
    builder = a_builder(tmp_path)
    old = a_file(builder, 1, 2, 3)
    builder.commit(old)
    builder.commit(a_file(builder, 4, 5), removed=[old])
    change_summary(builder, **{name: str(is_so)})
    assert verified(builder, "metadata").findings == ()
    change_summary(builder, **{name: "7"})
    result = verified(builder, "metadata")
    finding = only(result, FindingKind.SNAPSHOT_CHANGES)
    assert (finding.field, finding.recorded) == (f"{name} of snapshot 1002", "7")
    assert (finding.found, result.is_sound, finding.is_repairable) == (str(is_so), True, False)


def test_removed_files_need_not_be_listed(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    old = a_file(builder, 1, 2, 3)
    builder.commit(old)
    builder.commit(a_file(builder, 4), removed=[old])
    location = head(builder).manifest_list or ""
    listed = [m for m in read_manifest_list(FileIO(), location) if m.added_files_count]
    write_list(builder, listed)
    change_summary(builder, **{"deleted-data-files": "1"})
    assert verified(builder, "metadata").findings == ()
    change_summary(builder, **{"deleted-data-files": "2"})
    assert only(verified(builder, "metadata"), FindingKind.SNAPSHOT_CHANGES).found == "1"
    # Without the snapshot before, nobody knows; what it added, its own entries tell.
    builder.set_snapshots([head(builder)])
    assert verified(builder, "metadata").findings == ()
    change_summary(builder, **{"added-data-files": "2"})
    assert only(verified(builder, "metadata"), FindingKind.SNAPSHOT_CHANGES).found == "1"


def test_a_file_that_is_listed_twice_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1)
    builder.commit(file)
    builder.commit(file)
    assert only(verified(builder), FindingKind.DUPLICATE_FILE).recorded == "2 entries"


# Deletes


def test_deletes_of_no_data_file_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1, 2))
    lost = builder.position_deletes({"/somewhere/else.parquet": [0]})
    builder.commit(lost)
    result = verified(builder)
    finding = only(result, FindingKind.DANGLING_DELETES)
    assert (finding.file, result.is_sound) == (lost.file_path, True)
    assert "remove_dangling_deletes" in finding.remedy
    load(builder).remove_dangling_deletes()
    assert load(builder).verify().findings == ()


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_rows_that_a_file_does_not_have_are_found(tmp_path: Path, version: int) -> None:
    builder = a_builder(tmp_path, version)
    file = a_file(builder, 1, 2)
    builder.commit(file)
    if version == 2:
        builder.commit(builder.position_deletes({file.file_path: [1, 2]}))
    else:
        builder.commit(*builder.deletion_vectors([(file, [1, 2])]))
    finding = only(verified(builder), FindingKind.DELETE_POSITIONS)
    assert (finding.field, finding.recorded) == (file.file_path, "position 2")
    assert finding.found == "2 rows"


def test_two_deletion_vectors_of_a_file_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, 3)
    file = a_file(builder, 1, 2, 3)
    builder.commit(file)
    builder.commit(*builder.deletion_vectors([(file, [0])]))
    builder.commit(*builder.deletion_vectors([(file, [1])]))
    finding = only(verified(builder, "metadata"), FindingKind.DELETE_ENTRY)
    assert (finding.file, finding.recorded) == (file.file_path, "2 deletion vectors")


def test_a_deletion_vector_without_its_place_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, 3)
    file = a_file(builder, 1, 2, 3)
    builder.commit(file)
    (vector,) = builder.deletion_vectors([(file, [0])])
    builder.commit(replace(vector, content_offset=None))
    finding = only(verified(builder, "metadata"), FindingKind.DELETE_ENTRY)
    assert (finding.file, finding.field) == (vector.file_path, "content_offset")


def test_a_wrong_cardinality_of_a_deletion_vector_is_found_and_repaired(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, 3)
    file = a_file(builder, 1, 2, 3)
    builder.commit(file)
    (vector,) = builder.deletion_vectors([(file, [0, 2])])
    builder.commit(replace(vector, record_count=1))
    finding = only(verified(builder, "footers"), FindingKind.RECORD_COUNT)
    assert (finding.recorded, finding.found) == ("1 positions", "2 positions")
    load(builder).verify("footers", repair=True)
    assert load(builder).verify("rows").is_sound
    assert ids_of(load(builder)) == [2]


def test_keys_of_a_required_column_may_be_null(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG, required=True),))
    builder = TableBuilder(tmp_path / "t", schema)
    builder.commit(builder.data_file([(1,), (2,)]))
    builder.commit(builder.equality_deletes(["id"], [(1,), (None,)]))
    assert verified(builder).findings == ()


def test_equality_deletes_without_their_key_column_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    builder.commit(builder.equality_deletes(["id"], [(1,)], equality_ids=[3]))
    finding = only(verified(builder, "footers"), FindingKind.FILE_COLUMNS)
    assert (finding.field, finding.recorded) == ("equality_ids", "3")


# Data files


@pytest.mark.parametrize("depth", ["footers", "rows"])
def test_bounds_in_the_wrong_unit_are_repaired_so_that_filters_find_the_rows(
    tmp_path: Path, depth: str
) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1, 2)
    in_millis = bounds((NEWEST + 1) // 1000, (NEWEST + 2) // 1000)
    builder.commit(replace(file, **in_millis), a_file(builder, 3))
    table, where = load(builder), "ts >= '2024-05-06T00:00:00'"
    assert ids_of(table, filter=where) == [3]
    result = table.verify(depth)
    # The lower bound is only wider.
    finding = only(result, FindingKind.BOUNDS)
    assert (finding.file, finding.field) == (file.file_path, "ts")
    assert (finding.recorded or "").startswith("to 1970-01-20T")
    assert finding.found == "to 2024-05-06T07:08:09.123002"
    assert "lose its rows" in finding.effect
    before = table.scan().to_arrow()

    repaired = load(builder).verify(depth, repair=True)
    assert (repaired.repaired, repaired.is_sound) == (1, False)
    table = load(builder)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert (snapshot.operation, snapshot.snapshot_id) == ("replace", repaired.snapshot_id)
    assert table.verify("rows").findings == ()
    assert ids_of(table, filter=where) == [1, 2, 3]
    assert table.scan().to_arrow().sort_by("id") == before.sort_by("id")
    other = StaticTable.from_metadata(table.metadata_location)
    assert sorted(other.scan(row_filter=where).to_arrow()["id"].to_pylist()) == [1, 2, 3]
    # The other file's metrics stay.
    assert table.inspect.files()["record_count"].to_pylist() == [2, 1]


@pytest.mark.parametrize("kind", FORMATS)
def test_bounds_that_leave_out_a_value_are_found_in_every_format(
    tmp_path: Path, kind: FileFormat
) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 5, 7, 9, file_format=kind)
    low, high = struct.pack("<q", 6), struct.pack("<q", 8)
    builder.commit(
        replace(
            file,
            lower_bounds={**file.lower_bounds, 1: low},
            upper_bounds={**file.upper_bounds, 1: high},
        )
    )
    # Avro files have no statistics.
    assert bool(verified(builder, "footers").findings) is (kind is not FileFormat.AVRO)
    result = verified(builder, "rows")
    told = [(f.kind, f.field, f.recorded, f.found) for f in result.findings]
    assert told == [
        (FindingKind.BOUNDS, "id", "from 6", "from 5"),
        (FindingKind.BOUNDS, "id", "to 8", "to 9"),
    ]
    load(builder).verify("rows", repair=True)
    assert load(builder).verify("rows").is_sound
    assert ids_of(load(builder), filter="id = 9") == [9]


def test_bounds_that_are_no_values_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(replace(a_file(builder, 1), lower_bounds={1: b"abc"}))
    finding = only(verified(builder, "footers"), FindingKind.BOUNDS)
    assert (finding.field, finding.recorded, finding.found) == ("id", "0x616263", "long")


@pytest.mark.parametrize("kind", FORMATS)
def test_corners_of_a_box_that_leave_out_a_geometry_are_found_and_repaired(
    tmp_path: Path, kind: FileFormat
) -> None:
    shapes = Schema((optional(1, "g", GeometryType()), optional(2, "h", GeographyType())))
    builder = TableBuilder(tmp_path / "t", shapes, format_version=3)
    points = [struct.pack("<BI2d", 1, 1, x, 1) for x in (179, -179)]
    file = builder.data_file([(point, point) for point in points], file_format=kind)
    corner = struct.pack("<2d", 0, 1)
    wider = struct.pack("<2d", 170, 0), struct.pack("<2d", -170, 1)
    builder.commit(
        replace(file, lower_bounds={1: corner, 2: wider[0]}, upper_bounds={1: corner, 2: wider[1]})
    )
    finding = only(verified(builder, "rows"), FindingKind.BOUNDS)
    found = f"0x{struct.pack('<2d', -179, 1).hex()} to 0x{struct.pack('<2d', 179, 1).hex()}"
    assert (finding.field, finding.found) == ("g", found)
    load(builder).verify("rows", repair=True)
    assert load(builder).verify("rows").is_sound
    # What is null is found by counts, whatever boxes say.
    scan = load(builder).scan(filter="g is not null and h is not null")
    assert scan.to_arrow().num_rows == 2


def test_a_text_outside_of_its_bounds_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 3, 4)
    builder.commit(replace(file, upper_bounds={3: b"name 4"}, lower_bounds={}))
    finding = only(verified(builder, "rows"), FindingKind.BOUNDS)
    assert (finding.field, finding.recorded) == ("name", "to name 4")


@pytest.mark.parametrize("depth", ["footers", "rows"])
def test_wrong_counts_of_nulls_are_found_and_repaired(tmp_path: Path, depth: str) -> None:
    builder = a_builder(tmp_path)
    file = builder.data_file([a_row(1), (2, None, None, None)])
    builder.commit(replace(file, null_value_counts={**file.null_value_counts, 3: 0}))
    assert ids_of(load(builder), filter="name is null") == []
    finding = only(verified(builder, depth), FindingKind.VALUE_COUNTS)
    assert (finding.field, finding.recorded, finding.found) == ("name", "0 nulls", "1 nulls")
    load(builder).verify(depth, repair=True)
    assert ids_of(load(builder), filter="name is null") == [2]


def test_wrong_counts_of_nan_are_found_in_rows(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = builder.data_file([(1, NEWEST, "a", float("nan")), a_row(2)])
    builder.commit(replace(file, nan_value_counts={4: 0}))
    assert verified(builder, "footers").findings == ()
    finding = only(verified(builder, "rows"), FindingKind.VALUE_COUNTS)
    assert (finding.field, finding.recorded, finding.found) == ("x", "0 NaN", "1 NaN")
    load(builder).verify("rows", repair=True)
    assert ids_of(load(builder), filter="isnan(x)") == [1]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_wrong_number_of_rows_is_found_and_repaired(tmp_path: Path, kind: FileFormat) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1, 2, 3, file_format=kind)
    builder.commit(replace(file, record_count=2, value_counts={}, null_value_counts={}))
    finding = only(verified(builder, "footers"), FindingKind.RECORD_COUNT)
    assert (finding.recorded, finding.found) == ("2 rows", "3 rows")
    load(builder).verify("footers", repair=True)
    table = load(builder)
    assert table.verify("rows").is_sound
    assert table.scan().count() == 3
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary["total-records"] == "3"


def test_a_number_of_rows_is_not_repaired_if_row_ids_would_be_those_of_others(
    tmp_path: Path,
) -> None:
    builder = a_builder(tmp_path, 3)
    file = a_file(builder, 1, 2, 3)
    counts = {"record_count": 2, "value_counts": {}, "null_value_counts": {}}
    builder.commit(replace(file, **counts), a_file(builder, 4))
    result = load(builder).verify("footers", repair=True)
    finding = only(result, FindingKind.RECORD_COUNT)
    assert (finding.is_repairable, result.repaired, result.snapshot_id) == (False, 0, None)


def test_wrong_split_offsets_are_found_and_repaired(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1)
    builder.commit(replace(file, split_offsets=(17,)))
    finding = only(verified(builder, "footers"), FindingKind.SPLIT_OFFSETS)
    assert (finding.recorded, finding.found, finding.severity) == ("17", "4", Severity.NOTE)
    load(builder).verify("footers", repair=True)
    assert load(builder).verify("footers").findings == ()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("wrong", [-1, 1 << 40])
def test_impossible_sizes_of_columns_are_found_and_repaired(
    tmp_path: Path, wrong: int, kind: FileFormat
) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1, 2, file_format=kind)
    builder.commit(replace(file, column_sizes={**file.column_sizes, 3: wrong}))
    result = verified(builder, "footers")
    finding = only(result, FindingKind.COLUMN_SIZES)
    assert (finding.field, finding.recorded) == ("name", f"{wrong:,} bytes")
    assert result.is_sound
    load(builder).verify("footers", repair=True)
    (sizes,) = load(builder).inspect.files()["column_sizes"].to_pylist()
    # The other formats do not tell them.
    repaired = dict(sizes or ()).get(3)
    assert repaired is None if kind is not FileFormat.PARQUET else 0 < repaired < 1_000
    assert load(builder).verify("rows").findings == ()


def test_sizes_of_columns_that_another_writer_would_not_record_are_sound(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1, 2)
    builder.commit(replace(file, column_sizes={1: 1, 2: file.file_size_in_bytes}))
    assert verified(builder).findings == ()


def test_a_column_that_cannot_be_read_as_the_tables_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    other = Schema((optional(1, "id", STRING),))
    file = builder.data_file([("one",)], schema=other, with_metrics=False)
    builder.commit(file)
    finding = only(verified(builder, "footers"), FindingKind.FILE_COLUMNS)
    assert finding.file == file.file_path
    assert "'id'" in (finding.found or "")


@pytest.mark.parametrize("kind", FORMATS)
def test_files_may_have_fields_of_structs_that_were_dropped(
    tmp_path: Path, kind: FileFormat
) -> None:
    inner = (optional(2, "gone", DOUBLE), optional(3, "name", STRING), optional(4, "x", DOUBLE))
    builder = TableBuilder(tmp_path / "t", Schema((optional(1, "s", StructType(inner)),)))
    builder.commit(builder.data_file([((0.5, "a", 1.5),)], file_format=kind))
    builder.evolve(schema=Schema((optional(1, "s", StructType(inner[1:])),), 1))
    assert verified(builder).findings == ()


def test_a_required_column_that_a_file_lacks_is_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    required = NestedField(5, "must", LONG, required=True)
    builder.evolve(schema=Schema((*SCHEMA.fields, required), 1))
    finding = only(verified(builder, "footers"), FindingKind.FILE_COLUMNS)
    assert "'must'" in (finding.found or "")


# Row ids


def test_overlapping_row_ids_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, 3)
    builder.commit(a_file(builder, 1, 2, 3))
    builder.commit(a_file(builder, 4))
    change_list(builder, lambda m: replace(m, first_row_id=2), at=1)
    kinds = {(f.kind, f.field) for f in verified(builder, "rows").findings}
    assert (FindingKind.ROW_IDS, "first_row_id") in kinds
    assert (FindingKind.ROW_IDS, "_row_id") in kinds
    assert {f.field for f in verified(builder, "metadata").findings} == {"first_row_id"}


def test_row_ids_beyond_the_tables_are_found(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, 3)
    builder.commit(a_file(builder, 1, 2, 3))
    change_list(builder, lambda m: replace(m, first_row_id=100))
    finding = only(verified(builder, "metadata"), FindingKind.ROW_IDS)
    assert (finding.field, finding.recorded) == ("next-row-id", "3")


# Statistics and orphans


def test_wrong_statistics_files_are_found_and_dropped(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    torn = tmp_path / "t" / "metadata" / "torn.stats"
    torn.write_bytes(b"PFA1 and nothing else")
    snapshot_id = head(builder).snapshot_id
    missing = str(tmp_path / "missing.parquet")
    builder._replace_metadata(
        replace(
            builder.metadata,
            statistics=(StatisticsFile(snapshot_id, str(torn), torn.stat().st_size, 10),),
            partition_statistics=(PartitionStatisticsFile(snapshot_id, missing, 10),),
        )
    )
    result = verified(builder, "footers")
    assert {f.file for f in result.findings} == {str(torn), missing}
    assert {f.kind for f in result.findings} == {FindingKind.STATISTICS_FILE}
    load(builder).verify("footers", repair=True)
    table = load(builder)
    assert (table.statistics_files(), table.partition_statistics_files()) == ((), ())
    assert table.verify("rows").findings == ()


def test_partition_statistics_that_disagree_with_manifests_are_found(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, 2, 3))
    table.compute_partition_stats()
    stats = table.partition_statistics_files()[0]
    table.append(rows(4, day=1))
    table.compute_partition_stats()
    newer = table.partition_statistics_files()[-1]
    shutil.copyfile(stats.statistics_path, newer.statistics_path)
    result = icebergds.load_table(table.location()).verify("footers")
    told = {(f.field, f.recorded, f.found) for f in result.findings}
    assert ("data_record_count", "3 in all", "4 in manifests") in told


def test_orphans_are_told_and_are_no_findings(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    for name, days in (("old.parquet", 5), ("young.parquet", 0)):
        path = tmp_path / "t" / "data" / name
        path.write_bytes(b"orphan")
        if days:
            moment = path.stat().st_mtime - days * 24 * 60 * 60
            os.utime(path, (moment, moment))
    result = verified(builder, "metadata")
    assert result.findings == ()
    assert result.orphans.locations == (str(tmp_path / "t" / "data" / "old.parquet"),)
    # The metadata files of the builder's earlier versions are in no log.
    assert (result.orphans.count, result.orphans.bytes) == (1, 6)
    assert result.orphans.young >= 1


# Repairs


def test_a_repair_with_nothing_to_repair_commits_nothing(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(a_file(builder, 1))
    before = load(builder).metadata_location
    result = load(builder).verify("rows", repair=True)
    assert (result.repaired, result.snapshot_id) == (0, None)
    assert load(builder).metadata_location == before


def test_a_repair_keeps_row_ids_and_sequence_numbers(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, 3)
    builder.commit(replace(a_file(builder, 1, 2), **bounds(0, 1)), a_file(builder, 3))
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = load(builder).scan(columns=columns).to_arrow().sort_by("id")
    load(builder).verify("footers", repair=True)
    table = load(builder)
    assert table.scan(columns=columns).to_arrow().sort_by("id") == before
    assert table.verify("rows").findings == ()


def test_a_repair_of_another_branch_leaves_main(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.commit(replace(a_file(builder, 1), **bounds(0, 1)))
    builder.branch("audit", head(builder).snapshot_id)
    load(builder).verify("footers", repair=True, branch="audit")
    table = load(builder)
    where = "ts > '2024-01-01T00:00:00'"
    assert ids_of(table, filter=where) == []
    assert ids_of(table, filter=where, branch="audit") == [1]


def test_branches_that_say_different_things_of_a_file_are_verified_and_repaired_each(
    tmp_path: Path,
) -> None:
    builder = a_builder(tmp_path)
    file = a_file(builder, 1, 2)
    size = file.file_size_in_bytes
    builder.commit(replace(file, **bounds(0, 1), file_size_in_bytes=size + 1))
    builder.branch("audit", head(builder).snapshot_id)
    of_both = verified(builder, "footers")
    assert set(of_both.by_kind()) == {FindingKind.BOUNDS, FindingKind.FILE_SIZE}
    for branch in ("main", "audit"):
        result = load(builder).verify("footers", repair=True, branch=branch)
        assert (result.is_sound, result.repaired) == (False, 2), branch
        again = load(builder).verify("footers", repair=True, branch=branch)
        assert (again.repaired, again.snapshot_id) == (0, None), branch
        assert again.is_sound is (branch == "audit")
    where = "ts > '2024-01-01T00:00:00'"
    assert [ids_of(load(builder), filter=where, branch=b) for b in ("main", "audit")] == [
        [1, 2]
    ] * 2


def test_branches_that_say_different_wrong_things_of_a_file_are_repaired_each(
    tmp_path: Path,
) -> None:
    builder = a_builder(tmp_path)
    file = builder.data_file([a_row(1), (2, NEWEST, None, None)])
    no_nulls = {**file.null_value_counts, 3: 0}
    builder.commit(replace(file, **bounds(0, 1)))
    builder.commit(replace(file, null_value_counts=no_nulls), branch="audit")
    result = verified(builder, "footers")
    assert set(result.by_kind()) == {FindingKind.BOUNDS, FindingKind.VALUE_COUNTS}
    for branch in ("main", "audit"):
        load(builder).verify("footers", repair=True, branch=branch)
        assert ids_of(load(builder), filter="ts > '2024-01-01T00:00:00'", branch=branch) == [1, 2]
        assert ids_of(load(builder), filter="name is null", branch=branch) == [2]
    assert verified(builder, "rows").is_sound


def test_a_repair_by_an_outdated_table_object_keeps_later_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    stale = icebergds.load_table(table.location())
    (listed,) = read_manifest_list(FileIO(), table.current_snapshot().manifest_list)  # type: ignore[union-attr, arg-type]
    into_small_blocks(listed.manifest_path)
    table.append(rows(3))
    stale.verify("rows", repair=True)
    assert ids_of(icebergds.load_table(table.location())) == [1, 2, 3]


@pytest.mark.parametrize("depth", ["deep", 3, ""])
def test_unknown_depths_are_refused(tmp_path: Path, depth: Any) -> None:
    table = new_table(tmp_path)
    if depth == "":
        assert table.verify(depth).is_sound
        return
    with pytest.raises(InvalidOptionError, match="depth"):
        table.verify(depth)


def test_the_result_is_shown_as_text_and_html(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    file = replace(a_file(builder, 1, 2), **bounds(0, 1))
    builder.commit(file)
    result = verified(builder, "footers")
    text = str(result)
    assert "1 fault and 0 notes: bounds 1" in text
    assert "repair=True mends 1 of them" in text
    assert all(len(line) <= 120 or file.file_path in line for line in text.splitlines())
    html = result._repr_html_()
    assert "lose its rows" in html
    assert Path(file.file_path).name in html
