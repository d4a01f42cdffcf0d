from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from built.delta_tables import BY_DATA, BY_ID, UNPARTITIONED, DeltaTable
from built.write_plans import files_under
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.puffin import read_puffin_footer
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.table_updates import (
    AddPartitionSpec,
    SetDefaultSpec,
    UpgradeFormatVersion,
)

_PATH_ID, _POS_ID = 2147483546, 2147483545
_ROWS = [(i, "ab"[i % 2]) for i in range(10)]


def _table(location: Path, version: int = 2, *, partitioned: bool = False) -> DeltaTable:
    """Two data files, of five rows each, or by partition."""
    table = DeltaTable(location, version=version, spec=BY_DATA if partitioned else UNPARTITIONED)
    if partitioned:
        table.append(*_ROWS)
    else:
        table.append(*_ROWS[:5])
        table.append(*_ROWS[5:])
    return table


def _ids(table: DeltaTable) -> list[int]:
    return [row[0] for row in table.rows()]


def _delete(table: DeltaTable, *ids: int, **more: Any) -> Any:
    return table.change_where(lambda row: row["id"] in ids, **more)


# Position delete files, version 2


def test_a_delete_file_for_each_data_file(tmp_path: Path) -> None:
    table = _table(tmp_path)
    delta = _delete(table, 1, 3, 7)
    assert _ids(table) == [0, 2, 4, 5, 6, 8, 9]
    assert sorted(file.record_count for file in delta.deletes) == [1, 2]
    for file in delta.deletes:
        paths = set(pq.read_table(file.file_path)["file_path"].to_pylist())
        assert paths == {file.referenced_data_file}
        assert Path(file.file_path).name.endswith("-deletes.parquet")


def test_the_bounds_of_the_path_are_whole_and_equal(tmp_path: Path) -> None:
    table = _table(tmp_path)
    (file,) = _delete(table, 7).deletes
    path = (file.referenced_data_file or "").encode()
    assert len(path) > 16
    assert file.lower_bounds[_PATH_ID] == file.upper_bounds[_PATH_ID] == path
    assert file.lower_bounds[_POS_ID] == (2).to_bytes(8, "little")


def test_columns_have_the_reserved_ids_and_are_required(tmp_path: Path) -> None:
    (file,) = _delete(_table(tmp_path), 7).deletes
    schema = pq.read_schema(file.file_path)
    assert [(f.name, f.nullable, f.metadata[b"PARQUET:field_id"]) for f in schema] == [
        ("file_path", False, str(_PATH_ID).encode()),
        ("pos", False, str(_POS_ID).encode()),
    ]


def test_delete_files_of_partitions_are_sorted_by_path_and_position(tmp_path: Path) -> None:
    table = _table(tmp_path)
    found = [row for row in table.read() if row["id"] in (0, 1, 4, 5, 8)]
    found.sort(key=lambda row: (row["_pos"] * 7 % 5, row["_file"]))
    delta = table.change(
        [table.control(found[:2]), table.control(found[2:])], granularity="partition"
    )
    (file,) = delta.deletes
    rows = list(zip(*pq.read_table(file.file_path).to_pydict().values(), strict=True))
    assert rows == sorted(rows)
    assert len(rows) == 5
    assert file.referenced_data_file is None
    assert _ids(table) == [2, 3, 6, 7, 9]


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_deletes_are_in_the_partition_of_their_data_file(tmp_path: Path, granularity: str) -> None:
    table = _table(tmp_path, partitioned=True)
    delta = _delete(table, 1, 2, 3, granularity=granularity)
    assert {file.partition: file.record_count for file in delta.deletes} == {("a",): 1, ("b",): 2}
    for file in delta.deletes:
        assert f"data={file.partition[0]}/" in file.file_path
    assert _ids(table) == [0, 4, 5, 6, 7, 8, 9]


