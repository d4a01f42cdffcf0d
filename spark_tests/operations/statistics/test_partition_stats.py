"""Partition statistics count what is there, from those of an ancestor if there are any."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import new_table, rows
from effort import examples
from hypothesis import given, strategies as st
from strategies.evolving_table import EvolvingTable

from icebergds import PartitionStatisticsFile, Table
from icebergds.errors import InvalidOptionError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.statistics import partition_stats
from icebergds.operations.statistics.partition_stats_file import read_partition_stats
from icebergds.operations.statistics.partition_totals import PartitionStats


def _partitioned(directory: Path, **given: Any) -> Table:
    table = new_table(directory, partition_by="day", **given)
    table.append(rows(1, 2, day=5))
    table.append(rows(3, day=-1))
    return table


def _read(table: Table, file: PartitionStatisticsFile | None) -> list[PartitionStats]:
    assert file is not None
    return list(read_partition_stats(table.io, table.metadata, file))


def _computed(table: Table) -> dict[tuple[Any, ...], list[int]]:
    """Rows, files and deletes by partition and spec; without partitions that have no files now."""
    return {
        (*part.partition, part.spec_id): part.sums.tolist()
        for part in _read(table, table.compute_partition_stats())
        if part.sums.any()
    }


def _counted(table: Table) -> dict[tuple[Any, ...], list[int]]:
    """The same by the metadata table of files."""
    found: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * 8)
    files = table.inspect.files()
    at = files.schema.get_field_index("partition")
    partition = files.column(at).combine_chunks().flatten()
    for number, file in enumerate(files.to_pylist()):
        values = tuple(_plain(column[number]) for column in partition)
        sums = found[(*values, file["spec_id"])]
        first, count = {0: (0, 1), 1: (3, 4), 2: (5, 6)}[file["content"]]
        sums[first] += file["record_count"]
        sums[7 if file["file_format"].lower() == "puffin" else count] += 1
        if file["content"] == 0:
            sums[2] += file["file_size_in_bytes"]
    return dict(found)


def _plain(value: pa.Scalar) -> Any:
    """A partition value as it is in memory."""
    if pa.types.is_date(value.type):
        return value.cast(pa.int32()).as_py()
    return value.cast(pa.int64()).as_py() if pa.types.is_timestamp(value.type) else value.as_py()


def _manifests_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that are read from now on."""
    read: list[str] = []
    real = partition_stats.read_manifest_columns

    def reading(io: Any, manifest: Any, *more: Any, **named: Any) -> Any:
        read.append(manifest.manifest_path)
        return real(io, manifest, *more, **named)

    monkeypatch.setattr(partition_stats, "read_manifest_columns", reading)
    return read


@pytest.mark.parametrize("version", [1, 2, 3])
def test_statistics_from_those_of_ancestors_count_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, version: int
) -> None:
    @examples(32)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = EvolvingTable(data.draw, tmp_path_factory.mktemp("lake"), "t", version)
        made.table.update_spec().add_field("id", "bucket[2]", "p1_bucket").commit()
        for _ in range(data.draw(st.integers(1, 8))):
            made.step()
            if made.table.current_snapshot() is not None and data.draw(st.booleans()):
                made.table.compute_partition_stats()
        if made.table.current_snapshot() is not None:
            assert _computed(made.table) == _counted(made.table)

    check()


def test_only_manifests_added_since_an_ancestor_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _partitioned(tmp_path)
    read = _manifests_read(monkeypatch)
    table.compute_partition_stats()
    assert len(read) == 2
    table.append(rows(4, day=5))
    read.clear()
    assert _computed(table) == _counted(table)
    assert len(read) == 1
    table.compute_partition_stats()
    assert len(read) == 1


def test_files_are_counted_once_if_snapshots_list_manifests_by_path(tmp_path: Path) -> None:
    # As in old tables of version 1, where nothing tells who added a manifest.
    table = _partitioned(tmp_path, version=1)
    first, second = table.snapshots()
    table.compute_partition_stats(first.snapshot_id)
    paths = tuple(m.manifest_path for m in read_snapshot_manifests(table.io, second))
    found = table._current()
    snapshots = (first, replace(second, manifest_list=None, manifests=paths))
    metadata = replace(found.metadata, snapshots=snapshots)
    old = replace(found, state=replace(found.state, metadata=metadata))
    file, _ = partition_stats.compute_partition_stats(old, None)
    assert [part.sums[:2].tolist() for part in _read(table, file)] == [[1, 1], [2, 1]]


