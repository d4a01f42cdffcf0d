"""Appends add files and nothing else; what they leave is what every reader expects."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from built.commit_tables import BY_DAY, SCHEMA, CommitTable, create_table, open_table
from built.tables import TableBuilder

from icebergds.commit.data_files import Append, Delete, FastAppend
from icebergds.errors import InvalidDataError, InvalidOptionError, ValidationError
from icebergds.expr.sql import parse_filter
from icebergds.spec.manifest import FileContent, ManifestEntryStatus
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.types import INT
from icebergds.spec.updates.table_updates import SetSnapshotRef, UpgradeFormatVersion
from icebergds.spec.values.binary import to_bytes


@pytest.fixture(params=[1, 2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> CommitTable:
    return create_table(tmp_path / "t", format_version=request.param)


@pytest.fixture(params=[Append, FastAppend])
def append(request: pytest.FixtureRequest) -> type[Append] | type[FastAppend]:
    return request.param  # type: ignore[no-any-return]


def test_files_are_added_to_those_that_are_there(table: CommitTable, append: type[Append]) -> None:
    table.commit(append((table.file([1, 2], 1), table.file([3], 2))))
    table.commit(append((table.file([4], 1),)))
    assert table.ids() == [1, 2, 3, 4]
    assert table.head.operation == "append"


def test_the_summary_tells_what_was_added_and_what_there_is(
    table: CommitTable, append: type[Append]
) -> None:
    first, second = table.file([1, 2], 1), table.file([3], 2)
    table.commit(append((first,)))
    table.commit(append((second, table.file([4], None))), snapshot_properties={"app-id": "a1"})
    summary = dict(table.head.summary)
    sizes = [e.data_file.file_size_in_bytes for e in table.entries()]
    assert int(summary.pop("total-files-size")) == sum(sizes)
    assert int(summary.pop("added-files-size")) == sum(sizes) - first.file_size_in_bytes
    assert summary == {
        "operation": "append",
        "engine-name": "icebergds",
        "app-id": "a1",
        "added-data-files": "2",
        "added-records": "2",
        "changed-partition-count": "2",
        "manifests-created": "1",
        "manifests-kept": "1",
        "manifests-replaced": "0",
        "total-records": "4",
        "total-data-files": "3",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


def test_a_manifest_of_removed_files_alone_is_left_out_and_not_replaced(
    table: CommitTable,
) -> None:
    table.commit(Append((table.file([1], 1),)))
    table.commit(Delete(parse_filter("day = 1")))
    table.commit(Append((table.file([2], 2),)))
    counts = {k: v for k, v in table.head.summary.items() if k.startswith("manifests-")}
    assert counts == {"manifests-created": "1", "manifests-kept": "0", "manifests-replaced": "0"}


def test_a_total_that_the_last_snapshot_lacks_is_not_invented(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=BY_DAY)
    builder.commit(builder.data_file([(1, 1)], partition=(1,)))
    table = open_table(tmp_path / "t")
    table.commit(Append((table.file([2], 1),)))
    assert not [name for name in table.head.summary if name.startswith("total-")]
    assert table.ids() == [1, 2]


def test_partition_summaries_are_there_up_to_their_limit(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", properties={"write.summary.partition-limit": "1"})
    file = table.file([1, 2], 7)
    table.commit(Append((file,)))
    assert table.head.summary["partitions.day=7"] == (
        f"added-data-files=1,added-files-size={file.file_size_in_bytes},added-records=2"
    )
    assert table.head.summary["partition-summaries-included"] == "true"
    table.commit(Append((table.file([1], 1), table.file([1], 2))))
    assert "partition-summaries-included" not in table.head.summary


def test_sequence_numbers_are_inherited_from_the_manifest_list(tmp_path: Path) -> None:
    import fastavro

    table = create_table(tmp_path / "t")
    for _ in range(2):
        table.commit(FastAppend((table.file([1], 1),)))
    assert sorted(e.data_sequence_number for e in table.entries()) == [1, 2]
    for manifest in table.manifests():
        with open(manifest.manifest_path, "rb") as file:
            (record,) = fastavro.reader(file)
        assert record["sequence_number"] is None
        assert record["file_sequence_number"] is None
        assert manifest.min_sequence_number == manifest.sequence_number


def test_version_1_has_no_sequence_numbers(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", format_version=1)
    table.commit(Append((table.file([1], 1),)))
    assert table.metadata.last_sequence_number == table.head.sequence_number == 0


def test_row_ids_follow_each_other(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", format_version=3)
    table.commit(Append((table.file([1, 2], 1), table.file([3], 2))))
    table.commit(Append((table.file([4, 5, 6], 1),)))
    head = table.head
    assert (head.first_row_id, head.added_rows, table.metadata.next_row_id) == (3, 3, 6)
    firsts = {e.data_file.record_count: e.data_file.first_row_id for e in table.entries()}
    assert firsts == {2: 0, 1: 2, 3: 3}


def test_files_from_before_an_upgrade_get_row_ids(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", format_version=1)
    table.commit(Append((table.file([1, 2], 1),)))
    table.change(UpgradeFormatVersion(3))
    table.commit(Append((table.file([3], 1),)))
    ids = {e.data_file.record_count: e.data_file.first_row_id for e in table.entries()}
    assert sorted(ids.values()) in ([0, 1], [0, 2])
    assert table.metadata.next_row_id == 3
    assert table.ids() == [1, 2, 3]


def test_manifests_tell_the_range_of_their_partitions(table: CommitTable) -> None:
    table.commit(Append((table.file([1], 5), table.file([2], -3), table.file([3], None))))
    ((summary,),) = [manifest.partitions for manifest in table.manifests()]
    assert summary.contains_null
    assert (summary.lower_bound, summary.upper_bound) == (to_bytes(INT, -3), to_bytes(INT, 5))


def test_manifests_are_split_at_their_target_size(tmp_path: Path) -> None:
    properties = {"commit.manifest.target-size-bytes": "6000"}
    table = create_table(tmp_path / "t", properties=properties)
    template = table.file([1], 1)
    files = tuple(replace(template, file_path=f"{template.file_path}.{i}") for i in range(1200))
    table.commit(FastAppend(files))
    manifests = table.manifests()
    assert len(manifests) > 1
    assert max(manifest.manifest_length for manifest in manifests) < 9000
    assert {e.data_file.file_path for e in table.entries()} == {f.file_path for f in files}


def test_files_of_several_specs_go_to_manifests_of_their_own(tmp_path: Path) -> None:
    from icebergds.spec.updates.table_updates import LAST_ADDED, AddPartitionSpec, SetDefaultSpec

    table = create_table(tmp_path / "t")
    table.change(AddPartitionSpec(PartitionSpec()), SetDefaultSpec(LAST_ADDED))
    table.commit(Append((table.file([1], 1, spec_id=0), table.file([2], 1))))
    assert sorted(m.partition_spec_id for m in table.manifests()) == [0, 1]
    assert table.ids() == [1, 2]


def test_an_empty_append_is_a_snapshot_too(table: CommitTable) -> None:
    table.commit(Append(()))
    table.commit(Append((table.file([1], 1),)))
    table.commit(FastAppend(()))
    assert table.ids() == [1]
    assert len(table.metadata.snapshots) == 3


# Merging.


def test_manifests_are_merged_once_there_are_enough(tmp_path: Path) -> None:
    properties = {"commit.manifest.min-count-to-merge": "3"}
    table = create_table(tmp_path / "t", properties=properties, format_version=3)
    counts = []
    for number in range(5):
        table.commit(Append((table.file([number], number),)))
        counts.append(len(table.manifests()))
    assert counts == [1, 2, 1, 2, 1]
    entries = sorted(table.entries(), key=lambda entry: entry.data_sequence_number)
    assert [entry.data_sequence_number for entry in entries] == [1, 2, 3, 4, 5]
    # A manifest takes ids for all of its rows, also for those that have theirs already.
    assert [entry.data_file.first_row_id for entry in entries] == [0, 1, 2, 5, 6]
    added, existing = ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING
    assert [entry.status for entry in entries] == [*[existing] * 4, added]
    assert len({entry.snapshot_id for entry in entries}) == 5
    (manifest,) = table.manifests()
    assert manifest.min_sequence_number == 1


def test_merging_can_be_turned_off(tmp_path: Path) -> None:
    properties = {
        "commit.manifest.min-count-to-merge": "2",
        "commit.manifest-merge.enabled": "false",
    }
    table = create_table(tmp_path / "t", properties=properties)
    for number in range(4):
        table.commit(Append((table.file([number], 1),)))
    assert len(table.manifests()) == 4


def test_manifests_of_the_target_size_are_left_alone(tmp_path: Path) -> None:
    properties = {
        "commit.manifest.min-count-to-merge": "2",
        "commit.manifest.target-size-bytes": "1",
    }
    table = create_table(tmp_path / "t", properties=properties)
    for number in range(4):
        table.commit(Append((table.file([number], 1),)))
    assert len(table.manifests()) == 4


# Branches.


def test_a_new_branch_starts_at_the_head_of_main(table: CommitTable) -> None:
    table.commit(Append((table.file([1], 1),)))
    before = table.head
    table.commit(Append((table.file([2], 1),)), branch="audit")
    table.commit(Append((table.file([3], 1),)))
    assert table.ids("audit") == [1, 2]
    assert table.ids() == [1, 3]
    audit = table.metadata.snapshot_by_ref("audit")
    assert audit is not None
    assert audit.parent_snapshot_id == before.snapshot_id
    assert audit.summary["total-records"] == "2"


def test_a_branch_keeps_its_retention(table: CommitTable) -> None:
    table.commit(Append((table.file([1], 1),)))
    ref = SnapshotRef(table.head.snapshot_id, RefType.BRANCH, 3, 1000, 2000)
    table.change(SetSnapshotRef("b", ref))
    table.commit(Append((table.file([2], 1),)), branch="b")
    moved = table.metadata.refs["b"]
    assert moved == replace(ref, snapshot_id=moved.snapshot_id)
    assert moved.snapshot_id != ref.snapshot_id


def test_a_tag_cannot_be_committed_to(table: CommitTable) -> None:
    table.commit(Append((table.file([1], 1),)))
    table.change(SetSnapshotRef("v1", SnapshotRef(table.head.snapshot_id, RefType.TAG)))
    with pytest.raises(InvalidOptionError, match="'v1' is a tag"):
        table.commit(Append((table.file([2], 1),)), branch="v1")


def test_a_staged_snapshot_moves_no_branch(table: CommitTable) -> None:
    table.commit(Append((table.file([1], 1),)))
    staged = table.commit(Append((table.file([2], 1),)), wap_id="w1").snapshot
    assert table.ids() == [1]
    assert staged.summary["wap.id"] == "w1"
    assert table.metadata.snapshot_by_id(staged.snapshot_id) == staged
    assert len(table.paths(staged)) == 2
    table.commit(Append((table.file([3], 1),)))
    assert table.ids() == [1, 3]


# Bad input.


def test_delete_files_are_refused(table: CommitTable, append: type[Append]) -> None:
    file = replace(table.file([1], 1), content=FileContent.EQUALITY_DELETES)
    with pytest.raises(InvalidDataError, match="is a delete file"):
        table.commit(append((file,)))
    assert table.left_over() == set()


def test_a_file_that_is_listed_twice_is_refused(table: CommitTable, append: type[Append]) -> None:
    file = table.file([1], 1)
    with pytest.raises(InvalidDataError, match="listed twice"):
        table.commit(append((file, file)))


def test_files_of_a_spec_that_the_table_lacks_are_refused(table: CommitTable) -> None:
    file = replace(table.file([1], 1), spec_id=9)
    with pytest.raises(ValidationError, match="partition spec 9"):
        table.commit(Append((file,)))


def test_files_are_named_after_the_snapshot_and_the_commit(table: CommitTable) -> None:
    snapshot = table.commit(Append((table.file([1], 1),))).snapshot
    match = re.fullmatch(
        rf".*/metadata/snap-{snapshot.snapshot_id}-1-([0-9a-f-]{{36}})\.avro",
        snapshot.manifest_list or "",
    )
    assert match is not None
    (manifest,) = table.manifests()
    assert manifest.manifest_path.endswith(f"/metadata/{match[1]}-m0.avro")


def test_a_snapshot_is_never_older_than_the_table(table: CommitTable) -> None:
    table.commit(Append((table.file([1], 1),)))
    assert table.head.timestamp_ms <= time.time() * 1000
    assert table.head.timestamp_ms <= table.metadata.last_updated_ms
