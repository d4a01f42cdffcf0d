"""Statistics files of encrypted tables are refused, unless a property takes them in clear."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from encrypted_tables import encrypted_table, ids_of, rows, stored_files

from icebergds import PartitionStatisticsFile, StatisticsFile, Table
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError

_ALLOWED = "icebergds.statistics-in-clear"
_REFUSED = rf"statistics files cannot be.*set {_ALLOWED} = true"


def _partitioned(directory: Path, **properties: str) -> Table:
    table = encrypted_table(directory, **properties)
    table.update_spec().add_field("day").commit()
    table.append(rows(1, 2))
    table.append(rows(3, day=2))
    return table


def _set_table_statistics(table: Table) -> None:
    with table.update_statistics() as update:
        update.set_statistics(StatisticsFile(_snapshot(table), "other.stats", 1, 1, ()))


def _set_partition_statistics(table: Table) -> None:
    with table.update_statistics() as update:
        update.set_partition_statistics(
            PartitionStatisticsFile(_snapshot(table), "other.parquet", 1)
        )


def _in_transaction(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.append(rows(4))
        _set_table_statistics(transaction)


def _snapshot(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.mark.parametrize(
    "write",
    [
        Table.compute_table_stats,
        Table.compute_partition_stats,
        _set_table_statistics,
        _set_partition_statistics,
        _in_transaction,
    ],
)
def test_statistics_are_refused_by_the_name_of_the_property(
    tmp_path: Path, write: Callable[[Table], object]
) -> None:
    table = _partitioned(tmp_path)
    before = stored_files(table)
    with pytest.raises(UnsupportedFeatureError, match=_REFUSED):
        write(table)
    assert not table.refresh().statistics_files()
    assert not table.partition_statistics_files()
    assert [path for path in stored_files(table) if "stat" in path.name] == []
    assert set(stored_files(table)) >= set(before)
    assert ids_of(table) == [1, 2, 3]


def test_statistics_in_clear_are_written_if_the_table_allows_them(tmp_path: Path) -> None:
    table = _partitioned(tmp_path, **{_ALLOWED: "true"})
    counted = table.compute_table_stats(["id"])
    assert counted is not None
    assert [blob.properties["ndv"] for blob in counted.blob_metadata] == ["3"]
    assert Path(counted.statistics_path.removeprefix("file:")).read_bytes()[:4] == b"PFA1"
    assert table.compute_partition_stats() is not None
    table.append(rows(4, day=2))
    # That of the parent is read, and written again with the new file.
    of_partitions = table.compute_partition_stats()
    assert of_partitions is not None
    assert Path(of_partitions.statistics_path.removeprefix("file:")).read_bytes()[:4] == b"PAR1"
    clear = {counted.statistics_path, of_partitions.statistics_path}
    assert {file.statistics_path for file in table.partition_statistics_files()} & clear
    table.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
    assert ids_of(table) == [1, 2, 3, 4]


def test_statistics_that_are_no_longer_allowed_can_be_removed(tmp_path: Path) -> None:
    table = _partitioned(tmp_path, **{_ALLOWED: "true"})
    table.compute_table_stats()
    table.compute_partition_stats()
    table.set_properties({_ALLOWED: "false"})
    with table.update_statistics() as update:
        update.remove_statistics(_snapshot(table))
        update.remove_partition_statistics(_snapshot(table))
    assert not table.statistics_files()
    assert not table.partition_statistics_files()
    with pytest.raises(UnsupportedFeatureError, match=_REFUSED):
        table.compute_table_stats()


def test_a_malformed_property_allows_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=_ALLOWED):
        encrypted_table(tmp_path, **{_ALLOWED: "yes"})