def test_statistics_start_anew_from_a_damaged_file(tmp_path: Path) -> None:
    table = _partitioned(tmp_path)
    first = table.compute_partition_stats()
    assert first is not None
    Path(first.statistics_path).write_bytes(b"PAR1")
    table.append(rows(4, day=5))
    assert _computed(table) == _counted(table)


def test_rows_are_sorted_with_nulls_first(tmp_path: Path) -> None:
    table = _partitioned(tmp_path)
    table.append(pa.table({"id": pa.array([9], pa.int64())}))
    found = _read(table, table.compute_partition_stats())
    assert [part.partition for part in found] == [(None,), (-1,), (5,)]


def test_the_last_update_is_that_of_the_snapshot_that_removed_files(tmp_path: Path) -> None:
    table = _partitioned(tmp_path)
    table.compute_partition_stats()
    table.delete("day = 5")
    newest = table.snapshots()[-1]
    (_, part) = _read(table, table.compute_partition_stats())
    assert part.sums.tolist() == [0] * 8
    assert (part.updated_ms, part.snapshot_id) == (newest.timestamp_ms, newest.snapshot_id)


def test_columns_have_the_names_ids_and_nulls_of_the_specification(tmp_path: Path) -> None:
    table = _partitioned(tmp_path, version=3)
    file = table.compute_partition_stats()
    assert file is not None
    columns = {
        field.name: (int(field.metadata[b"PARQUET:field_id"]), field.nullable)
        for field in pq.read_schema(file.statistics_path)
    }
    assert columns == {
        "partition": (1, False),
        "spec_id": (2, False),
        "data_record_count": (3, False),
        "data_file_count": (4, False),
        "total_data_file_size_in_bytes": (5, False),
        "position_delete_record_count": (6, False),
        "position_delete_file_count": (7, False),
        "equality_delete_record_count": (8, False),
        "equality_delete_file_count": (9, False),
        "total_record_count": (10, True),
        "last_updated_at": (11, True),
        "last_updated_snapshot_id": (12, True),
        "dv_count": (13, False),
    }


@pytest.mark.parametrize(
    ("table_format", "file_format"), [("parquet", "parquet"), ("avro", "avro"), ("orc", "parquet")]
)
def test_files_have_the_format_of_the_table_unless_java_does_not_read_it(
    tmp_path: Path, table_format: str, file_format: str
) -> None:
    table = _partitioned(tmp_path, properties={"write__format__default": table_format})
    file = table.compute_partition_stats()
    assert file is not None
    assert file.statistics_path.endswith(f".{file_format}")
    assert file.file_size_in_bytes == Path(file.statistics_path).stat().st_size
    assert _computed(table) == _counted(table)


def test_statistics_of_version_2_go_on_in_version_3(tmp_path: Path) -> None:
    table = _partitioned(tmp_path)
    table.compute_partition_stats()
    table.upgrade(3)
    table.append(rows(4, day=5))
    assert _computed(table) == _counted(table)


def test_deletion_vectors_are_counted_apart_from_delete_files(tmp_path: Path) -> None:
    table = _partitioned(tmp_path, version=3)
    by_key = {"write.upsert.mode": "equality-deletes"}
    table.delete_keys(rows(1, day=5), ["id", "day"], options=by_key)
    table.compute_partition_stats()
    assert table.convert_equality_deletes().added_delete_files_count == 1
    (_, part) = _read(table, table.compute_partition_stats())
    assert part.sums[3:].tolist() == [1, 0, 0, 0, 1]
    assert _computed(table) == _counted(table)


def test_counts_that_another_writer_left_null_are_zero(tmp_path: Path) -> None:
    table = _partitioned(tmp_path)
    file = table.compute_partition_stats()
    assert file is not None
    stored = pq.read_table(file.statistics_path)
    for at in (5, 6, 7, 8):
        empty = pa.nulls(len(stored), stored.schema.field(at).type)
        stored = stored.set_column(at, stored.schema.field(at), empty)
    pq.write_table(stored, file.statistics_path)
    table.append(rows(4, day=5))
    assert _computed(table) == _counted(table)


def test_a_table_that_is_not_partitioned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"it is not partitioned.*update_spec\(\)"):
        new_table(tmp_path).compute_partition_stats()


def test_statistics_of_partitions_expire_with_their_snapshot(tmp_path: Path) -> None:
    table = _partitioned(tmp_path)
    file = table.compute_partition_stats()
    table.append(rows(4, day=5))
    expired = table.expire_snapshots(older_than=table.snapshots()[-1].timestamp_ms + 1)
    assert expired.deleted_statistics_files_count == 1
    assert table.partition_statistics_files() == ()
    assert file is not None
    assert not Path(file.statistics_path).exists()
