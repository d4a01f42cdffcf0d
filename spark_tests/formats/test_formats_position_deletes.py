from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from corpus import corpus_dir
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import CorruptFileError, MissingFileError
from icebergds.formats.deletes import positions
from icebergds.formats.deletes.position_deletes import positions_nbytes, read_position_deletes
from icebergds.formats.deletes.positions import PositionCollector, PositionSet
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat

_PATH_ID, _POS_ID, _ROW_ID = 2147483546, 2147483545, 2147483544
Rows = Sequence[tuple[str, int]]

# Stretches, so that both sparse and dense sets appear.
_SETS = st.lists(
    st.tuples(st.integers(0, 5_000), st.sampled_from([1, 1, 3, 200]), st.sampled_from([1, 2, 70])),
    max_size=5,
).map(lambda parts: sorted({p for a, n, step in parts for p in range(a, a + n * step, step)}))


def _table(rows: Rows, *, ids: bool = True) -> pa.Table:
    def field(name: str, arrow_type: pa.DataType, field_id: int) -> pa.Field:
        metadata = {"PARQUET:field_id": str(field_id)} if ids else None
        return pa.field(name, arrow_type, nullable=False, metadata=metadata)

    schema = pa.schema(
        [field("file_path", pa.string(), _PATH_ID), field("pos", pa.int64(), _POS_ID)]
    )
    return pa.table([[path for path, _ in rows], [pos for _, pos in rows]], schema=schema)


def _write(path: Path, rows: Rows, file_format: FileFormat, *, ids: bool = True) -> str:
    match file_format:
        case FileFormat.PARQUET:
            pq.write_table(_table(rows, ids=ids), path, row_group_size=7)
        case FileFormat.ORC:
            table = _table(rows, ids=False)
            if ids:
                table = table.cast(
                    pa.schema(
                        field.with_metadata({"iceberg.id": str(i), "iceberg.required": "true"})
                        for field, i in zip(table.schema, (_PATH_ID, _POS_ID), strict=True)
                    )
                )
            orc.write_table(table, path)
        case _:
            fields = [("file_path", "string", _PATH_ID), ("pos", "long", _POS_ID)]
            records = [{"file_path": path, "pos": pos} for path, pos in rows]
            with path.open("wb") as out:
                fastavro.writer(out, _record("file_position_delete", fields, ids=ids), records)
    return str(path)


def _write_nullable(
    path: Path, rows: Sequence[tuple[str | None, int | None]], file_format: FileFormat
) -> str:
    """Writes the columns as optional ones."""
    if file_format is FileFormat.AVRO:
        fields = [("file_path", ["null", "string"], _PATH_ID), ("pos", ["null", "long"], _POS_ID)]
        records = [{"file_path": name, "pos": pos} for name, pos in rows]
        with path.open("wb") as out:
            fastavro.writer(out, _record("file_position_delete", fields), records)
        return str(path)
    schema = pa.schema([field.with_nullable(True) for field in _table([]).schema])
    table = pa.table([[name for name, _ in rows], [pos for _, pos in rows]], schema=schema)
    if file_format is FileFormat.PARQUET:
        pq.write_table(table, path)
    else:
        orc.write_table(table, path)
    return str(path)


def _record(name: str, fields: Sequence[tuple[str, Any, int]], *, ids: bool = True) -> Any:
    members = [{"name": n, "type": t, **({"field-id": i} if ids else {})} for n, t, i in fields]
    return {"type": "record", "name": name, "fields": members}


def _model(rows: Rows) -> dict[str, list[int]]:
    return {name: sorted({p for n, p in rows if n == name}) for name, _ in rows}


def _plain(found: object) -> dict[str, list[int]]:
    assert isinstance(found, dict)
    return {path: positions.positions().tolist() for path, positions in found.items()}


def _many(path: str, count: int) -> list[tuple[str, int]]:
    return [(path, pos) for pos in range(count)]


@examples(150)
@given(_SETS, st.integers(0, 25_000), st.integers(0, 3_000))
def test_a_mask_is_membership(positions: list[int], first: int, count: int) -> None:
    mask = PositionSet.of(positions).mask(first, count)
    members = set(positions)
    expected = [row in members for row in range(first, first + count)]
    assert (mask is None) == (not any(expected))
    assert mask is None or mask.tolist() == expected