def test_delete_files_have_no_sort_order(tmp_path: Path) -> None:
    (file,) = _delete(_table(tmp_path), 7).deletes
    assert file.sort_order_id is None
    assert file.spec_id == 0


@pytest.mark.parametrize("file_format", [FileFormat.AVRO, FileFormat.ORC])
def test_delete_files_of_other_formats(tmp_path: Path, file_format: FileFormat) -> None:
    table = _table(tmp_path)
    (file,) = _delete(table, 7, delete_format=file_format).deletes
    assert file.file_path.endswith(f"-deletes.{file_format}")
    if file_format is FileFormat.AVRO:
        with open(file.file_path, "rb") as stream:
            rows = list(fastavro.reader(stream))
    else:
        rows = orc.read_table(file.file_path).to_pylist()
    assert rows == [{"file_path": file.referenced_data_file, "pos": 2}]
    assert _ids(table) == [0, 1, 2, 3, 4, 5, 6, 8, 9]


def test_a_delete_file_takes_in_the_older_one_of_its_data_file(tmp_path: Path) -> None:
    table = _table(tmp_path)
    first = _delete(table, 1)
    second = _delete(table, 3)
    assert second.replaced == tuple(_described(table, first.deletes, in_snapshot=1))
    assert second.deletes[0].record_count == 2
    assert _ids(table) == [0, 2, 4, 5, 6, 7, 8, 9]


