"""Table statistics are of the live rows of a snapshot, in one file that one commit sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import new_table, rows
from commit.interleaving import InterleavedOperations

from icebergds import StatisticsFile, Table, load_catalog
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.errors import InvalidOptionError, NoSuchSnapshotError
from icebergds.formats.puffin import read_puffin_footer
from icebergds.operations.runner import LocalRunner
from icebergds.operations.statistics.table_stats import compute_table_stats


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Rows of the ids 1 to 3, in two files."""
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3))
    return table


def _ndv(file: StatisticsFile | None) -> dict[int, str]:
    assert file is not None
    return {blob.fields[0]: blob.properties["ndv"] for blob in file.blob_metadata}


def _meanwhile(table: Table, *others: Callable[[], object]) -> StatisticsFile | None:
    """Computes statistics while others commit."""
    loaded = table._current()
    operations = InterleavedOperations(loaded.operations, others)
    found = LoadedTable(table._address, operations, loaded.state)
    return compute_table_stats(found, None, None, LocalRunner())[0]


def _stats_files(table: Table) -> list[str]:
    return [path.name for path in (Path(table.location()) / "metadata").glob("*.stats")]


def test_deleted_rows_are_not_counted(table: Table) -> None:
    table.delete_keys(pa.table({"id": pa.array([1], pa.int64())}), ["id"])
    assert _ndv(table.compute_table_stats()) == {1: "2", 2: "1", 3: "2"}


def test_the_file_is_described_by_the_metadata_as_it_is(table: Table) -> None:
    file = table.compute_table_stats(["name", "id"])
    assert file is not None
    assert table.refresh().statistics_files() == (file,)
    data = Path(file.statistics_path).read_bytes()
    footer = read_puffin_footer(table.io, file.statistics_path)
    assert file.file_size_in_bytes == len(data)
    assert data[-file.file_footer_size_in_bytes :].startswith(b"PFA1{")
    assert [blob.fields for blob in footer.blobs] == [(3,), (1,)]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert {(blob.snapshot_id, blob.sequence_number) for blob in file.blob_metadata} == {
        (snapshot.snapshot_id, snapshot.sequence_number)
    }


def test_an_earlier_snapshot_has_statistics_of_its_own(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    assert _ndv(table.compute_table_stats("id", first)) == {1: "2"}
    assert _ndv(table.compute_table_stats("id")) == {1: "3"}
    assert [file.snapshot_id for file in table.statistics_files()] == [
        first,
        table.snapshots()[1].snapshot_id,
    ]


def test_statistics_of_a_snapshot_are_replaced(table: Table) -> None:
    table.compute_table_stats()
    file = table.compute_table_stats("id")
    assert table.statistics_files() == (file,)


def test_a_table_without_snapshots_gets_no_statistics(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert table.compute_table_stats() is None
    assert table.statistics_files() == ()


def test_an_empty_snapshot_has_no_distinct_values(table: Table) -> None:
    table.delete("true")
    assert _ndv(table.compute_table_stats()) == {1: "0", 2: "0", 3: "0"}


def test_fields_of_structs_are_counted_by_name_only(tmp_path: Path) -> None:
    struct = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))])
    data = pa.table({"id": pa.array([1, 2]), "s": pa.array([{"x": 5, "y": [1]}, None], struct)})
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", data.schema)
    table.append(data)
    field_id = table.schema().find_id("s.x")
    assert _ndv(table.compute_table_stats()) == {1: "2"}
    file = table.compute_table_stats(["s.x", "id", "s.x"])
    assert file is not None
    assert [blob.fields for blob in file.blob_metadata] == [(field_id,), (1,)]
    assert _ndv(file) == {field_id: "1", 1: "2"}
    for name in ("s", "s.y", "s.y.element"):
        with pytest.raises(
            InvalidOptionError, match=r"has no statistics, as .* is a (list|struct)"
        ):
            table.compute_table_stats(name)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"columns": "nam"}, InvalidOptionError, "no column 'nam'.*name"),
        ({"columns": 3}, InvalidOptionError, "columns"),
        ({"snapshot_id": 5}, NoSuchSnapshotError, "snapshot 5 does not exist"),
    ],
)
def test_wrong_arguments_are_refused(
    table: Table, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        table.compute_table_stats(**arguments)


def test_statistics_are_committed_after_other_commits(table: Table) -> None:
    file = _meanwhile(table, lambda: table.append(rows(7)))
    assert table.refresh().statistics_files() == (file,)
    assert len(table.snapshots()) == 3


def test_statistics_of_a_snapshot_that_expires_meanwhile_are_refused(table: Table) -> None:
    def expire() -> None:
        table.append(rows(7))
        table.expire_snapshots(older_than=table.snapshots()[-1].timestamp_ms + 1)

    with pytest.raises(NoSuchSnapshotError, match=r"table .*: snapshot \d+, which the statistics"):
        _meanwhile(table, expire)
    assert _stats_files(table) == []


def test_statistics_expire_with_their_snapshot(table: Table) -> None:
    table.compute_table_stats(snapshot_id=table.snapshots()[0].snapshot_id)
    kept = table.compute_table_stats()
    expired = table.expire_snapshots(older_than=table.snapshots()[-1].timestamp_ms + 1)
    assert expired.deleted_statistics_files_count == 1
    assert table.statistics_files() == (kept,)
    assert _stats_files(table) == [Path(kept.statistics_path).name] if kept else []


def test_transactions_compute_no_statistics(table: Table) -> None:
    with table.transaction() as tx, pytest.raises(InvalidOptionError, match="not possible inside"):
        tx.compute_table_stats()