@examples(100)
@given(st.lists(_SETS, max_size=4))
def test_a_union_holds_what_any_part_holds(parts: list[list[int]]) -> None:
    union = PositionSet.union(PositionSet.of(part) for part in parts)
    expected = sorted(set().union(*parts))
    assert union.positions().tolist() == expected
    assert len(union) == len(expected)
    assert union == PositionSet.of(expected)


@examples(50)
@given(_SETS, st.lists(st.integers(0, 25_000), max_size=50))
def test_any_positions_are_looked_up(positions: list[int], asked: list[int]) -> None:
    asked += positions[::3]
    found = PositionSet.of(positions).contains(np.array(asked, np.int64))
    assert found.tolist() == [position in set(positions) for position in asked]


@given(st.lists(_SETS, max_size=6), st.sampled_from([1, 10, 1 << 20]))
def test_gathered_positions_are_counted_and_kept_once(parts: list[list[int]], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "_PACKED_AT", limit)
        collector = PositionCollector()
        for part in parts:
            collector.add(np.array(part[::-1], np.int64))
        assert collector.added == sum(map(len, parts))
        assert collector.result() == PositionSet.of([p for part in parts for p in part])


@given(st.lists(_SETS, max_size=6), st.sampled_from([1, 10, 1 << 12]))
def test_a_collector_takes_all_positions_of_others(parts: list[list[int]], limit: int) -> None:
    whole = PositionCollector()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "_DENSE_AT", limit)
        for part in parts:
            other = PositionCollector()
            other.add(np.array(part[::-1], np.int64))
            whole.add_all(other)
    assert whole.added == sum(map(len, parts))
    assert whole.result() == PositionSet.of([p for part in parts for p in part])


@given(_SETS, st.sampled_from([1, 8, 100, 4096]))
def test_parts_are_all_positions(positions: list[int], size: int) -> None:
    parts = [part.tolist() for part in PositionSet.of(positions).parts(size)]
    assert [p for part in parts for p in part] == positions
    assert all(len(part) == size for part in parts[:-1])


@examples(50)
@given(_SETS, _SETS)
def test_a_subset_is_within_the_other_set(some: list[int], others: list[int]) -> None:
    union = PositionSet.of(some + others)
    assert PositionSet.of(some).issubset(union)
    assert union.issubset(PositionSet.of(others)) == (set(some) <= set(others))


@given(_SETS)
def test_a_set_survives_pickling(positions: list[int]) -> None:
    original = PositionSet.of(positions)
    assert pickle.loads(pickle.dumps(original)) == original


def test_repeated_and_unordered_positions_are_one_set() -> None:
    assert PositionSet.of([5, 3, 5, 2**40]).positions().tolist() == [3, 5, 2**40]


def test_negative_positions_are_no_set() -> None:
    with pytest.raises(ValueError, match="-1"):
        PositionSet.of([3, -1])


def test_memory_is_bounded_by_positions_and_by_rows() -> None:
    sparse = PositionSet.of(np.arange(1000) * 1_000_000)
    dense = PositionSet.of(np.arange(0, 1_000_000, 3))
    stray = PositionSet.union([dense, PositionSet.of([2**50])])
    assert sparse.nbytes == 8 * 1000
    assert dense.nbytes <= 1.1 * 2**20 / 8
    assert stray.nbytes <= dense.nbytes + 100
    assert len(stray) == len(dense) + 1


def test_consecutive_positions_take_hardly_any_memory() -> None:
    assert PositionSet.of(np.arange(1_000_000)).nbytes < 2000