def test_delete_files_of_partitions_replace_none(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _delete(table, 1, 6, granularity="partition")
    second = _delete(table, 3, 8, granularity="partition")
    assert second.replaced == ()
    assert _ids(table) == [0, 2, 4, 5, 7, 9]


def test_delete_files_of_a_partition_roll_at_their_size(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2)
    for start in range(0, 40_000, 10_000):
        table.append(*((i, "x") for i in range(start, start + 10_000)))
    delta = table.change_where(
        lambda row: row["id"] % 3 == 0, granularity="partition", delete_file_size=1
    )
    assert len(delta.deletes) > 1
    assert len({file.file_path for file in delta.deletes}) == len(delta.deletes)
    assert _ids(table) == sorted((i for i in range(40_000) if i % 3), key=lambda i: repr((i, "x")))


# Deletion vectors, version 3


def test_the_vectors_of_a_task_share_a_file(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    delta = _delete(table, 1, 3, 7)
    assert len({file.file_path for file in delta.deletes}) == 1
    assert sorted(file.record_count for file in delta.deletes) == [1, 2]
    assert _ids(table) == [0, 2, 4, 5, 6, 8, 9]


def test_a_vector_is_described_as_the_format_wants(tmp_path: Path) -> None:
    table = _table(tmp_path, 3, partitioned=True)
    (file,) = _delete(table, 1, 3).deletes
    (blob,) = read_puffin_footer(FileIO(), file.file_path).blobs
    assert blob.type == "deletion-vector-v1"
    # Of the column of row positions, `_pos`.
    assert blob.fields == (2147483645,)
    assert (blob.snapshot_id, blob.sequence_number, blob.compression_codec) == (-1, -1, None)
    assert blob.properties == {
        "referenced-data-file": file.referenced_data_file,
        "cardinality": "2",
    }
    assert (file.content_offset, file.content_size_in_bytes) == (blob.offset, blob.length)
    assert file.file_size_in_bytes == Path(file.file_path).stat().st_size
    assert (file.partition, file.spec_id, file.record_count) == (("b",), 0, 2)
    assert file.file_path.endswith("-deletes.puffin")


def test_a_vector_takes_in_the_older_one(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    first = _delete(table, 1)
    second = _delete(table, 3, 7)
    assert second.replaced == tuple(_described(table, first.deletes, in_snapshot=1))
    assert sorted(file.record_count for file in second.deletes) == [1, 2]
    assert _ids(table) == [0, 2, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_a_vector_takes_in_position_delete_files(tmp_path: Path, granularity: str) -> None:
    table = _table(tmp_path)
    first = _delete(table, 1, 6, granularity=granularity)
    table.table.change(UpgradeFormatVersion(3))
    second = _delete(table, 3)
    assert second.deletes[0].record_count == 2
    # What deletes rows of other data files, too, stays.
    whole = [file for file in first.deletes if file.record_count == 1]
    expected = [
        f.file_path for f in whole if f.referenced_data_file == second.referenced[0].file_path
    ]
    assert [file.file_path for file in second.replaced] == expected
    assert _ids(table) == [0, 2, 4, 5, 7, 8, 9]


def test_puffin_files_roll_at_their_size(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    delta = _delete(table, 1, 7, delete_file_size=1)
    assert len({file.file_path for file in delta.deletes}) == 2
    assert _ids(table) == [0, 2, 3, 4, 5, 6, 8, 9]


# Rows


@pytest.mark.parametrize("version", [2, 3])
def test_an_update_deletes_a_row_and_writes_another(tmp_path: Path, version: int) -> None:
    table = _table(tmp_path, version, partitioned=True)
    delta = table.change_where(
        lambda row: row["id"] in (2, 3), lambda row: {**row, "data": row["data"] + "!"}
    )
    assert (2, "a!") in table.rows()
    assert (3, "b!") in table.rows()
    assert len(table.rows()) == 10
    assert {file.partition for file in delta.files} == {("a!",), ("b!",)}
    assert delta.counts == {"inserted": 0, "updated": 2, "deleted": 0}


@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_files_of_an_older_spec_are_deleted_in_its_partitions(
    tmp_path: Path, version: int
) -> None:
    table = _table(tmp_path, version, partitioned=True)
    by_id = PartitionSpec(1, (replace(BY_ID.fields[0], field_id=1001),))
    table.table.change(AddPartitionSpec(by_id), SetDefaultSpec(1))
    table.append((20, "a"))
    delta = table.change_where(
        lambda row: row["id"] in (1, 20),
        lambda row: {**row, "data": "new"},
        granularity="partition",
    )
    assert {file.spec_id for file in delta.files} == {1}
    assert {(file.spec_id, type(file.partition[0])) for file in delta.deletes} == {
        (0, str),
        (1, int),
    }
    assert dict(table.rows()) == {**dict(_ROWS), 1: "new", 20: "new"}


def test_an_update_keeps_row_ids_and_moves_sequence_numbers(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    before = {row["id"]: row for row in table.read()}
    table.change_where(lambda row: row["id"] == 3, lambda row: {**row, "data": "new"})
    after = {row["id"]: row for row in table.read()}
    assert {i: row["_row_id"] for i, row in after.items()} == {
        i: row["_row_id"] for i, row in before.items()
    }
    moved = [i for i in after if after[i]["_last_updated_sequence_number"] == 3]
    assert moved == [3]


def test_rows_of_all_kinds_in_one_batch(tmp_path: Path) -> None:
    table = _table(tmp_path)
    where = {row["id"]: row for row in table.read()}
    control = {
        "_file": [where[1]["_file"], None, where[7]["_file"], None],
        "_pos": [where[1]["_pos"], None, where[7]["_pos"], None],
        "_write": [False, True, True, None],
    }
    batch = table.batch((1, "-"), (20, "new"), (7, "changed"), (99, "-"), extra=control)
    delta = table.change([batch])
    assert delta.counts == {"inserted": 1, "updated": 1, "deleted": 1}
    expected = {**dict(_ROWS), 20: "new", 7: "changed"}
    del expected[1]
    assert dict(table.rows()) == expected


def test_only_data_files_with_deleted_rows_are_referred_to(tmp_path: Path) -> None:
    table = _table(tmp_path)
    delta = _delete(table, 7)
    (row,) = {r["_file"] for r in table.read() if r["id"] == 8}
    assert [ref.file_path for ref in delta.referenced] == [row]


def test_a_row_that_is_deleted_twice_is_refused(tmp_path: Path) -> None:
    table = _table(tmp_path)
    (row,) = [row for row in table.read() if row["id"] == 3]
    before = files_under(tmp_path)
    tasks = [table.control([row]), table.control([row], lambda row: row)]
    with pytest.raises(InvalidDataError, match="matches more than one row of the source"):
        table.change(tasks)
    assert files_under(tmp_path) == before


def test_an_unknown_data_file_is_refused_by_name(tmp_path: Path) -> None:
    table = _table(tmp_path)
    control = {"_file": ["s3://b/x.parquet"], "_pos": [0], "_write": [True]}
    before = files_under(tmp_path)
    with pytest.raises(InvalidDataError, match=r"s3://b/x\.parquet"):
        table.change([table.batch((1, "x"), extra=control)])
    assert files_under(tmp_path) == before


@pytest.mark.parametrize(("position", "message"), [(None, "no position"), (-1, "negative.* -1")])
def test_a_position_that_is_none_is_refused(
    tmp_path: Path, position: int | None, message: str
) -> None:
    table = _table(tmp_path)
    (path, *_) = table.targets()
    control = {
        "_file": pa.array([path]),
        "_pos": pa.array([position], pa.int64()),
        "_write": pa.array([False]),
    }
    with pytest.raises(InvalidDataError, match=message):
        table.change([pa.RecordBatch.from_pydict(control)])


@pytest.mark.parametrize("version", [2, 3])
def test_a_failed_task_leaves_no_file(tmp_path: Path, version: int) -> None:
    table = _table(tmp_path, version)
    found = [row for row in table.read() if row["id"] in (3, 7)]
    (old,) = _delete(table, 1).deletes
    Path(old.file_path).write_bytes(b"damaged")
    before = files_under(tmp_path)
    with pytest.raises(CorruptFileError, match="deletes"):
        table.change([table.control(found, lambda row: row)])
    assert files_under(tmp_path) == before


def _described(
    table: DeltaTable, deletes: Sequence[DataFile], *, in_snapshot: int
) -> list[DataFile]:
    """The delete files as manifests describe them."""
    paths = {file.file_path for file in deletes}
    snapshot = table.table.metadata.snapshots[in_snapshot + 1]
    return [
        entry.data_file
        for entry in table.table.entries(snapshot)
        if entry.data_file.file_path in paths
    ]


# Whole histories

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["delete", "update", "insert", "upgrade"]),
        st.integers(0, 6),
        st.integers(1, 4),
        st.sampled_from(["file", "partition"]),
    ),
    max_size=6,
)


@examples(30)
@given(steps=_STEPS, version=st.sampled_from([2, 3]), partitioned=st.booleans())
def test_histories_leave_the_rows_of_a_plain_model(
    steps: list[tuple[str, int, int, str]], version: int, partitioned: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = _table(Path(directory), version, partitioned=partitioned)
        model = dict(_ROWS)
        for number, (step, rest, modulus, granularity) in enumerate(steps):
            chosen = {i for i in model if i % (modulus + 1) == rest % (modulus + 1)}

            def is_chosen(row: dict[str, Any], chosen: set[int] = chosen) -> bool:
                return row["id"] in chosen

            if step == "delete":
                table.change_where(is_chosen, granularity=granularity)
                model = {i: value for i, value in model.items() if i not in chosen}
            elif step == "update":
                text = f"{number % 3}"
                table.change_where(
                    is_chosen, lambda row, t=text: {**row, "data": t}, granularity=granularity
                )
                model |= dict.fromkeys(chosen, text)
            elif step == "insert":
                added = {100 * (number + 1) + i: "abc"[i % 3] for i in range(rest)}
                table.append(*added.items()) if added else None
                model |= added
            elif table.version == 2:
                table.table.change(UpgradeFormatVersion(3))
            assert dict(table.rows()) == model
            assert len(table.rows()) == len(model)
