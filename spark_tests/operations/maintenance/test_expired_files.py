"""Which files an expiry deletes, what it reads for that, and what becomes of failures."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from built.api_tables import ids_of, new_table, rows
from built.commit_tables import SCHEMA, open_table
from built.damage import drop_block
from built.tables import TableBuilder

from icebergds import ExpiredSnapshots, Table, load_table
from icebergds.errors import IcebergError, UnsupportedFeatureError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.updates.table_updates import SetPartitionStatistics, SetStatistics

_ALL = 1_750_000_000_000
"""After all snapshots of a builder, which are of 2023."""


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t", SCHEMA)


def _expire(builder: TableBuilder, **more: int) -> ExpiredSnapshots:
    return load_table(builder.location).expire_snapshots(_ALL, **more)


def _table(builder: TableBuilder) -> Table:
    return load_table(builder.location)


def _names(builder: TableBuilder, directory: str = "data") -> set[str]:
    return {str(path) for path in (builder.location / directory).iterdir()}


def _manifests(builder: TableBuilder, snapshot_id: int) -> list[str]:
    snapshot = builder.metadata.snapshots_by_id[snapshot_id]
    return [m.manifest_path for m in read_snapshot_manifests(builder.io, snapshot)]


def test_files_are_counted_by_kind(builder: TableBuilder) -> None:
    one, two = builder.data_file([(1, 0), (2, 0)]), builder.data_file([(3, 0), (4, 0)])
    builder.commit(one, two)
    by_position = builder.position_deletes({one.file_path: [0]})
    by_key = builder.equality_deletes(["id"], [(3,)])
    builder.commit(by_position, by_key, operation="delete")
    statistics = [builder.location / "metadata" / name for name in ("s.puffin", "p.parquet", "k")]
    for path in statistics:
        path.write_bytes(b"x")
    dropped, partitions, kept = map(str, statistics)
    builder.commit(
        builder.data_file([(2, 0), (4, 0)]), removed=[one, two, by_position], operation="overwrite"
    )
    builder.commit(removed=[by_key], operation="delete")
    open_table(builder.location).change(
        SetStatistics(StatisticsFile(1001, dropped, 1, 1)),
        SetPartitionStatistics(PartitionStatisticsFile(1002, partitions, 1)),
        SetStatistics(StatisticsFile(1004, kept, 1, 1)),
    )
    manifests = {path for number in range(1001, 1004) for path in _manifests(builder, number)}
    manifests -= set(_manifests(builder, 1004))
    assert _expire(builder) == ExpiredSnapshots(
        deleted_data_files_count=2,
        deleted_position_delete_files_count=1,
        deleted_equality_delete_files_count=1,
        deleted_manifest_files_count=len(manifests),
        deleted_manifest_lists_count=3,
        deleted_statistics_files_count=2,
        expired_snapshot_ids=(1001, 1002, 1003),
    )
    assert not any(Path(path).exists() for path in manifests)
    assert [path.name for path in statistics if path.exists()] == ["k"]
    assert ids_of(_table(builder)) == [2, 4]


@pytest.mark.parametrize("replaced", [1, 2])
def test_a_file_of_vectors_goes_when_none_of_them_is_left(tmp_path: Path, replaced: int) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, format_version=3)
    files = [builder.data_file([(number, 0), (number + 1, 0)]) for number in (1, 3)]
    builder.commit(*files)
    vectors = builder.deletion_vectors([(file, [0]) for file in files])
    (shared,) = {vector.file_path for vector in vectors}
    builder.commit(*vectors, operation="delete")
    for file, vector in list(zip(files, vectors, strict=True))[:replaced]:
        newer = builder.deletion_vectors([(file, [0, 1])])
        builder.commit(*newer, removed=[vector], operation="delete")
    assert _expire(builder).deleted_position_delete_files_count == replaced - 1
    assert Path(shared).exists() == (replaced == 1)
    assert ids_of(_table(builder)) == [4][replaced - 1 :]


def test_a_rolled_back_snapshot_takes_its_own_files_along(builder: TableBuilder) -> None:
    one, two = builder.data_file([(1, 0)]), builder.data_file([(2, 0)])
    builder.commit(one)
    builder.commit(two, removed=[one], operation="overwrite")
    builder.set_ref("main", SnapshotRef(1001, RefType.BRANCH))
    assert _expire(builder).deleted_data_files_count == 1
    assert _names(builder) == {one.file_path}
    assert ids_of(_table(builder)) == [1]


def test_a_staged_snapshot_is_kept_while_it_is_young(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2), options={"wap.id": "staged"})
    head, staged = table.snapshots()
    table.expire_snapshots(staged.timestamp_ms)
    assert ids_of(table, snapshot_id=staged.snapshot_id) == [1, 2]
    expired = table.expire_snapshots(staged.timestamp_ms + 1)
    assert (expired.expired_snapshot_ids, expired.deleted_data_files_count) == (
        (staged.snapshot_id,),
        1,
    )
    assert ids_of(table) == [1]
    assert table.snapshots() == (head,)


def test_files_of_a_staged_snapshot_that_was_picked_are_kept(builder: TableBuilder) -> None:
    """A cherry-pick lists the files of another snapshot again, in a manifest of its own."""
    picked = builder.data_file([(2, 0)])
    builder.commit(builder.data_file([(1, 0)]))
    builder.commit(picked, branch="staged")
    builder.commit(picked)
    builder.set_ref("staged", SnapshotRef(1002, RefType.BRANCH, max_ref_age_ms=1))
    expired = _expire(builder)
    assert expired.expired_refs == ("staged",)
    assert expired.deleted_data_files_count == 0
    assert ids_of(_table(builder)) == [1, 2]


@pytest.mark.parametrize(
    ("written", "again"),
    [
        ("/t/data/", "/t//data/"),
        ("/t/data/", "/t/./data/"),
        ("/t/data/", "/t/metadata/../data/"),
        ("/t/data/", "/link/data/"),
        ("/", "file:///"),
        ("/", "file:/"),
    ],
)
def test_one_file_under_two_names_is_kept(
    tmp_path: Path, builder: TableBuilder, written: str, again: str
) -> None:
    (tmp_path / "link").symlink_to(builder.location)
    file = builder.data_file([(1, 0)])
    builder.commit(file)
    same = replace(file, file_path=file.file_path.replace(written, again, 1))
    builder.commit(same, removed=[file], operation="replace")
    assert _expire(builder).deleted_data_files_count == 0
    assert ids_of(_table(builder)) == [1]


def test_files_outside_of_the_table_are_told_apart(tmp_path: Path, builder: TableBuilder) -> None:
    others = [TableBuilder(tmp_path / name, SCHEMA) for name in ("imported", "elsewhere")]
    gone, kept = (other.data_file([(1, 0)]) for other in others)
    builder.commit(gone, kept)
    builder.commit(removed=[gone], operation="delete")
    assert _expire(builder).deleted_data_files_count == 1
    assert (Path(gone.file_path).exists(), Path(kept.file_path).exists()) == (False, True)


def test_deletes_may_be_one_by_one(builder: TableBuilder) -> None:
    files = [builder.data_file([(number, 0)]) for number in range(5)]
    builder.commit(*files)
    builder.commit(removed=files[1:], operation="delete")
    assert _expire(builder, max_concurrent_deletes=2).deleted_data_files_count == 4
    assert _names(builder) == {files[0].file_path}


@pytest.mark.parametrize("max_concurrent_deletes", [None, 2])
def test_a_file_that_cannot_be_deleted_is_counted_and_logged(
    builder: TableBuilder, max_concurrent_deletes: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    files = [builder.data_file([(number, 0)]) for number in range(3)]
    builder.commit(*files)
    builder.commit(removed=files[1:], operation="delete")
    Path(files[1].file_path).unlink()
    Path(files[1].file_path).mkdir()
    with caplog.at_level(logging.WARNING):
        expired = load_table(builder.location).expire_snapshots(
            _ALL, max_concurrent_deletes=max_concurrent_deletes
        )
    assert (expired.deleted_data_files_count, expired.failed_files_count) == (1, 1)
    assert expired.deleted_manifest_lists_count == 1
    (message,) = caplog.messages
    assert message.startswith(f"the data file {files[1].file_path} was not deleted: ")
    assert _names(builder) == {files[0].file_path, files[1].file_path}


def test_a_file_that_the_storage_cannot_name_is_counted_as_failed(builder: TableBuilder) -> None:
    file = builder.data_file([(1, 0)])
    odd = replace(file, file_path="odd://bucket/file.parquet")
    builder.commit(file, odd)
    builder.commit(removed=[odd], operation="delete")
    expired = _expire(builder)
    assert (expired.deleted_data_files_count, expired.failed_files_count) == (0, 1)
    assert expired.deleted_manifest_files_count == 1


def _replaced(builder: TableBuilder) -> None:
    """Two snapshots; the second one keeps one file of the first in a manifest of its own."""
    kept, gone = builder.data_file([(1, 0)]), builder.data_file([(2, 0)])
    builder.commit(kept, gone)
    builder.commit(removed=[gone], operation="delete")


@pytest.mark.parametrize(
    ("which", "damage"),
    [
        *product(("manifest", "manifest list"), ("missing", "cut")),
        ("manifest", "fewer entries"),
    ],
)
def test_nothing_is_deleted_if_a_kept_snapshot_cannot_be_read(
    builder: TableBuilder, which: str, damage: str
) -> None:
    _replaced(builder)
    head = builder.metadata.snapshots_by_id[1002]
    (manifest,) = _manifests(builder, 1002)
    path = Path(manifest if which == "manifest" else str(head.manifest_list))
    before = _names(builder), _names(builder, "metadata")
    if damage == "missing":
        path.unlink()
        before[1].remove(str(path))
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        drop_block(path)
    with pytest.raises(
        IcebergError,
        match=r"1 snapshot expired, but no file was deleted.*left for remove_orphan_files",
    ):
        _expire(builder)
    assert _names(builder) == before[0]
    assert _names(builder, "metadata") >= before[1]
    assert [s.snapshot_id for s in _table(builder).snapshots()] == [1002]


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_manifest_of_an_expired_snapshot_does_not_stop_it(
    builder: TableBuilder, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = [builder.data_file([(number, 0)]) for number in range(3)]
    builder.commit(files[0])
    builder.commit(files[1])
    builder.commit(files[2], removed=files[:2], operation="overwrite")
    (path,) = map(Path, _manifests(builder, 1001))
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING):
        expired = _expire(builder)
    assert expired.deleted_data_files_count == 1
    assert any("what it lists is not deleted" in message for message in caplog.messages)
    assert _names(builder) == {files[0].file_path, files[2].file_path}
    assert not path.exists()
    assert ids_of(_table(builder)) == [2]


def test_an_encrypted_table_expires_nothing(builder: TableBuilder) -> None:
    _replaced(builder)
    first, second = builder.metadata.snapshots
    builder.set_snapshots([first, replace(second, key_id="k")])
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        _expire(builder)
    assert len(_table(builder).snapshots()) == 2


def _reads(builder: TableBuilder) -> Counter[str]:
    """How often an expiry reads each manifest and manifest list."""
    reads: Counter[str] = Counter()
    read_bytes = FileIO.read_bytes

    def noted(io: FileIO, location: str) -> bytes:
        if location.endswith(".avro"):
            reads[location] += 1
        return read_bytes(io, location)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FileIO, "read_bytes", noted)
        _expire(builder)
    return reads


def test_manifests_that_snapshots_share_are_not_read(builder: TableBuilder) -> None:
    for number in range(4):
        builder.commit(builder.data_file([(number, 0)]))
    lists = {str(snapshot.manifest_list) for snapshot in builder.metadata.snapshots}
    assert _reads(builder) == dict.fromkeys(lists, 1)


def test_every_manifest_is_read_once(builder: TableBuilder) -> None:
    files = [builder.data_file([(number, 0)]) for number in range(4)]
    for file in files:
        builder.commit(file)
    builder.commit(removed=[files[0]], operation="delete")
    reads = _reads(builder)
    assert set(reads.values()) == {1}
    # The removed file's manifest, and the four of the head.
    assert len(reads) == 5 + 1 + 4


def test_a_failing_read_of_a_kept_manifest_deletes_nothing(builder: TableBuilder) -> None:
    _replaced(builder)
    before = _names(builder)
    (manifest,) = _manifests(builder, 1002)
    read_bytes = FileIO.read_bytes

    def failing(io: FileIO, location: str) -> bytes:
        if location == manifest:
            raise OSError("no answer")
        return read_bytes(io, location)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FileIO, "read_bytes", failing)
        with pytest.raises(IcebergError, match=r"no file was deleted.*no answer"):
            _expire(builder)
    assert _names(builder) == before