@examples(30)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40) | st.just(2**40))),
    wanted=st.none() | st.sets(st.sampled_from("abcx")),
    in_order=st.booleans(),
    ids=st.booleans(),
)
@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_files_hold_positions_by_data_file(
    tmp_path_factory: pytest.TempPathFactory,
    file_format: FileFormat,
    rows: list[tuple[str, int]],
    wanted: set[str] | None,
    in_order: bool,
    ids: bool,
) -> None:
    if in_order:
        rows = sorted(rows)
    location = _write(tmp_path_factory.getbasetemp() / "d", rows, file_format, ids=ids)
    found = read_position_deletes(FileIO(), location, file_format, paths=wanted)
    expected = _model([row for row in rows if wanted is None or row[0] in wanted])
    assert _plain(found) == expected


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_rows_beside_positions_are_read_over(tmp_path: Path, file_format: FileFormat) -> None:
    """Older writers of format version 2 may store the deleted rows, whatever their columns."""
    path = tmp_path / "deletes"
    rows = [("a", 7), ("b", 3)]
    stored = [{"pos": 100 + at, "file_path": "x"} for at in range(len(rows))]
    if file_format is FileFormat.AVRO:
        row = _record("row", [("pos", "long", 1), ("file_path", "string", 2)])
        fields = [
            ("file_path", "string", _PATH_ID),
            ("pos", "long", _POS_ID),
            ("row", row, _ROW_ID),
        ]
        records = [
            {"file_path": p, "pos": n, "row": r} for (p, n), r in zip(rows, stored, strict=True)
        ]
        with path.open("wb") as out:
            fastavro.writer(out, _record("file_position_delete", fields), records)
    else:
        table = _table(rows).append_column("row", pa.array(stored))
        if file_format is FileFormat.PARQUET:
            pq.write_table(table, path)
        else:
            orc.write_table(table, path)
    found = read_position_deletes(FileIO(), str(path), file_format)
    assert _plain(found) == _model(rows)


def test_row_groups_of_other_data_files_are_not_read(tmp_path: Path) -> None:
    rows = [*_many("a", 7), *_many("b", 7), *_many("c", 7)]
    path = tmp_path / "d.parquet"
    location = _write(path, rows, FileFormat.PARQUET)
    data = bytearray(path.read_bytes())
    metadata = pq.read_metadata(path)
    for group in (0, 2):
        chunk = metadata.row_group(group).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)
    found = read_position_deletes(FileIO(), location, FileFormat.PARQUET, paths=["b"])
    assert _plain(found) == {"b": list(range(7))}
    with pytest.raises(CorruptFileError, match=r"d\.parquet"):
        read_position_deletes(FileIO(), location, FileFormat.PARQUET)


def test_many_wanted_files_are_found(tmp_path: Path) -> None:
    rows = [(f"file-{i:04}", i) for i in range(1000)]
    location = _write(tmp_path / "d.parquet", rows, FileFormat.PARQUET)
    wanted = {path for path, _ in rows[::2]}
    found = read_position_deletes(FileIO(), location, FileFormat.PARQUET, paths=wanted)
    assert _plain(found) == {path: [pos] for path, pos in rows[::2]}


def test_positions_are_packed_while_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "_PACKED_AT", 3)
    rows = [(name, pos) for pos in range(50) for name in ("a", "b")]
    location = _write(tmp_path / "d.parquet", rows, FileFormat.PARQUET)
    assert _plain(read_position_deletes(FileIO(), location, FileFormat.PARQUET)) == _model(rows)


def test_other_columns_are_ignored(tmp_path: Path) -> None:
    table = _table([("a", 1)])
    row = pa.field("row", pa.struct([pa.field("x", pa.int32())]), nullable=False)
    table = table.add_column(0, row, [pa.array([{"x": 1}], row.type)])
    pq.write_table(table, tmp_path / "d.parquet")
    found = read_position_deletes(FileIO(), str(tmp_path / "d.parquet"), FileFormat.PARQUET)
    assert _plain(found) == {"a": [1]}


def test_a_negative_position_is_our_error(tmp_path: Path) -> None:
    location = _write(tmp_path / "d.parquet", [("a", -1)], FileFormat.PARQUET)
    with pytest.raises(CorruptFileError, match=r"d\.parquet.* -1"):
        read_position_deletes(FileIO(), location, FileFormat.PARQUET)


@pytest.mark.parametrize("missing", ["file_path", "pos"])
def test_a_missing_column_is_our_error(tmp_path: Path, missing: str) -> None:
    pq.write_table(_table([("a", 1)]).drop_columns([missing]), tmp_path / "d.parquet")
    with pytest.raises(CorruptFileError, match=rf"d\.parquet.*no column '{missing}'"):
        read_position_deletes(FileIO(), str(tmp_path / "d.parquet"), FileFormat.PARQUET)


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_rows_with_a_null_delete_nothing(tmp_path: Path, file_format: FileFormat) -> None:
    rows = [("a", 1), (None, 2), ("a", None), ("b", None), (None, -1), (None, None), ("a", 7)]
    location = _write_nullable(tmp_path / "d", rows, file_format)
    assert _plain(read_position_deletes(FileIO(), location, file_format)) == {"a": [1, 7]}
    assert read_position_deletes(FileIO(), location, file_format, paths=["b"]) == {}


