"""Statistics files are set and removed by hand, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built.api_tables import new_table, rows

from icebergds import PartitionStatisticsFile, StatisticsFile, Table, load_table
from icebergds.errors import CommitStateUnknownError, InvalidOptionError, NoSuchSnapshotError
from icebergds.testing.faults import Fault, Faults, FaultyOperations, When


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1))
    return table


def _files(table: Table) -> tuple[StatisticsFile, PartitionStatisticsFile]:
    (snapshot,) = table.snapshots()
    return (
        StatisticsFile(snapshot.snapshot_id, "s.stats", 10, 5),
        PartitionStatisticsFile(snapshot.snapshot_id, "p.parquet", 10),
    )


def test_statistics_are_set_and_removed_together(table: Table) -> None:
    statistics, partitions = _files(table)
    with table.update_statistics() as update:
        update.set_statistics(statistics).set_partition_statistics(partitions)
    assert table.refresh().statistics_files() == (statistics,)
    assert table.partition_statistics_files() == (partitions,)
    with table.update_statistics() as update:
        update.remove_statistics(statistics.snapshot_id)
        update.remove_partition_statistics(statistics.snapshot_id)
    assert table.refresh().statistics_files() == table.partition_statistics_files() == ()


def test_statistics_that_are_as_wanted_are_not_committed(table: Table) -> None:
    before = table.metadata_location
    table.update_statistics().remove_statistics(7).commit()
    assert table.metadata_location == before


def test_a_transaction_sets_statistics_with_its_other_changes(table: Table) -> None:
    statistics, _ = _files(table)
    with table.transaction() as tx:
        tx.update_statistics().set_statistics(statistics).commit()
        tx.append(rows(2))
    assert table.refresh().statistics_files() == (statistics,)
    assert len(table.snapshots()) == 2


def test_a_transaction_of_statistics_alone_is_not_taken_for_committed(table: Table) -> None:
    found = table._current()
    faults = Faults([Fault(0, When.BEFORE, TimeoutError("lost"))], counted=("commit",))
    table._operations = FaultyOperations(found.operations, faults)
    tx = table.transaction()
    tx.update_statistics().set_statistics(_files(table)[0]).commit()
    with pytest.raises(CommitStateUnknownError):
        tx.commit_transaction()
    assert load_table(table.location()).statistics_files() == ()


def test_statistics_of_a_snapshot_that_does_not_exist_are_refused(table: Table) -> None:
    update = table.update_statistics().set_statistics(StatisticsFile(7, "s.stats", 10, 5))
    with pytest.raises(NoSuchSnapshotError, match=r"table .*: snapshot 7, which .* s\.stats is of"):
        update.commit()


@pytest.mark.parametrize(
    ("method", "value", "text"),
    [
        ("set_statistics", "s.stats", "expected a StatisticsFile of icebergds"),
        ("set_partition_statistics", None, "expected a PartitionStatisticsFile of icebergds"),
        ("remove_statistics", "x", "snapshot_id"),
        ("remove_partition_statistics", None, "snapshot_id"),
    ],
)
def test_values_of_other_types_are_refused(
    table: Table, method: str, value: Any, text: str
) -> None:
    with pytest.raises(InvalidOptionError, match=text):
        getattr(table.update_statistics(), method)(value)