def test_a_file_of_nulls_deletes_nothing(tmp_path: Path) -> None:
    location = _write_nullable(tmp_path / "d", [(None, None)] * 3, FileFormat.PARQUET)
    assert read_position_deletes(FileIO(), location, FileFormat.PARQUET) == {}
    assert read_position_deletes(FileIO(), location, FileFormat.PARQUET, paths=["a"]) == {}


def test_a_negative_position_is_our_error_beside_nulls(tmp_path: Path) -> None:
    rows = [("a", None), ("a", -1)]
    location = _write_nullable(tmp_path / "d.parquet", rows, FileFormat.PARQUET)
    with pytest.raises(CorruptFileError, match=r"d\.parquet.* -1"):
        read_position_deletes(FileIO(), location, FileFormat.PARQUET)


def test_a_truncated_file_is_our_error(tmp_path: Path) -> None:
    location = _write(tmp_path / "d.parquet", [("a", 1)], FileFormat.PARQUET)
    Path(location).write_bytes(Path(location).read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match=r"d\.parquet"):
        read_position_deletes(FileIO(), location, FileFormat.PARQUET)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.parquet"):
        read_position_deletes(FileIO(), str(tmp_path / "none.parquet"), FileFormat.PARQUET)


def test_paths_that_are_no_text_are_damage(tmp_path: Path) -> None:
    rows = _table([("x", 0)])
    paths = pa.array([b"/t/\xff.parquet"]).view(pa.string())
    pq.write_table(rows.set_column(0, rows.schema.field(0), paths), tmp_path / "d.parquet")
    with pytest.raises(CorruptFileError, match=r"d\.parquet.*UTF-8"):
        read_position_deletes(FileIO(), str(tmp_path / "d.parquet"), FileFormat.PARQUET)


def test_memory_counts_paths_and_positions(tmp_path: Path) -> None:
    rows = [("abc", 1), ("abc", 1000), ("de", 5)]
    location = _write(tmp_path / "d.parquet", rows, FileFormat.PARQUET)
    found = read_position_deletes(FileIO(), location, FileFormat.PARQUET)
    assert positions_nbytes(found) == 5 + sum(found[path].nbytes for path in found)


_READERS = {
    FileFormat.PARQUET: lambda path: pq.read_table(path).to_pylist(),
    FileFormat.ORC: lambda path: orc.read_table(path).to_pylist(),
    FileFormat.AVRO: lambda path: list(fastavro.reader(path.open("rb"))),
}
_MIXED = "java-gen/position_deletes_mixed_formats/data"


@pytest.mark.parametrize(
    ("path", "file_format"),
    [
        (
            "dremio/sabot/kernel/src/test/resources/iceberg/table_with_delete/data/qux/"
            "qux-delete-0.parquet",
            FileFormat.PARQUET,
        ),
        (
            "icebird/test/files/hyperparam-iceberg/java/bunnies/data/bunnies-pos-deletes.parquet",
            FileFormat.PARQUET,
        ),
        (
            "impala/testdata/data/iceberg_test/hadoop_catalog/ice/"
            "iceberg_spark_compaction_with_dangling_delete/data/"
            "delete-ca41ed5edf889878-632c88f100000001_1119661503_data.0.parq",
            FileFormat.PARQUET,
        ),
        (
            f"{_MIXED}/00000-62-e0defc15-ad04-4563-b443-0040fc04ff64-00001.parquet",
            FileFormat.PARQUET,
        ),
        (f"{_MIXED}/00000-61-38a8f620-bee1-4777-8f9d-0579ce7dc03e-00001.orc", FileFormat.ORC),
        (f"{_MIXED}/00000-63-321d5c85-78c7-48ee-8c86-952c6c8dd935-00001.avro", FileFormat.AVRO),
    ],
)
def test_files_that_others_wrote_are_read(path: str, file_format: FileFormat) -> None:
    location = corpus_dir() / path
    rows = [(row["file_path"], row["pos"]) for row in _READERS[file_format](location)]
    assert rows
    found = read_position_deletes(FileIO(), str(location), file_format)
    assert _plain(found) == _model(rows)
    for wanted in _model(rows):
        one = read_position_deletes(FileIO(), str(location), file_format, paths=[wanted])
        assert _plain(one) == {wanted: _model(rows)[wanted]}
